"""The tables of the SQLite store, and how an older file becomes the present one.

The format's number is the file's `user_version`; the number n is reached by running the first n migrations.
sqlite-utils is imported only here and only when a file is made or migrated: it costs more than a whole short run.

A row's `body` is the JSON text of the noun it keeps, and `sum` its checksum; the other columns are what SQL must see.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from typing import Any

from ..errors import StoreTooNew
from ._sqlite_file import flush
from ._sqlite_rows import bindable

APPLICATION_ID = 0x7452414D
"""Tells our files from other programs' (`tRAM`)."""

# `slot` is 0 for the completed record of a path and its seq for all others, so that the key itself allows a path to be
# completed once: an index for that alone would cost every commit a page more. `run` is the small `id` of the run's row.
# `value` stands beside `body` so that a long one is not escaped twice. `head` is apart from `run` because every commit
# writes it. Large texts stand once, in `blob`, under the SHA-256 of their bytes.
_TABLES = """
CREATE TABLE record (
    run INTEGER NOT NULL, path TEXT NOT NULL, slot INTEGER NOT NULL, value TEXT, body TEXT NOT NULL,
    sum INTEGER NOT NULL, PRIMARY KEY (run, path, slot)) WITHOUT ROWID;
CREATE TABLE note (
    run INTEGER NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL,
    PRIMARY KEY (run, seq)) WITHOUT ROWID;
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

_RUN = {
    "id": int,
    "run_id": str,
    "reversed": bytes,
    "workflow": str,
    "status": str,
    "created": float,
    "start_key": str,
    "wake_at": float,
    "body": str,
    "sum": int,
}
_HEAD = {
    "run": int,
    "fence": int,
    "lease_token": str,
    "lease_owner": str,
    "lease_expires": float,
    "last_seq": int,
    "last_note": int,
    "body": str,
    "sum": int,
}
_MAY_BE_NULL = {"start_key", "wake_at", "lease_token", "lease_owner", "lease_expires", "id", "run"}


def _first(db: Any) -> None:
    """Format 1."""
    for name, columns, key in (("run", _RUN, "id"), ("head", _HEAD, "run")):
        db[name].create(columns, pk=key, not_null=set(columns) - _MAY_BE_NULL)
    db["blob"].create({"sha": str, "data": bytes}, pk="sha", not_null={"data"})
    db["definition"].create({"digest": str, "body": str, "sum": int}, pk="digest", not_null={"body", "sum"})
    for statement in _TABLES.split(";"):
        db.execute(statement)


def _second(db: Any) -> None:
    """Format 2: `place` lists, for each group, the runs that have a place or stand in line."""
    db["place"].create({"name": str, "run_id": str}, pk=("name", "run_id"), not_null={"name", "run_id"})


# What workers look for. A run that somebody starts and carries through himself is in none of these indexes but for the
# moment that it is interrupted: it costs no page more.
_FOR_WORKERS = """
ALTER TABLE run ADD COLUMN queue TEXT NOT NULL DEFAULT 'default';
ALTER TABLE run ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
DROP INDEX run_due;
CREATE INDEX run_ready ON run (queue, priority DESC, created, run_id) WHERE status = 'ready';
CREATE INDEX run_wakes ON run (queue, wake_at) WHERE status IN ('sleeping', 'waiting');
CREATE TABLE worker (id TEXT PRIMARY KEY, seen REAL NOT NULL, draining INTEGER NOT NULL, body TEXT NOT NULL)"""


def _third(db: Any) -> None:
    """Format 3: queue and priority of a run stand in columns, `worker` lists the workers."""
    for statement in _FOR_WORKERS.split(";"):
        db.execute(statement)
    # The columns must agree with the bodies, and most say nothing of either.
    query = """SELECT id, CAST(body AS BLOB) FROM run WHERE body LIKE '%"queue":%' OR body LIKE '%"priority":%'"""
    for key, body in db.execute(query).fetchall():
        try:
            said = json.loads(body)
            values = (bindable(said.get("queue", "default")), said.get("priority", 0), key)
        except (ValueError, AttributeError):
            continue  # damaged, and will be found so
        db.execute("UPDATE run SET queue=?, priority=? WHERE id=?", values)


_FOR_SCHEDULERS = """
CREATE TABLE schedule (
    id TEXT PRIMARY KEY, revision INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE tick (
    id TEXT PRIMARY KEY, schedule TEXT NOT NULL, at REAL NOT NULL, status TEXT NOT NULL, run_id TEXT,
    body TEXT NOT NULL, sum INTEGER NOT NULL);
CREATE INDEX tick_by_time ON tick (at);
CREATE INDEX tick_of_schedule ON tick (schedule, at);
CREATE INDEX tick_fired ON tick (schedule, at) WHERE status = 'fired';
CREATE INDEX tick_open ON tick (status) WHERE status IN ('due', 'queued')"""


def _fourth(db: Any) -> None:
    """Format 4: `schedule` and `tick`, for schedulers."""
    for statement in _FOR_SCHEDULERS.split(";"):
        db.execute(statement)


MIGRATIONS: tuple[Callable[[Any], None], ...] = (_first, _second, _third, _fourth)
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
        flush(part)
        os.rename(part, path)
        flush(os.path.dirname(path) or ".")
    finally:
        for name in (part, f"{part}-wal", f"{part}-shm"):
            if os.path.lexists(name):
                os.unlink(name)


def migrate(connection: sqlite3.Connection, found: int) -> None:
    """Bring a file from format `found` to the present one, in one transaction: killed halfway, nothing happened.

    StoreTooNew when a newer version has been quicker: its format is not taken back.
    """
    import sqlite_utils

    if found > len(MIGRATIONS):
        raise StoreTooNew(found=found, known=len(MIGRATIONS))

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
