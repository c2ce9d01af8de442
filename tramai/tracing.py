"""Where a run stood in a trace, kept with the run: a trace ends with its process, and the run may go on in another.

A `Tracer` among the observers is told of every claim, with what was kept of the one before, and answers where it
stands itself. That is one line of the event list, in the words of W3C Trace Context: two random numbers, nothing else.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from .claiming import Claim
from .codec import decode, encode
from .errors import TramaiError
from .store import Note
from .traceparent import valid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .journal import Journal
    from .pool import Pool
    from .store import Run, Store

TRACED = "run.traced"
"""The event that keeps it."""


def begin(claim: Claim, journal: Journal, store: Store, parent: str | None) -> None:
    """Tell the tracers that a claim begins, and keep what they answer with its first commit. Nothing here fails it."""
    run, earlier = claim.run, None
    if run.revision > 1:  # else it was made just now, by us
        with contextlib.suppress(TramaiError):
            earlier = _last(store.notes(run.run_id))
    for tracer in claim.audience.tracers:
        try:
            said = valid(tracer.trace(run.run_id, run.workflow, parent=valid(parent), earlier=earlier))
        except Exception:  # noqa: BLE001, S112 - observers are fail-open by promise
            continue
        if said is not None:
            journal.note(TRACED, data=encode({"traceparent": said}))


def leave(runs: Pool, run: Run, parent: str | None, *, now: float) -> None:
    """Keep where somebody stood who put a run into a queue; not when a worker was quicker."""
    found = valid(parent)
    if found is not None:
        note = Note(at=now, type=TRACED, data=encode({"traceparent": found}))
        with contextlib.suppress(TramaiError):
            runs.post(run.run_id, note, after=0, now=now)


def _last(notes: Iterable[Note]) -> str | None:
    found = None
    for note in notes:
        if note.type == TRACED and note.data is not None:
            data = decode(note.data)
            found = valid(data.get("traceparent")) or found if isinstance(data, dict) else found
    return found
