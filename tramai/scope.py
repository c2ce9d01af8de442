"""What expressions see of the steps: views of those that are over, block inside block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .codec import Json
from .errors import Pointer
from .expression import Missing
from .step import Block, Control, Node


class View(msgspec.Struct):
    """What expressions and the journal know of a step that is over."""

    status: str
    output: Any
    attempts: int = 0
    duration: float = 0.0
    error: dict[str, Json] | None = None

    def names(self) -> dict[str, Any]:
        """The `steps.<id>` of expressions."""
        return {
            "output": self.output,
            "status": self.status,
            "attempts": self.attempts,
            "duration": self.duration,
            "error": self.error,
        }


class Steps(Mapping[str, Any]):
    """The `steps` of one block: its own, then those of the blocks around it."""

    __slots__ = ("outer", "own")

    def __init__(self, outer: Steps | None = None) -> None:
        self.own: dict[str, dict[str, Any]] = {}
        self.outer = outer

    def __getitem__(self, name: str) -> dict[str, Any]:
        found: Steps | None = self
        while found is not None:
            if name in found.own:
                return found.own[name]
            found = found.outer
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        if self.outer is not None:
            yield from (name for name in self.outer if name not in self.own)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def failed_view(node: Node, error: dict[str, Json]) -> View:
    """What a failed step is to `catch` and `finally`."""
    attempts = error.get("attempt")
    return View("failed", Missing(f"step '{node.id}' failed"), attempts if isinstance(attempts, int) else 1, 0.0, error)


def absent(block: Block, steps: Steps) -> None:
    """Let the steps of a block that never ran be read as skipped."""
    _put_skipped(block, steps, "did not run", keep=True)


def skip_inside(node: Node, scope: Mapping[str, Any]) -> None:
    """Let the steps inside a skipped container be read as skipped, where they may be read at all."""
    for _, _, block in _seen_inside(node):
        _put_skipped(block, scope["steps"], "was skipped", keep=False)


def _put_skipped(block: Block, steps: Steps, why: str, *, keep: bool) -> None:
    """Put the steps of a block into scope as skipped; `keep`: not those that are there."""
    for node in block.nodes:
        if not (keep and node.id in steps):
            steps.own[node.id] = View("skipped", Missing(f"step '{node.id}' {why}")).names()
        for _, _, inner in _seen_inside(node):
            _put_skipped(inner, steps, why, keep=keep)


def _seen_inside(node: Node) -> tuple[tuple[Pointer, str, Block], ...]:
    """The blocks of a step whose steps may be read after it."""
    return node.step.blocks() if isinstance(node.step, Control) and node.step.visible() else ()
