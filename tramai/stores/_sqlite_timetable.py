"""The SQLite store as schedulers see it. A write transaction has the file for itself, so nobody else decides."""

# ruff: noqa: S608 (statements are made of constants)

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _timetable_rows as rows
from ._sqlite_rows import unbound

if TYPE_CHECKING:
    from ..store import Definition
    from ..timetable import Entry, Roster, Tick
    from ._sqlite_connection import Connection

_ENTRY = "id, revision, digest, body, sum"
_TICK = "id, schedule, at, status, run_id, body, sum"
# As bytes: SQLite refuses to give out a whole result in which one text is no text any more.
_GET_ENTRY = "CAST(id AS BLOB), revision, CAST(digest AS BLOB), CAST(body AS BLOB), sum"
_GET_TICK = """CAST(id AS BLOB), CAST(schedule AS BLOB), at, CAST(status AS BLOB), CAST(run_id AS BLOB),
    CAST(body AS BLOB), sum"""
_SET_ENTRY = f"INSERT OR REPLACE INTO schedule ({_ENTRY}) VALUES (?, ?, ?, ?, ?)"
# What is queued may become something else; whatever else there is stays.
_ADD_TICK = f"""INSERT INTO tick ({_TICK}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
    status=excluded.status, run_id=excluded.run_id, body=excluded.body, sum=excluded.sum WHERE tick.status='queued'"""
_SET_TICK = """UPDATE tick SET status=?, run_id=?, body=?, sum=?
    WHERE id=? AND status IN (SELECT value FROM json_each(?))"""
_IS_OPEN = "status IN ('due', 'queued')"
_OVER = "SELECT value FROM json_each(?)"
_GOING = f"""SELECT CAST(fired.run_id AS BLOB) FROM (SELECT run_id FROM tick WHERE schedule=? AND status='fired'
    ORDER BY at DESC LIMIT ?) AS fired JOIN run ON run.run_id=fired.run_id WHERE run.status IN ({_OVER})"""
_FORGET = f"""DELETE FROM tick WHERE at<? AND status NOT IN ('due', 'queued')
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.run_id=tick.run_id AND run.status IN ({_OVER}))"""


class Timetable:
    """What `Sqlite` has of `tramai.timetable.Timetable`."""

    if TYPE_CHECKING:
        _connection: Connection
        _execute: Callable[..., Any]

        def _define(self, definition: Definition) -> None: ...

    def roster(self, *, now: float) -> Roster:
        """How everything stands; see `Timetable.roster`."""

        def work() -> Roster:
            entries = self._rows(f"SELECT {_GET_ENTRY} FROM schedule")
            return rows.roster(now, entries, self._rows(f"SELECT {_GET_TICK} FROM tick WHERE {_IS_OPEN}"))

        return self._connection.read(work)

    def enroll(
        self, entry: Entry, *, after: int, ticks: Sequence[Tick] = (), definition: Definition | None = None
    ) -> Entry | None:
        """Write a schedule and ticks of it; see `Timetable.enroll`."""
        from ..timetable import written as as_written

        written = as_written(entry, after)
        with self._connection as execute:
            if self._revision(entry.id) != after:
                return None
            execute(_SET_ENTRY, rows.entry_row(written))
            if definition is not None:
                self._define(definition)
            for tick in ticks:
                execute(_ADD_TICK, rows.tick_row(tick))
        return written

    def strike(self, entry: Entry) -> bool:
        """Take a schedule out; see `Timetable.strike`."""
        with self._connection as execute:
            found = self._rows(f"SELECT rowid, {_GET_ENTRY} FROM schedule")
            gone = [
                key
                for key, *row in found
                if row[0] == entry.id and (row[1] == entry.revision or rows.unread(tuple(row)))
            ]
            for key in gone:
                execute("DELETE FROM schedule WHERE rowid=?", (key,))
        return bool(gone)

    def settle(self, tick: Tick, *, was: Sequence[str]) -> bool:
        """Write what became of a tick; see `Timetable.settle`."""
        _, _, _, *columns = rows.tick_row(tick)
        with self._connection as execute:
            done = execute(_SET_TICK, (*columns, tick.id, json.dumps([*was]))).rowcount
        return bool(done == 1)

    def going(self, schedule: str) -> tuple[str, ...]:
        """Its runs that are not over; see `Timetable.going`."""
        from ..timetable import LOOK_BACK

        found = self._connection.read(lambda: self._rows(_GOING, (schedule, LOOK_BACK, _going())))
        return tuple(str(name) for (name,) in found)

    def ticks(
        self, schedule: str | None = None, *, status: str | None = None, before: float | None = None, limit: int
    ) -> tuple[Tick, ...]:
        """What became of ticks; see `Timetable.ticks`."""
        asked = {"schedule=?": schedule, "status=?": status, "at<?": before}
        given = {condition: value for condition, value in asked.items() if value is not None}
        where = f"WHERE {' AND '.join(given)}" if given else ""
        query = f"SELECT {_GET_TICK} FROM tick {where} ORDER BY at DESC, id DESC LIMIT ?"
        found = self._connection.read(lambda: self._rows(query, (*given.values(), limit)))
        return tuple(rows.ticks_of(found, []))

    def forget_ticks(self, *, before: float) -> int:
        """Let go of old ticks; see `Timetable.forget_ticks`."""
        with self._connection as execute:
            gone = int(execute(_FORGET, (before, _going())).rowcount)
            found = self._rows(f"SELECT rowid, {_GET_TICK} FROM tick WHERE at<? AND {_IS_OPEN}", (before,))
            lost = [key for key, *row in found if rows.unread_tick(tuple(row))]
            for key in lost:
                execute("DELETE FROM tick WHERE rowid=?", (key,))
            return gone + len(lost)

    # What follows runs inside a transaction.

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return list(map(unbound, self._execute(query, values).fetchall()))

    def _revision(self, name: str) -> int:
        found = self._rows(f"SELECT {_GET_ENTRY} FROM schedule WHERE id=?", (name,))
        return next((entry.revision for entry in rows.entries_of(found, [])), 0)

    def _scheduled(self) -> set[str] | None:
        """The digests of all schedules; None where one cannot be read."""
        faults: rows.Faults = []
        found = {entry.digest for entry in rows.entries_of(self._rows(f"SELECT {_GET_ENTRY} FROM schedule"), faults)}
        return None if faults else found

    def _timetable_faults(self) -> list[str]:
        """What is wrong with schedules and ticks."""
        faults: rows.Faults = []
        entries = list(rows.entries_of(self._rows(f"SELECT {_GET_ENTRY} FROM schedule"), faults))
        for _ in rows.ticks_of(self._rows(f"SELECT {_GET_TICK} FROM tick"), faults):
            pass
        known = {row[0] for row in self._rows("SELECT digest FROM definition")}
        lost = [
            f"the definition of the schedule {entry.id} is missing" for entry in entries if entry.digest not in known
        ]
        return [what for _, what in faults] + lost


def _going() -> str:
    from ..timetable import GOING

    return json.dumps([status.value for status in GOING])
