"""The PostgreSQL store where runs of one group wait for each other: who is listed, and the place of a run.

Whoever decides reads the list with its revision, and writes only if that is still the same. So of two who decide at
the same time one finds nothing to write, and decides anew; no lock is ever held between two statements.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .. import places
from ..errors import CheckpointConflict, CheckpointCorrupt, NotFound
from ..store import Change, Lease, Run
from . import _postgres_rows as columns
from ._postgres_connection import Db
from ._postgres_failures import busy
from ._postgres_rows import Header
from ._postgres_whole import Whole
from ._postgres_write import TURNS, Write


class Groups(Whole):
    """What `Postgres` has of `Store` for groups."""

    if TYPE_CHECKING:

        def _header_or_lost(self, db: Db, lease: Lease) -> Header: ...
        def _remember(self, header: Header) -> None: ...
        def _operate(self, run_id: str, judge: Any, change: Change, kept: dict[str, bytes]) -> Run: ...

    def enter(self, lease: Lease, *, within: Collection[str] = (), now: float) -> tuple[str, ...]:
        """Take a place in the group of the run; see `Store.enter`. Who asks again finds that it was done."""

        def attempt(db: Db, doubt: bool) -> tuple[str, ...]:
            for _ in range(TURNS):
                header = self._header_or_lost(db, lease)
                if places.settled(header.run, lease, header.now) or header.run.group is None:
                    return ()
                name = columns.name(header.run.group.name)
                found = db.rows(self._sql.group, (name,))
                revision, names = found[0] if found else (0, ())
                listed = tuple(map(columns.name_of, names))
                others = self._others(db, header.run, names)
                turn = places.turn(header.run, listed, others, within=within, now=header.now)
                change = _listing(name, revision, listed if turn.listed is None else turn.listed)
                if turn.run is None and turn.listed is None:
                    return turn.before
                if turn.run is None:
                    done = bool(db.rows(self._sql.list, change))
                else:
                    done = self._entered(db, header, turn.run, change)
                if done:
                    return turn.before
            raise busy()

        return self._pool.call(attempt)

    def call_up(self, group: str, *, now: float) -> None:
        """Wake who is next in line; see `Lines.call_up`."""

        def look(db: Db, doubt: bool) -> tuple[str, ...]:
            found = db.rows(self._sql.group, (columns.name(group),))
            headers = list(self._headers(db, found[0][1] if found else ()))
            return places.next_up([header.run for header in headers], group, headers[0].now) if headers else ()

        def judge(header: Header) -> Run:
            after = places.called_up(header.run, header.now)
            if after is header.run:
                raise CheckpointConflict  # somebody has it, or it is up already
            return after

        for run_id in self._pool.call(look):
            with contextlib.suppress(NotFound, CheckpointCorrupt, CheckpointConflict):
                self._operate(run_id, judge, Change(now=now), {})

    def _entered(self, db: Db, header: Header, run: Run, change: dict[str, Any]) -> bool:
        write = Write.of_settlement(header, run, Change(now=header.now), {}).entering(change)
        done = bool(db.rows(self._sql.write(*write.parts), write.values))
        if done:
            self._remember(Header(write.run, write.head, header.now))
        return done

    def _others(self, db: Db, run: Run, names: Sequence[str]) -> list[Run]:
        """Those listed, the run itself left out."""
        return [header.run for header in self._headers(db, names) if header.run.run_id != run.run_id]

    def _headers(self, db: Db, names: Sequence[str]) -> Iterator[Header]:
        """The headers of those listed; a run that is gone or damaged has no place."""
        for row in db.rows(self._sql.get_all, (list(names),)) if names else ():
            with contextlib.suppress(CheckpointCorrupt):
                yield columns.header_of(row)


def _listing(name: str, revision: int, listed: Collection[str]) -> dict[str, Any]:
    """The values of a change of a group's list, which must not have changed since."""
    return {"g_name": name, "g_was": revision, "g_runs": [columns.name(run_id) for run_id in listed]}
