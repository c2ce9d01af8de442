"""Secrets: where they come from, and the few places in which they may stand."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from ..expression import Template, Use, Value
from .scene import Field, Scene


def sources(scene: Scene) -> Iterator[Problem]:
    """A secret comes from exactly one place."""
    for name, source in scene.workflow.secrets.items():
        if source is not None and (source.env is None) == (source.file is None):
            hint = "write {env: VARIABLE} or {file: path}"
            yield scene.problem("TRM306", f"secret `{name}` needs exactly one source", ("secrets", name), hint=hint)


def sinks(scene: Scene) -> Iterator[Problem]:
    """Outside the sinks no secret stands, nor a variable of `env` that holds one."""
    tainted = {
        name
        for name, value in scene.workflow.env.items()
        if value is not None and any(_secret(use) for use in _uses(value))
    }
    for field in scene.fields:
        if _is_sink(field):
            continue
        for site in field.thing.sites():
            for expression in site.expressions:
                for use in expression.names:
                    if _secret(use) and use.path[1:2] and use.path[1] in scene.workflow.secrets:
                        message = f"a secret cannot stand in {_spell(field)}"
                    elif use.path[0] == "env" and len(use.path) > 1 and use.path[1] in tainted:
                        message = f"`env.{use.path[1]}` holds a secret, which cannot stand in {_spell(field)}"
                    else:
                        continue
                    at = (*field.pointer, *site.pointer)
                    yield scene.problem("TRM302", message, at, hint=_hint(field), range=(use.start, use.end))


def _uses(thing: Template | Value) -> Iterator[Use]:
    for site in thing.sites():
        for expression in site.expressions:
            yield from expression.names


def _secret(use: Use) -> bool:
    return use.path[0] == "secrets"


def _is_sink(field: Field) -> bool:
    if field.entry is None:
        return field.area == "env"
    node = field.entry.node
    return field.area == node.verb and field.name in node.step.sinks


def _spell(field: Field) -> str:
    if field.entry is not None and field.area == field.entry.node.verb:
        return f"`{field.name}` of `{field.area}`"
    return f"`{field.area}`"


def _hint(field: Field) -> str:
    if field.entry is not None and field.area == field.entry.node.verb and field.entry.node.step.sinks:
        known = ", ".join(f"`{name}`" for name in sorted(field.entry.node.step.sinks))
        return f"in a `{field.area}` step it may stand in {known}"
    return "it may stand in the environment or the standard input of a child process, or in an http request"
