"""What is counted of one run in the slot that carries it."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from ..event import CalledEvent, Event, StepFinished
from ..worker import Carried

if TYPE_CHECKING:
    from ._slot import Order


class Counted:
    """An observer that counts steps, those of called runs too, and knows since when."""

    def __init__(self, order: Order) -> None:
        self._run = order.run
        self._began = time.monotonic()
        self._steps: Counter[tuple[str, str]] = Counter()
        # By one clock as far as that goes: the store gave the lease when it was asked.
        start = order.lease.acquired + self._began - order.sent
        self._waited = max(start - order.run.created, 0.0) if order.lease.fence == 1 or order.run.queued else None

    def __call__(self, event: Event) -> None:
        """See one event."""
        while isinstance(event, CalledEvent):
            event = event.event
        if isinstance(event, StepFinished):
            self._steps[event.verb, event.status] += 1

    def all(self) -> Carried:
        """What it came to."""
        return Carried(
            workflow=self._run.workflow,
            queue=self._run.queue,
            seconds=time.monotonic() - self._began,
            waited=self._waited,
            steps=tuple((verb, status, count) for (verb, status), count in sorted(self._steps.items())),
        )
