"""Whether a run that has failed is tried again by itself: so often as its worker was told, and never oftener.

The count is in the event list of the run, a line for each time, written together with the failure. So it holds over
workers, crashes and resumes by hand; nothing takes a line away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from .codec import encode
from .errors import TramaiError
from .store import Status

if TYPE_CHECKING:
    from .journal import Journal

REVIVED = "run.retrying"
"""The event of a failure after which the run is tried again."""
LONGEST = 3600.0
"""Seconds between two tries, at most."""
_NEVER = ("rejected", "cancelled", "limit", "unknown_outcome")
"""Errors that another try does not change: somebody has said no, or so much was allowed and no more."""


class Policy(msgspec.Struct, frozen=True):
    """At most so many tries more, after `delay` seconds, each time twice as many."""

    most: int
    delay: float

    def judge(self, journal: Journal, error: Mapping[str, Any] | None, now: float) -> tuple[Status, float | None]:
        """How a run stands that fails now: failed, or asleep until it is tried again; then a line says so."""
        kind = str((error or {}).get("type"))
        if kind in _NEVER:
            return Status.FAILED, None
        try:
            count = sum(note.type == REVIVED for note in journal.notes())
        except TramaiError:  # who cannot count does not try
            return Status.FAILED, None
        if count >= self.most:
            return Status.FAILED, None
        wake_at = now + min(self.delay * 2.0**count, LONGEST)
        about = {"retry": count + 1, "of": self.most, "error_type": kind, "wake_at": wake_at}
        journal.note(REVIVED, data=encode(about))
        return Status.SLEEPING, wake_at
