"""What a run does that has come to a question: it hears what was decided meanwhile, and asks whoever sits there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .codec import encode
from .driver import Interrupted
from .outcomes import Blocked, Suspended

if TYPE_CHECKING:
    from . import deciding
    from .host import StoreHost

T = TypeVar("T")


class Patience:
    """Lets a walk begin again while that leads further; each reason counts once, so that nobody walks in circles."""

    def __init__(self, host: StoreHost, answer: deciding.Answer | None, by: str) -> None:
        self._host = host
        self._answer = answer
        self._by = by
        self._heard: set[tuple[str, int]] = set()

    def carry(self, walk: Callable[[], T]) -> T:
        """Walk, and walk on while decisions come that gates wait for. Raises what stops the run."""
        while True:
            try:
                return walk()
            except Suspended as suspended:
                if not suspended.waiting or isinstance(suspended, Blocked) or not (self._hear() or self._ask()):
                    raise

    def _hear(self) -> bool:
        """Whether a question is decided, or its time over, of which that was not known."""
        now = self._host.clock.now()
        over = (one for one in self._look() if one.decision is not None or one.late(now))
        news = {(one.path, one.question.number) for one in over} - self._heard
        self._heard |= news
        return bool(news)

    def _ask(self) -> bool:
        """Ask somebody at the terminal; whether there is anything to hear then. To wait is not to run."""
        questions = tuple(one for one in self._look() if one.decision is None) if self._answer is not None else ()
        if self._answer is None or not questions:
            return False
        host, began = self._host, time.monotonic()
        host.journal.note("run.waiting")
        host.journal.write()
        self._answer(questions)
        data = encode({"from": "waiting", "fence": host.journal.lease.fence})
        host.journal.note("run.resumed", by=self._by, data=data)
        if host.run_deadline is not None:
            host.run_deadline += time.monotonic() - began
        if host.interrupt.is_set:
            raise Interrupted(host.interrupt.reason or "signal")
        return self._hear()

    def _look(self) -> tuple[deciding.Open, ...]:
        from . import deciding

        return deciding.opened(self._host.journal.records(), self._host.journal.notes())
