"""Where a gate may send the walk back to: an earlier step of its block, or of one around it."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from .scene import Entry, Scene


def targets(scene: Scene) -> Iterator[Problem]:
    """`redo` names a step that stands earlier and that the walk can come to again from there."""
    for entry in scene.entries:
        to = None if entry.opaque else entry.node.step.back()
        if to is None:
            continue
        at = (*entry.node.at, entry.node.verb, "on_reject", "redo")
        target = scene.steps.get(to)
        if target is None:
            if to not in scene.hidden:
                hint = scene.did_you_mean(to, scene.steps)
                yield scene.problem("TRM375", f"there is no step `{to}` to go back to", at, hint=hint)
        elif (why := _unreachable(entry, target)) is not None:
            hint = "name a step that stands before this one, in this block or in one around it"
            yield scene.problem("TRM376", f"gate `{entry.node.id}` cannot go back to `{to}`: {why}", at, hint=hint)


def _unreachable(gate: Entry, target: Entry) -> str | None:
    if gate.area == ("finally",):
        return "`finally` goes through its steps once"
    if target.node is gate.node:
        return "it is the gate itself"
    if any(link.container is target.node for link in gate.chain):
        return "it is the step that the gate stands in"
    if target.area != gate.area or target.chain != gate.chain[: len(target.chain)]:
        return "it stands in another block"
    if target.order > gate.order:
        return "it comes later"
    return None
