"""`sqlite:PATH`: runs in one file, for one host and several processes; the default.

Every acknowledged write survives a power cut (WAL with `synchronous=FULL`, one flush a commit). A write is accepted
only if the UPDATE of the run's header, in the same transaction, still finds the writer's fence, token and time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from .. import rules
from ..errors import CheckpointConflict, CheckpointCorrupt, LeaseLost, NotFound, StoreUnavailable
from ..store import Change, Definition, Holder, Lease, NewRun, Note, Record, Run, RunExists, Status
from . import _rows as rows
from . import _sqlite_file as place
from . import _sqlite_rows as columns
from . import _sqlite_schema as schema
from ._files import Lock, locked
from ._sqlite_commit import Commits
from ._sqlite_connection import FAILED, Connection, Failure, public
from ._sqlite_pool import GET_BY_KEY, HEADER, Pool
from ._sqlite_timetable import Timetable
from ._sqlite_whole import ADD_NOTE, ADD_RECORD, ddl, peek

_KEYS = "run.id, run.created, CAST(run.run_id AS BLOB)"
_GET = f"SELECT {HEADER} FROM run LEFT JOIN head ON head.run=run.id WHERE run.run_id=?"  # noqa: S608 (constants)
_GET_HEAD = """SELECT run.id, head.last_seq, head.last_note, head.body, head.sum
    FROM run LEFT JOIN head ON head.run=run.id WHERE run.run_id=?"""

# LEFT JOIN: a run that lost its other half is a damaged one, not one that never was.

_SET_HEAD = f"UPDATE head SET {', '.join(f'{name}=?' for name in columns.HEAD)} WHERE run=?"  # noqa: S608 (constants)
_SET_RUN = f"UPDATE run SET {', '.join(f'{name}=?' for name in columns.RUN[1:])} WHERE id=?"  # noqa: S608 (constants)

_KNOWN = 256


class Sqlite(Commits, Pool, Timetable):
    """A store in one SQLite file, shared by the processes of one host."""

    def __init__(self, where: str = "", *, create: bool = True) -> None:
        """Open the file, and make it (and its folder) if need be; NotFound instead with `create=False`."""
        path = place.default_path(where)
        self.url = f"sqlite:{path}"
        path = self._path = place.followed(path)
        self._faults: tuple[Mapping[str, str], ...] = ()
        place.prepare(path, create=create)
        self._connection = self._connect(path, create=create)
        self._execute: Callable[..., Any] = self._connection.execute
        self._known: dict[str, rows.Head] = {}

    @staticmethod
    def _connect(path: str, *, create: bool) -> Connection:
        try:
            lock = Lock.at(f"{path}.lock")
            if not os.path.exists(path):
                with locked(lock):
                    if not os.path.exists(path):
                        schema.build(path)
        except OSError as error:
            if not create:
                from ._sqlite_reading import Looking

                return Looking(path)
            hint = "check the permissions of its folder"
            raise StoreUnavailable(what=f"{path!r} cannot be written ({error.strerror})", hint=hint) from None
        except FAILED as error:
            raise public(error) from None
        return Connection(path, lock)

    def create(self, new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease | None]:
        """Make the run and claim it; see `Store.create`."""
        rules.check_new(new, owner, ttl)
        with self._connection as execute:
            if new.start_key is not None:
                found = execute("SELECT id FROM run WHERE start_key=?", (new.start_key,)).fetchone()
                if found is not None:
                    return self._whole(self._by_key(found[0])[0]), None
            if execute("SELECT 1 FROM run WHERE run_id=?", (new.run_id,)).fetchone() is not None:
                raise RunExists(run_id=new.run_id)
            run = rules.begun(new, owner=owner, holder=holder, ttl=ttl, now=now)
            self._insert(run)
            self._define(new.definition)
        return run, run.lease

    def claim(self, run_id: str, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
        """Take the lease; see `Store.claim`."""
        rules.check_claim(run_id, owner, ttl)
        with self._connection:
            before, head = self._header(run_id)
            run, lease = rules.claimed(before, owner=owner, holder=holder, ttl=ttl, now=now)
            self._rewrite(run, head)
            return replace(self._whole(run), status=before.status), lease

    def renew(self, lease: Lease, *, ttl: float, now: float) -> Lease:
        """Extend the lease from now; see `Store.renew`."""
        rules.check_ttl(ttl)
        with self._connection:
            run, head = self._header_or_lost(lease)
            renewed = rules.renewed(run.lease, lease, ttl=ttl, now=now)
            self._rewrite(replace(run, lease=renewed), head)
        return renewed

    def release(self, lease: Lease, *, now: float) -> None:
        """Give the lease back; see `Store.release`."""
        with self._connection:
            try:
                run, head = self._header(lease.run_id)
            except NotFound:
                return
            if rules.gives_back(run.lease, lease, now=now):
                self._rewrite(replace(run, lease=None), head)

    def amend(self, run_id: str, *, revision: int, change: Change) -> int:
        """Apply an operator's change; see `Store.amend`."""
        with self._connection:
            before, head = self._header(run_id)
            run = rules.amended(before, revision=revision, change=rows.lean_change(change, self._keep))
            self._rewrite(run, head, change)
        return run.revision

    def request_cancel(self, run_id: str, note: Note, *, now: float) -> Run:
        """Record the wish to cancel; see `Store.request_cancel`."""
        with self._connection:
            before, head = self._header(run_id)
            run = rules.cancelled(before, now=now)
            self._rewrite(run, head, Change(now=now, notes=(note,)))
            return self._whole(run)

    def post(self, run_id: str, note: Note, *, after: int, due: bool = False, now: float) -> Run:
        """Add a line to the event list; see `Store.post`."""
        with self._connection:
            before, head = self._header(run_id)
            run = rules.posted(before, last=head.last_note, after=after, due=due, now=now)
            self._rewrite(run, head, Change(now=now, notes=(note,)))
            return self._whole(run)

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody wants it cancelled: one small row by index."""
        return self._connection.read(lambda: self._head(run_id), run_id).moving.cancel_requested

    def get(self, run_id: str) -> Run:
        """The header, checked against its checksums."""
        return self._connection.read(lambda: self._whole(self._header(run_id)[0]), run_id)

    def journal(self, run_id: str) -> tuple[Record, ...]:
        """All records in order, each checked against its checksum, and none missing."""

        def work() -> tuple[Record, ...]:
            head = self._head(run_id)
            found = self._execute("SELECT value, body, sum FROM record WHERE run=?", (head.key,)).fetchall()
            records = [columns.record_of(run_id, head.key, row, self._fetch) for row in found]
            return rows.in_order(run_id, records, head.last_seq)

        return self._connection.read(work, run_id)

    def notes(self, run_id: str) -> tuple[Note, ...]:
        """The event list in order, checked likewise."""

        def work() -> tuple[Note, ...]:
            head = self._head(run_id)
            query = "SELECT body, sum FROM note WHERE run=? ORDER BY seq"
            found = self._execute(query, (head.key,)).fetchall()
            if len(found) != head.last_note:
                text = f"run {run_id} has {len(found)} of its {head.last_note} events"
                raise CheckpointCorrupt(what=text, run_id=run_id)
            return tuple(rows.note_of(run_id, head.key, row, seq, self._fetch) for seq, row in enumerate(found, 1))

        return self._connection.read(work, run_id)

    def definition(self, digest: str) -> Definition:
        """The source first kept for a digest."""
        query = "SELECT body, sum FROM definition WHERE digest=?"
        row = self._connection.read(lambda: self._execute(query, (digest,)).fetchone())
        if row is None:
            raise NotFound(kind="definition", name=digest)
        return rows.definition_of(digest, row)

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
        rules.check_limit(limit)
        filters = {"run.status": status and status.value, "run.workflow": workflow, "label.name": label}
        given = {name: value for name, value in filters.items() if value is not None}
        values = (*rules.cursor_place(after), *given.values(), limit + 1)
        query = _page_query(tuple(given))

        def work() -> tuple[tuple[Run, ...], str | None]:
            found = self._page_rows(query, values)
            runs, faults = [], []
            for run_id, _, row in found[:limit]:
                try:
                    if isinstance(row, FAILED):
                        raise public(row, run_id)
                    runs.append(self._whole(columns.header_of(row)[0]))
                except CheckpointCorrupt as error:
                    faults.append({"run_id": run_id, "what": error.message})
            self._faults = tuple(faults)
            more = 0 < limit < len(found)
            return tuple(runs), rules.cursor_text(found[limit - 1][1], found[limit - 1][0]) if more else None

        return self._connection.read(work)

    def faults(self) -> tuple[Mapping[str, str], ...]:
        """Bad headers met by the last `page`."""
        return self._faults

    def match(self, suffix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Ids that end with the text, by an index of the ids read backwards."""
        start = columns.reversed_id(suffix)
        query = "SELECT run_id FROM run WHERE reversed >= ? AND reversed < ? ORDER BY reversed LIMIT ?"
        found = self._connection.read(lambda: self._execute(query, (start, start + b"\xff", limit)).fetchall())
        return tuple(columns.unbound(row)[0] for row in found)

    @staticmethod
    def peek(where: str) -> int | None:
        """The format of the file at a place; None where there is no store."""
        return peek(place.default_path(where))

    @staticmethod
    def ddl(where: str) -> str:
        """The statements that make an empty file; the same for every place."""
        return ddl()

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    # What follows runs inside a transaction.

    def _rewrite(self, run: Run, head: rows.Head, change: Change | None = None) -> None:
        """Write a header that was read in this transaction, and so cannot have changed since."""
        if change is None:
            change = Change(now=run.updated)
        after = rows.head(head.key, run, head.last_seq + len(change.records), head.last_note + len(change.notes))
        self._execute(_SET_HEAD, (*columns.head_row(run, after), head.key))
        self._set_run(head.key, run)
        self._append(head, change)

    def _set_run(self, key: int, run: Run) -> None:
        self._execute(_SET_RUN, (*columns.run_row(key, run)[1:], key))

    def _append(self, before: rows.Head, change: Change) -> None:
        rules.follows(before.last_seq, change.records)
        execute, key, keep = self._execute, before.key, self._keep
        try:
            for record in change.records:
                execute(ADD_RECORD, rows.record_row(key, record, keep))
        except sqlite3.IntegrityError:
            raise CheckpointConflict from None  # the path is completed already
        for seq, note in enumerate(change.notes, before.last_note + 1):
            execute(ADD_NOTE, rows.note_row(key, replace(note, seq=seq), keep))
        if change.definition is not None:
            self._define(change.definition)

    def _header(self, run_id: str) -> tuple[Run, rows.Head]:
        """The header, large texts still apart."""
        row = self._execute(_GET, (run_id,)).fetchone()
        if row is None:
            raise NotFound(kind="run", name=run_id)
        return columns.header_of(row)

    def _header_or_lost(self, lease: Lease) -> tuple[Run, rows.Head]:
        try:
            return self._header(lease.run_id)
        except NotFound:
            raise LeaseLost from None

    def _head(self, run_id: str) -> rows.Head:
        row = self._execute(_GET_HEAD, (run_id,)).fetchone()
        if row is None:
            raise NotFound(kind="run", name=run_id)
        return rows.head_of(run_id, row)

    def _remember(self, run_id: str, head: rows.Head) -> None:
        """Spare the next commit a reading: it is written only if the row still is exactly this."""
        if len(self._known) > _KNOWN:
            self._known.clear()
        self._known[run_id] = head

    def _whole(self, run: Run) -> Run:
        return rows.whole(run, self._fetch)

    def _define(self, definition: Definition) -> None:
        if self._execute("SELECT 1 FROM definition WHERE digest=?", (definition.digest,)).fetchone() is None:
            values = rows.definition_row(definition)
            self._execute("INSERT INTO definition (digest, body, sum) VALUES (?, ?, ?)", values)

    def _page_rows(self, query: str, values: tuple[Any, ...]) -> list[tuple[str, float, rows.Row | Failure]]:
        """Id, time of creation, and the row of each run; one by one, and what failed, where the file is damaged."""
        try:
            found = self._execute(query.format(HEADER), values).fetchall()
            return [(*columns.unbound((row[1], row[columns.CREATED])), row) for row in found]
        except FAILED as error:
            if isinstance(public(error), StoreUnavailable):
                raise
        one_by_one: list[tuple[str, float, rows.Row | Failure]] = []
        for key, created, name in self._execute(query.format(_KEYS), values).fetchall():
            row: rows.Row | Failure
            try:
                row = self._execute(GET_BY_KEY, (key,)).fetchone() or sqlite3.DatabaseError("decode to UTF-8")
            except FAILED as error:
                row = error
            one_by_one.append(((name or b"?").decode("utf-8", "replace"), created, row))
        return one_by_one

    def _keep(self, sha: str, data: bytes) -> None:
        found = self._fetch(sha)
        if found is None:
            self._execute("INSERT INTO blob (sha, data) VALUES (?, ?)", (sha, data))
        elif found != data:  # damaged since; what is written now must be readable
            self._execute("UPDATE blob SET data=? WHERE sha=?", (data, sha))

    def _fetch(self, sha: str) -> bytes | None:
        row = self._execute("SELECT data FROM blob WHERE sha=?", (sha,)).fetchone()
        return None if row is None else row[0]


def _page_query(filters: tuple[str, ...]) -> str:
    """The query of a page, with a gap for the columns; each combination of filters goes down one index."""
    lead, source = "run", "run LEFT JOIN head ON head.run=run.id"
    if "label.name" in filters:
        lead, source = "label", "label JOIN run ON run.id=label.run LEFT JOIN head ON head.run=run.id"
    conditions = "".join(f" AND {name}=?" for name in filters)
    if "run.status" not in filters:
        conditions += " AND run.status NOT IN ('moved', 'removed')"
    return (
        f"SELECT {{}} FROM {source} WHERE ({lead}.created, {lead}.run_id) < (?, ?){conditions} "  # noqa: S608 (constants)
        f"ORDER BY {lead}.created DESC, {lead}.run_id DESC LIMIT ?"
    )
