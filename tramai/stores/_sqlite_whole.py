"""The SQLite store beyond the life of one run: whole runs in, tombstones, what nothing refers to, how the file is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..errors import NotFound
from . import _rows as rows
from . import _sqlite_rows as columns
from ._sqlite_connection import NEEDS_TURNS, Connection

if TYPE_CHECKING:
    from ..portable import Bundle, Info
    from ..store import Definition, Note, Run, Status

_ADD_RUN = f"INSERT INTO run ({', '.join(columns.RUN)}, reversed) VALUES ({'?, ' * len(columns.RUN)}?)"  # noqa: S608
_ADD_HEAD = f"INSERT INTO head ({', '.join(columns.HEAD)}, run) VALUES ({'?, ' * len(columns.HEAD)}?)"  # noqa: S608
ADD_RECORD = "INSERT INTO record (run, path, slot, value, body, sum) VALUES (?, ?, ?, ?, ?, ?)"
ADD_NOTE = "INSERT INTO note (run, seq, body, sum) VALUES (?, ?, ?, ?)"

_NEXT = "SELECT coalesce(max(id), 0) + 1 FROM run"
_BY_KEY = (("run", "id"), ("head", "run"), ("record", "run"), ("note", "run"))
_PARTS = (*_BY_KEY[1:], ("label", "run"))
# Whatever looks like a reference counts as one: to keep too much harms nobody.
_REFERENCE = rb"@([0-9a-f]{64})"
_REFERRING = " UNION ALL ".join(
    [
        f"SELECT CAST(body AS BLOB) FROM {table} WHERE instr(body, '\"@') > 0"  # noqa: S608
        for table in ("run", "head", "record", "note")
    ]
    + ["SELECT CAST(value AS BLOB) FROM record WHERE value LIKE '@%' AND length(value) = 65"]
)


class Whole:
    """What `Sqlite` has of `tramai.portable.Portable`."""

    url: str
    _path: str
    _connection: Connection

    if TYPE_CHECKING:

        def _header(self, run_id: str) -> tuple[Run, rows.Head]: ...
        def _define(self, definition: Definition) -> None: ...
        def _timetable_faults(self) -> list[str]: ...
        def _worker_faults(self) -> list[str]: ...
        def _scheduled(self) -> set[str] | None: ...
        def _keep(self, sha: str, data: bytes) -> None: ...

    def adopt(self, bundle: Bundle) -> Run:
        """Take a whole run in; see `Portable.adopt`."""
        from ..portable import StartKeyTaken
        from . import _whole

        _whole.check_bundle(bundle)
        run = bundle.run
        with self._connection as execute:
            key = None
            try:
                there, head = self._header(run.run_id)
            except NotFound:
                pass
            else:
                if not _whole.replaces(there, run):
                    return there
                key = head.key
                self._clear(key, there)
            if run.start_key is not None:
                found = execute("SELECT run_id FROM run WHERE start_key=?", (run.start_key,)).fetchone()
                if found is not None:
                    raise StartKeyTaken(key=run.start_key, run_id=columns.unbound(found)[0])
            key = self._insert(run, key=key, records=len(bundle.records), notes=len(bundle.notes))
            for record in bundle.records:
                execute(ADD_RECORD, rows.record_row(key, record, self._keep))
            for note in bundle.notes:
                execute(ADD_NOTE, rows.note_row(key, note, self._keep))
            if bundle.definition is not None:
                self._define(bundle.definition)
        return run

    def bury(self, run_id: str, note: Note, *, revision: int, status: Status, now: float) -> Run:
        """Leave a tombstone; see `Portable.bury`."""
        from . import _whole

        with self._connection as execute:
            there, head = self._header(run_id)
            run = _whole.buried(there, revision=revision, status=status, now=now)
            self._clear(head.key, there)
            self._insert(run, key=head.key, notes=1)
            execute(ADD_NOTE, rows.note_row(head.key, replace(note, seq=1), self._keep))
        return run

    def tidy(self) -> int:
        """Delete definitions and large texts that no run refers to; the file uses their room again."""
        with self._connection as execute:
            unused = dict(execute("SELECT sha, length(data) FROM blob").fetchall())
            if unused:
                for (data,) in execute(_REFERRING):
                    for sha in re.findall(_REFERENCE, data):
                        unused.pop(sha.decode(), None)
            for sha in unused:
                execute("DELETE FROM blob WHERE sha=?", (sha,))
            freed = sum(unused.values())
            for digest in self._unused_definitions():
                (size,) = execute("SELECT length(body) FROM definition WHERE digest=?", (digest,)).fetchone()
                execute("DELETE FROM definition WHERE digest=?", (digest,))
                freed += size
        return freed

    def info(self) -> Info:
        """How the file is."""
        from ..portable import Info

        def work() -> tuple[dict[str, int], list[int | str]]:
            runs = execute("SELECT status, count(*) FROM run GROUP BY status").fetchall()
            names = ("user_version", "journal_mode", "page_size", "freelist_count")
            return dict(runs), [execute(f"PRAGMA {name}").fetchone()[0] for name in names]

        execute = self._connection.execute
        runs, (version, mode, page, free) = self._connection.read(work)
        return Info(
            kind="sqlite",
            url=self.url,
            place=os.path.abspath(self._path),
            format=int(version),
            size=sum(map(_size, (self._path, f"{self._path}-wal"))),
            runs=runs,
            locks=(_lock_said(f"{self._path}.lock"),),
            hints=tuple(_hints(self._path, str(mode), int(free) * int(page))),
        )

    @staticmethod
    def newest() -> int:
        """The format that files have now."""
        from . import _sqlite_schema as schema

        return len(schema.MIGRATIONS)

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the file itself: its pages and indexes, large texts, rows without their run."""
        import hashlib

        def work() -> list[str]:
            found = [row[0] for row in execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
            for sha, data in execute("SELECT sha, data FROM blob"):
                if not isinstance(data, bytes) or hashlib.sha256(data).hexdigest() != sha:
                    found.append(f"the large value {sha} is damaged")
            for table, column in _PARTS:
                query = f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM run)"  # noqa: S608
                (count,) = execute(query).fetchone()
                found += [f"{count} rows of table {table} belong to no run"] if count else []
            return found + self._timetable_faults() + self._worker_faults()

        execute = self._connection.execute
        return tuple(self._connection.read(work))

    # What follows runs inside a transaction.

    def _insert(self, run: Run, *, key: int | None = None, records: int = 0, notes: int = 0) -> int:
        """Write a run's header and labels; the key of its rows."""
        execute = self._connection.execute
        if key is None:
            (key,) = execute(_NEXT).fetchone()
        assert key is not None
        lean = rows.lean_whole(run, self._keep)
        execute(_ADD_RUN, (*columns.run_row(key, lean), columns.reversed_id(run.run_id)))
        execute(_ADD_HEAD, (*columns.head_row(lean, rows.head(key, lean, records, notes)), key))
        for label in set(run.labels):
            execute("INSERT INTO label VALUES (?, ?, ?, ?)", (label, run.created, run.run_id, key))
        return key

    def _clear(self, key: int, run: Run) -> None:
        """Delete the rows of a run, each by its key: a look through all labels would make many removals slow."""
        execute = self._connection.execute
        for table, column in _BY_KEY:
            execute(f"DELETE FROM {table} WHERE {column}=?", (key,))  # noqa: S608
        for label in set(run.labels):
            execute("DELETE FROM label WHERE name=? AND created=? AND run_id=?", (label, run.created, run.run_id))

    def _unused_definitions(self) -> Iterator[str]:
        """Digests that no run and no schedule has; none while there is one that cannot be read."""
        import json

        execute = self._connection.execute
        used = self._scheduled()
        if used is None:
            return
        query = "SELECT CAST(body AS BLOB) FROM run WHERE status NOT IN ('moved', 'removed')"
        for (body,) in execute(query).fetchall():
            try:
                used.add(json.loads(body)["digest"])
            except (ValueError, KeyError, TypeError):
                return
        known = execute("SELECT digest FROM definition").fetchall()
        yield from (row[0] for row in known if columns.unbound(row)[0] not in used)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def _lock_said(path: str) -> str:
    """Whether somebody has the lock of the store at this moment."""
    import fcntl

    name = os.path.basename(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return f"{name}: cannot be opened; this user may only look"
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return f"{name}: taken, somebody writes or migrates"
    finally:
        os.close(handle)
    return f"{name}: free"


def _hints(path: str, mode: str, free: int) -> Iterator[str]:
    from .. import size

    yield f"journal_mode {mode}, synchronous full: what was acknowledged survives a power cut"
    log = _size(f"{path}-wal")
    if log:
        yield f"{size.spell(log)} stand in the log beside the file: copy both, or none"
    if free:
        yield f"{size.spell(free)} of the file are free and will be used again"
    if NEEDS_TURNS:
        yield "this SQLite is older than 3.51.3, so writers take turns by the lock file"


def peek(path: str) -> int | None:
    """The format of a file, nothing changed; None when there is none, or it is no store."""
    import sqlite3

    from . import _sqlite_schema as schema

    if not os.path.isfile(path):
        return None
    escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        raw = sqlite3.connect(f"file:{escaped}?mode=ro", uri=True, timeout=5, isolation_level=None)
        try:
            ours, version = (raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        finally:
            raw.close()
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    return version if ours == schema.APPLICATION_ID else None


def ddl() -> str:
    """The statements that make an empty file."""
    import sqlite3

    from . import _sqlite_schema as schema

    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        schema.migrate(connection, 0)
        found = [row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    finally:
        connection.close()
    version = len(schema.MIGRATIONS)
    lines = [f"PRAGMA application_id={schema.APPLICATION_ID}", f"PRAGMA user_version={version}", *found]
    return "".join(f"{line};\n" for line in lines)
