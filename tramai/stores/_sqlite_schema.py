"""The tables of the SQLite store, and how an older file becomes the present one.

The format's number is the file's `user_version`; the number n is reached by running the first n migrations.
sqlite-utils is imported only here and only when a file is made or migrated: it costs more than a whole short run.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Any

APPLICATION_ID = 0x7452414D
"""Tells our files from other programs' (`tRAM`)."""

FIXED = {
    "run_id": str,
    "generation": str,
    "workflow": str,
    "version": str,
    "digest": str,
    "inputs": str,
    "cwd": str,
    "file": str,
    "created": float,
    "started_by": str,
    "start_key": str,
    "labels": str,
    "queue": str,
    "priority": int,
    "format": int,
}
"""Columns of a header that hardly ever change, in order."""

MOVING = {
    "status": str,
    "fence": int,
    "revision": int,
    "updated": float,
    "finished": float,
    "wake_at": float,
    "outputs": str,
    "error": str,
    "step": str,
    "cancel_requested": int,
    "claims": int,
    "step_executions": int,
    "tokens": int,
    "cost_usd": float,
    "retry_base": int,
    "last_seq": int,
    "last_note": int,
    "lease_owner": str,
    "lease_token": str,
    "lease_acquired": float,
    "lease_expires": float,
    "lease_holder": str,
}
"""Columns of a header that a write may change, in order."""

RECORD = (
    *("run", "seq", "path", "mark", "attempt", "verb", "at", "fence", "started", "worker", "policy", "key"),
    *("input_sha", "log", "value", "error", "saves", "usage", "sum"),
)
"""Columns of a journal record, in order."""

NOTE = ("run", "seq", "at", "type", "by", "comment", "data", "sum")
"""Columns of an event, in order."""


def _first(db: Any) -> None:
    """Format 1."""
    columns = {"id": int, "reversed": bytes, **FIXED, "fixed_sum": int, **MOVING, "sum": int}
    needed = {"reversed", "run_id", "workflow", "created", "fixed_sum", "status", "fence", "revision", "sum"}
    db["run"].create(columns, pk="id", not_null=needed)
    for statement in _FIRST.split(";"):
        db.execute(statement)


# A journal is read and written run by run in order, so its rows stand in that order (WITHOUT ROWID). `run` is the
# header's small `id`, not the run's long name. Large values stand once in `blob`, under the SHA-256 of their bytes.
_FIRST = """
CREATE TABLE record (
    run INTEGER NOT NULL, seq INTEGER NOT NULL, path TEXT NOT NULL, mark TEXT NOT NULL, attempt INTEGER NOT NULL,
    verb TEXT NOT NULL, at REAL NOT NULL, fence INTEGER NOT NULL, started REAL, worker TEXT, policy TEXT, key TEXT,
    input_sha TEXT, log TEXT, value TEXT, error TEXT, saves TEXT, usage TEXT, sum INTEGER NOT NULL,
    PRIMARY KEY (run, seq)) WITHOUT ROWID;
CREATE UNIQUE INDEX record_completed_once ON record (run, path) WHERE mark = 'completed';
CREATE TABLE note (
    run INTEGER NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, type TEXT NOT NULL, by TEXT, comment TEXT, data TEXT,
    sum INTEGER NOT NULL, PRIMARY KEY (run, seq)) WITHOUT ROWID;
CREATE TABLE blob (sha BLOB PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE definition (
    digest TEXT PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, canonical TEXT NOT NULL, text TEXT NOT NULL,
    format TEXT NOT NULL, file TEXT, sum INTEGER NOT NULL);
CREATE TABLE label (
    name TEXT NOT NULL, created REAL NOT NULL, run_id TEXT NOT NULL, run INTEGER NOT NULL,
    PRIMARY KEY (name, created DESC, run_id DESC)) WITHOUT ROWID;
CREATE UNIQUE INDEX run_by_id ON run (run_id);
CREATE UNIQUE INDEX run_by_start_key ON run (start_key) WHERE start_key IS NOT NULL;
CREATE INDEX run_by_suffix ON run (reversed);
CREATE INDEX run_newest ON run (created DESC, run_id DESC);
CREATE INDEX run_of_workflow ON run (workflow, created DESC, run_id DESC);
CREATE INDEX run_in_status ON run (status, created DESC, run_id DESC);
CREATE INDEX run_due ON run (wake_at) WHERE status = 'sleeping'"""

MIGRATIONS: tuple[Callable[[Any], None], ...] = (_first,)
"""What makes format n+1 of format n; each is given a `sqlite_utils.Database`."""


def build(path: str) -> None:
    """Make a new file whole before it has its name: a store is there entirely or not at all.

    The caller holds the lock of the store, so nobody else is making it.
    """
    part = f"{path}.{os.urandom(6).hex()}.part"
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    try:
        connection = sqlite3.connect(part, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous=OFF")  # nobody can see it yet; it is flushed below, once
            connection.execute("PRAGMA journal_mode=MEMORY")
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            migrate(connection, 0)
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        _flush(part)
        os.rename(part, path)
        _flush(os.path.dirname(path) or ".")
    finally:
        for name in (part, f"{part}-wal", f"{part}-shm"):
            if os.path.lexists(name):
                os.unlink(name)


def migrate(connection: sqlite3.Connection, found: int) -> None:
    """Bring a file from format `found` to the present one, in one transaction: killed halfway, nothing happened."""
    import sqlite_utils

    database = sqlite_utils.Database(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in MIGRATIONS[found:]:
            migration(database)
        connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
