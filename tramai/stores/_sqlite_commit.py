"""Commits to the SQLite store: under the fence, and those of several runs that take turns in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from .. import rules
from ..errors import LeaseLost, NotFound, StoreUnavailable, TramaiError
from ..store import Change, Lease
from . import _rows as rows
from . import _sqlite_rows as columns

if TYPE_CHECKING:
    from ..store import Run
    from ._sqlite_connection import Connection

# The fence: who lost the lease, or let it expire, changes no row here, and then the whole transaction is taken back.
_IF_HELD = "WHERE run=? AND fence=? AND lease_token=? AND lease_owner=? AND lease_expires>?"
_SET_HEAD_IF_HELD = f"UPDATE head SET {', '.join(f'{name}=?' for name in columns.HEAD)} {_IF_HELD}"  # noqa: S608
# What nearly every commit does, in one statement: nothing is read when nobody wrote since this process last did.
_GO_ON = f"UPDATE head SET last_seq=?, last_note=?, body=?, sum=? {_IF_HELD} AND last_seq=? AND body=?"  # noqa: S608


class Parked:
    """A commit that goes with others, when the one who gathered them says so; with neither, it goes by itself."""

    __slots__ = ("change", "error", "lease", "revision")

    def __init__(self, lease: Lease, change: Change) -> None:
        self.lease = lease
        self.change = change
        self.revision: int | None = None
        self.error: TramaiError | None = None
        """Why it was refused."""


class Commits:
    """What `Sqlite` has for whoever has a lease."""

    _connection: Connection
    _execute: Callable[..., Any]
    _known: dict[str, rows.Head]
    _park: Callable[[Parked], bool] | None = None

    if TYPE_CHECKING:

        def _keep(self, sha: str, data: bytes) -> None: ...
        def _head(self, run_id: str) -> rows.Head: ...
        def _header_or_lost(self, lease: Lease) -> tuple[Run, rows.Head]: ...
        def _remember(self, run_id: str, head: rows.Head) -> None: ...
        def _set_run(self, key: int, run: Run) -> None: ...
        def _append(self, before: rows.Head, change: Change) -> None: ...

    def commit(self, lease: Lease, change: Change) -> int:
        """Apply a change under the lease; see `Store.commit`."""
        if self._park is not None and self._park(parked := Parked(lease, change)):
            if parked.error is not None:
                raise parked.error
            if parked.revision is not None:
                return parked.revision
        with self._connection:
            after = self._commit(lease, change)
        self._remember(lease.run_id, after)
        return after.moving.revision

    def gather(self, park: Callable[[Parked], bool]) -> Callable[[Sequence[Parked]], None]:
        """See `pool.Together`."""
        self._park = park
        return self._commit_all

    def _commit_all(self, together: Sequence[Parked]) -> None:
        """Several commits in one transaction, each taken back by itself when it is refused; when the whole of them
        fails, each finds out for itself why, unless it did not even begin: nobody waits for that again."""
        if len(together) == 1:
            return
        done: list[tuple[Parked, rows.Head]] = []
        began = False
        try:
            with self._connection as execute:
                began = True
                for one in together:
                    execute("SAVEPOINT one")
                    try:
                        done.append((one, self._commit(one.lease, one.change)))
                    except TramaiError as error:
                        execute("ROLLBACK TO one")
                        one.error = error
                    execute("RELEASE one")
        except Exception as error:  # noqa: BLE001 - nothing of it was written
            same = None if began or not isinstance(error, StoreUnavailable) else error
            for one in together:
                one.error = same and StoreUnavailable(what=str(same.details["what"]), hint=same.hint)
            return
        for one, after in done:
            self._remember(one.lease.run_id, after)
            one.revision = after.moving.revision

    # What follows runs inside a transaction.

    def _commit(self, lease: Lease, change: Change) -> rows.Head:
        return self._go_on(lease, change) if _goes_on(change) else self._turn(lease, change)

    def _go_on(self, lease: Lease, change: Change) -> rows.Head:
        """A commit that touches only what moves."""
        change = rows.lean_change(change, self._keep)
        known = self._known.get(lease.run_id)
        after = None if known is None else self._move(known, lease, change)
        if known is None or after is None:
            try:
                known = self._head(lease.run_id)
            except NotFound:
                raise LeaseLost from None
            after = self._move(known, lease, change)
        if after is None:
            raise LeaseLost
        self._append(known, change)
        return after

    def _move(self, before: rows.Head, lease: Lease, change: Change) -> rows.Head | None:
        """Write the moving half, if it is still as before and the lease current; None when it was not written."""
        after = before.after(rules.progressed(before.moving, change), change)
        values = (after.last_seq, after.last_note, after.body, after.sum)
        held = (before.key, lease.fence, lease.token, lease.owner, change.now)
        written = self._execute(_GO_ON, (*values, *held, before.last_seq, before.body)).rowcount
        return after if written == 1 else None

    def _turn(self, lease: Lease, change: Change) -> rows.Head:
        """A commit that changes what runs are looked up by, or the lease: the whole header, under the same fence."""
        before, head = self._header_or_lost(lease)
        run = rules.changed(before, rows.lean_change(change, self._keep))
        after = rows.head(head.key, run, head.last_seq + len(change.records), head.last_note + len(change.notes))
        held = (head.key, lease.fence, lease.token, lease.owner, change.now)
        if self._execute(_SET_HEAD_IF_HELD, (*columns.head_row(run, after), *held)).rowcount != 1:
            raise LeaseLost
        self._set_run(head.key, run)
        self._append(head, change)
        return after


def _goes_on(change: Change) -> bool:
    """Whether a change leaves alone what runs are looked up by, the lease and the definition."""
    return change.status is None and change.wake_at is UNSET and not change.release and change.definition is None
