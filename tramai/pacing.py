"""How many runs a slot is given ahead: as many as it ends in a moment, so none waits long behind another.

And how long a worker leaves alone a run that cannot be carried out here.
"""

from __future__ import annotations

TOGETHER = 32
"""Runs that a slot carries side by side, when they only compute."""
_LASTS, _LASTS_TOGETHER = 0.2, 1.0
_AHEAD = 0.1
"""Seconds of work that a slot has at hand."""
_MOST = 64
_BEHIND = 4.0
"""Seconds of work that may lie ahead, when runs last longer than those by which it was given: others may have time."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0
"""Seconds for which a run that cannot be carried out here is left alone: at first, and at most."""


def lasts(together: bool) -> float:
    """Seconds after which a run is none of the brief ones: nothing waits behind it any longer."""
    return _LASTS_TOGETHER if together else _LASTS


class Pace:
    """How fast a slot ends its runs, lately."""

    def __init__(self) -> None:
        self._most = 1
        self._each: float | None = None
        self._last = 0.0

    def room(self, has: int) -> int:
        """How many more runs it may be given when it has so many: none before half of them are done."""
        return 0 if has > self._most // 2 else self._most - has

    def behind(self, waiting: int) -> bool:
        """Whether so many runs are more than it ends soon, as fast as it is now."""
        return self._each is not None and waiting * self._each > _BEHIND

    def ended(self, now: float, spent: float, *, beside: bool) -> None:
        """A run has ended after so many seconds; of several that were carried at once only the last bit counts."""
        each = min(spent, now - self._last)
        self._last = now
        if spent > lasts(beside):
            self.slow()
            return
        self._each = each if self._each is None else (3 * self._each + each) / 4
        at_hand = int(_AHEAD / max(self._each, 1e-6)) + (TOGETHER if beside else 0)
        self._most = max(1, min(2 * self._most, _MOST, at_hand))

    def slow(self) -> None:
        """What it carries lasts: nothing is given ahead for now."""
        self._most = 1
        self._each = None


class Shunned:
    """Runs that are left alone for a while, longer each time. Of one that did not come up again nothing is kept."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[float, float]] = {}
        """Until when, and how long that was; the last that was added comes last."""

    def add(self, run_id: str, now: float) -> bool:
        """Leave it alone from now on; whether nothing was known of it."""
        _, last = self._runs.pop(run_id, (0.0, 0.0))
        pause = min(max(last * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
        self._runs[run_id] = now + pause, pause
        while self._runs[first := next(iter(self._runs))][0] + _LONGEST_PAUSE < now:
            del self._runs[first]  # others had it since
        return not last

    def forget(self, run_id: str) -> None:
        """It was carried out."""
        self._runs.pop(run_id, None)

    def now(self, now: float) -> tuple[str, ...]:
        """Those that are left alone now."""
        return tuple(run_id for run_id, (until, _) in self._runs.items() if until > now)
