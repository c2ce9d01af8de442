"""Between the nouns of a store and the rows of a database: bodies in JSON, checksums, and large texts set apart.

A text that begins with `@` in a body is a reference: the SHA-256 under which the text stands in `blob`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar
from zlib import crc32

import msgspec
from msgspec.structs import replace

from ..errors import CheckpointCorrupt
from ..hashing import sha256
from ..store import Change, Definition, Group, Lease, Mark, Note, Record, Run, Status

_T = TypeVar("_T")
Row = tuple[Any, ...]
Keep = Callable[[str, bytes], None]
"""Puts the bytes of a large text under their SHA-256."""
Fetch = Callable[[str], bytes | None]
"""The bytes kept under a SHA-256."""

INLINE_VALUE = 64 * 1024
"""Characters up to which a record's value stands in its row."""
INLINE = 1024
"""Characters up to which another text stands in a body; a header's is written anew with every commit."""


class Rest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The half of a header that seldom changes. Fields as in `Run`."""

    run_id: str
    generation: str
    workflow: str
    version: str
    digest: str
    inputs: str
    cwd: str
    file: str | None
    fence: int
    created: float
    lease: Lease | None = None
    started_by: str = ""
    start_key: str | None = None
    labels: tuple[str, ...] = ()
    queue: str = "default"
    priority: int = 0
    rerun_of: str | None = None
    group: Group | None = None
    format: int = 1


class Moving(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The half of a header that commits change. Fields as in `Run`."""

    status: Status
    revision: int
    updated: float
    finished: float | None = None
    wake_at: float | None = None
    outputs: str | None = None
    error: str | None = None
    step: str | None = None
    cancel_requested: bool = False
    claims_without_progress: int = 0
    step_executions: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    retry_base: int = 0
    queued: bool = False


class Head(msgspec.Struct, frozen=True):
    """The moving half of a run: the key of its rows, the text of it, and how many rows of journal and events follow."""

    key: int
    moving: Moving
    body: str
    last_seq: int
    last_note: int

    def after(self, moving: Moving, change: Change) -> Head:
        """This half with the change's records and notes counted."""
        body = body_of(moving).decode()
        return Head(self.key, moving, body, self.last_seq + len(change.records), self.last_note + len(change.notes))

    @property
    def sum(self) -> int:
        """The checksum of its columns."""
        return _head_sum(self.key, self.last_seq, self.last_note, self.body)


_encode = msgspec.json.Encoder().encode


@cache
def _decoder(kind: type[Any]) -> Callable[[str], Any]:
    """Made when it is first needed: a new run reads next to nothing."""
    return msgspec.json.Decoder(kind).decode


def head(key: int, run: Run, last_seq: int, last_note: int, updated: float | None = None) -> Head:
    """The moving half of a header; with `updated`, as of then."""
    moving = msgspec.convert(run, Moving, from_attributes=True)
    if updated is not None:
        moving = replace(moving, updated=updated)
    return Head(key, moving, body_of(moving).decode(), last_seq, last_note)


def head_of(run_id: str, row: Row) -> Head:
    """The moving half in a row: run, last_seq, last_note, body, sum."""
    key, last_seq, last_note, body, row_sum = row
    what = f"the header of run {run_id} does not match its checksum"
    if _head_sum(key, last_seq, last_note, body) != row_sum:
        raise CheckpointCorrupt(what=what, run_id=run_id)
    return Head(key, noun_of(body, Moving, what), body, last_seq, last_note)


def rest(key: int, run: Run) -> tuple[str, int]:
    """The half of a header that seldom changes: its body and checksum."""
    body = body_of(msgspec.convert(run, Rest, from_attributes=True))
    return body.decode(), crc32(body, key)


def run_of(run_id: str, body: str, row_sum: int, head: Head) -> Run:
    """The header whose halves these are; the checksum of the one that seldom changes must be right."""
    what = f"the header of run {run_id} does not match its checksum"
    if crc32(utf8(body), head.key) != row_sum:
        raise CheckpointCorrupt(what=what, run_id=run_id)
    return noun_of(f"{body[:-1]},{head.body[1:]}", Run, what)  # two JSON objects made one


def lean(run: Run, keep: Keep) -> Run:
    """The header with its large texts set apart."""
    inputs = set_apart(run.inputs, keep)
    return run if inputs is run.inputs else replace(run, inputs=inputs)


def lean_whole(run: Run, keep: Keep) -> Run:
    """The same, of a header that may be that of a run which has ended."""
    run = lean(run, keep)
    if run.outputs is None and run.error is None:
        return run
    return replace(run, outputs=set_apart(run.outputs, keep), error=set_apart(run.error, keep))


def lean_change(change: Change, keep: Keep) -> Change:
    """The change with its large texts set apart."""
    if change.outputs is None and not isinstance(change.error, str):
        return change
    error = set_apart(change.error, keep) if isinstance(change.error, str) else change.error
    return replace(change, outputs=set_apart(change.outputs, keep), error=error)


def whole(run: Run, fetch: Fetch) -> Run:
    """The header with its large texts in it."""
    if not any(text and text[0] == "@" for text in (run.inputs, run.outputs, run.error)):
        return run
    inputs, outputs, error = (put_back(text, fetch, run.run_id) for text in (run.inputs, run.outputs, run.error))
    return replace(run, inputs=inputs, outputs=outputs, error=error)


def record_row(key: int, record: Record, keep: Keep, *, inline_value: int = INLINE_VALUE, inline: int = INLINE) -> Row:
    """A journal record as its columns: run, path, slot, value, body, sum."""
    value, error, saves, usage = record.value, record.error, record.saves, record.usage
    if value is not None:
        value = set_apart(value, keep, inline_value)
    if error is None and saves is None and usage is None:
        rest = record if value is None else replace(record, value=None)
    else:
        error, saves, usage = (set_apart(text, keep, inline) for text in (error, saves, usage))
        rest = replace(record, value=None, error=error, saves=saves, usage=usage)
    body = body_of(rest)
    slot = 0 if record.mark is Mark.COMPLETED else record.seq
    return (key, record.path, slot, value, body.decode(), crc32(utf8(value), crc32(body, key)))


def record_of(run_id: str, key: int, row: Row, fetch: Fetch) -> Record:
    """The record of a row (value, body, sum), which must be as it was written."""
    value, body, row_sum = row
    if crc32(utf8(value), crc32(utf8(body), key)) != row_sum:
        seq = _claimed_seq(body)
        what = f"record {seq} of run {run_id} does not match its checksum"
        raise CheckpointCorrupt(what=what, run_id=run_id, seq=seq)
    record: Record = noun_of(body, Record, f"a record of run {run_id} cannot be read")
    if value is None and record.error is None and record.saves is None and record.usage is None:
        return record
    value, error, saves, usage = (
        put_back(text, fetch, run_id) for text in (value, record.error, record.saves, record.usage)
    )
    return replace(record, value=value, error=error, saves=saves, usage=usage)


def in_order(run_id: str, records: list[Record], wanted: int) -> tuple[Record, ...]:
    """The records by seq; CheckpointCorrupt unless they are 1 to `wanted`, each once."""
    records.sort(key=_seq)
    for expected, record in enumerate(records, 1):
        if record.seq != expected:
            raise CheckpointCorrupt(what=f"record {expected} of run {run_id} is missing", run_id=run_id, seq=expected)
    if len(records) != wanted:
        seq = min(len(records), wanted) + 1
        what = f"run {run_id} has {len(records)} of its {wanted} records"
        raise CheckpointCorrupt(what=what, run_id=run_id, seq=seq)
    return tuple(records)


def note_row(key: int, note: Note, keep: Keep, *, inline: int = INLINE) -> Row:
    """An event as its columns: run, seq, body, sum."""
    body = body_of(replace(note, data=set_apart(note.data, keep, inline)))
    return (key, note.seq, body.decode(), crc32(body, key))


def note_of(run_id: str, key: int, row: Row, expected: int, fetch: Fetch) -> Note:
    """The event of a row (body, sum), which must be the one with the expected seq, as it was written."""
    body, row_sum = row
    what = f"event {expected} of run {run_id} is missing or damaged"
    if crc32(utf8(body), key) != row_sum:
        raise CheckpointCorrupt(what=what, run_id=run_id)
    note = noun_of(body, Note, what)
    if note.seq != expected:
        raise CheckpointCorrupt(what=what, run_id=run_id)
    return replace(note, data=put_back(note.data, fetch, run_id))


def definition_row(definition: Definition) -> Row:
    """A definition as its columns: digest, body, sum."""
    body = body_of(definition)
    return (definition.digest, body.decode(), crc32(body))


def definition_of(digest: str, row: Row) -> Definition:
    """The definition of a row (body, sum), which must be as it was written."""
    body, row_sum = row
    what = f"the definition {digest} does not match its checksum"
    if crc32(utf8(body)) != row_sum:
        raise CheckpointCorrupt(what=what)
    return noun_of(body, Definition, what)


def set_apart(text: _T, keep: Keep, limit: int = INLINE) -> _T:
    """The text itself, or the reference to it when it is longer than the limit (or looks like a reference)."""
    if not isinstance(text, str) or (len(text) <= limit and text[:1] != "@"):
        return text
    data = utf8(text)
    sha = sha256(data)
    keep(sha, data)
    return f"@{sha}"  # type: ignore[return-value]


def put_back(text: _T, fetch: Fetch, run_id: str) -> _T:
    """The text behind what `set_apart` gave; it must be there, and have the hash it goes by."""
    if not isinstance(text, str) or text[:1] != "@":
        return text
    data = fetch(text[1:])
    if not isinstance(data, bytes) or sha256(data) != text[1:]:
        raise CheckpointCorrupt(what=f"a large value of run {run_id} is missing or damaged", run_id=run_id)
    return data.decode("utf-8", "surrogatepass")  # type: ignore[return-value]


def _head_sum(key: int, last_seq: int, last_note: int, body: str) -> int:
    return crc32(f"{key} {last_seq} {last_note} {body}".encode("utf-8", "surrogatepass"))


def _seq(record: Record) -> int:
    return record.seq


def _claimed_seq(body: str) -> int | str:
    """The seq that a damaged body still shows, to name the place."""
    found = re.match(r'\{"seq": ?(\d+)', str(body))
    return int(found[1]) if found else "?"


def utf8(text: str | None) -> bytes:
    """The bytes of a text, whatever it holds; none for None."""
    if text is None:
        return b""
    return str(text).encode("utf-8", "surrogatepass")  # a damaged row may hold a number here


def body_of(noun: object) -> bytes:
    """The JSON text of a noun."""
    try:
        return _encode(noun)
    except UnicodeEncodeError:  # msgspec knows no lone surrogates; json escapes them
        return json.dumps(msgspec.to_builtins(noun)).encode("ascii")


def noun_of(body: str, kind: type[_T], what: str) -> _T:
    """The noun in a JSON text; CheckpointCorrupt(what) when it is none."""
    try:
        return _decoder(kind)(body)  # type: ignore[no-any-return, arg-type]
    except msgspec.ValidationError:
        raise CheckpointCorrupt(what=what) from None
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(body), kind)
