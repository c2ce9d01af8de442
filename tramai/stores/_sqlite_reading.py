"""A connection to a SQLite store that may not be written, in a folder that may not be written either: for looking.

SQLite needs to write beside a file in WAL mode even to read it, unless it is told that nobody writes. That is so while
there is no log beside the file; a file that has changed all the same is opened anew, and what was being read is read
again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

from ..errors import StoreTooNew, StoreUnavailable, TramaiError
from . import _sqlite_schema as schema
from ._sqlite_connection import FAILED, Connection, public

_T = TypeVar("_T")
_TRIES = 10
_Stamp = tuple[int, int, int] | None


class Looking(Connection):
    """Reads and never writes; no lock is taken, for there may be none to take."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._turn = threading.Lock()
        self._failed = False
        self._raw: sqlite3.Connection | None = None
        self._begin_anew()

    def read(self, work: Callable[[], _T], run_id: str | None = None) -> _T:
        """Do reading work over the file as it is at one moment."""
        with self._turn:
            for _ in range(_TRIES):
                if self._stamp != _stamp(self._path) and self._raw is not None:
                    self._begin_anew()
                try:
                    found = super().read(work, run_id)
                except TramaiError:
                    if self._stamp == _stamp(self._path):
                        raise
                else:
                    if self._stamp == _stamp(self._path):
                        return found
        raise StoreUnavailable(what="it is being written all the time", hint="try again")

    def __enter__(self) -> NoReturn:
        raise StoreUnavailable(what="it is not writable", hint="check the permissions of the file and its folder")

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            raw, self._raw = self._raw, None
            if raw is not None:
                raw.close()

    def _begin_anew(self) -> None:
        if self._raw is not None:
            self._raw.close()
        self._stamp = _stamp(self._path)
        escaped = self._path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        how = "mode=ro" if self._stamp is None else "mode=ro&immutable=1"
        try:
            self._raw = sqlite3.connect(
                f"file:{escaped}?{how}", uri=True, timeout=0, isolation_level=None, check_same_thread=False
            )
            self._cursor = self._raw.cursor()
            ours, found = (self._pragma(name) for name in ("application_id", "user_version"))
        except FAILED as error:
            raise public(error) from None
        known = len(schema.MIGRATIONS)
        if ours != schema.APPLICATION_ID:
            raise StoreUnavailable(what=f"{self._path!r} is a database of another program", hint="it is left as it is")
        if found > known:
            raise StoreTooNew(found=found, known=known)
        if found < known:
            raise StoreUnavailable(
                what=f"it has the older format {found}, and may not be written to bring it up to date"
            )

    def _pragma(self, name: str) -> int:
        return int(self._cursor.execute(f"PRAGMA {name}").fetchone()[0])


def _stamp(path: str) -> _Stamp:
    """What tells one state of a file from the next; None while there is a log, which SQLite itself then reads."""
    if os.path.exists(f"{path}-wal"):
        return None
    with contextlib.suppress(OSError):
        now = os.stat(path)
        return now.st_ino, now.st_mtime_ns, now.st_size
    return 0, 0, 0
