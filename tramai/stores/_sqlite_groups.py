"""The SQLite store where runs of one group wait for each other: who is listed, and the place of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ..errors import CheckpointCorrupt, NotFound
from . import _sqlite_rows as columns
from ._sqlite_whole import Whole

if TYPE_CHECKING:
    from ..store import Change, Lease, Run
    from . import _rows as rows


class Groups(Whole):
    """What `Sqlite` has of `Store` for groups. A write transaction has the file for itself, so nobody else decides."""

    if TYPE_CHECKING:

        def _header_or_lost(self, lease: Lease) -> tuple[Run, rows.Head]: ...
        def _rewrite(self, run: Run, head: rows.Head, change: Change | None = None) -> None: ...

    def enter(self, lease: Lease, *, within: Collection[str] = (), now: float) -> tuple[str, ...]:
        """Take a place in the group of the run; see `Store.enter`."""
        from .. import places

        with self._connection as execute:
            run, head = self._header_or_lost(lease)
            if places.settled(run, lease, now) or run.group is None:
                return ()
            group = run.group.name
            found = execute("SELECT run_id FROM place WHERE name=?", (group,)).fetchall()
            listed = [columns.unbound(row)[0] for row in found]
            turn = places.turn(run, listed, self._others(run.run_id, listed), within=within, now=now)
            for run_id in set(listed).difference(turn.listed or listed):
                execute("DELETE FROM place WHERE name=? AND run_id=?", (group, run_id))
            for run_id in set(turn.listed or ()).difference(listed):
                execute("INSERT INTO place (name, run_id) VALUES (?, ?)", (group, run_id))
            if turn.run is not None:
                self._rewrite(turn.run, head)
            return turn.before

    def call_up(self, group: str, *, now: float) -> None:
        """Wake who is next in line; see `Lines.call_up`."""
        from .. import places

        with self._connection as execute:
            found = execute("SELECT run_id FROM place WHERE name=?", (group,)).fetchall()
            others = self._others("", [columns.unbound(row)[0] for row in found])
            for run_id in places.next_up(others, group, now):
                run, head = self._header(run_id)
                after = places.called_up(run, now)
                if after is not run:
                    self._rewrite(after, head)

    def _others(self, itself: str, listed: list[str]) -> Iterator[Run]:
        """The headers of those listed; a run that is gone or damaged has no place."""
        for run_id in listed:
            if run_id == itself:
                continue
            try:
                yield self._header(run_id)[0]
            except (NotFound, CheckpointCorrupt):
                continue
