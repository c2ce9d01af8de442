"""The PostgreSQL store beyond the life of one run: whole runs in, tombstones, what nothing refers to, how it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..store import Change, Note, Run, Status
from . import _postgres_rows as columns
from ._postgres_connection import Db
from ._postgres_failures import Duplicate, busy
from ._postgres_read import Reading
from ._postgres_rows import Header
from ._postgres_schema import TABLES
from ._postgres_url import Place
from ._postgres_write import TURNS, Write

if TYPE_CHECKING:
    from ..portable import Bundle, Info

_LONG = 3600.0
"""Seconds that a look at everything may take."""
_NO_LIMIT = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '1min', true)"


class Whole(Reading):
    """What `Postgres` has of `tramai.portable.Portable`."""

    _place: Place
    _known: dict[str, Header]

    if TYPE_CHECKING:

        def _timetable_faults(self, db: Db) -> list[str]: ...
        def _worker_faults(self, db: Db) -> list[str]: ...

    def adopt(self, bundle: Bundle) -> Run:
        """Take a whole run in; see `Portable.adopt`."""
        from ..portable import StartKeyTaken
        from . import _whole

        _whole.check_bundle(bundle)
        run = bundle.run
        change = Change(now=0.0, records=bundle.records, notes=bundle.notes, definition=bundle.definition)
        tried: set[int] = set()

        def attempt(db: Db, doubt: bool) -> Run:
            for _ in range(TURNS):
                _, key, there = self._before(db, run.run_id, run.start_key)
                was = next((found for found in there if found.run.run_id == run.run_id), None)
                if was is not None and was.head.key in tried:
                    return run
                if was is not None and not _whole.replaces(was.run, run):
                    return self._whole(db, was.run)
                for found in there:
                    if found is not was:
                        raise StartKeyTaken(key=run.start_key, run_id=found.run.run_id)
                tried.add(key)
                if self._write_life(db, Write.of_life(key, run, change, was)):
                    return run
            raise busy()

        return self._pool.call(attempt, limit=_LONG)

    def bury(self, run_id: str, note: Note, *, revision: int, status: Status, now: float) -> Run:
        """Leave a tombstone; see `Portable.bury`."""
        from . import _whole

        tried: set[int] = set()

        def attempt(db: Db, doubt: bool) -> Run:
            for _ in range(TURNS):
                was = self._header(db, run_id)
                if was.head.key in tried:
                    return was.run
                run = _whole.buried(was.run, revision=revision, status=status, now=was.now)
                _, key, _ = self._before(db, run_id, None)
                tried.add(key)
                if self._write_life(db, Write.of_life(key, run, Change(now=was.now, notes=(note,)), was)):
                    return run
            raise busy()

        return self._pool.call(attempt)

    def tidy(self) -> int:
        """Delete definitions and large texts that no run refers to."""

        def attempt(db: Db, doubt: bool) -> int:
            unused = self._alone(db, self._sql.unused_blobs)
            freed = 0
            if unused:
                # What was written again since then has another count, and stays.
                values = {"sha": [sha for sha, _ in unused], "used": [used for _, used in unused]}
                freed = sum(size for (size,) in db.rows(self._sql.drop_blobs, values))
            # Whoever makes a run writes to this table first, so that none is on its way while it is locked.
            dropped: list[tuple[int]] = self._alone(db, self._sql.drop_definitions, self._sql.lock)
            return int(freed + sum(size for (size,) in dropped))

        return self._pool.call(attempt, limit=_LONG)

    def info(self) -> Info:
        """How the tables are."""
        from ..portable import Info

        def attempt(db: Db, doubt: bool) -> Info:
            runs = dict(db.rows(self._sql.counts))
            tables = [self._sql.names[name] for name in TABLES if name not in ("now", "key")]
            ((size, waiting, version, flushes, synchronous),) = db.rows(self._sql.state, {"tables": tables})
            ((number,),) = db.rows(self._sql.format)
            return Info(
                kind="postgres",
                url=self.url,
                place=f"{db.where} {self._place.schema}.{self._place.prefix}*",
                format=int(number),
                size=size,
                runs=runs,
                locks=(f"sessions that wait for a lock of these tables: {waiting}",),
                hints=tuple(_hints(version, flushes, synchronous, pooled=self._place.pooled)),
            )

        return self._pool.call(attempt)

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the tables themselves: large texts, rows without their run, runs without their rows."""

        def attempt(db: Db, doubt: bool) -> tuple[str, ...]:
            found = [f"the large value {sha} is damaged" for (sha,) in self._alone(db, self._sql.damaged_blobs)]
            for what, count in self._alone(db, self._sql.strays):
                found += [f"{count} rows of table {what} belong to no run"] if count else []
            return (*found, *self._timetable_faults(db), *self._worker_faults(db))

        return self._pool.call(attempt, limit=_LONG)

    # What follows is done over one connection, in the middle of a call.

    def _write_life(self, db: Db, write: Write) -> bool:
        try:
            done = bool(db.rows(self._sql.write(*write.parts), write.values))
        except Duplicate:
            return False
        self._known.pop(write.run.run_id, None)
        return done

    def _before(self, db: Db, run_id: str, start_key: str | None) -> tuple[float, int, list[Header]]:
        """The server's clock, a key nobody had, and the runs that have this id or this start key; the latter first."""
        names = {"run_id": columns.name(run_id), "start_key": None if start_key is None else columns.name(start_key)}
        ((now, key, taken),) = db.rows(self._sql.before, names)
        found = [columns.header_of(row) for row in db.rows(self._sql.get_either, names)] if taken else []
        return now, key, sorted(found, key=lambda header: header.run.start_key != start_key)

    def _alone(self, db: Db, query: str, lock: str | None = None) -> list[Any]:
        """Run a statement that may take long, in a transaction of its own; its rows."""
        db.script("BEGIN")
        db.rows(_NO_LIMIT)
        if lock is not None:
            db.script(lock)
        found = db.rows(query)
        db.script("COMMIT")
        return found


def _hints(version: str, flushes: str, synchronous: str, *, pooled: bool) -> Iterator[str]:
    yield f"PostgreSQL {version}, synchronous_commit {synchronous}"
    if flushes != "on":
        yield "fsync is off on this server: a power cut takes what was acknowledged, and perhaps all of it"
    if pooled:
        yield "behind a pooler: nothing is prepared, and the limits of the sessions are the server's own"
