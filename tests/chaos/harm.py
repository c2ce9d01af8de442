"""What is done to the workers and their server, at random: the sequence hangs on the seed alone."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from .fleet import LEASE, Fleet, One, children, send
from .network import Link

_TERMINATE = """SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT %s) AS picked"""
CUT = "cut"
"""The kind of the worker whose link is cut."""


class Harm:
    """Does one harm after the other."""

    def __init__(self, fleet: Fleet, server: Any, link: Link | None, *, seed: int) -> None:
        self._random = random.Random(seed)
        self._fleet = fleet
        self._server = server
        self._link = link
        self._mended = 0.0
        self._thawed = 0.0
        self.done: Counter[str] = Counter()
        self._kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "worker killed": (6, self._kill_worker),
            "slot killed": (8, self._kill_slot),
            "worker killed with all that would end its steps": (3, self._kill_all),
            "worker stopped past its lease": (3, self._stop_all),
            "slot stopped past its lease": (4, self._stop_slot),
            "worker told to end": (3, self._ask),
            "server restarted": (1, self._restart),
            "server frozen past all leases": (1, self._freeze),
            "backends terminated": (4, self._terminate),
        }
        if link is not None:
            self._kinds["link cut"] = (3, self._cut)

    def once(self) -> None:
        """Do something, whatever it is."""
        names = list(self._kinds)
        name = self._random.choices(names, [self._kinds[one][0] for one in names])[0]
        self._kinds[name][1]()
        self.done[name] += 1

    def pause(self, pace: float) -> float:
        """Seconds until the next one."""
        return self._random.uniform(0.3, 1.7) * pace

    def tend(self) -> None:
        """Mend the link when its time has come."""
        if self._mended and time.monotonic() >= self._mended:
            self.mend()

    def mend(self) -> None:
        """Mend the link."""
        if self._link is not None and self._mended:
            self._link.mend()
        self._mended = 0.0

    def _one(self) -> One:
        return self._random.choice(self._fleet.places)

    def _past_lease(self) -> float:
        return LEASE * self._random.uniform(1.2, 2.0)

    def _kill_worker(self) -> None:
        self._fleet.kill(self._one())

    def _kill_all(self) -> None:
        """What its steps have started lives on, until somebody takes the runs over."""
        one = self._one()
        slots = one.slots()
        for pid in slots:
            send(pid, signal.SIGSTOP)  # or it would start another watchdog
        for pid in (*one.watchdogs(), *slots):
            send(pid, signal.SIGKILL)
        self._fleet.kill(one)

    def _kill_slot(self) -> None:
        slots = self._one().slots()
        if slots:
            send(self._random.choice(slots), signal.SIGKILL)

    def _stop_all(self) -> None:
        one = self._one()
        self._fleet.stop([one.process.pid, *one.slots()], self._past_lease())

    def _stop_slot(self) -> None:
        self._fleet.stop(self._one().slots()[:1], self._past_lease())

    def _ask(self) -> None:
        self._fleet.ask(self._one())

    def _restart(self) -> None:
        if self._frozen:
            return
        self._server.stop()
        time.sleep(self._random.uniform(0.0, LEASE / 2))
        self._server.start()

    @property
    def _frozen(self) -> bool:
        """Whether the server may not answer: whoever asked it now could not let it go on."""
        return time.monotonic() < self._thawed

    def _freeze(self) -> None:
        if not self._frozen:
            seconds = self._past_lease()
            self._thawed = time.monotonic() + seconds + 1.0
            self._fleet.stop(children(self._server.pid), seconds)

    def _terminate(self) -> None:
        if not self._frozen:
            self._server.sql(_TERMINATE, (self._random.randint(1, 20),))

    def _cut(self) -> None:
        if self._link is not None and not self._mended:
            self._link.cut()
            self._mended = time.monotonic() + self._past_lease()
