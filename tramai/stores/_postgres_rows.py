"""Between the nouns of a store and the rows of PostgreSQL: columns, and texts that it cannot hold as they are.

PostgreSQL's text holds neither NUL nor a lone surrogate. In names these are escaped with a backslash, and so are the
backslash itself and U+10FFFF, so that no name comes after every other. A value with one of them is kept as a blob.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import CheckpointCorrupt
from ..store import Definition, Lease, Note, Record, Run
from . import _rows
from ._rows import Fetch, Head, Keep, Row

_UNFIT = re.compile("[\x00\\\\\ud800-\udfff\U0010ffff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{6})")
_REFERENCE = re.compile(r'"@([0-9a-f]{64})"')

AFTER_ALL = "\U0010ffff"
"""Comes after every character that a name in a column can have."""
LONGEST_NAME = 1000
"""Bytes of an id, a key or a label: an index of PostgreSQL takes rows of up to 2,700 bytes."""
LONGEST_PATH = 2000
"""Bytes of a step's path."""

RUN = (
    *("id", "run_id", "workflow", "digest", "status", "queue", "priority", "created", "start_key", "wake_at"),
    *("body", "sum"),
)
"""Columns of the half of a header that seldom changes, and of what SQL looks runs up by."""
HEAD = ("fence", "revision", "token", "updated", "last_seq", "last_note", "body", "sum")
"""Columns of the half of a header that moves, and of what SQL checks a writer by."""
LEASE = ("fence", "token", "owner", "expires")
"""Columns of the lease; all NULL while nobody has it."""
_RUN_ENDS = 1 + len(RUN)
CREATED = 1 + RUN.index("created")
"""Where the time of creation stands in a row of a header."""
PRIORITY = 1 + RUN.index("priority")
"""And its priority."""
_HEAD_ENDS = _RUN_ENDS + len(HEAD)


class Header(msgspec.Struct, frozen=True):
    """A header as read: the run, its long texts still apart; its moving half; and the store's clock."""

    run: Run
    head: Head
    now: float


def name(text: str) -> str:
    """A name as its column holds it."""
    return _UNFIT.sub(_escape, text) if _UNFIT.search(text) else text


def name_of(text: str) -> str:
    """The name in a column."""
    return _ESCAPED.sub(_unescape, text) if "\\" in text else text


def fitting(what: str, text: str, longest: int = LONGEST_NAME) -> str:
    """The name as its column holds it; ValueError when no index can."""
    fit = name(text)
    if len(fit) * 4 > longest and len(fit.encode()) > longest:
        raise ValueError(f"the {what} is longer than the {longest} bytes that this store can index")
    return fit


def run_values(key: int, run: Run) -> dict[str, Any]:
    """What may change of a header's seldom half, as the values of its columns."""
    body, row_sum = _rows.rest(key, run)
    return {
        "key": key,
        "workflow": fitting("name of the workflow", run.workflow),
        "digest": fitting("digest", run.digest),
        "status": run.status.value,
        "wake_at": None if run.wake_at is None else float(run.wake_at),
        "run_body": body,
        "run_sum": row_sum,
    }


def life_values(run: Run) -> dict[str, Any]:
    """The columns besides that a run has for its whole life."""
    return {
        "run_id": fitting("run id", run.run_id),
        "reversed": name(run.run_id[::-1]),
        "queue": fitting("name of the queue", run.queue),
        "priority": run.priority,
        "created": float(run.created),
        "start_key": None if run.start_key is None else fitting("start key", run.start_key),
    }


def head(key: int, run: Run, last_seq: int, last_note: int) -> Head:
    """The moving half; when it was written is known to its column alone, for the server says it."""
    return _rows.head(key, run, last_seq, last_note, updated=0.0)


def head_values(run: Run, moving: Head) -> dict[str, Any]:
    """A header's moving half as the values of its columns."""
    return {
        "key": moving.key,
        "fence": run.fence,
        "revision": run.revision,
        "updated": float(run.updated),
        "last_seq": moving.last_seq,
        "last_note": moving.last_note,
        "body": moving.body,
        "sum": moving.sum,
    }


def lease_values(lease: Lease | None) -> dict[str, Any]:
    """A lease as the values of its columns."""
    fence, token, owner = _held(lease)
    return {"lease_fence": fence, "token": token, "owner": owner, "expires": lease and float(lease.expires)}


def header_of(row: Row) -> Header:
    """The header in a row of the clock, RUN, HEAD and LEASE; checksums, and columns copied from it, must agree."""
    now, seldom, moving, held = row[0], row[1:_RUN_ENDS], row[_RUN_ENDS:_HEAD_ENDS], row[_HEAD_ENDS:]
    key, run_id, body, row_sum = seldom[0], name_of(seldom[1]), seldom[-2], seldom[-1]
    what = f"the header of run {run_id} does not match its checksum"
    fence, revision, token, updated, *rest = moving
    if updated is None:
        raise CheckpointCorrupt(what=f"half of the header of run {run_id} is missing", run_id=run_id)
    found = _rows.head_of(run_id, (key, *rest))
    run = _rows.run_of(run_id, body, row_sum, found)
    names = (run.run_id, run.workflow, run.digest, run.status.value, run.queue)
    seen = (*map(name, names), run.priority, run.created, run.start_key and name(run.start_key), run.wake_at)
    by, expires = _held(run.lease), held[-1]
    checked = (run.fence, run.revision, by[1], *by, run.lease is None)
    if seen != seldom[1:-2] or checked != (fence, revision, token, *held[:-1], expires is None):
        raise CheckpointCorrupt(what=what, run_id=run_id)
    lease = None if run.lease is None else replace(run.lease, expires=expires)
    return Header(replace(run, updated=updated, lease=lease), found, now)


def renewed_of(row: Row) -> Lease:
    """The lease in a row of its end and the body it stands in: a renewal moves the end alone."""
    expires, body = row
    lease = _rows.noun_of(body, _rows.Rest, "the header of a run cannot be read").lease
    if lease is None:
        raise CheckpointCorrupt(what="the header of a run does not hold its lease", run_id=None)
    return replace(lease, expires=expires)


def record_row(key: int, record: Record, keep: Keep) -> Row:
    """A journal record as its columns after `run`: seq, path, mark, value, body, sum."""
    value = record.value
    apart = -1 if value is not None and _UNSTORABLE.search(value) else _rows.INLINE_VALUE
    row = _rows.record_row(key, record, keep, inline_value=apart, inline=_rows.INLINE_VALUE)
    return (record.seq, fitting("path of the step", record.path, LONGEST_PATH), record.mark.value, *row[3:])


def record_of(run_id: str, key: int, row: Row, fetch: Fetch) -> Record:
    """The record of a row (seq, path, mark, value, body, sum), which must be as it was written."""
    record = _rows.record_of(run_id, key, row[3:], fetch)
    if (record.seq, name(record.path), record.mark.value) != row[:3]:
        what = f"record {row[0]} of run {run_id} is not the one that was written there"
        raise CheckpointCorrupt(what=what, run_id=run_id, seq=row[0])
    return record


def note_row(key: int, note: Note, seq: int, keep: Keep) -> Row:
    """An event as its columns after `run`: seq, body, sum."""
    return _rows.note_row(key, replace(note, seq=seq), keep, inline=_rows.INLINE_VALUE)[1:]


def definition_values(definition: Definition | None) -> dict[str, Any]:
    """A definition as the values of its columns; nothing for none."""
    if definition is None:
        return {}
    digest, body, row_sum = _rows.definition_row(definition)
    return {"d_digest": fitting("digest", digest), "d_body": body, "d_sum": row_sum}


def references(texts: list[str | None]) -> list[str]:
    """Every hash that may stand for a blob in these bodies and values; one too many does no harm."""
    found: set[str] = set()
    for text in texts:
        if text is None:
            continue
        if text[:1] == "@":
            found.add(text[1:])
        else:
            found.update(_REFERENCE.findall(text))
    return sorted(found)


def _held(lease: Lease | None) -> tuple[int | None, str | None, str | None]:
    return (None, None, None) if lease is None else (lease.fence, name(lease.token), name(lease.owner))


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return "\\\\" if character == "\\" else f"\\u{ord(character):06x}"


def _unescape(found: re.Match[str]) -> str:
    return "\\" if found[1] == "\\" else chr(int(found[1][1:], 16))
