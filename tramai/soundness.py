"""Reads everything in a store, and says what cannot be right. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .codec import decode, sha256
from .errors import NotFound, StoreUnavailable, TramaiError
from .store import Mark, Record, Run, Status, Store

_PAGE = 100


class Flaw(msgspec.Struct, frozen=True):
    """One thing that is wrong; `run_id` is None when it is about the store itself."""

    run_id: str | None
    what: str


class Findings(msgspec.Struct, kw_only=True):
    """What a check has read, and what is wrong with it."""

    runs: int = 0
    records: int = 0
    events: int = 0
    definitions: int = 0
    faults: list[Flaw] = []


def check(store: Store) -> Findings:
    """Read every run with its journal, its events and its definition, tombstones included, and the store itself."""
    found = Findings()
    verify = getattr(store, "verify", None)
    if verify is not None:
        found.faults += [Flaw(None, what) for what in verify()]
    unread: dict[str, str] = {}
    definitions: dict[str, str | None] = {}
    for run in _every(store, unread):
        found.runs += 1
        found.faults += [Flaw(run.run_id, what) for what in _faults(store, run, definitions, found)]
    found.runs += len(unread)
    found.faults += [Flaw(run_id, what) for run_id, what in sorted(unread.items())]
    found.definitions = len(definitions)
    return found


def _every(store: Store, unread: dict[str, str]) -> Iterator[Run]:
    """Every run that can be read, a status at a time for the tombstones; those that cannot be read go to `unread`."""
    for status in (None, *(status for status in Status if status.tombstone)):
        cursor: str | None = None
        while True:
            runs, cursor = store.page(limit=_PAGE, after=cursor, status=status)
            for fault in store.faults():
                said = "; ".join(str(value) for key, value in fault.items() if key != "run_id")
                unread.setdefault(fault.get("run_id", "?"), said)
            yield from runs
            if cursor is None:
                break


def _faults(store: Store, run: Run, definitions: dict[str, str | None], found: Findings) -> Iterator[str]:
    yield from _header(run)
    if not run.status.tombstone:
        if run.digest not in definitions:
            definitions[run.digest] = _definition(store, run.digest)
        wrong = definitions[run.digest]
        if wrong is not None:
            yield wrong
    try:
        records = store.journal(run.run_id)
        events = store.notes(run.run_id)
    except StoreUnavailable:
        raise
    except TramaiError as error:
        yield error.message
        return
    found.records += len(records)
    found.events += len(events)
    yield from _journal(run, records)
    for note in events:
        if not _is_json(note.data):
            yield f"event {note.seq}: its data is not JSON"


def _header(run: Run) -> Iterator[str]:
    for name in ("inputs", "outputs", "error"):
        if not _is_json(getattr(run, name)):
            yield f"its {name} are not JSON" if name != "error" else "its error is not JSON"
    lease = run.lease
    if lease is not None and (lease.run_id, lease.fence) != (run.run_id, run.fence):
        yield f"its lease has fence {lease.fence}, the run {run.fence}"
    if lease is not None and run.status.terminal:
        yield f"it is {run.status.value}, and leased"


def _journal(run: Run, records: tuple[Record, ...]) -> Iterator[str]:
    completed: set[str] = set()
    for expected, record in enumerate(records, 1):
        if record.seq != expected:
            yield f"record {expected} is missing"
            return
        if record.fence > run.fence:
            yield f"record {expected} has fence {record.fence}, the run only {run.fence}"
        if record.mark is Mark.COMPLETED and record.path in completed:
            yield f"record {expected}: {record.path} is completed twice"
        if record.mark is Mark.COMPLETED:
            completed.add(record.path)
        for name in ("value", "error", "saves", "usage"):
            if not _is_json(getattr(record, name)):
                yield f"record {expected}: its {name} is not JSON"


def _definition(store: Store, digest: str) -> str | None:
    """What is wrong with a definition."""
    try:
        kept = store.definition(digest)
    except NotFound:
        return f"its definition {digest} is missing"
    except StoreUnavailable:
        raise
    except TramaiError as error:
        return error.message
    if kept.digest != digest or sha256(kept.canonical) != digest:
        return f"its definition {digest} has another digest"
    return None


def _is_json(text: str | None) -> bool:
    if text is None:
        return True
    try:
        decode(text)
    except (ValueError, RecursionError):
        return False
    return True
