"""Steps that wait for one another without need."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from ..step import Block, Node, Replay
from .scene import Scene

_SLOW = frozenset(("http", "ai", "mcp", "codex", "claude", "hermes"))
_FEW = 3


def apart(scene: Scene) -> Iterator[Problem]:
    """Three or more questions in a row, none of which needs an answer of another, could be asked at once."""
    reads: dict[str, set[str]] = {}
    for read in scene.reads:
        path, entry = read.use.path, read.field.entry
        if entry is not None and path[0] in ("steps", "state"):
            named = str(path[1]) if path[0] == "steps" and len(path) > 1 else "*"
            reads.setdefault(entry.node.id, set()).add(named)
    for block in _blocks(scene):
        for row in _rows(block, reads):
            names = ", ".join(f"`{node.id}`" for node in row)
            message = f"{names} need nothing of each other, and wait for one another"
            hint = "let them run side by side: parallel: {branches: …}"
            yield scene.problem("TRM394", message, (*row[0].at, row[0].verb), hint=hint, key=True, severity="warning")


def _blocks(scene: Scene) -> Iterator[Block]:
    yield scene.workflow.steps
    for entry in scene.entries:
        if entry.node.verb not in ("foreach", "repeat"):
            yield from (inner for _, _, inner in entry.node.blocks())


def _rows(block: Block, reads: dict[str, set[str]]) -> Iterator[list[Node]]:
    row: dict[str, Node] = {}
    for node in (*block, None):
        asks = node is not None and _is_question(node)
        if asks and not any(name == "*" or name in row for name in reads.get(node.id, ())):
            row[node.id] = node
            continue
        if len(row) >= _FEW:
            yield list(row.values())
        row = {node.id: node} if asks else {}


def _is_question(node: Node) -> bool:
    """Whether it asks something slow and changes nothing: an order may be meant for anything else."""
    return (
        node.verb in _SLOW
        and node.when is None
        and not node.save
        and node.step.replay() is Replay.REPLAYABLE
        and not getattr(node, "catch", ())
    )
