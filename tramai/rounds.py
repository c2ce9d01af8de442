"""The way through a block of steps: in order, and back again where a gate sends the walk back."""

from __future__ import annotations

from .paths import in_round
from .step import Block, Node


class Course:
    """Where a walk is in a block. Steps that are done once more have paths of their own: `draft`, `draft@2`."""

    __slots__ = ("_nodes", "_place", "_prefix", "_rounds")

    def __init__(self, block: Block, prefix: str) -> None:
        self._nodes = block.nodes
        self._prefix = prefix
        self._place = 0
        self._rounds: dict[int, int] = {}

    @property
    def node(self) -> Node | None:
        """The step to come to; None at the end."""
        return self._nodes[self._place] if self._place < len(self._nodes) else None

    @property
    def path(self) -> str:
        """Its path, with the round it is in."""
        return in_round(self._prefix + self._nodes[self._place].id, self._rounds.get(self._place, 1))

    def on(self) -> None:
        """Go on to the next."""
        self._place += 1

    def back(self, to: str) -> tuple[str, ...] | None:
        """Go back to an earlier step; the ids of all that are done once more, None when it does not stand here."""
        ids = [node.id for node in self._nodes[: self._place]]
        if to not in ids:
            return None
        first = ids.index(to)
        for place in range(first, self._place + 1):
            self._rounds[place] = self._rounds.get(place, 1) + 1
        again = tuple(node.id for node in self._nodes[first : self._place + 1])
        self._place = first
        return again
