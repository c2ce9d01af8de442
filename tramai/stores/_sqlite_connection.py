"""One connection to the file of the SQLite store: how it is opened, its transactions, its failures by name."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ..errors import CheckpointCorrupt, StoreTooNew, StoreUnavailable, TramaiError
from . import _sqlite_schema as schema
from ._files import Lock, locked, patiently
from ._sqlite_rows import bindable

_T = TypeVar("_T")

# Below 3.51.3 SQLite can damage a file in WAL mode when a second connection runs a checkpoint at the very moment
# another one's commit starts the log anew (the WAL-reset bug). Both need the write side, so there we let only one
# connection of ours be in a write transaction (which may checkpoint at its end) or a close (which does) at a time.
# Readers are not concerned.
NEEDS_TURNS = sqlite3.sqlite_version_info < (3, 51, 3)

CHECKPOINT_PAGES = 4000
"""A checkpoint costs two more flushes; at about four pages a commit this is one in a thousand commits."""

_FAILURES: dict[int, tuple[str, str | None]] = {
    sqlite3.SQLITE_FULL: ("no space is left", "make room and resume; what was saved is intact"),
    sqlite3.SQLITE_READONLY: ("it is not writable", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_PERM: ("it is not accessible", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_IOERR: ("the disk failed to read or write", None),
    sqlite3.SQLITE_NOTADB: ("the file is not a tramai database", "it is left as it is"),
}
_NO_SPACE = getattr(sqlite3, "SQLITE_IOERR_SHMSIZE", 4874)
"""On a full disk not even the index of the log beside the file can be made, without which nobody can read."""


# The driver cannot even decode the message that quotes a damaged schema.
Failure = sqlite3.Error | UnicodeDecodeError
FAILED = (sqlite3.Error, UnicodeDecodeError)


class Connection:
    """One connection, safe for all threads: a mutex lets one of them in at a time."""

    def __init__(self, path: str, lock: Lock) -> None:
        self._path = path
        self._lock = lock
        self._mutex = threading.Lock()
        self._failed = False
        self._raw: sqlite3.Connection | None = _open(path, lock)
        self._cursor = self._raw.cursor()

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """One statement of the transaction that is open."""
        try:
            return self._cursor.execute(statement, values)
        except UnicodeEncodeError:
            return self._cursor.execute(statement, tuple(map(bindable, values)))

    def read(self, work: Callable[[], _T], run_id: str | None = None) -> _T:
        """Do reading work over one snapshot of the file; an error about the file names the run."""
        with self._mutex:
            self._check_usable()
            for _ in patiently():
                try:
                    self._cursor.execute("BEGIN")
                    return work()
                except FAILED as error:
                    if not _is_busy(error):
                        raise public(error, run_id) from None
                finally:
                    self._rollback()
        raise AssertionError("patience ends with an error")

    def __enter__(self) -> Callable[..., sqlite3.Cursor]:
        """Begin a write transaction; `with` takes it back whole when anything is raised inside."""
        self._mutex.acquire()
        try:
            self._check_usable()
            if NEEDS_TURNS:
                self._take_turn()
            try:
                self._begin()
            except BaseException:
                self._give_turn()
                raise
        except BaseException:
            self._mutex.release()
            raise
        return self.execute

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._cursor.execute("COMMIT")
            else:
                self._rollback()
        except FAILED as failed:
            # After a failed flush nobody knows what the disk holds: this handle must not acknowledge anything more.
            self._failed = _code(failed) == sqlite3.SQLITE_IOERR
            self._rollback()
            raise public(failed) from None
        finally:
            self._give_turn()
            self._mutex.release()
        if isinstance(error, FAILED):
            raise public(error) from None

    def close(self) -> None:
        """Close the file. The last to close it folds the log back into it, and so takes its turn like a write."""
        with self._mutex:
            raw, self._raw = self._raw, None
            if raw is None:
                return
            try:
                self._take_turn()
                raw.close()
            finally:
                self._lock.close()

    def __del__(self) -> None:
        # Python closes a forgotten connection all the same, but without waiting for its turn.
        with contextlib.suppress(Exception):
            self.close()

    def _begin(self) -> None:
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except FAILED as error:
            self._begin_later(error)

    def _begin_later(self, error: Failure) -> None:
        for _ in patiently():
            if not _is_busy(error):
                raise public(error) from None
            try:
                self._cursor.execute("BEGIN IMMEDIATE")
            except FAILED as again:
                error = again
            else:
                return

    def _rollback(self) -> None:
        if self._raw is not None and self._raw.in_transaction:
            with contextlib.suppress(*FAILED):
                self._cursor.execute("ROLLBACK")

    def _take_turn(self) -> None:
        """Wait for the lock; the one that others take, if somebody has removed its file."""
        self._lock.take()
        while self._lock.removed():
            try:
                there = Lock.at(f"{self._path}.lock")
            except OSError:
                return  # the folder is gone, and nobody else comes
            self._lock.close()
            self._lock = there
            self._lock.take()

    def _give_turn(self) -> None:
        if NEEDS_TURNS:
            self._lock.give()

    def _check_usable(self) -> None:
        if self._raw is None:
            raise StoreUnavailable(what="it is closed")
        if self._failed:
            raise StoreUnavailable(what="the disk failed in an earlier write", hint="resume when the disk is sound")


def public(error: Failure, run_id: str | None = None) -> TramaiError:
    """The error a person may read: never SQLite's own text, which can quote statements and values."""
    if _is_damage(error):
        of = f"run {run_id}: " if run_id is not None else ""
        return CheckpointCorrupt(what=f"{of}the database file is damaged", run_id=run_id)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    full = getattr(error, "sqlite_errorcode", None) == _NO_SPACE
    code = sqlite3.SQLITE_FULL if full else _code(error)
    what, hint = _FAILURES.get(code, (f"the database failed ({name})", None))
    return StoreUnavailable(what=what, hint=hint)


def _open(path: str, lock: Lock) -> sqlite3.Connection:
    escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    raw: sqlite3.Connection | None = None
    for _ in patiently():
        try:
            if raw is None:
                # `rw`, not `rwc`: a file that vanished meanwhile is an error, never a fresh empty store.
                raw = sqlite3.connect(
                    f"file:{escaped}?mode=rw", uri=True, timeout=0, isolation_level=None, check_same_thread=False
                )
            _set_up(raw, path, escaped, lock)
        except FAILED as error:
            if not _is_busy(error):
                _abandon(raw, lock)
                raise public(error) from None
        except BaseException:
            _abandon(raw, lock)
            raise
        else:
            return raw
    raise AssertionError("patience ends with an error")


def _abandon(raw: sqlite3.Connection | None, lock: Lock) -> None:
    if raw is not None:
        with locked(lock):
            raw.close()


def _set_up(raw: sqlite3.Connection, path: str, escaped: str, lock: Lock) -> None:
    found = _pragma(raw, "user_version")
    if _pragma(raw, "application_id") != schema.APPLICATION_ID:
        raise StoreUnavailable(what=f"{path!r} is a database of another program", hint="it is left as it is")
    known = len(schema.MIGRATIONS)
    if found > known:
        _close_untouched(raw, escaped)
        raise StoreTooNew(found=found, known=known)
    # FULL, always: with NORMAL a power cut takes back commits that were acknowledged.
    raw.execute("PRAGMA synchronous=FULL")
    raw.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
    if found < known:
        with locked(lock):
            schema.migrate(raw, _pragma(raw, "user_version"))  # asked again: another may have done it meanwhile
    if _pragma(raw, "journal_mode") != "wal":
        with locked(lock):
            raw.execute("PRAGMA journal_mode=WAL").fetchone()


def _close_untouched(raw: sqlite3.Connection, escaped: str) -> None:
    """Close without a checkpoint: the last connection to close makes one, and one that may only read cannot."""
    reader = sqlite3.connect(f"file:{escaped}?mode=ro", uri=True, timeout=0, isolation_level=None)
    reader.execute("PRAGMA user_version").fetchone()
    raw.close()
    reader.close()


def _pragma(raw: sqlite3.Connection, name: str) -> Any:
    return raw.execute(f"PRAGMA {name}").fetchone()[0]


def _is_damage(error: Failure) -> bool:
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
        return True
    return _code(error) == sqlite3.SQLITE_CORRUPT


def _is_busy(error: Failure) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def _code(error: Failure) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
