"""The file under the SQLite store: its folder, its lock, how it is opened, and what its failures are called."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CheckpointCorrupt, ConfigurationError, NotFound, StoreTooNew, StoreUnavailable, TramaiError
from . import _sqlite_schema as schema

PATIENCE = 30.0
"""Seconds to wait for another process before a call fails as busy."""

# Below 3.51.3 SQLite can damage a file in WAL mode when a second connection runs a checkpoint at the very moment
# another one's commit starts the log anew (the WAL-reset bug). Both need the write side, so there we let only one
# connection of ours be in a write transaction, a checkpoint or a close at a time. Readers are not concerned.
NEEDS_TURNS = sqlite3.sqlite_version_info < (3, 51, 3)

# A checkpoint costs two more flushes; at about four pages a commit this is one in a thousand commits.
_CHECKPOINT_PAGES = 4000

_NETWORK = {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afs", "ceph", "glusterfs", "lustre"}
_NETWORK |= {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.davfs", "davfs"}


class Lock:
    """An OS lock on a file beside the database. The file is never removed: two files of one name are two locks."""

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def take(self) -> None:
        """Wait for the lock, with a deadline; StoreUnavailable when it passes."""
        for _ in patiently():
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return

    def give(self) -> None:
        """Let the next one in."""
        fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the descriptor back, and with it the lock."""
        os.close(self._handle)


def patiently() -> Iterator[None]:
    """Turn by turn with growing, jittered pauses between; StoreUnavailable when the patience is used up."""
    yield
    end = time.monotonic() + PATIENCE
    pause = 0.0005
    while time.monotonic() < end:
        time.sleep(pause * (0.5 + os.urandom(1)[0] / 255))
        pause = min(pause * 1.5, 0.02)
        yield
    raise StoreUnavailable(what="busy", hint=f"another process has kept it for {PATIENCE:g}s; try again")


def prepare(path: str, *, create: bool) -> None:
    """Make the folder if need be, and refuse a place where a database cannot live. NotFound without `create`."""
    if os.path.isdir(path):
        raise StoreUnavailable(what=f"{path!r} is a folder, not a file")
    folder = os.path.dirname(path) or "."
    if not os.path.exists(path):
        if not create:
            raise NotFound(kind="store", name=path)
        _make_folder(folder)
    elif os.stat(path).st_size == 0:
        hint = "it was cut off, or never was a store; remove it to start afresh"
        raise StoreUnavailable(what=f"{path!r} is empty", hint=hint)
    kind = _network_kind(folder)
    if kind is not None:
        hint = "SQLite needs a local disk; use another path, or a store made for several machines"
        raise StoreUnavailable(what=f"{path!r} is on a network file system ({kind})", hint=hint)


def connect(path: str, lock: Lock) -> sqlite3.Connection:
    """An open connection to a file that is there, of the present format."""
    escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{escaped}?mode=rw", uri=True, timeout=0, isolation_level=None, check_same_thread=False
    )
    try:
        for _ in patiently():
            with retry_when_busy():
                _set_up(connection, path, escaped, lock)
                return connection
        raise AssertionError("patience ends with an error")
    except BaseException:
        with locked(lock):
            connection.close()
        raise


@contextmanager
def locked(lock: Lock) -> Iterator[None]:
    """Hold the lock of the store meanwhile."""
    lock.take()
    try:
        yield
    finally:
        lock.give()


@contextmanager
def retry_when_busy(run_id: str | None = None) -> Iterator[None]:
    """Swallow SQLite's "busy", for a loop over `patiently`; call every other failure by its public name."""
    try:
        yield
    except sqlite3.Error as error:
        if not is_busy(error):
            raise public(error, run_id) from None


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection is in the way for the moment."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is wrong: a broken page, or text that is none."""
    return _code(error) == sqlite3.SQLITE_CORRUPT or "decode to UTF-8" in str(error)


def public(error: sqlite3.Error, run_id: str | None = None) -> TramaiError:
    """The error a person may read: never SQLite's own text, which can quote statements and values."""
    code = _code(error)
    if is_damage(error):
        of = f"run {run_id}: " if run_id is not None else ""
        return CheckpointCorrupt(what=f"{of}the database file is damaged")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreUnavailable(what="the file is not a tramai database", hint="it is left as it is")
    what, hint = _FAILURES.get(code, (f"the database failed ({_name(error)})", None))
    return StoreUnavailable(what=what, hint=hint)


_FAILURES: dict[int, tuple[str, str | None]] = {
    sqlite3.SQLITE_FULL: ("no space is left", "make room and resume; what was saved is intact"),
    sqlite3.SQLITE_READONLY: ("it is not writable", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_PERM: ("it is not accessible", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_IOERR: ("the disk failed to read or write", "what was saved is intact unless the disk is damaged"),
}


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _set_up(connection: sqlite3.Connection, path: str, escaped: str, lock: Lock) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if connection.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
        raise StoreUnavailable(what=f"{path!r} is a database of another program", hint="it is left as it is")
    known = len(schema.MIGRATIONS)
    if found > known:
        _close_untouched(connection, escaped)
        raise StoreTooNew(found=found, known=known)
    # FULL, always: with NORMAL a power cut takes back commits that were acknowledged.
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
    if found < known:
        with locked(lock):
            found = connection.execute("PRAGMA user_version").fetchone()[0]  # somebody else may have done it meanwhile
            schema.migrate(connection, found)
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        with locked(lock):
            connection.execute("PRAGMA journal_mode=WAL").fetchone()


def _close_untouched(connection: sqlite3.Connection, escaped: str) -> None:
    """Close without a checkpoint: the last connection to close makes one, and one that may only read cannot."""
    reader = sqlite3.connect(f"file:{escaped}?mode=ro", uri=True, timeout=0, isolation_level=None)
    reader.execute("PRAGMA user_version").fetchone()
    connection.close()
    reader.close()


def _make_folder(folder: str) -> None:
    try:
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder) or "."
        for name in reversed(missing):
            _make_one(name)
    except OSError as error:
        raise StoreUnavailable(what=f"its folder cannot be made ({error.strerror})") from None


def _make_one(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return  # somebody else made it first
    if os.path.basename(folder) == ".tramai":
        with open(os.path.join(folder, ".gitignore"), "w", encoding="ascii") as file:
            file.write("*\n")


def _network_kind(folder: str) -> str | None:
    """The type of the file system when it is known to be a network's; None for others, and where it cannot be told."""
    try:
        device = os.stat(folder).st_dev
        if os.major(device):
            return None  # a real disk; network file systems have no major number
        wanted = f"{os.major(device)}:{os.minor(device)}"
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return None
    for fields in lines:
        if fields[2] == wanted:
            kind = fields[fields.index("-") + 1]
            return kind if kind in _NETWORK else None
    return None


def default_path(where: str) -> str:
    """The path of a URL's text; `.tramai/tramai.db` for none."""
    if "\x00" in where:
        raise ConfigurationError(what="the path of the store holds a NUL character")
    return where or os.path.join(".tramai", "tramai.db")
