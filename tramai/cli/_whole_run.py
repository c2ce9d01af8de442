"""All that a store has of a run, as one document: what `export` and the reports of a run are made of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import TramaiError
from ..store import Mark, Record, Run, Store
from . import _called_runs, show
from ._documents import Log
from ._export_documents import Export, JournalRecord, Source
from ._tail import last_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

TAIL = 20
"""Lines of the log of an attempt that did not succeed."""
_PLAIN = (
    "seq", "path", "attempt", "verb", "at", "started", "fence", "worker", "policy", "key", "input_sha", "log",
)  # fmt: skip
_JSON = ("value", "error", "saves", "usage")


def of(store: Store, run_id: str) -> Export:
    """The run with its journal, its events, its definition, and what its failed attempts wrote last."""
    run = store.get(run_id)
    records = store.journal(run_id)
    return Export(
        tramai=__version__,
        run=show.view_of(store, run),
        journal=[_record(record) for record in records],
        definition=_source(store, run),
        called=_called_runs.ids(records),
        calls=_called_runs.of(store, run_id, records),
        logs=_logs(records),
    )


def _record(record: Record) -> JournalRecord:
    facts: dict[str, Any] = {name: getattr(record, name) for name in _PLAIN}
    facts |= {name: json.loads(text) for name in _JSON if (text := getattr(record, name)) is not None}
    return JournalRecord(mark=record.mark.value, **facts)


def _source(store: Store, run: Run) -> Source | None:
    try:
        found = store.definition(run.digest)
    except TramaiError:
        return None
    return Source(
        digest=found.digest,
        name=found.name,
        version=found.version,
        format=found.format,
        file=found.file,
        text=found.text,
        canonical=json.loads(found.canonical),
    )


def _logs(records: Sequence[Record]) -> list[Log]:
    """The end of what each attempt wrote that did not succeed."""
    wanted = {
        (record.path, record.attempt): record.log
        for record in records
        if record.log and record.mark in (Mark.FAILED, Mark.CANCELLED, Mark.UNKNOWN)
    }
    found = []
    for (path, attempt), file in wanted.items():
        lines = last_lines(file, TAIL)
        text = None if lines is None else "".join(f"{line}\n" for line in lines)
        found.append(Log(path=path, attempt=attempt, file=file, text=text))
    return found
