"""Where the time comes from, so that a test can hold it still."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time in epoch seconds (UTC) and monotonic seconds."""

    def now(self) -> float:
        """Wall time, epoch seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds from an unknown start that never go back."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Wall time, epoch seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds from an unknown start that never go back."""
        return time.monotonic()


class Shifted:
    """Another clock, set by so many seconds."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def now(self) -> float:
        """Wall time, epoch seconds."""
        return self._clock.now() + self._seconds

    def monotonic(self) -> float:
        """Seconds from an unknown start that never go back."""
        return self._clock.monotonic()
