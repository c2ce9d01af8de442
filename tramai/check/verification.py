"""`verify`: asked only where it is needed, with a verb that may be repeated."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from ..step import Control, Replay
from .scene import Scene


def asked(scene: Scene) -> Iterator[Problem]:
    """Asking changes nothing: the verb may be repeated."""
    for entry in scene.asked:
        node = entry.node
        if node.replay is Replay.NON_REPLAYABLE:
            message = f"`verify` of `{node.id}` asks with a `{node.verb}` that may not be repeated"
            hint = "if asking changes nothing, say so beside it: replay: replayable"
            yield scene.problem("TRM362", message, (*node.at, node.verb), hint=hint, key=True)


def possible(scene: Scene) -> Iterator[Problem]:
    """A step with a `verify` can be in doubt, and has an end that an answer can stand for."""
    for entry in scene.entries:
        node = entry.node
        if node.verify is None or entry.opaque:
            continue
        at = (*node.at, "verify")
        if isinstance(node.step, Control) or node.replay is not Replay.NON_REPLAYABLE:
            why = "a container is never in doubt itself"
            if not isinstance(node.step, Control):
                why = f"it is {node.replay.value}, so an attempt without an end is simply made again"
            yield scene.problem("TRM363", f"`verify` of `{node.id}` would never be asked: {why}", at, key=True)
        elif node.save:
            message = f"`verify` cannot say what `{node.id}` would have saved"
            hint = f"save steps.{node.id}.output in a step of its own"
            related = (((*node.at, "save"), "what would be saved"),)
            yield scene.problem("TRM364", message, at, hint=hint, key=True, related=related)
