"""A clock that moves only when it is told to."""

from __future__ import annotations


class FakeClock:
    """Wall and monotonic time, both standing still between calls of `advance`; meets `tramai.clock.Clock`."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._monotonic = 1000.0

    def now(self) -> float:
        """Wall time, epoch seconds."""
        return self._now

    def monotonic(self) -> float:
        """Seconds from an unknown start that never go back."""
        return self._monotonic

    def advance(self, seconds: float) -> float:
        """Let time pass; the new wall time. Negative seconds are refused: time does not go back."""
        if seconds < 0:
            raise ValueError("time does not go back; `jump` moves the wall clock alone")
        self._monotonic += seconds
        return self.jump(seconds)

    def jump(self, seconds: float) -> float:
        """Set the wall clock forward or back, as an operator or a time server does; the new wall time."""
        self._now += seconds
        return self._now
