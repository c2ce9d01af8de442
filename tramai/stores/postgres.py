"""`postgres:` (written `postgresql://…`): runs in a PostgreSQL database, for several machines.

A write is one statement and its own transaction: it is accepted only if the UPDATE of the run's header in it finds
the writer's fence, token, unexpired time and the state he knows. A client that stops at any point holds no lock, and
one whose connection breaks looks whether its write was done before it does it again. The clock is the server's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from .. import rules
from ..errors import (
    CheckpointConflict,
    ExtraMissing,
    LeaseLost,
    NotFound,
)
from ..store import Change, Holder, Lease, NewRun, Note, Run, RunExists, Status
from . import _postgres_many as many
from . import _postgres_rows as columns
from . import _postgres_schema as schema
from . import _rows as rows
from ._postgres_connection import OPENING, PATIENCE, Db, Pool
from ._postgres_failures import Duplicate, busy
from ._postgres_pool import Pool as Workers
from ._postgres_read import name_of
from ._postgres_rows import Header
from ._postgres_shared import Shared
from ._postgres_sql import Sql
from ._postgres_timetable import Timetable
from ._postgres_url import place_of
from ._postgres_write import TURNS, Write, landed

_CONNECTIONS = 4
_BEATS = 2
_KNOWN = 256


class Postgres(Workers, Timetable):
    """A store in the tables of one PostgreSQL schema, shared by many machines."""

    own_clock = True
    """Leases and sleepers go by the server's time: see `claiming.clock_of`."""

    def __init__(self, where: str = "", *, create: bool = True) -> None:
        """Connect, and make the tables if need be; NotFound instead with `create=False`."""
        _need_driver()
        place = place_of(where)
        self.url = place.shown
        self._place = place
        self._sql = Sql(place)
        self._faults: tuple[Mapping[str, str], ...] = ()
        self._known: dict[str, Header] = {}
        self._shared = Shared()
        self._pool = Pool(place, _CONNECTIONS)
        self._beats = Pool(place, _BEATS)  # of their own: no slow commit may delay a renewal
        try:
            schema.ensure(self._pool, place, create=create)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def peek(where: str) -> int | None:
        """The format of the tables at a place; None where there are none. Nothing is made or migrated."""
        _need_driver()
        pool = Pool(place_of(where), 1)
        try:
            return schema.found(pool, place_of(where))
        finally:
            pool.close()

    @staticmethod
    def newest() -> int:
        """The format that tables have now."""
        return len(schema.MIGRATIONS)

    @staticmethod
    def ddl(where: str, found: int = 0) -> str:
        """The statements that bring the tables of a place from a format (0: nothing there) to the present one."""
        place = place_of(where)
        make = "" if found or place.schema == "public" else f'CREATE SCHEMA IF NOT EXISTS "{place.schema}";\n'
        return f"BEGIN;\n{make}{schema.script(place, found)}COMMIT;\n"

    def create(self, new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease | None]:
        """Make the run and claim it; see `Store.create`."""
        rules.check_new(new, owner, ttl)
        tried: set[str] = set()

        def attempt(db: Db, doubt: bool) -> tuple[Run, Lease | None]:
            for _ in range(TURNS):
                server_now, key, there = self._before(db, new.run_id, new.start_key)
                for found in there:
                    run = self._whole(db, found.run)
                    if run.generation in tried:
                        return run, run.lease
                    if new.start_key is not None and run.start_key == new.start_key:
                        return run, None
                    raise RunExists(run_id=new.run_id)
                run = rules.begun(new, owner=owner, holder=holder, ttl=ttl, now=server_now)
                tried.add(run.generation)
                write = Write.of_life(key, run, Change(now=server_now, definition=new.definition))
                try:
                    db.rows(self._sql.write(*write.parts), write.values)
                except Duplicate:
                    continue
                self._remember(Header(write.run, write.head, server_now))
                return run, run.lease
            raise busy()

        return self._pool.call(attempt)

    def claim(self, run_id: str, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
        """Take the lease; see `Store.claim`."""
        rules.check_claim(run_id, owner, ttl)
        tried: dict[str, Status] = {}

        def attempt(db: Db, doubt: bool) -> tuple[Run, Lease]:
            for _ in range(TURNS):
                header = self._header(db, run_id)
                before = header.run
                if before.lease is not None and before.lease.token in tried:
                    return replace(self._whole(db, before), status=tried[before.lease.token]), before.lease
                run, lease = rules.claimed(before, owner=owner, holder=holder, ttl=ttl, now=header.now)
                tried[lease.token] = before.status
                if self._settle(db, header, run):
                    return replace(self._whole(db, run), status=before.status), lease
            raise busy()

        return self._pool.call(attempt)

    def renew(self, lease: Lease, *, ttl: float, now: float) -> Lease:
        """Extend the lease from now; see `Store.renew`. Once more does no harm, so nobody asks whether it was done."""
        rules.check_ttl(ttl)
        names = {"run_id": name_of(lease.run_id), "token": name_of(lease.token), "owner": name_of(lease.owner)}
        values = {**names, "fence": lease.fence, "ttl": float(ttl)}
        patience = min(max(ttl / 3, 1.0), 10.0)  # then comes the next beat; a server that hangs is asked twice
        found = self._beats.call(lambda db, _: db.rows(self._sql.renew, values), patience=patience, limit=patience / 2)
        if not found:
            raise LeaseLost
        return columns.renewed_of(found[0])

    def release(self, lease: Lease, *, now: float) -> None:
        """Give the lease back; see `Store.release`."""

        def attempt(db: Db, doubt: bool) -> None:
            for _ in range(TURNS):
                try:
                    header = self._header(db, lease.run_id)
                except NotFound:
                    return
                if not rules.gives_back(header.run.lease, lease, now=header.now):
                    return
                if self._settle(db, header, replace(header.run, lease=None)):
                    return
            raise busy()

        self._pool.call(attempt)

    def commit(self, lease: Lease, change: Change) -> int:
        """Apply a change under the lease; see `Store.commit`. Those of several threads share statements."""
        kept: dict[str, bytes] = {}
        change = rows.lean_change(change, kept.__setitem__)
        ready = self._ready(lease, change, kept)
        if ready is None or not many.shareable(ready[1]):
            return self._commit(lease, change, kept, ready)
        place = self._shared.enter(ready[1], self._send)
        if place is None:
            try:
                return self._commit(lease, change, kept, ready)
            finally:
                self._shared.leave()
        if place.done:
            return self._done(ready[0], ready[1])
        return self._commit(lease, change, kept, sent=ready[1] if place.done is None else None)

    def _ready(self, lease: Lease, change: Change, kept: dict[str, bytes]) -> tuple[Header, Write] | None:
        """The write by what is known of the run; it is accepted only if that is how the run still stands."""
        known = self._known.get(lease.run_id)
        if known is None:
            return None
        try:
            return known, Write.of_commit(known, lease, change, kept)
        except CheckpointConflict:
            return None  # what is known may be old

    def _commit(
        self,
        lease: Lease,
        change: Change,
        kept: dict[str, bytes],
        ready: tuple[Header, Write] | None = None,
        sent: Write | None = None,
    ) -> int:
        """Commit in a statement of its own. `sent` was sent before, and nobody knows what became of it."""
        in_doubt = sent is not None

        def attempt(db: Db, doubt: bool) -> int:
            nonlocal sent
            doubt = doubt or in_doubt
            known, write = ready if ready is not None and not doubt else (None, None)
            for _ in range(TURNS):
                fresh = known is None
                if known is None:
                    known, write = self._header_or_lost(db, lease), None
                    if doubt and sent is not None and landed(db, self._sql, sent, known.head):
                        return sent.revision
                    if not rules.current(known.run.lease, lease, known.now):
                        raise LeaseLost
                try:
                    write = sent = write or Write.of_commit(known, lease, change, kept)
                    done = db.rows(self._sql.write(*write.parts), write.values)
                except CheckpointConflict:
                    if fresh:
                        raise
                    known = None  # what is known may be old
                    continue
                except Duplicate:
                    raise CheckpointConflict from None  # the path is completed already
                if done:
                    return self._done(known, write)
                known = None
            raise busy()

        return self._pool.call(attempt, patience=min(max(lease.expires - lease.acquired, 1.0), PATIENCE))

    def _send(self, writes: Sequence[Write]) -> set[int]:
        """Send several commits at once; the keys of the runs whose commit was accepted."""

        def attempt(db: Db, doubt: bool) -> set[int]:
            if doubt:
                raise busy()  # each looks for himself what became of his own
            return {row[0] for row in db.rows(self._sql.commit_many, many.commits(writes))}

        return self._pool.call(attempt, patience=OPENING, followed=True)

    def _done(self, known: Header, write: Write) -> int:
        self._remember(Header(write.run, write.head, known.now))
        return write.revision

    def gather(self, park: Callable[[Any], bool]) -> Callable[[Sequence[Any]], None]:
        """See `pool.Together`."""
        self._shared.park = park
        return lambda parked: self._shared.carry_parked(parked, self._send)

    def amend(self, run_id: str, *, revision: int, change: Change) -> int:
        """Apply an operator's change; see `Store.amend`."""
        kept: dict[str, bytes] = {}
        lean = rows.lean_change(change, kept.__setitem__)
        return self._operate(
            run_id,
            lambda header: rules.amended(header.run, revision=revision, change=replace(lean, now=header.now)),
            lean,
            kept,
        ).revision

    def request_cancel(self, run_id: str, note: Note, *, now: float) -> Run:
        """Record the wish to cancel; see `Store.request_cancel`."""
        change = Change(now=now, notes=(note,))
        return self._operate(run_id, lambda header: rules.cancelled(header.run, now=header.now), change, {})

    def post(self, run_id: str, note: Note, *, after: int, due: bool = False, now: float) -> Run:
        """Add a line to the event list; see `Store.post`."""

        def judge(header: Header) -> Run:
            return rules.posted(header.run, last=header.head.last_note, after=after, due=due, now=header.now)

        return self._operate(run_id, judge, Change(now=now, notes=(note,)), {})

    def close(self) -> None:
        """Give the connections back."""
        self._pool.close()
        self._beats.close()

    # What follows is done over one connection, in the middle of a call.

    def _operate(self, run_id: str, judge: Any, change: Change, kept: dict[str, bytes]) -> Run:
        """A write without a lease: what `judge` makes of the header, unless somebody else's write comes first."""
        sent: Write | None = None

        def attempt(db: Db, doubt: bool) -> Run:
            nonlocal sent
            for _ in range(TURNS):
                header = self._header(db, run_id)
                if doubt and sent is not None and landed(db, self._sql, sent, header.head):
                    return self._whole(db, sent.run)
                run: Run = judge(header)
                sent = Write.of_settlement(header, run, change, kept)
                try:
                    done = db.rows(self._sql.write(*sent.parts), sent.values)
                except Duplicate:
                    raise CheckpointConflict from None  # the path is completed already
                if done:
                    return self._whole(db, run)
            raise busy()

        return self._pool.call(attempt)

    def _settle(self, db: Db, header: Header, run: Run) -> bool:
        """Write a header, if it still is as it was read."""
        write = Write.of_settlement(header, run, Change(now=header.now), {})
        done = bool(db.rows(self._sql.write(*write.parts), write.values))
        if done:
            self._remember(Header(write.run, write.head, header.now))
        return done

    def _header_or_lost(self, db: Db, lease: Lease) -> Header:
        try:
            return self._header(db, lease.run_id)
        except NotFound:
            raise LeaseLost from None

    def _remember(self, header: Header) -> None:
        """Spare the next commit a reading: it is written only if the run still is exactly this."""
        if header.run.lease is None:
            self._known.pop(header.run.run_id, None)
            return
        if len(self._known) > _KNOWN:
            self._known.clear()
        self._known[header.run.run_id] = header


def _need_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        hint = "pip install 'tramai[postgres]'"
        raise ExtraMissing(what="a store on PostgreSQL", extra="postgres", hint=hint) from None
