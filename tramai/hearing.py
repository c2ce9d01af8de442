"""How a worker waits: for its slots, for signals, and for a word of the store that something may have come up."""

from __future__ import annotations

import contextlib
import select
import time
from typing import Any

from .pool import Ear, Pool

_AGAIN = 10.0
"""Seconds after which somebody who hears nothing any more tries again to listen; until then there are the polls."""
_REST = 0.05
"""Seconds between two hints that are heeded: they come in swarms, and one look finds what all of them are about."""


class Hearing:
    """The ear of a worker, if its store has any."""

    def __init__(self, store: Pool) -> None:
        self._make: Any = getattr(store, "ear", None)
        self._ear: Ear | None = None
        self._deaf_until = 0.0
        self._heeded = 0.0

    def wait(self, poll: select.poll, seconds: float, listens: bool) -> None:
        """Wait until one of those in `poll` is readable or the time is over; or for a hint, of one who listens."""
        ear = self._listening() if listens else None
        end = time.monotonic() + max(seconds, 0.0)
        if ear is None:
            poll.poll(max(seconds, 0.0) * 1000)
            return
        every, own = ear.every, -1
        while True:
            now = time.monotonic()
            rest = self._heeded + _REST - now
            if every is None and rest <= 0 and own < 0:
                own = ear.fileno()
                poll.register(own, select.POLLIN)
            left = end - now
            ready = poll.poll(max(min(left, max(every or 0.0, rest) or left), 0.0) * 1000)
            if any(one != own for one, _ in ready) or (left <= 0 and not ready):
                return
            if (ready or every is not None) and self._hears(ear):
                self._heeded = time.monotonic()
                return
            if self._ear is None:
                return

    def close(self) -> None:
        """Listen no more."""
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.close()

    def _hears(self, ear: Ear) -> bool:
        try:
            return ear.heard()
        except Exception:  # noqa: BLE001 - whatever it is, there are the polls
            self.close()
            self._deaf_until = time.monotonic() + _AGAIN
            return False

    def _listening(self) -> Ear | None:
        now = time.monotonic()
        if self._ear is None and self._make is not None and now >= self._deaf_until:
            self._deaf_until = now + _AGAIN
            with contextlib.suppress(Exception):
                self._ear = self._make()
        return self._ear
