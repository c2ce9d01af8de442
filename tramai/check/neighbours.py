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
    seen: set[tuple[object, ...]] = set()
    for entry in scene.entries:
        for link in entry.chain[-1:]:
            key = (*link.container.at, *link.block)
            if key not in seen and link.container.verb not in ("foreach", "repeat"):
                seen.add(key)
                yield from (inner for at, _, inner in _inner(link.container) if at == link.block)


def _inner(node: Node) -> tuple[tuple[object, str, Block], ...]:
    blocks = getattr(node.step, "blocks", None)
    return blocks() if blocks is not None else ()


def _rows(block: Block, reads: dict[str, set[str]]) -> Iterator[list[Node]]:
    row: list[Node] = []
    for node in (*block, None):
        if node is not None and _is_question(node) and not reads.get(node.id, set()) & {"*", *(one.id for one in row)}:
            row.append(node)
            continue
        if len(row) >= _FEW:
            yield row
        row = [node] if node is not None and _is_question(node) else []


def _is_question(node: Node) -> bool:
    """Whether it asks something slow and changes nothing: an order may be meant for anything else."""
    return (
        node.verb in _SLOW
        and node.when is None
        and not node.save
        and node.step.replay() is Replay.REPLAYABLE
        and not getattr(node, "catch", ())
    )
