"""`postgres:` (written `postgresql://…`): runs in a PostgreSQL database, for several machines.

A write is one statement and its own transaction: it is accepted only if the UPDATE of the run's header in it finds
the writer's fence, token, unexpired time and the state he knows. A client that stops at any point holds no lock, and
one whose connection breaks looks whether its write was done before it does it again. The clock is the server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ..errors import (
    CheckpointConflict,
    CheckpointCorrupt,
    ExtraMissing,
    LeaseLost,
    NotFound,
    StoreUnavailable,
)
from ..store import Change, Definition, Holder, Lease, NewRun, Note, Record, Run, RunExists, Status
from . import _postgres_rows as columns
from . import _postgres_schema as schema
from . import _rows as rows
from . import _rules
from ._postgres_connection import PATIENCE, Db, Pool
from ._postgres_failures import Duplicate
from ._postgres_rows import Header
from ._postgres_sql import Sql
from ._postgres_url import place_of
from ._postgres_write import Write, landed

_CONNECTIONS = 4
_BEATS = 2
_GLANCE = 2.0
"""Seconds that a look for a cancel request may take: it comes again soon."""
_TURNS = 50
"""How often a write is made anew because somebody else's came first."""
_KNOWN = 256


class Postgres:
    """A store in the tables of one PostgreSQL schema, shared by many machines."""

    def __init__(self, where: str = "", *, create: bool = True) -> None:
        """Connect, and make the tables if need be; NotFound instead with `create=False`."""
        _need_driver()
        place = place_of(where)
        self.url = place.shown
        self._sql = Sql(place)
        self._faults: tuple[Mapping[str, str], ...] = ()
        self._known: dict[str, Header] = {}
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
    def ddl(where: str, found: int = 0) -> str:
        """The statements that bring the tables of a place from a format (0: nothing there) to the present one."""
        place = place_of(where)
        make = "" if found or place.schema == "public" else f'CREATE SCHEMA IF NOT EXISTS "{place.schema}";\n'
        return f"BEGIN;\n{make}{schema.script(place, found)}COMMIT;\n"

    def create(self, new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease | None]:
        """Make the run and claim it; see `Store.create`."""
        _rules.check_new(new, owner, ttl)
        tried: set[str] = set()

        def attempt(db: Db, doubt: bool) -> tuple[Run, Lease | None]:
            for _ in range(_TURNS):
                query = (new.run_id, new.start_key)
                ((server_now, key, taken, started),) = db.rows(self._sql.before_create, tuple(map(_name, query)))
                if taken or started:
                    found = self._found(db, new, by_key=started)
                    if found is None:
                        continue
                    if found.generation in tried:
                        return found, found.lease
                    if started:
                        return found, None
                    raise RunExists(run_id=new.run_id)
                run = _rules.begun(new, owner=owner, holder=holder, ttl=ttl, now=server_now)
                tried.add(run.generation)
                write = Write.of_new(key, run, new.definition)
                try:
                    db.rows(self._sql.write(*write.parts), write.values)
                except Duplicate:
                    continue
                self._remember(Header(write.run, write.head, server_now))
                return run, run.lease
            raise _busy()

        return self._pool.call(attempt)

    def claim(self, run_id: str, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
        """Take the lease; see `Store.claim`."""
        _rules.check_claim(run_id, owner, ttl)
        tried: dict[str, Status] = {}

        def attempt(db: Db, doubt: bool) -> tuple[Run, Lease]:
            for _ in range(_TURNS):
                header = self._header(db, run_id)
                before = header.run
                if before.lease is not None and before.lease.token in tried:
                    return replace(self._whole(db, before), status=tried[before.lease.token]), before.lease
                run, lease = _rules.claimed(before, owner=owner, holder=holder, ttl=ttl, now=header.now)
                tried[lease.token] = before.status
                if self._settle(db, header, run):
                    return replace(self._whole(db, run), status=before.status), lease
            raise _busy()

        return self._pool.call(attempt)

    def renew(self, lease: Lease, *, ttl: float, now: float) -> Lease:
        """Extend the lease from now; see `Store.renew`. Once more does no harm, so nobody asks whether it was done."""
        _rules.check_ttl(ttl)
        names = {"run_id": _name(lease.run_id), "token": _name(lease.token), "owner": _name(lease.owner)}
        values = {**names, "fence": lease.fence, "ttl": float(ttl)}
        patience = min(max(ttl / 3, 1.0), 10.0)  # then comes the next beat; a server that hangs is asked twice
        found = self._beats.call(lambda db, _: db.rows(self._sql.renew, values), patience=patience, limit=patience / 2)
        if not found:
            raise LeaseLost
        return columns.renewed_of(found[0])

    def release(self, lease: Lease, *, now: float) -> None:
        """Give the lease back; see `Store.release`."""

        def attempt(db: Db, doubt: bool) -> None:
            for _ in range(_TURNS):
                try:
                    header = self._header(db, lease.run_id)
                except NotFound:
                    return
                if not _rules.gives_back(header.run.lease, lease, now=header.now):
                    return
                if self._settle(db, header, replace(header.run, lease=None)):
                    return
            raise _busy()

        self._pool.call(attempt)

    def commit(self, lease: Lease, change: Change) -> int:
        """Apply a change under the lease; see `Store.commit`."""
        kept: dict[str, bytes] = {}
        change = rows.lean_change(change, kept.__setitem__)
        sent: Write | None = None

        def attempt(db: Db, doubt: bool) -> int:
            nonlocal sent
            known = None if doubt else self._known.get(lease.run_id)
            for _ in range(_TURNS):
                fresh = known is None
                if known is None:
                    known = self._header_or_lost(db, lease)
                    if doubt and sent is not None and landed(db, self._sql, sent, known.head):
                        return sent.revision
                    if not _rules.current(known.run.lease, lease, known.now):
                        raise LeaseLost
                try:
                    write = sent = Write.of_commit(known, lease, change, kept)
                    done = db.rows(self._sql.write(*write.parts), write.values)
                except CheckpointConflict:
                    if fresh:
                        raise
                    known = None  # what is known may be old
                    continue
                except Duplicate:
                    raise CheckpointConflict from None  # the path is completed already
                if done:
                    self._remember(Header(write.run, write.head, known.now))
                    return write.revision
                known = None
            raise _busy()

        return self._pool.call(attempt, patience=min(max(lease.expires - lease.acquired, 1.0), PATIENCE))

    def amend(self, run_id: str, *, revision: int, change: Change) -> int:
        """Apply an operator's change; see `Store.amend`."""
        kept: dict[str, bytes] = {}
        lean = rows.lean_change(change, kept.__setitem__)
        return self._operate(
            run_id,
            lambda header: _rules.amended(header.run, revision=revision, change=replace(lean, now=header.now)),
            lean,
            kept,
        ).revision

    def request_cancel(self, run_id: str, note: Note, *, now: float) -> Run:
        """Record the wish to cancel; see `Store.request_cancel`."""
        change = Change(now=now, notes=(note,))
        return self._operate(run_id, lambda header: _rules.cancelled(header.run, now=header.now), change, {})

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody wants it cancelled: one small row by index."""
        head = self._beats.call(lambda db, _: self._head(db, run_id), patience=_GLANCE, limit=_GLANCE / 2)
        return head.moving.cancel_requested

    def get(self, run_id: str) -> Run:
        """The header, checked against its checksums."""
        return self._pool.call(lambda db, _: self._whole(db, self._header(db, run_id).run))

    def journal(self, run_id: str) -> tuple[Record, ...]:
        """All records in order, each checked against its checksum, and none missing."""

        def attempt(db: Db, doubt: bool) -> tuple[Record, ...]:
            head = self._head(db, run_id)
            found = db.rows(self._sql.records, (head.key, 0, head.last_seq))
            fetch = self._fetcher(db, [text for row in found for text in row[3:5]])
            records = [columns.record_of(run_id, head.key, row, fetch) for row in found]
            return rows.in_order(run_id, records, head.last_seq)

        return self._pool.call(attempt)

    def notes(self, run_id: str) -> tuple[Note, ...]:
        """The event list in order, checked likewise."""

        def attempt(db: Db, doubt: bool) -> tuple[Note, ...]:
            head = self._head(db, run_id)
            found = db.rows(self._sql.notes, (head.key, 0, head.last_note))
            if len(found) != head.last_note:
                text = f"run {run_id} has {len(found)} of its {head.last_note} events"
                raise CheckpointCorrupt(what=text, run_id=run_id)
            fetch = self._fetcher(db, [row[1] for row in found])
            return tuple(rows.note_of(run_id, head.key, row[1:], seq, fetch) for seq, row in enumerate(found, 1))

        return self._pool.call(attempt)

    def definition(self, digest: str) -> Definition:
        """The source first kept for a digest."""
        found = self._pool.call(lambda db, _: db.rows(self._sql.definition, (_name(digest),)))
        if not found:
            raise NotFound(kind="definition", name=digest)
        return rows.definition_of(digest, found[0])

    def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        status: Status | None = None,
        workflow: str | None = None,
        label: str | None = None,
    ) -> tuple[tuple[Run, ...], str | None]:
        """Newest first, by index; see `Store.page`."""
        _rules.check_limit(limit)
        created, run_id = _rules.cursor_place(after)
        filters = {"status": status and status.value, "workflow": _name(workflow), "label": _name(label)}
        given = {name: value for name, value in filters.items() if value is not None}
        values = {"created": created, "run_id": _name(run_id), "limit": limit + 1, **given}

        def attempt(db: Db, doubt: bool) -> tuple[tuple[Run, ...], str | None]:
            found = db.rows(self._sql.page(*given), values)
            runs, faults = [], []
            for row in found[:limit]:
                try:
                    runs.append(self._whole(db, columns.header_of(row).run))
                except CheckpointCorrupt as error:
                    faults.append({"run_id": columns.name_of(row[2]), "what": error.message})
            self._faults = tuple(faults)
            if len(found) <= limit:
                return tuple(runs), None
            last = found[limit - 1]
            return tuple(runs), _rules.cursor_text(last[7], columns.name_of(last[2]))

        return self._pool.call(attempt)

    def faults(self) -> tuple[Mapping[str, str], ...]:
        """Bad headers met by the last `page`."""
        return self._faults

    def match(self, suffix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Ids that end with the text, by an index of the ids read backwards."""
        start = columns.name(suffix[::-1])
        values = (start, start + columns.AFTER_ALL, limit)
        found = self._pool.call(lambda db, _: db.rows(self._sql.match, values))
        return tuple(columns.name_of(row[0]) for row in found)

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
            for _ in range(_TURNS):
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
            raise _busy()

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

    def _header(self, db: Db, run_id: str) -> Header:
        """The header, long texts still apart."""
        found = db.rows(self._sql.get, (_name(run_id),))
        if not found:
            raise NotFound(kind="run", name=run_id)
        return columns.header_of(found[0])

    def _head(self, db: Db, run_id: str) -> rows.Head:
        found = db.rows(self._sql.get_head, (_name(run_id),))
        if not found:
            raise NotFound(kind="run", name=run_id)
        return rows.head_of(run_id, found[0])

    def _found(self, db: Db, new: NewRun, *, by_key: bool) -> Run | None:
        query, value = (self._sql.get_by_key, new.start_key) if by_key else (self._sql.get, new.run_id)
        found = db.rows(query, (_name(value),))
        return self._whole(db, columns.header_of(found[0]).run) if found else None

    def _whole(self, db: Db, run: Run) -> Run:
        texts = [text for text in (run.inputs, run.outputs, run.error) if text and text[0] == "@"]
        return rows.whole(run, self._fetcher(db, texts)) if texts else run

    def _fetcher(self, db: Db, texts: list[Any]) -> rows.Fetch:
        """Fetches what the texts refer to, all at once."""
        wanted = columns.references(texts)
        found = dict(db.rows(self._sql.blobs, (wanted,))) if wanted else {}
        return found.get

    def _remember(self, header: Header) -> None:
        """Spare the next commit a reading: it is written only if the run still is exactly this."""
        if len(self._known) > _KNOWN:
            self._known.clear()
        self._known[header.run.run_id] = header


def _name(text: str | None) -> str | None:
    return None if text is None else columns.name(text)


def _busy() -> StoreUnavailable:
    return StoreUnavailable(what="busy", hint="others write to the same run all the time; try again")


def _need_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        hint = "pip install 'tramai[postgres]'"
        raise ExtraMissing(what="a store on PostgreSQL", extra="postgres", hint=hint) from None
