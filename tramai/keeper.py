"""Keeps a run's lease alive from a thread of its own, and stops the run when that fails.

Self-fencing: the local deadline is counted from *before* a claim or renewal was sent. When it passes unrenewed
(the process was stopped, the disk hung), the run's children are killed and nothing more is written, even before the
store would refuse it.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import threading
import time
from collections.abc import Callable

from .audience import Audience
from .errors import LeaseLost
from .interrupt import Interrupt, deaf
from .store import Lease, Store

GLANCE = 1.0
"""Seconds between looks for a cancel request."""
_LOOK = 5.0
"""Seconds between looks whether a run is over, at most: what is over is not kept for the rest of a long lease."""


class Keeper:
    """Renews a lease every third of its time and watches for a cancel request."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        *,
        ttl: float,
        sent: float,
        interrupt: Interrupt,
        now: Callable[[], float],
        audience: Audience,
    ) -> None:
        self._store = store
        self._lease = lease
        self._ttl = ttl
        self._renewed = sent
        self._deadline = sent + ttl
        self._interrupt = interrupt
        self._now = now
        self._audience = audience
        self._cancelling = False
        self._pause = min(GLANCE, ttl / 3)
        self.over = False
        """Whether there is nothing to look after any more."""
        self._beginning = threading.Lock()
        self._thread: threading.Thread | None = None
        self._rest: threading.Event | None = None
        """Ends the pauses of the thread; made with it, for most runs have neither."""

    def start(self) -> None:
        """Begin to renew, once there is something to do: a run that is over before needs no thread."""
        _LATER.add(self, min(time.monotonic() + self._pause, self._deadline))

    def look(self) -> float | None:
        """Begin to renew, and stop the run when its time is over; when to look again, None when never.

        From the thread of all keepers, which asks no store: one that does not answer keeps nobody beyond his lease.
        """
        with self._beginning:
            if self.over:
                return None
            if self._thread is None:
                rest = self._rest = threading.Event()
                self._thread = threading.Thread(target=self._keep, args=(rest,), name="tramai-lease", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the system gives no more threads: nobody will renew
                    self._interrupt.set("lease_lost")
                    return None
        if self.expired:
            self._interrupt.set("lease_lost")
            return None
        return min(self._deadline, time.monotonic() + _LOOK)

    def guard(self, interrupt: Interrupt) -> None:
        """From now on stop this, and only for the loss of the lease: the run is being cancelled already."""
        self._cancelling = True
        self._interrupt = interrupt

    def stop(self) -> None:
        """Stop renewing; returns when the thread has ended."""
        with self._beginning:
            self.over = True
            if self._rest is not None:
                self._rest.set()
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join(timeout=10.0)

    @property
    def expired(self) -> bool:
        """Whether the local deadline has passed."""
        return time.monotonic() >= self._deadline

    def _keep(self, rest: threading.Event) -> None:
        deaf()
        while not self.over:
            try:
                if not self._cancelling and self._store.cancel_requested(self._lease.run_id):
                    self._interrupt.set("cancelled")
                sent = time.monotonic()
                if sent - self._renewed >= self._ttl / 3:
                    lease = self._store.renew(self._lease, ttl=self._ttl, now=self._now())
                    self._renewed, self._deadline = sent, sent + self._ttl
                    self._audience.signal(
                        "lease.renewed", owner=lease.owner, fence=lease.fence, expires_at=lease.expires
                    )
            except LeaseLost:
                self._interrupt.set("lease_lost")
                return
            except Exception:  # noqa: BLE001, S110 - a store in trouble, whatever it says, may yet come back in time
                pass
            rest.wait(self._pause)


class _Later:
    """Looks after keepers when it is time, from one thread for all of this process."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._due: list[tuple[float, int, Keeper]] = []
        self._thread: threading.Thread | None = None

    def add(self, keeper: Keeper, at: float) -> None:
        """Look after this one then, and for as long as it is not over."""
        with self._news:
            first = not self._due or at < self._due[0][0]
            heapq.heappush(self._due, (at, id(keeper), keeper))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._serve, name="tramai-leases", daemon=True)
                self._thread.start()
            elif first:
                self._news.notify()

    def _serve(self) -> None:
        deaf()
        while True:
            with self._news:
                while not self._due or (left := self._due[0][0] - time.monotonic()) > 0:
                    if self._due and self._due[0][2].over:  # most are by then: nobody is woken for each of them
                        heapq.heappop(self._due)
                        continue
                    self._news.wait(left if self._due else None)
                _, _, keeper = heapq.heappop(self._due)
            with contextlib.suppress(Exception):  # of one run; the others are to be looked after
                again = keeper.look()
                if again is not None:
                    with self._news:
                        heapq.heappush(self._due, (again, id(keeper), keeper))
            del keeper  # or the last one would be kept for as long as nothing is due


def _anew() -> None:
    """After a fork no thread is left, and a lock may be one that nobody gives back."""
    global _LATER
    _LATER = _Later()


_LATER = _Later()
os.register_at_fork(after_in_child=_anew)
