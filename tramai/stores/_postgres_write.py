"""A write to the PostgreSQL store, ready to be sent; and whether one that nobody heard of again was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from .. import rules
from ..store import Change, Lease, Run, Status
from . import _postgres_rows as columns
from . import _rows as rows
from ._postgres_connection import Db
from ._postgres_ear import HINT
from ._postgres_rows import Header

if TYPE_CHECKING:
    from ._postgres_sql import Sql

_RECORD, _NOTE = ("seq", "path", "mark", "value", "body", "sum"), ("seq", "body", "sum")
TURNS = 50
"""How often a write is made anew because somebody else's came first."""


class Tail(msgspec.Struct, frozen=True):
    """The rows that a change hangs on the header: of records and of events."""

    records: tuple[rows.Row, ...] = ()
    notes: tuple[rows.Row, ...] = ()

    def listed(self, **more: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Records and events as JSON objects, each with these columns besides."""
        records = [{**more, **dict(zip(_RECORD, row, strict=True))} for row in self.records]
        return records, [{**more, **dict(zip(_NOTE, row, strict=True))} for row in self.notes]


class Write(msgspec.Struct, frozen=True):
    """One statement: its kind and parts, its values, and what the run is like after it."""

    parts: tuple[str, ...]
    given: dict[str, Any]
    """The values, but for the rows of the tail."""
    run: Run
    """The header afterwards, its long texts apart."""
    head: rows.Head
    tail: Tail

    @property
    def values(self) -> dict[str, Any]:
        """The values, as a statement of its own takes them; one that takes several makes a text of all tails."""
        records, notes = self.tail.listed()
        more = {"records": text_of(records)} if records else {}
        return self.given | more | ({"notes": text_of(notes)} if notes else {})

    @property
    def revision(self) -> int:
        """The revision that it makes."""
        return self.run.revision

    @staticmethod
    def of_life(key: int, run: Run, change: Change, was: Header | None = None) -> Write:
        """A run as a whole, with all its records and events: a new one, or in the place of one as it was read."""
        kept: dict[str, bytes] = {}
        lean = rows.lean_whole(run, kept.__setitem__)
        parts, values, tail = _tail(key, change, 0, kept)
        head = columns.head(key, lean, len(change.records), len(change.notes))
        labels = _labels(run)
        values |= columns.run_values(key, lean) | columns.life_values(lean) | columns.head_values(lean, head)
        values |= columns.lease_values(run.lease) | {"labels": labels}
        if was is not None:
            values |= _was(was) | {"was_created": float(was.run.created), "was_labels": _labels(was.run)}
        first = "create" if was is None else "replace"
        parts = (first, "head", "first lease", *(("labels",) if labels else ()), *parts, *_hint(run))
        return Write(parts, values, lean, head, tail)

    @staticmethod
    def of_commit(known: Header, lease: Lease, change: Change, kept: Mapping[str, bytes]) -> Write:
        """A change under a lease; CheckpointConflict when its records do not follow the known ones."""
        before = known.head
        last = rules.follows(before.last_seq, change.records)
        run = rules.changed(known.run, change)
        head = columns.head(before.key, run, last, before.last_note + len(change.notes))
        parts, values, tail = _tail(before.key, change, before.last_note, kept)
        values |= columns.head_values(run, head)
        values |= {"was_fence": lease.fence, "was_revision": known.run.revision}
        values |= {"was_token": columns.name(lease.token), "was_owner": columns.name(lease.owner)}
        kind = "go on" if run.lease is not None else "end"
        if kind == "end":
            values |= columns.lease_values(None)
            parts = ("lease", *parts)
        if not _goes_on(change):
            values |= columns.run_values(before.key, run)
            parts = ("run", *parts)
        return Write((kind, *parts, *_hint(run)), values, run, head, tail)

    @staticmethod
    def of_settlement(known: Header, run: Run, change: Change, kept: Mapping[str, bytes]) -> Write:
        """A header that somebody without a lease has made of the known one, with the change's records and events."""
        before = known.head
        last = rules.follows(before.last_seq, change.records)
        head = columns.head(before.key, run, last, before.last_note + len(change.notes))
        parts, values, tail = _tail(before.key, change, before.last_note, kept)
        values |= columns.run_values(before.key, run) | columns.head_values(run, head)
        values |= columns.lease_values(run.lease) | _was(known)
        return Write(("settle", "run", "lease", *parts, *_hint(run)), values, run, head, tail)

    def entering(self, listed: dict[str, Any]) -> Write:
        """The same write, done only together with this change of a group's list."""
        return Write(("enter", *self.parts[1:]), self.given | listed, self.run, self.head, self.tail)


def landed(db: Db, sql: Sql, sent: Write, now: rows.Head) -> bool:
    """Whether a write was done though the answer was lost: its rows stand there, or the header it would have made."""
    key = sent.head.key
    if now.key != key:
        return False
    for query, wanted in ((sql.records, sent.tail.records), (sql.notes, sent.tail.notes)):
        if wanted:
            return list(wanted) == db.rows(query, (key, wanted[0][0], wanted[-1][0]))
    return now.body == sent.head.body


def _hint(run: Run) -> tuple[str, ...]:
    """The part that tells those who listen, if the run can be taken now."""
    due = run.wake_at is not None and run.wake_at <= run.updated and run.status in (Status.SLEEPING, Status.WAITING)
    return (HINT,) if run.lease is None and (due or run.status is Status.READY) else ()


def _tail(
    key: int, change: Change, last_note: int, kept: Mapping[str, bytes]
) -> tuple[tuple[str, ...], dict[str, Any], Tail]:
    """The parts that a change hangs on the header, their values, and their rows."""
    blobs = dict(kept)
    keep = blobs.__setitem__
    values: dict[str, Any] = {}
    parts: list[str] = []
    tail = Tail(
        tuple(columns.record_row(key, record, keep) for record in change.records),
        tuple(columns.note_row(key, note, seq, keep) for seq, note in enumerate(change.notes, last_note + 1)),
    )
    parts += [name for name, rows in (("records", tail.records), ("notes", tail.notes)) if rows]
    if change.definition is not None:
        values |= columns.definition_values(change.definition)
        parts.append("definition")
    if blobs:
        values |= {"b_sha": list(blobs), "b_data": list(blobs.values())}
        parts.append("blobs")
    return tuple(parts), values, tail


def text_of(rows: list[dict[str, Any]]) -> str:
    """Rows as JSON: one text is sent with less work than an array for each column."""
    return msgspec.json.encode(rows).decode()


def _labels(run: Run) -> list[str]:
    return sorted({columns.fitting("label", label) for label in run.labels})


def _was(known: Header) -> dict[str, Any]:
    """What a write without a lease expects to find."""
    run, lease = known.run, known.run.lease
    return {
        "was_key": known.head.key,
        "was_fence": run.fence,
        "was_revision": run.revision,
        "was_token": None if lease is None else columns.name(lease.token),
        "was_expires": None if lease is None else lease.expires,
    }


def _goes_on(change: Change) -> bool:
    """Whether a change leaves alone what runs are looked up by, the lease and the definition."""
    return change.status is None and change.wake_at is UNSET and not change.release and change.definition is None
