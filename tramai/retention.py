"""Removes runs that were over long enough ago; what is left of each still refuses its id and start key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .clock import Clock
from .errors import CheckpointConflict, LeaseHeld, NotInThatState
from .portable import portable
from .store import Note, Run, Status, Store

OVER = (Status.COMPLETED, Status.CANCELLED, Status.DEAD)
"""Runs that nothing will ever change."""
REMOVABLE = (*OVER, Status.FAILED)
"""Runs that may be removed at all: a failed one can be resumed, so only who names that status means it."""
_PAGE = 200


def due(store: Store, *, before: float, statuses: Sequence[Status] = OVER) -> Iterator[Run]:
    """The runs of these statuses that ended before an instant."""
    for status in statuses:
        if status not in REMOVABLE:
            raise ValueError(f"a run that is {status.value} is not removed")
        cursor: str | None = None
        while True:
            runs, cursor = store.page(limit=_PAGE, after=cursor, status=status)
            yield from (run for run in runs if ended(run) < before)
            if cursor is None:
                break


def ended(run: Run) -> float:
    """When a run ended; what was written last counts where that is not known."""
    return run.updated if run.finished is None else run.finished


def remove(store: Store, run: Run, *, by: str = "", clock: Clock) -> bool:
    """Leave a tombstone in the place of a run; False when it has gone on meanwhile, and so stays."""
    note = Note(at=clock.now(), type="run.removed", by=by or None)
    leaves = portable(store, "bury")
    try:
        leaves.bury(run.run_id, note, revision=run.revision, status=Status.REMOVED, now=clock.now())
    except (CheckpointConflict, LeaseHeld, NotInThatState):
        return False
    return True
