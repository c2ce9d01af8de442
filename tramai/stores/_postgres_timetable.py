"""The PostgreSQL store as schedulers see it: a schedule and what was decided for it are written by one statement.

It finds the schedule only at the revision that the decision was made by, so that of many schedulers one is heard. Who
loses the answer looks whether what stands there is what it wrote.
"""

# ruff: noqa: S608 (what is put into statements are the checked names of tables)

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _postgres_rows as columns
from . import _timetable_rows as rows
from ._postgres_connection import Db, Pool
from ._postgres_failures import Duplicate
from ._postgres_sql import Sql

if TYPE_CHECKING:
    from ..store import Definition
    from ..timetable import Entry, Roster, Tick
    from ._rows import Row

_ENTRY = "id, revision, digest, body, sum"
_TICK = "id, schedule, at, status, run_id, body, sum"
_NEW = f"""moved AS (INSERT INTO {{schedule}} ({_ENTRY})
    VALUES (%(id)s, %(revision)s, %(digest)s, %(body)s, %(sum)s) RETURNING id)"""
_CHANGED = """moved AS (UPDATE {schedule} SET revision = %(revision)s, digest = %(digest)s, body = %(body)s,
    sum = %(sum)s WHERE id = %(id)s AND revision = %(after)s RETURNING id)"""
_TICKS = f"""ticked AS (INSERT INTO {{tick}} AS t ({_TICK}) SELECT n.* FROM moved, unnest(%(t_id)s::text[],
    %(t_schedule)s::text[], %(t_at)s::float8[], %(t_status)s::text[], %(t_run_id)s::text[], %(t_body)s::text[],
    %(t_sum)s::bigint[]) AS n ON CONFLICT (id) DO UPDATE SET status = excluded.status, run_id = excluded.run_id,
    body = excluded.body, sum = excluded.sum WHERE t.status = 'queued')"""
_DEFINED = """defined AS (INSERT INTO {definition} (digest, body, sum)
    SELECT %(d_digest)s, %(d_body)s, %(d_sum)s FROM moved ON CONFLICT (digest) DO NOTHING)"""
_SETTLE = """UPDATE {tick} SET status = %(status)s, run_id = %(run_id)s, body = %(body)s, sum = %(sum)s
    WHERE id = %(id)s AND status = ANY(%(was)s::text[]) RETURNING id"""
_GOING = """SELECT f.run_id FROM (SELECT run_id, at FROM {tick} WHERE schedule = %(schedule)s AND status = 'fired'
    ORDER BY at DESC LIMIT %(most)s) AS f JOIN {run} AS r ON r.run_id = f.run_id
    WHERE r.status = ANY(%(going)s::text[]) ORDER BY f.at DESC"""
_FORGET = """DELETE FROM {tick} AS t WHERE t.at < %(before)s AND t.status NOT IN ('due', 'queued') AND NOT EXISTS (
    SELECT FROM {run} AS r WHERE r.run_id = t.run_id AND r.status = ANY(%(going)s::text[])) RETURNING t.id"""


class Timetable:
    """What `Postgres` has of `tramai.timetable.Timetable`."""

    if TYPE_CHECKING:
        _pool: Pool
        _sql: Sql

    def roster(self, *, now: float) -> Roster:
        """How everything stands, by the server's clock; see `Timetable.roster`."""

        def attempt(db: Db, doubt: bool) -> Roster:
            # Ticks first: one whose schedule is not there afterwards belongs to none that is.
            ticks = db.rows(self._said(f"SELECT {_TICK} FROM {{tick}} WHERE status IN ('due', 'queued')"))
            entries = db.rows(self._said(f"SELECT {_ENTRY} FROM {{schedule}}"))
            ((clock,),) = db.rows(self._said("SELECT {now}()"))
            return rows.roster(float(clock), map(_named, entries), map(_tick, ticks))

        return self._pool.call(attempt)

    def enroll(
        self, entry: Entry, *, after: int, ticks: Sequence[Tick] = (), definition: Definition | None = None
    ) -> Entry | None:
        """Write a schedule and ticks of it; see `Timetable.enroll`."""
        from ..timetable import written as as_written

        written = as_written(entry, after)
        name, revision, digest, body, row_sum = rows.entry_row(written)
        values = {"id": columns.fitting("schedule", name), "revision": revision, "after": after, "body": body}
        values |= {"digest": columns.fitting("digest", digest), "sum": row_sum, **_arrays(ticks)}
        parts = [_CHANGED if after else _NEW, *([_TICKS] if ticks else ()), *([_DEFINED] if definition else ())]
        values |= columns.definition_values(definition)
        statement = self._said(f"WITH {', '.join(parts)} SELECT id FROM moved")

        def attempt(db: Db, doubt: bool) -> Entry | None:
            if doubt and self._body(db, values["id"]) == body:
                return written
            try:
                return written if db.rows(statement, values) else None
            except Duplicate:
                pass
            if after or not self._clear_unread(db, entry.id):
                return None
            try:
                return written if db.rows(statement, values) else None
            except Duplicate:
                return None

        return self._pool.call(attempt)

    def strike(self, entry: Entry) -> bool:
        """Take a schedule out; see `Timetable.strike`."""
        statement = self._said("DELETE FROM {schedule} WHERE id = %s AND revision = %s RETURNING id")

        def attempt(db: Db, doubt: bool) -> bool:
            done = bool(db.rows(statement, (columns.name(entry.id), entry.revision)))
            gone = done or (doubt and self._body(db, columns.name(entry.id)) is None)
            return gone or self._clear_unread(db, entry.id)

        return self._pool.call(attempt)

    def settle(self, tick: Tick, *, was: Sequence[str]) -> bool:
        """Write what became of a tick; see `Timetable.settle`."""
        *_, status, run_id, body, row_sum = rows.tick_row(tick)
        values = {"id": tick.id, "status": status, "run_id": run_id, "body": body, "sum": row_sum, "was": [*was]}

        def attempt(db: Db, doubt: bool) -> bool:
            if db.rows(self._said(_SETTLE), values):
                return True
            found = db.rows(self._said("SELECT body FROM {tick} WHERE id = %s"), (tick.id,)) if doubt else []
            return found == [(body,)]

        return self._pool.call(attempt)

    def going(self, schedule: str) -> tuple[str, ...]:
        """Its runs that are not over; see `Timetable.going`."""
        from ..timetable import LOOK_BACK

        values = {"schedule": columns.name(schedule), "most": LOOK_BACK, "going": _going()}
        found = self._pool.call(lambda db, _: db.rows(self._said(_GOING), values))
        return tuple(columns.name_of(name) for (name,) in found)

    def ticks(
        self, schedule: str | None = None, *, status: str | None = None, before: float | None = None, limit: int
    ) -> tuple[Tick, ...]:
        """What became of ticks; see `Timetable.ticks`."""
        name = None if schedule is None else columns.name(schedule)
        asked = {
            "schedule": (name, "="),
            "status": (status, "="),
            "at": (None if before is None else float(before), "<"),
        }
        given = {column: (value, sign) for column, (value, sign) in asked.items() if value is not None}
        conditions = " AND ".join(f"{column} {sign} %({column})s" for column, (_, sign) in given.items())
        where = f"WHERE {conditions}" if conditions else ""
        statement = self._said(f"SELECT {_TICK} FROM {{tick}} {where} ORDER BY at DESC, id DESC LIMIT %(limit)s")
        values = {column: value for column, (value, _) in given.items()} | {"limit": limit}
        return tuple(rows.ticks_of(map(_tick, self._pool.call(lambda db, _: db.rows(statement, values))), []))

    def forget_ticks(self, *, before: float) -> int:
        """Let go of old ticks; see `Timetable.forget_ticks`."""
        values = {"before": float(before), "going": _going()}
        still_open = f"SELECT {_TICK} FROM {{tick}} WHERE at < %s AND status IN ('due', 'queued')"
        by_body = "DELETE FROM {tick} WHERE id = %s AND body = %s AND sum = %s RETURNING id"

        def attempt(db: Db, doubt: bool) -> int:
            gone = len(db.rows(self._said(_FORGET), values))
            found = db.rows(self._said(still_open), (float(before),))
            lost = [(row[0], *row[-2:]) for row in found if rows.unread_tick(_tick(row))]
            return gone + sum(len(db.rows(self._said(by_body), one)) for one in lost)

        return self._pool.call(attempt)

    # What follows is done over one connection, in the middle of a call.

    def _body(self, db: Db, name: Any) -> str | None:
        found = db.rows(self._said("SELECT body FROM {schedule} WHERE id = %s"), (name,))
        return found[0][0] if found else None

    def _clear_unread(self, db: Db, name: str) -> bool:
        """Take a schedule out that cannot be read; whether it was such a one."""
        found = db.rows(self._said(f"SELECT {_ENTRY} FROM {{schedule}} WHERE id = %s"), (columns.name(name),))
        if not found or not rows.unread(_named(found[0])):
            return False
        same = "id = %s AND revision = %s AND digest = %s AND body = %s AND sum = %s"
        return bool(db.rows(self._said(f"DELETE FROM {{schedule}} WHERE {same} RETURNING id"), found[0]))

    def _said(self, statement: str) -> str:
        return statement.format_map(self._sql.names)

    def _timetable_faults(self, db: Db) -> list[str]:
        """What is wrong with schedules and ticks."""
        faults: rows.Faults = []
        found = db.rows(self._said(f"SELECT {_ENTRY} FROM {{schedule}}"))
        entries = list(rows.entries_of(map(_named, found), faults))
        for _ in rows.ticks_of(map(_tick, db.rows(self._said(f"SELECT {_TICK} FROM {{tick}}"))), faults):
            pass
        lost = db.rows(
            self._said("SELECT id FROM {schedule} WHERE NOT digest IN (SELECT digest FROM {definition}) ORDER BY id")
        )
        known = {entry.id for entry in entries}
        names = [name for (name,) in map(_named, lost) if name in known]
        return [what for _, what in faults] + [f"the definition of the schedule {name} is missing" for name in names]


def _arrays(ticks: Sequence[Tick]) -> dict[str, Any]:
    if not ticks:
        return {}
    found = [rows.tick_row(tick) for tick in ticks]
    lists = list(map(list, zip(*found, strict=True)))
    lists[1] = [columns.fitting("schedule", name) for name in lists[1]]
    lists[2] = [float(at) for at in lists[2]]
    names = ("t_id", "t_schedule", "t_at", "t_status", "t_run_id", "t_body", "t_sum")
    return dict(zip(names, lists, strict=True))


def _named(row: Row) -> Row:
    return (columns.name_of(row[0]), *row[1:])


def _tick(row: Row) -> Row:
    return (row[0], columns.name_of(row[1]), *row[2:])


def _going() -> list[str]:
    from ..timetable import GOING

    return [status.value for status in GOING]
