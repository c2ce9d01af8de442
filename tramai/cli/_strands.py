"""Calls that take turns in one thread: each goes on until something of it is to be sent, then all is sent at once.

A thread for each would be simpler, and costs more than what short runs do: for every commit two hand-overs of the
interpreter, and commits that leave one by one because whoever finds the way free goes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from greenlet import getcurrent, greenlet

Send = Callable[[Sequence[Any]], None]
"""Sends what is parked. It raises nothing: what became of it, the items themselves say."""


class Strands:
    """The calls of one thread that are under way. They are begun, and go on, from outside of them all."""

    def __init__(self) -> None:
        self._parked: list[tuple[greenlet, Any]] = []
        self._all: set[greenlet] = set()
        self.send: Send = lambda items: None

    def begin(self, work: Callable[[], None]) -> None:
        """Call this, until it parks something or is over. What it raises is raised here."""
        strand = greenlet(work)
        self._all.add(strand)
        self._go_on(strand)

    def park(self, item: Any) -> bool:
        """From within a call: have an item sent with those of the others, and go on when it was. False from elsewhere:
        nobody would send it."""
        here = getcurrent()
        if here not in self._all or here.parent is None:
            return False
        self._parked.append((here, item))
        here.parent.switch()
        return True

    def turn(self) -> None:
        """Send what is parked, and have each call go on to where it parks again or is over."""
        parked, self._parked = self._parked, []
        if parked:
            self.send([item for _, item in parked])
        for strand, _ in parked:
            self._go_on(strand)

    def _go_on(self, strand: greenlet) -> None:
        try:
            strand.switch()
        finally:
            if strand.dead:
                self._all.discard(strand)
