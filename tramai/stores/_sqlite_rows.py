"""Between the nouns of a store and the rows of SQLite: columns in order, and checksums that damage cannot pass.

A value that SQLite's UTF-8 cannot hold (a lone surrogate) is bound as bytes; a text too large for its row is a
reference: one byte that no UTF-8 text begins with, and the SHA-256 of the bytes in `blob`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from ..errors import CheckpointCorrupt
from ..store import Definition, Holder, Lease, Mark, Note, Record, Run, Status
from . import _sqlite_schema as schema

Row = tuple[Any, ...]
Keep = Callable[[bytes, bytes], None]
"""Puts the bytes of a large value under its SHA-256."""
Fetch = Callable[[bytes], str]
"""The text of a large value by its SHA-256."""

INLINE = 64 * 1024
"""Characters up to which a record's value stands in its row."""
INLINE_HEADER = 1024
"""The same for a header, which is written anew with every commit."""

_REFERENCE = b"\xff"
_MARKS = {mark.value: mark for mark in Mark}
_STATUSES = {status.value: status for status in Status}
_FIXED_COUNT = len(schema.FIXED)
_MOVING_COUNT = len(schema.MOVING)
_NO_LEASE = (None, None, None, None, None)


def checksum(*parts: Any) -> int:
    """CRC-32 of a row's columns, which no flipped byte passes. Of `ascii`: `repr` varies with Unicode's tables."""
    return crc32(ascii(parts).encode("ascii"))


def bindable(value: Any) -> Any:
    """What SQLite can hold of a value: text with lone surrogates as bytes."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def unbound(row: Row) -> Row:
    """The row as it was before `bindable`."""
    if bytes not in map(type, row):
        return row
    return tuple(
        value.decode("utf-8", "surrogatepass") if type(value) is bytes and value[:1] != _REFERENCE else value
        for value in row
    )


def reversed_id(run_id: str) -> bytes:
    """The id from its end: a suffix of the id is a prefix of this."""
    return run_id[::-1].encode("utf-8", "surrogatepass")


def stored(text: str | None, keep: Keep, limit: int) -> str | bytes | None:
    """The text itself, or a reference to it when it is longer than the limit."""
    if text is None or len(text) <= limit:
        return text
    data = text.encode("utf-8", "surrogatepass")
    sha = hashlib.sha256(data).digest()
    keep(sha, data)
    return _REFERENCE + sha


def whole(value: str | bytes | None, fetch: Fetch) -> str | None:
    """The text behind a column that `stored` wrote."""
    return fetch(value[1:]) if type(value) is bytes else value  # type: ignore[return-value]


def fixed_row(run: Run, keep: Keep) -> Row:
    """The columns FIXED of a header."""
    return (
        run.run_id,
        run.generation,
        run.workflow,
        run.version,
        run.digest,
        stored(run.inputs, keep, INLINE_HEADER),
        run.cwd,
        run.file,
        float(run.created),
        run.started_by,
        run.start_key,
        json.dumps(run.labels),
        run.queue,
        run.priority,
        run.format,
    )


def moving_row(run: Run, last_seq: int, last_note: int, keep: Keep) -> Row:
    """The columns MOVING of a header."""
    lease = run.lease
    return (
        run.status.value,
        run.fence,
        run.revision,
        float(run.updated),
        None if run.finished is None else float(run.finished),
        None if run.wake_at is None else float(run.wake_at),
        stored(run.outputs, keep, INLINE_HEADER),
        stored(run.error, keep, INLINE_HEADER),
        run.step,
        int(run.cancel_requested),
        run.claims_without_progress,
        run.step_executions,
        run.tokens,
        float(run.cost_usd),
        run.retry_base,
        last_seq,
        last_note,
        *(_NO_LEASE if lease is None else _lease_row(lease)),
    )


def split(row: Row) -> tuple[int, Row, Row]:
    """A row of `id, FIXED, fixed_sum, MOVING, sum` as its id and its two halves, both checked."""
    row = unbound(row)
    key, fixed, fixed_sum = row[0], row[1 : 1 + _FIXED_COUNT], row[1 + _FIXED_COUNT]
    moving, moving_sum = row[2 + _FIXED_COUNT : -1], row[-1]
    if checksum(key, *fixed) != fixed_sum:
        raise CheckpointCorrupt(what=f"the header of run {fixed[0]} does not match its checksum", run_id=fixed[0])
    check_moving(fixed[0], key, moving, moving_sum)
    return key, fixed, moving


def check_moving(run_id: str, key: int, moving: Row, moving_sum: int) -> None:
    """CheckpointCorrupt unless the moving half of a header is as it was written."""
    if checksum(key, *moving) != moving_sum:
        raise CheckpointCorrupt(what=f"the header of run {run_id} does not match its checksum", run_id=run_id)


def run_of(fixed: Row, moving: Row, fetch: Fetch) -> Run:
    """The header of two checked halves."""
    (run_id, generation, workflow, version, digest, inputs, cwd, file) = fixed[:8]
    (created, started_by, start_key, labels, queue, priority, format_) = fixed[8:]
    (status, fence, revision, updated, finished, wake_at, outputs, error, step) = moving[:9]
    (cancel, claims, executions, tokens, cost_usd, retry_base) = moving[9:15]
    return Run(
        run_id=run_id,
        generation=generation,
        workflow=workflow,
        version=version,
        digest=digest,
        status=_STATUSES[status],
        inputs=whole(inputs, fetch) or "",
        cwd=cwd,
        file=file,
        fence=fence,
        revision=revision,
        created=created,
        updated=updated,
        finished=finished,
        wake_at=wake_at,
        lease=_lease_of(run_id, fence, moving[17:]),
        outputs=whole(outputs, fetch),
        error=whole(error, fetch),
        step=step,
        started_by=started_by,
        start_key=start_key,
        labels=tuple(json.loads(labels)),
        queue=queue,
        priority=priority,
        cancel_requested=bool(cancel),
        claims_without_progress=claims,
        step_executions=executions,
        tokens=tokens,
        cost_usd=cost_usd,
        retry_base=retry_base,
        format=format_,
    )


def record_row(key: int, record: Record, keep: Keep) -> Row:
    """A journal record as its columns RECORD."""
    value, error, saves, usage = record.value, record.error, record.saves, record.usage
    if value is not None and len(value) > INLINE:
        value = stored(value, keep, INLINE)  # type: ignore[assignment]
    if error is not None or saves is not None or usage is not None:
        error, saves, usage = (stored(text, keep, INLINE) for text in (error, saves, usage))  # type: ignore[assignment]
    row = (
        key,
        record.seq,
        record.path,
        record.mark.value,
        record.attempt,
        record.verb,
        float(record.at),
        record.fence,
        None if record.started is None else float(record.started),
        record.worker,
        record.policy,
        record.key,
        record.input_sha,
        record.log,
        value,
        error,
        saves,
        usage,
    )
    return (*row, crc32(ascii(row).encode("ascii")))


def record_of(run_id: str, row: Row, expected: int, fetch: Fetch) -> Record:
    """The record of a row, which must be the one with the expected seq and as it was written."""
    row = unbound(row)
    seq = row[1]
    if seq != expected:
        raise CheckpointCorrupt(what=f"record {expected} of run {run_id} is missing", run_id=run_id, seq=expected)
    if crc32(ascii(row[:-1]).encode("ascii")) != row[-1]:
        what = f"record {seq} of run {run_id} does not match its checksum"
        raise CheckpointCorrupt(what=what, run_id=run_id, seq=seq)
    (_, _, path, mark, attempt, verb, at, fence, started, worker, policy, key, input_sha, log) = row[:14]
    value, error, saves, usage = row[14:18]
    if bytes in map(type, row):
        value, error, saves, usage = (whole(text, fetch) for text in (value, error, saves, usage))
    return Record(
        seq=seq,
        path=path,
        mark=_MARKS[mark],
        attempt=attempt,
        verb=verb,
        at=at,
        fence=fence,
        started=started,
        worker=worker,
        policy=policy,
        key=key,
        input_sha=input_sha,
        value=value,
        error=error,
        saves=saves,
        usage=usage,
        log=log,
    )


def note_row(key: int, seq: int, note: Note, keep: Keep) -> Row:
    """An event as its columns NOTE."""
    row = (key, seq, float(note.at), note.type, note.by, note.comment, stored(note.data, keep, INLINE))
    return (*row, checksum(*row))


def note_of(run_id: str, row: Row, expected: int, fetch: Fetch) -> Note:
    """The event of a row, which must be the one with the expected seq and as it was written."""
    row = unbound(row)
    _, seq, at, type_, by, comment, data, row_sum = row
    if seq != expected or checksum(*row[:-1]) != row_sum:
        raise CheckpointCorrupt(what=f"event {expected} of run {run_id} is missing or damaged", run_id=run_id)
    return Note(seq=seq, at=at, type=type_, by=by, comment=comment, data=whole(data, fetch))


def definition_row(definition: Definition) -> Row:
    """A definition as its columns."""
    row = (
        definition.digest,
        definition.name,
        definition.version,
        definition.canonical,
        definition.text,
        definition.format,
        definition.file,
    )
    return (*row, checksum(*row))


def definition_of(row: Row) -> Definition:
    """The definition of a row, which must be as it was written."""
    row = unbound(row)
    digest, name, version, canonical, text, format_, file, row_sum = row
    if checksum(*row[:-1]) != row_sum:
        raise CheckpointCorrupt(what=f"the definition {digest} does not match its checksum")
    return Definition(
        digest=digest, name=name, version=version, canonical=canonical, text=text, format=format_, file=file
    )


def text_of_blob(sha: bytes, data: bytes | None) -> str:
    """The text of a large value, which must be there and have the hash it goes by."""
    if data is None or hashlib.sha256(data).digest() != sha:
        raise CheckpointCorrupt(what=f"the large value {sha.hex()} is missing or damaged")
    return data.decode("utf-8", "surrogatepass")


def _lease_row(lease: Lease) -> Row:
    return (lease.owner, lease.token, float(lease.acquired), float(lease.expires), _holder_text(lease.holder))


def _lease_of(run_id: str, fence: int, columns: Sequence[Any]) -> Lease | None:
    owner, token, acquired, expires, holder = columns
    if token is None:
        return None
    return Lease(
        run_id=run_id,
        owner=owner,
        token=token,
        fence=fence,
        acquired=acquired,
        expires=expires,
        holder=Holder(*json.loads(holder)),
    )


def _holder_text(holder: Holder) -> str:
    return json.dumps([holder.host, holder.boot, holder.pid, holder.start])
