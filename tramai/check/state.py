"""State: only what is declared is saved, and never by two at once."""

from __future__ import annotations

from collections.abc import Iterator

from .. import definition
from ..errors import Pointer, Problem
from ..reducing import KINDS, fits
from ..step import Block, Control, Node
from .scene import Scene


def declared(scene: Scene) -> Iterator[Problem]:
    """`save` writes declared keys."""
    known = scene.workflow.state
    for entry in scene.entries:
        for name in entry.node.save:
            if name not in known:
                hint = scene.did_you_mean(name, known) or "declare it under `state`"
                at = (*entry.node.at, "save", name)
                yield scene.problem("TRM304", f"state key `{name}` is not declared", at, hint=hint, key=True)


def side_by_side(scene: Scene) -> Iterator[Problem]:
    """Blocks that run at the same time write different keys."""
    for entry in scene.entries:
        step = entry.node.step
        if isinstance(step, Control) and entry.node.verb == "parallel":
            blocks = step.blocks()
            if step.binds():
                yield from _of_items(scene, entry.node, blocks[0][2] if blocks else Block(()))
            else:
                yield from _of_branches(scene, entry.node, [block for _, _, block in blocks])


def _of_items(scene: Scene, node: Node, block: Block) -> Iterator[Problem]:
    for name, at in _saves(scene, block):
        message = f"every item of `{node.id}` would write state key `{name}`, at the same time"
        yield scene.problem(
            "TRM303", message, at, hint=f"give it a `reduce`, or save from steps.{node.id}.output afterwards", key=True
        )


def _of_branches(scene: Scene, node: Node, blocks: list[Block]) -> Iterator[Problem]:
    first: dict[str, tuple[int, Pointer]] = {}
    for index, block in enumerate(blocks):
        for name, at in _saves(scene, block):
            other, place = first.setdefault(name, (index, at))
            if other != index:
                message = f"two branches of `{node.id}` write state key `{name}`, at the same time"
                hint = f"give it a `reduce`, or save from steps.{node.id}.output afterwards"
                yield scene.problem("TRM303", message, at, hint=hint, key=True, related=((place, "also written here"),))


def _saves(scene: Scene, block: Block) -> Iterator[tuple[str, Pointer]]:
    """What a block saves to keys that say nothing of how several writes go together."""
    state = scene.workflow.state
    for node in block.walk():
        for name in node.save:
            spec = state.get(name)
            if spec is None or spec.reduce is None:
                yield name, (*node.at, "save", name)


def reduces(scene: Scene) -> Iterator[Problem]:
    """The value that a key begins with is one that its `reduce` can work on."""
    for name, spec in definition.declared(scene.workflow.state).items():
        if spec.reduce in KINDS and not fits(spec.reduce, spec.initial):
            spelled = {"append": "a list", "merge": "a map", "sum": "a number"}[spec.reduce]
            message = f"state `{name}` begins with something else than {spelled}, which `{spec.reduce}` needs"
            empty = {"append": "[]", "merge": "{}", "sum": "0"}[spec.reduce]
            yield scene.problem("TRM368", message, ("state", name, "initial"), hint=f"write initial: {empty}")
