"""Commits of several runs in one statement: who comes while one is under way goes with the next.

Nobody waits for company: a commit that finds the way free goes at once, alone. The others gather meanwhile, and one of
them takes all along. So the threads of a process share the disk's flushes, as a fan-out does within its run. What was
refused, or is not known to have been done, is looked at by its own thread as if it had been sent alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ._postgres_write import Write


class Waiting:
    """A commit that waits for the statement that takes it along."""

    __slots__ = ("done", "turn", "write")

    def __init__(self, write: Write) -> None:
        self.write = write
        self.done: bool | None = None
        """Whether it was accepted; None while nobody knows."""
        self.turn = threading.Event()


Send = Callable[[Sequence[Write]], set[int]]
"""Sends writes, and says which were accepted. What it raises is told to nobody: each looks for himself."""


class Shared:
    """Who may send a commit now, and who waits: one statement at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._next: list[Waiting] = []

    def enter(self, write: Write, send: Send) -> Waiting | None:
        """The write's place among the others when it was sent with them; None when the way is free: send it alone, and
        `leave` then."""
        with self._lock:
            if not self._busy:
                self._busy = True
                return None
            mine = Waiting(write)
            self._next.append(mine)
        try:
            mine.turn.wait()
        except BaseException:  # Ctrl-C, say, in a program that has runs carried: he who goes keeps nobody waiting
            self._withdraw(mine)
            raise
        if mine.done is None and self._leads(mine):
            self._carry(send)
        return mine

    def leave(self) -> None:
        """The way is free: for the next, if somebody waits."""
        with self._lock:
            self._busy = bool(self._next)
            if self._next:
                self._next[0].turn.set()

    def _withdraw(self, mine: Waiting) -> None:
        """Wait no longer; whose turn it was leaves the way to the next."""
        with self._lock:
            leads = self._leads(mine) and mine.turn.is_set()
            if mine in self._next:
                self._next.remove(mine)
        if leads:
            self.leave()

    def _leads(self, mine: Waiting) -> bool:
        return bool(self._next) and self._next[0] is mine

    def _carry(self, send: Send) -> None:
        """Send all that wait."""
        with self._lock:
            together, self._next = self._next, []
        try:
            done = send([one.write for one in together])
            for one in together:
                one.done = one.write.head.key in done
        except Exception:  # noqa: BLE001, S110 - each looks for himself what became of his own
            pass
        finally:
            self.leave()
            for one in together:
                one.turn.set()
