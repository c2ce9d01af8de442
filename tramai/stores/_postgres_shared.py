"""Commits of several runs in one statement: who comes while one is under way goes with the next.

Nobody waits for company: a commit that finds the way free goes at once, alone. The others gather meanwhile, and one of
them takes all along. So the threads of a process share the disk's flushes, as a fan-out does within its run. Where many
runs take turns in one thread (`park`), all go as far as they can, and then their commits go together. What was refused,
or is not known to have been done, is looked at by its own run as if it had been sent alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ._postgres_write import Write


class Parked:
    """A commit that goes with others, when the one who gathered them says so."""

    __slots__ = ("alone", "done", "write")

    def __init__(self, write: Write) -> None:
        self.write = write
        self.done: bool | None = None
        """Whether it was accepted; None while nobody knows."""
        self.alone = False
        """Nobody came along: whoever made it sends it."""


class Waiting(Parked):
    """A commit whose thread waits for the statement that takes it along."""

    __slots__ = ("turn",)

    def __init__(self, write: Write) -> None:
        super().__init__(write)
        self.turn = threading.Event()


Send = Callable[[Sequence[Write]], set[int]]
"""Sends writes, and says which were accepted. What it raises is told to nobody: each looks for himself."""


class Shared:
    """Who may send a commit now, and who waits: one statement at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._next: list[Waiting] = []
        self.park: Callable[[Parked], bool] | None = None
        """Has a caller rest who takes turns with others in his thread, until `carry_parked` was called with his commit;
        False for any other."""

    def enter(self, write: Write, send: Send) -> Parked | None:
        """The write's place among the others when it was sent with them; None when the way is free: send it alone, and
        `leave` then."""
        if self.park is not None and self.park(parked := Parked(write)) and not parked.alone:
            return parked
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
            self.carry(together, send)
        finally:
            self.leave()
            for one in together:
                one.turn.set()

    @staticmethod
    def carry(together: Sequence[Parked], send: Send) -> None:
        """Send these; each says then what became of it. A run that is here twice, under a lease that it lost and its
        own, is sent once: the rows of a statement know their run and not the lease."""
        sent = {one.write.head.key: one for one in together}
        for one in together:
            if sent[one.write.head.key] is not one:
                one.done = False
        try:
            done = send([one.write for one in sent.values()])
        except Exception:  # noqa: BLE001 - each looks for himself what became of his own
            return
        for one in sent.values():
            one.done = one.write.head.key in done

    def carry_parked(self, together: Sequence[Parked], send: Send) -> None:
        """Send these, which were parked; what is alone is sent by the one who made it, by a plainer statement."""
        if len(together) == 1:
            together[0].alone = True
        else:
            self.carry(together, send)
