"""The rows of SQLite: which columns a header has, and how texts that are not UTF-8 are bound."""

from __future__ import annotations

from typing import Any

from ..errors import CheckpointCorrupt
from ..store import Record, Run
from . import _rows
from ._rows import Fetch, Head, Row, utf8

RUN = (
    *("id", "run_id", "workflow", "status", "queue", "priority", "created", "start_key", "wake_at"),
    *("body", "sum"),
)
"""Columns of the half of a header that seldom changes, and of what SQL looks runs up by."""
CREATED = RUN.index("created")
"""Where the time of creation stands in a row of a header."""
HEAD = ("fence", "lease_token", "lease_owner", "lease_expires", "last_seq", "last_note", "body", "sum")
"""Columns of the half of a header that moves, and of what SQL checks a writer by."""


def run_row(key: int, run: Run) -> Row:
    """A header as the columns RUN."""
    return (key, *_seen(run), *_rows.rest(key, run))


def head_row(run: Run, head: Head) -> Row:
    """A header as the columns HEAD."""
    return (*_checked(run), head.last_seq, head.last_note, head.body, head.sum)


def header_of(row: Row) -> tuple[Run, Head]:
    """The header in the columns RUN and HEAD; its checksums and the columns copied from it must agree."""
    row = unbound(row)
    seldom, moving = row[: len(RUN)], row[len(RUN) :]
    key, run_id, body, row_sum = seldom[0], seldom[1], seldom[-2], seldom[-1]
    what = f"the header of run {run_id} does not match its checksum"
    if not isinstance(key, int):
        raise CheckpointCorrupt(what=what, run_id=run_id)
    found = _rows.head_of(run_id, (key, *moving[-4:]))
    run = _rows.run_of(run_id, body, row_sum, found)
    if _seen(run) != seldom[1:-2] or _checked(run) != moving[:-4]:
        raise CheckpointCorrupt(what=what, run_id=run_id)
    return run, found


def record_of(run_id: str, key: int, row: Row, fetch: Fetch) -> Record:
    """The record of a row (value, body, sum), which must be as it was written."""
    return _rows.record_of(run_id, key, unbound(row), fetch)


def bindable(value: Any) -> Any:
    """What SQLite can hold of a value: its text is UTF-8, so one with lone surrogates goes in as bytes."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return utf8(value)
    return value


def unbound(row: Row) -> Row:
    """The row as it was before `bindable`."""
    if bytes not in map(type, row):
        return row
    return tuple(_text(value) if type(value) is bytes else value for value in row)


def reversed_id(run_id: str) -> bytes:
    """The id from its end: a suffix of the id is a prefix of this."""
    return utf8(run_id[::-1])


def _seen(run: Run) -> Row:
    """What SQL looks a run up by."""
    names = (run.run_id, run.workflow, run.status.value, run.queue)
    return (*names, run.priority, run.created, run.start_key, run.wake_at)


def _checked(run: Run) -> Row:
    """What SQL checks a writer by."""
    lease = run.lease
    return (run.fence, *((None, None, None) if lease is None else (lease.token, lease.owner, lease.expires)))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")  # damaged: the checksum will say so
