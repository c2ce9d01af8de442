"""Drivers for tests: nothing waits, the clock of the test moves instead."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from ..driver import Interrupted, Loop, Straight
from ..interrupt import Interrupt
from .clock import FakeClock

T = TypeVar("T")


class Expired(BaseException):
    """A time limit over a block has passed; as a cancellation, no step can catch it."""

    def __init__(self, limit: _Limit) -> None:
        self.limit = limit
        super().__init__("expired")


class _Limit:
    """One limit, and the instant at which it passes."""

    def __init__(self, instant: float) -> None:
        self.instant = instant


class Instant(Straight):
    """Everything in order, in this thread; a pause moves the clock at once."""

    def __init__(self, interrupt: Interrupt, clock: FakeClock) -> None:
        super().__init__(interrupt)
        self._stop = interrupt
        self._clock = clock
        self._limits: list[_Limit] = []

    def pass_time(self, seconds: float) -> None:
        """Move the clock; only up to the first limit that passes meanwhile, which then ends its block."""
        first = min(self._limits, key=lambda limit: limit.instant, default=None)
        now = self._clock.monotonic()
        if first is not None and now + seconds > first.instant:
            self._clock.advance(max(first.instant - now, 0.0))
            raise Expired(first)
        self._clock.advance(max(seconds, 0.0))

    async def sleep(self, seconds: float) -> None:
        """A pause between two attempts."""
        if self._stop.is_set:
            raise Interrupted(self._stop.reason or "signal")
        self.pass_time(seconds)

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """A time limit over a block, in the time of the test."""
        limit = _Limit(self._clock.monotonic() + seconds)
        self._limits.append(limit)
        try:
            return await work
        except Expired as expired:
            if expired.limit is limit:
                raise TimeoutError from None
            raise
        finally:
            self._limits.remove(limit)


class InstantLoop(Loop):
    """An event loop, for steps that really run and need one; pauses move the clock, too."""

    def __init__(self, interrupt: Interrupt, clock: FakeClock) -> None:
        super().__init__(interrupt)
        self._clock = clock

    def pass_time(self, seconds: float) -> None:
        """Move the clock."""
        self._clock.advance(max(seconds, 0.0))

    async def sleep(self, seconds: float) -> None:
        """A pause between two attempts."""
        import asyncio

        self.pass_time(seconds)
        await asyncio.sleep(0)
