"""A store that lets its user die: cut off before or after one of its writes, as by a loss of power."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import LeaseLost
from ..store import Change, Holder, Lease, Mark, NewRun, Run, Store

FOR_EVER = 3e9
"""Seconds of a lease, as many as are allowed: the clock of a test may move by years."""
_ENDS = (Mark.COMPLETED, Mark.SKIPPED, Mark.FAILED)


class Cut(msgspec.Struct, frozen=True):
    """Where a run is cut off: at write number `write`, or at the write that holds the end of a step."""

    write: int | None = None
    before: bool = False
    after_step: Any = None
    """A pattern that fits the step's path."""

    def meets(self, number: int, change: Change) -> bool:
        """Whether this write is the one."""
        if self.write is not None:
            return number == self.write
        return any(record.mark in _ENDS and self.after_step.fits(record.path) for record in change.records)

    @property
    def spelled(self) -> str:
        """For people."""
        return f"{'before' if self.before else 'after'} write {self.write}"


class Fragile:
    """Another store behind it. Once cut off it takes nothing more, as if its user were dead, until it is revived."""

    def __init__(self, store: Store, cut: Cut | None = None) -> None:
        self._store = store
        self._cut = cut
        self.writes = 0
        self.dead = False
        self.was_cut = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def create(self, new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease | None]:
        """Make the run, held by somebody who is gone already."""
        return self._store.create(new, owner=owner, holder=_gone(), ttl=FOR_EVER, now=now)

    def claim(self, run_id: str, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
        """Take the lease, as somebody who is gone already."""
        return self._store.claim(run_id, owner=owner, holder=_gone(), ttl=FOR_EVER, now=now)

    def enter(self, lease: Lease, *, within: Collection[str] = (), now: float) -> tuple[str, ...]:
        """Take a place in its group."""
        self._alive()
        return self._store.enter(lease, within=within, now=now)

    def renew(self, lease: Lease, *, ttl: float, now: float) -> Lease:
        """Extend the lease."""
        self._alive()
        return self._store.renew(lease, ttl=FOR_EVER, now=now)

    def release(self, lease: Lease, *, now: float) -> None:
        """Give the lease back."""
        self._alive()
        self._store.release(lease, now=now)

    def commit(self, lease: Lease, change: Change) -> int:
        """Write, unless it is here that the run is cut off."""
        self._alive()
        self.writes += 1
        cut = self._cut
        if cut is None or self.was_cut or not cut.meets(self.writes, change):
            return self._store.commit(lease, change)
        self.dead = self.was_cut = True
        if not cut.before:
            self._store.commit(lease, change)
        raise LeaseLost

    def revive(self) -> None:
        """Let somebody else use it."""
        self.dead = False

    def _alive(self) -> None:
        if self.dead:
            raise LeaseLost


def _gone() -> Holder:
    """A process of this host that there is not: whoever comes next need not wait for it."""
    return replace(Holder.here(), pid=0, start="gone")
