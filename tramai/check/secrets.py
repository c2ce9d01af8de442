"""Secrets: where they come from, and the few places in which they may stand."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from .scene import Field, Scene


def sources(scene: Scene) -> Iterator[Problem]:
    """A secret comes from exactly one place."""
    for name, source in scene.workflow.secrets.items():
        if source is not None and len(source.given()) != 1:
            hint = "write {env: VARIABLE}, {file: path}, {command: [program, …]} or {keyring: service/name}"
            yield scene.problem("TRM306", f"secret `{name}` needs exactly one source", ("secrets", name), hint=hint)


def sinks(scene: Scene) -> Iterator[Problem]:
    """Outside the sinks no secret stands, nor a variable of `env` that holds one."""
    tainted = {
        read.field.pointer[1]
        for read in scene.reads
        if read.field.area == "env" and read.field.entry is None and read.use.path[0] == "secrets"
    }
    for read in scene.reads:
        use, field = read.use, read.field
        if field.area == "concurrency":
            continue  # nothing of the kind is known there, secret or not
        if use.path[0] not in ("secrets", "env") or len(use.path) < 2 or _is_sink(field):
            continue
        name = use.path[1]
        if use.path[0] == "env" and name in tainted:
            message = f"`env.{name}` holds a secret, which cannot stand in {_spell(field)}"
        elif use.path[0] == "secrets" and name in scene.workflow.secrets:
            message = f"a secret cannot stand in {_spell(field)}"
        else:
            continue
        scene.blame(read.at, use.start)
        yield scene.problem("TRM302", message, read.at, hint=_hint(field), range=(use.start, use.end))


def _is_sink(field: Field) -> bool:
    if field.entry is None:
        return field.area == "env"
    node = field.entry.node
    parts = [part for part in field.pointer[len(node.at) + 1 :] if isinstance(part, str)]
    inside = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return field.area == node.verb and (field.name in node.step.sinks or not inside.isdisjoint(node.step.sinks))


def _spell(field: Field) -> str:
    if field.entry is not None and field.area == field.entry.node.verb:
        return f"`{field.name}` of `{field.area}`"
    return f"`{field.area}`"


def _hint(field: Field) -> str:
    if field.entry is not None and field.area == field.entry.node.verb:
        settings = field.entry.node.step
        # Places below a key that this step does not have are no help by themselves.
        if any("." not in name or getattr(settings, name.partition(".")[0], True) for name in settings.sinks):
            known = ", ".join(f"`{name}`" for name in sorted(settings.sinks))
            return f"in {'an' if field.area == 'ai' else 'a'} `{field.area}` step it may stand in {known}"
    return "it may stand in the environment or the standard input of a child process, or in an http request"
