"""Keeps a run's lease alive from a thread of its own, and stops the run when that fails.

Self-fencing: the local deadline is counted from *before* a claim or renewal was sent. When it passes unrenewed
(the process was stopped, the disk hung), the run's children are killed and nothing more is written, even before the
store would refuse it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .audience import Audience
from .errors import LeaseLost
from .interrupt import Interrupt
from .store import Lease, Store

GLANCE = 1.0
"""Seconds between looks for a cancel request."""


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
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="tramai-lease", daemon=True)

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def guard(self, interrupt: Interrupt) -> None:
        """From now on stop this, and only for the loss of the lease: the run is being cancelled already."""
        self._cancelling = True
        self._interrupt = interrupt

    def stop(self) -> None:
        """Stop renewing; returns when the thread has ended."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=10.0)

    @property
    def expired(self) -> bool:
        """Whether the local deadline has passed."""
        return time.monotonic() >= self._deadline

    def _keep(self) -> None:
        while not self._over.wait(min(GLANCE, self._ttl / 3)):
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
            if self.expired:
                self._interrupt.set("lease_lost")
                return
