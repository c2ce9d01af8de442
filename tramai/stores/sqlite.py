"""`sqlite:PATH`: runs in one file, for one host and several processes; the default.

Every acknowledged write survives a power cut (WAL with `synchronous=FULL`, one flush a commit). A write is accepted
only if the UPDATE of the run's header, in the same transaction, still finds the writer's fence, token and time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from ..errors import CheckpointConflict, CheckpointCorrupt, LeaseLost, NotFound, StoreUnavailable, TramaiError
from ..store import Change, Definition, Holder, Lease, NewRun, Note, Record, Run, RunExists, Status
from . import _rules
from . import _sqlite_file as file
from . import _sqlite_rows as rows
from . import _sqlite_schema as schema

_T = TypeVar("_T")
Execute = Callable[..., sqlite3.Cursor]

_FIXED = ", ".join(schema.FIXED)
_MOVING = ", ".join(schema.MOVING)
_HEADER = f"id, {_FIXED}, fixed_sum, {_MOVING}, sum"
_SET_ALL = ", ".join(f"{name}=?" for name in (*schema.FIXED, "fixed_sum", *schema.MOVING, "sum"))

# The fence: whoever lost the lease, or let it expire, changes no row, and the whole transaction is taken back.
_IF_HELD = "WHERE id=? AND fence=? AND lease_token=? AND lease_owner=? AND lease_expires>?"

# What most commits change, and no index knows of: two pages written instead of six.
_PROGRESS = f"""UPDATE run SET revision=?, updated=?, step=?, claims=?, step_executions=?, tokens=?, cost_usd=?,
    last_seq=?, last_note=?, sum=? {_IF_HELD}"""  # noqa: S608 (constants)
_REWRITE = f"UPDATE run SET {_SET_ALL} "  # noqa: S608 (constants)
_GET = f"SELECT {_HEADER} FROM run WHERE run_id=?"  # noqa: S608 (constants)
_GET_BY_ROW = f"SELECT {_HEADER} FROM run WHERE id=?"  # noqa: S608 (constants)
_GET_MOVING = f"SELECT id, {_MOVING}, sum FROM run WHERE run_id=?"  # noqa: S608 (constants)
_ADD_RUN = (
    f"INSERT INTO run (reversed, {_HEADER}) VALUES ({', '.join('?' * (len(schema.FIXED) + len(schema.MOVING) + 4))})"  # noqa: S608
)
_ADD_RECORD = f"INSERT INTO record VALUES ({', '.join('?' * len(schema.RECORD))})"  # noqa: S608 (constants)
_ADD_NOTE = f"INSERT INTO note VALUES ({', '.join('?' * len(schema.NOTE))})"  # noqa: S608 (constants)
_ADD_DEFINITION = "INSERT INTO definition VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING"
_JOURNAL = f"SELECT {', '.join(schema.RECORD)} FROM record WHERE run=? ORDER BY seq"  # noqa: S608 (constants)
_NOTES = f"SELECT {', '.join(schema.NOTE)} FROM note WHERE run=? ORDER BY seq"  # noqa: S608 (constants)


class Sqlite:
    """A store in one SQLite file, shared by the processes of one host. One connection, safe for all threads."""

    def __init__(self, where: str = "", *, create: bool = True) -> None:
        """Open the file, and make it (and its folder) if need be; NotFound instead with `create=False`."""
        path = file.default_path(where)
        self.url = f"sqlite:{path}"
        self._mutex = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._faults: tuple[Mapping[str, str], ...] = ()
        file.prepare(path, create=create)
        try:
            self._lock = file.Lock(f"{path}.lock")
            if not os.path.exists(path):
                with file.locked(self._lock):
                    if not os.path.exists(path):
                        schema.build(path)
        except OSError as error:
            hint = "check the permissions of its folder"
            raise StoreUnavailable(what=f"{path!r} cannot be written ({error.strerror})", hint=hint) from None
        except sqlite3.Error as error:
            raise file.public(error) from None
        self._connection = file.connect(path, self._lock)
        self._cursor = self._connection.cursor()
        self._writing = _Writing(self)

    # -- runs and leases

    def create(self, new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease | None]:
        """Make the run and claim it; see `Store.create`."""
        _rules.check_new(new, owner, ttl)
        with self._writing as execute:
            if new.start_key is not None:
                found = execute("SELECT run_id FROM run WHERE start_key=?", (new.start_key,)).fetchone()
                if found is not None:
                    return self._header(rows.unbound(found)[0])[1], None
            if execute("SELECT 1 FROM run WHERE run_id=?", (new.run_id,)).fetchone() is not None:
                raise RunExists(run_id=new.run_id)
            run = _rules.begun(new, owner=owner, holder=holder, ttl=ttl, now=now)
            (key,) = execute("SELECT coalesce(max(id), 0) + 1 FROM run").fetchone()
            execute(_ADD_RUN, (rows.reversed_id(run.run_id), *self._header_row(key, run, 0, 0)))
            execute(_ADD_DEFINITION, rows.definition_row(new.definition))
            for label in set(new.labels):
                execute("INSERT INTO label VALUES (?, ?, ?, ?)", (label, float(run.created), run.run_id, key))
        return run, run.lease

    def claim(self, run_id: str, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
        """Take the lease; see `Store.claim`."""
        _rules.check_claim(run_id, owner, ttl)
        with self._writing:
            key, run, last_seq, last_note = self._header(run_id)
            after, lease = _rules.claimed(run, owner=owner, holder=holder, ttl=ttl, now=now)
            self._rewrite(key, after, last_seq, last_note)
        return replace(after, status=run.status), lease

    def renew(self, lease: Lease, *, ttl: float, now: float) -> Lease:
        """Extend the lease from now; see `Store.renew`."""
        _rules.check_ttl(ttl)
        with self._writing:
            key, run, last_seq, last_note = self._header_or_lost(lease)
            renewed = _rules.renewed(run.lease, lease, ttl=ttl, now=now)
            self._rewrite(key, replace(run, lease=renewed), last_seq, last_note)
        return renewed

    def release(self, lease: Lease, *, now: float) -> None:
        """Give the lease back; see `Store.release`."""
        with self._writing:
            try:
                key, run, last_seq, last_note = self._header(lease.run_id)
            except NotFound:
                return
            if _rules.gives_back(run.lease, lease, now=now):
                self._rewrite(key, replace(run, lease=None), last_seq, last_note)

    def request_cancel(self, run_id: str, note: Note, *, now: float) -> Run:
        """Record the wish to cancel; see `Store.request_cancel`."""
        with self._writing:
            key, run, last_seq, last_note = self._header(run_id)
            after = _rules.cancelled(run, now=now)
            self._rewrite(key, after, last_seq, last_note + 1)
            self._append(key, last_seq, (), last_note, (note,))
        return after

    # -- the journal

    def commit(self, lease: Lease, change: Change) -> int:
        """Apply a change under the lease; see `Store.commit`."""
        if not _is_progress(change):
            return self._commit_header(lease, change)
        now, records, notes = float(change.now), change.records, change.notes
        with self._writing as execute:
            row = execute(_GET_MOVING, (lease.run_id,)).fetchone()
            if row is None:
                raise LeaseLost
            key, *moving, moving_sum = rows.unbound(row)
            rows.check_moving(lease.run_id, key, tuple(moving), moving_sum)
            last_seq, last_note = moving[15], moving[16]
            revision = moving[2] + 1
            moving[2:4] = revision, now
            if change.step is not None:
                moving[8] = change.step
            if records:
                moving[10] = 0
            if change.step_executions is not None:
                moving[11] = change.step_executions
            if change.tokens is not None:
                moving[12] = change.tokens
            if change.cost_usd is not None:
                moving[13] = float(change.cost_usd)
            moving[15:17] = last_seq + len(records), last_note + len(notes)
            set_to = (revision, now, moving[8], *moving[10:14], *moving[15:17], rows.checksum(key, *moving))
            if execute(_PROGRESS, (*set_to, key, lease.fence, lease.token, lease.owner, now)).rowcount != 1:
                raise LeaseLost
            self._append(key, last_seq, records, last_note, notes)
        return int(revision)

    def amend(self, run_id: str, *, revision: int, change: Change) -> int:
        """Apply an operator's change; see `Store.amend`."""
        with self._writing:
            key, run, last_seq, last_note = self._header(run_id)
            after = _rules.amended(run, revision=revision, change=change)
            self._rewrite(key, after, last_seq + len(change.records), last_note + len(change.notes))
            self._append(key, last_seq, change.records, last_note, change.notes)
            self._define(change)
        return after.revision

    # -- reading

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody wants it cancelled: one look-up by index."""
        row = self._read(
            lambda execute: execute("SELECT cancel_requested FROM run WHERE run_id=?", (run_id,)).fetchone(), run_id
        )
        if row is None:
            raise NotFound(kind="run", name=run_id)
        return bool(row[0])

    def get(self, run_id: str) -> Run:
        """The header, checked against its checksums."""
        return self._read(lambda execute: self._header(run_id)[1], run_id)

    def journal(self, run_id: str) -> tuple[Record, ...]:
        """All records in order, each checked against its checksum, and all of them there."""

        def work(execute: Execute) -> tuple[Record, ...]:
            key, _, last_seq, _ = self._header(run_id)
            found = execute(_JOURNAL, (key,)).fetchall()
            _check_count(run_id, "record", len(found), last_seq)
            return tuple(rows.record_of(run_id, row, seq, self._fetch) for seq, row in enumerate(found, 1))

        return self._read(work, run_id)

    def notes(self, run_id: str) -> tuple[Note, ...]:
        """The event list in order, checked likewise."""

        def work(execute: Execute) -> tuple[Note, ...]:
            key, _, _, last_note = self._header(run_id)
            found = execute(_NOTES, (key,)).fetchall()
            _check_count(run_id, "event", len(found), last_note)
            return tuple(rows.note_of(run_id, row, seq, self._fetch) for seq, row in enumerate(found, 1))

        return self._read(work, run_id)

    def definition(self, digest: str) -> Definition:
        """The source first kept for a digest."""
        row = self._read(lambda execute: execute("SELECT * FROM definition WHERE digest=?", (digest,)).fetchone())
        if row is None:
            raise NotFound(kind="definition", name=digest)
        return rows.definition_of(row)

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
        place = _rules.cursor_place(after)
        filters = {"run.status": status and status.value, "run.workflow": workflow, "label.name": label}
        given = {name: value for name, value in filters.items() if value is not None}
        source = "run" if label is None else "label JOIN run ON run.id=label.run"
        order = "run" if label is None else "label"
        conditions = "".join(f" AND {name}=?" for name in given)
        query = f"""SELECT run.id, run.created, CAST(run.run_id AS BLOB) FROM {source}
            WHERE ({order}.created, {order}.run_id) < (?, ?){conditions}
            ORDER BY {order}.created DESC, {order}.run_id DESC LIMIT ?"""  # noqa: S608 (constants)

        def work(execute: Execute) -> tuple[tuple[Run, ...], str | None]:
            found = execute(query, (*place, *given.values(), limit + 1)).fetchall()
            runs, faults = [], []
            for key, _, name in found[:limit]:
                try:
                    runs.append(self._run_by_row(key))
                except (CheckpointCorrupt, sqlite3.DatabaseError) as error:
                    what = error if isinstance(error, TramaiError) else file.public(error)
                    faults.append({"run_id": name.decode("utf-8", "replace"), "what": what.message})
            self._faults = tuple(faults)
            if len(found) <= limit:
                return tuple(runs), None
            _, created, name = found[limit - 1]
            return tuple(runs), _rules.cursor_text(created, name.decode("utf-8", "surrogatepass"))

        return self._read(work)

    def faults(self) -> tuple[Mapping[str, str], ...]:
        """Bad headers met by the last `page`."""
        return self._faults

    def match(self, suffix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Ids that end with the text, by an index of the ids read backwards."""
        start = rows.reversed_id(suffix)
        query = "SELECT run_id FROM run WHERE reversed >= ? AND reversed < ? ORDER BY reversed LIMIT ?"
        found = self._read(lambda execute: execute(query, (start, start + b"\xff", limit)).fetchall())
        return tuple(rows.unbound(row)[0] for row in found)

    def close(self) -> None:
        """Close the file; the last one to close it folds the log back into it, which takes its turn like a write."""
        with self._mutex:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            with file.locked(self._lock):
                connection.close()
            self._lock.close()

    def __del__(self) -> None:
        # A connection that Python collects is closed all the same, but without waiting for its turn.
        with contextlib.suppress(Exception):
            self.close()

    # -- inside a transaction

    def _commit_header(self, lease: Lease, change: Change) -> int:
        """A commit that changes more than progress: the whole header is written, under the same fence."""
        with self._writing as execute:
            key, run, last_seq, last_note = self._header_or_lost(lease)
            after = _rules.changed(run, change)
            last = last_seq + len(change.records), last_note + len(change.notes)
            values = self._header_row(key, after, *last)[1:]
            fence = (key, lease.fence, lease.token, lease.owner, float(change.now))
            if execute(_REWRITE + _IF_HELD, (*values, *fence)).rowcount != 1:
                raise LeaseLost
            self._append(key, last_seq, change.records, last_note, change.notes)
            self._define(change)
        return after.revision

    def _append(
        self, key: int, last_seq: int, records: tuple[Record, ...], last_note: int, notes: tuple[Note, ...]
    ) -> None:
        _rules.follows(last_seq, records)
        execute, keep = self._execute, self._keep
        try:
            for record in records:
                execute(_ADD_RECORD, rows.record_row(key, record, keep))
        except sqlite3.IntegrityError:
            raise CheckpointConflict from None  # the path is completed already
        for seq, note in enumerate(notes, last_note + 1):
            execute(_ADD_NOTE, rows.note_row(key, seq, note, keep))

    def _define(self, change: Change) -> None:
        if change.definition is not None:
            self._execute(_ADD_DEFINITION, rows.definition_row(change.definition))

    def _header(self, run_id: str) -> tuple[int, Run, int, int]:
        """Row id, header, last seq of the journal and of the event list."""
        row = self._execute(_GET, (run_id,)).fetchone()
        if row is None:
            raise NotFound(kind="run", name=run_id)
        key, fixed, moving = rows.split(row)
        return key, rows.run_of(fixed, moving, self._fetch), moving[15], moving[16]

    def _header_or_lost(self, lease: Lease) -> tuple[int, Run, int, int]:
        try:
            return self._header(lease.run_id)
        except NotFound:
            raise LeaseLost from None

    def _run_by_row(self, key: int) -> Run:
        _, fixed, moving = rows.split(self._execute(_GET_BY_ROW, (key,)).fetchone())
        return rows.run_of(fixed, moving, self._fetch)

    def _header_row(self, key: int, run: Run, last_seq: int, last_note: int) -> tuple[Any, ...]:
        fixed = rows.fixed_row(run, self._keep)
        moving = rows.moving_row(run, last_seq, last_note, self._keep)
        return (key, *fixed, rows.checksum(key, *fixed), *moving, rows.checksum(key, *moving))

    def _rewrite(self, key: int, run: Run, last_seq: int, last_note: int) -> None:
        """Write a header that was read in this transaction, and so cannot have changed since."""
        self._execute(_REWRITE + "WHERE id=?", (*self._header_row(key, run, last_seq, last_note)[1:], key))

    def _keep(self, sha: bytes, data: bytes) -> None:
        self._execute("INSERT INTO blob VALUES (?, ?) ON CONFLICT (sha) DO NOTHING", (sha, data))

    def _fetch(self, sha: bytes) -> str:
        row = self._execute("SELECT data FROM blob WHERE sha=?", (sha,)).fetchone()
        return rows.text_of_blob(sha, None if row is None else row[0])

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._cursor.execute(statement, values)
        except UnicodeEncodeError:
            return self._cursor.execute(statement, tuple(map(rows.bindable, values)))

    # -- transactions

    def _read(self, work: Callable[[Execute], _T], run_id: str | None = None) -> _T:
        """Do reading work over one snapshot of the file."""
        with self._mutex:
            self._check_open()
            for _ in file.patiently():
                with file.retry_when_busy(run_id):
                    self._execute("BEGIN")
                    try:
                        return work(self._execute)
                    finally:
                        self._rollback()
        raise AssertionError("patience ends with an error")

    def _begin(self) -> None:
        self._mutex.acquire()
        try:
            self._check_open()
            if file.NEEDS_TURNS:
                self._lock.take()
            try:
                for _ in file.patiently():
                    with file.retry_when_busy():
                        self._execute("BEGIN IMMEDIATE")
                        return
            except BaseException:
                self._give_turn()
                raise
        except BaseException:
            self._mutex.release()
            raise

    def _end(self, error: BaseException | None) -> None:
        try:
            if error is None:
                self._execute("COMMIT")
        except sqlite3.Error as failed:
            raise file.public(failed) from None
        finally:
            self._rollback()  # nothing to do after a commit
            self._give_turn()
            self._mutex.release()
        if isinstance(error, sqlite3.Error):
            raise file.public(error) from None

    def _rollback(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._cursor.execute("ROLLBACK")

    def _give_turn(self) -> None:
        if file.NEEDS_TURNS:
            self._lock.give()

    def _check_open(self) -> None:
        if self._connection is None:
            raise StoreUnavailable(what="it is closed")


class _Writing:
    """`with`: one write transaction, taken back whole when anything is raised inside."""

    def __init__(self, store: Sqlite) -> None:
        self._store = store

    def __enter__(self) -> Execute:
        self._store._begin()
        return self._store._execute

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store._end(error)


def _is_progress(change: Change) -> bool:
    return (
        change.status is None
        and change.outputs is None
        and change.error is UNSET
        and change.wake_at is UNSET
        and change.finished is None
        and change.retry_base is None
        and change.definition is None
        and not change.release
    )


def _check_count(run_id: str, what: str, found: int, wanted: int) -> None:
    if found != wanted:
        text = f"run {run_id} has {found} of its {wanted} {what}s"
        raise CheckpointCorrupt(what=text, run_id=run_id, seq=min(found, wanted) + 1)
