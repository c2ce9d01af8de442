"""`call`: what is given fits what the other file declares."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..definition import Workflow, declared
from ..errors import Pointer, Problem
from ..expression import Value
from ..inputs import InputSpec
from ..shape import Mismatch, conform
from ..step import Node
from . import algebra, shapes
from .scene import Entry, Field, Scene


def fit(scene: Scene) -> Iterator[Problem]:
    """Inputs and secrets go by names that the called workflow has, and none that it needs is missing."""
    for entry in scene.entries:
        if entry.node.verb != "call":
            continue
        for _, target in entry.node.step.called():
            if target.workflow is not None:
                yield from _inputs(scene, entry, target.path, target.workflow)
                yield from _secrets(scene, entry.node, target.path, target.workflow)


def _inputs(scene: Scene, entry: Entry, path: str, called: Workflow) -> Iterator[Problem]:
    node = entry.node
    given = getattr(node.step, "with_", {})
    at: Pointer = (*node.at, node.verb, "with")
    for name, value in given.items():
        spec = called.inputs.get(name)
        if spec is None:
            known = ", ".join(called.inputs) or "none"
            hint = scene.did_you_mean(name, called.inputs) or f"its inputs: {known}"
            yield scene.problem("TRM316", f"{path} has no input `{name}`", (*at, name), hint=hint, key=True)
        elif not any(site.expressions for site in value.sites()):
            yield from _value(scene, spec, value.data, name, path, (*at, name))
        elif (what := _never(scene, entry, spec, value)) is not None:
            message = f"input `{name}` of {path} {what}"
            yield scene.problem("TRM316", message, (*at, name), hint="change the value, or the type of the input")
    misspelt = {scene.suggest(name, called.inputs) for name in given if name not in called.inputs}
    needed = [name for name, spec in called.inputs.items() if spec.needed and name not in given]
    missing = [name for name in needed if name not in misspelt]
    if missing:
        place = at if given else at[:-1]
        names = ", ".join(f"`{name}`" for name in missing)
        hint = f"add with: {{{missing[0]}: …}}"
        yield scene.problem("TRM316", f"{path} needs the input {names}", place, hint=hint, key=True)


def _never(scene: Scene, entry: Entry, spec: InputSpec, value: Value) -> str | None:
    """Why what an expression gives never is a value of an input; text may be read as another type."""
    wanted = algebra.kinds(msgspec.to_builtins(spec))
    found = algebra.kinds(shapes.known(scene).value(value, Field(value, (), entry.node.verb, "with", entry)))
    if found & wanted or "string" in found:
        return None
    return f"takes {algebra.spell(wanted)}; this is always {algebra.spell(found)}"


def _value(scene: Scene, spec: InputSpec, data: object, name: str, path: str, at: Pointer) -> Iterator[Problem]:
    try:
        conform(spec, data)
    except Mismatch as error:
        where = f"at {error.where} " if error.where else ""
        yield scene.problem("TRM316", f"input `{name}` of {path} {where}{error.what}", at, hint=error.hint)


def _secrets(scene: Scene, node: Node, path: str, called: Workflow) -> Iterator[Problem]:
    passed = getattr(node.step, "secrets", ())
    ours = declared(scene.workflow.secrets)
    at: Pointer = (*node.at, node.verb, "secrets")
    for index, name in enumerate(passed):
        own = passed[name] if isinstance(passed, dict) else name
        place = (*at, name if isinstance(passed, dict) else index)
        if own not in ours:
            hint = scene.did_you_mean(own, ours) or "declare it under `secrets`"
            yield scene.problem("TRM317", f"secret `{own}` is not declared here", place, hint=hint)
        elif name not in called.secrets:
            known = ", ".join(called.secrets) or "none"
            hint = scene.did_you_mean(name, called.secrets) or f"its secrets: {known}"
            yield scene.problem("TRM317", f"{path} has no secret `{name}`", place, hint=hint)
