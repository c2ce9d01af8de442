"""What a worker counts, and what it tells of it: no ids, no texts; names of workflows and queues, a hundred of each."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import __version__
from ..errors import LeaseLost
from ..event import Attribute
from ..pool import Taken
from ..worker import Report, Slot
from ._exposition import Counter, Gauge, Histogram, Labels, Names, page
from ._metrics_server import Answer, metrics, plain

_FRESH = 10.0
"""Seconds for which a count of the store is told again."""
_TICKS = ("fired", "skipped", "missed", "failed")
_COUNTED = 10_000
"""Runs of a queue that are counted; from there on there are many."""


class Watch:
    """Everything that is counted in one worker. `store` is what the worker asks, `slot` what carries its runs."""

    def __init__(self, store: Any, *, kind: str, queues: Sequence[str], slots: int) -> None:
        self._asked = store
        self._queues = tuple(queues)
        self._workflows, self._codes = Names(), Names()
        self._places: list[_Slot] = []
        self._away = False
        self._ready = False
        self.draining = False
        self._counted: tuple[float, dict[Labels, float]] = (-_FRESH, {})
        self._counting = threading.Lock()
        began = time.time()
        self.store = _Store(store, self)
        self.taken = Counter("tramai_worker_runs_taken_total", "Runs given to a slot.", ["workflow"])
        self.finished = Counter(
            "tramai_worker_runs_finished_total", "Runs that ended or stand still, by how.", ["workflow", "status"]
        )
        self.duration = Histogram("tramai_worker_run_seconds", "How long a run was carried at a stretch.", ["workflow"])
        self.waited = Histogram(
            "tramai_worker_run_wait_seconds", "From the making of a run to its first start.", ["queue"]
        )
        self.steps = Counter("tramai_worker_steps_total", "Steps that ended, by how.", ["verb", "status"])
        self.refused = Counter("tramai_worker_runs_refused_total", "Runs that cannot be begun here.", ["code"])
        self.dead = Counter("tramai_worker_runs_dead_total", "Runs claimed too often without progress.")
        self.lost = Counter("tramai_worker_slots_lost_total", "Processes of slots that ended by themselves.")
        self.claims_lost = Counter("tramai_worker_claims_lost_total", "Leases that were over before the run was.")
        self.ticks = Counter(
            "tramai_worker_schedule_times_total", "Times of schedules, by what became of them.", ["status"]
        )
        self.calls = Counter("tramai_worker_store_calls_total", "What the worker asked of the store.", ["call"])
        self.errors = Counter("tramai_worker_store_errors_total", "What the store did not answer.", ["call"])
        about: dict[Labels, float] = {(__version__, platform.python_version(), kind): 1.0}
        self._all = [
            Gauge("tramai_build_info", "What runs here.", lambda: about, ["version", "python", "store"]),
            self._gauge("tramai_worker_up", "The worker is there.", lambda: 1),
            self._gauge("tramai_worker_start_time_seconds", "When it began.", lambda: began),
            self._gauge("tramai_worker_draining", "It takes no more runs.", lambda: self.draining),
            self._gauge("tramai_store_up", "The store answered the last time.", lambda: not self._away),
            self._gauge("tramai_worker_slots", "Its slots.", lambda: slots),
            self._gauge("tramai_worker_slots_busy", "Slots that have work.", self._busy),
            *(self.taken, self.finished, self.duration, self.waited, self.steps, self.refused, self.dead),
            *(self.lost, self.claims_lost, self.ticks, self.calls, self.errors),
            Gauge("tramai_queue_runs_ready", "Runs that wait, up to 10000.", self._backlog, ["queue"]),
        ]

    def pages(self, path: str) -> Answer | None:
        """The answer to a path."""
        if path == "/metrics":
            return metrics(page(self._all))
        if path == "/healthz":
            return plain(200, "alive")
        if path == "/readyz":
            if self.draining:
                return plain(503, "draining")
            if not self._ready:
                return plain(503, "starting")
            return plain(503, "the store is away") if self._away else plain(200, "ready")
        return None

    def slot(self, slot: Slot) -> Slot:
        """The same slot, watched."""
        watched = _Slot(slot, self)
        self._places = [*(place for place in self._places if not place.over), watched]
        return watched

    def told(self, kind: str, about: Mapping[str, Attribute]) -> None:
        """What the worker tells."""
        happened = kind.removeprefix("schedule.")
        if kind.startswith("schedule.") and happened in _TICKS:
            count = about.get("count")
            self.ticks.add(happened, by=count if isinstance(count, int) else 1)
        elif kind == "worker.draining":
            self.draining = True
        elif kind == "worker.dead":
            self.dead.add()
        elif kind == "worker.refused" and about.get("code") == "CheckpointCorrupt":
            self.refused.add(self._codes("CheckpointCorrupt"))

    def answered(self, call: str, *, failed: bool) -> None:
        """The store was asked."""
        self.calls.add(call)
        self._away = failed
        if failed:
            self.errors.add(call)

    def gave(self, taken: Taken) -> None:
        """A slot was given a run."""
        if taken.run is not None:
            self.taken.add(self._workflows(taken.run.workflow))

    def heard(self, report: Report) -> None:
        """A slot has reported."""
        if report.kind == "ready":
            self._ready = True
        elif report.kind == "gone":
            self.lost.add()
        elif report.kind in ("began", "returned"):
            return
        elif report.kind == "refused":
            if report.code == LeaseLost.code:
                self.claims_lost.add()
            else:
                self.refused.add(self._codes(report.code or ""))
        else:
            self._finished(report)

    def _finished(self, report: Report) -> None:
        if report.status == "interrupted" and report.exit_status == LeaseLost.exit_status:
            self.claims_lost.add()
        carried = report.carried
        if carried is None:
            return
        workflow = self._workflows(carried.workflow)
        self.finished.add(workflow, report.status or "")
        if report.status == "queued":
            return  # it only asked for its place
        self.duration.observe(carried.seconds, workflow)
        if carried.waited is not None:
            self.waited.observe(carried.waited, carried.queue)
        for verb, status, count in carried.steps:
            self.steps.add(verb, status, by=count)

    def _busy(self) -> float:
        return sum(place.busy for place in self._places)

    @staticmethod
    def _gauge(name: str, help: str, read: Callable[[], float]) -> Gauge:
        return Gauge(name, help, lambda: {(): float(read())})

    def _backlog(self) -> dict[Labels, float]:
        """Runs that wait, by queue; asked again after a while, by one at a time, and not of a store that is away."""
        count = getattr(self._asked, "backlog", None)
        if count is None or not self._counting.acquire(blocking=False):
            return self._counted[1]
        try:
            if not self._away and time.monotonic() - self._counted[0] >= _FRESH:
                found = count(self._queues, most=_COUNTED)
                self._counted = time.monotonic(), {(queue,): float(found[queue]) for queue in self._queues}
        except Exception:  # noqa: BLE001 - the worker itself will find the store away
            self._counted = time.monotonic(), {}
        finally:
            self._counting.release()
        return self._counted[1]


class _Store:
    """The store, with an ear for whether it answers."""

    def __init__(self, store: Any, watch: Watch) -> None:
        self._store = store
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            try:
                answer = found(*arguments, **named)
            except Exception:
                self._watch.answered(name, failed=True)
                raise
            self._watch.answered(name, failed=False)
            return answer

        self.__dict__[name] = call
        return call


class _Slot:
    """A slot, with an ear for what it is given and what it reports."""

    def __init__(self, slot: Slot, watch: Watch) -> None:
        self._slot = slot
        self._watch = watch
        self.given = 0
        self.over = False

    @property
    def busy(self) -> bool:
        """Whether it carries a run."""
        return self.given > 0 and not self.over

    def fileno(self) -> int:
        """As of the slot itself."""
        return self._slot.fileno()

    def give(self, taken: Taken, sent: float) -> None:
        """Carry this run out."""
        self.given += 1
        self._watch.gave(taken)
        self._slot.give(taken, sent)

    def read(self) -> Sequence[Report]:
        """What there is to report."""
        found = self._slot.read()
        for report in found:
            if report.kind == "gone":
                self.over = True
            elif report.kind not in ("ready", "began"):
                self.given -= 1
            self._watch.heard(report)
        return found

    def stop(self, reason: str) -> None:
        """Interrupt the run."""
        self._slot.stop(reason)

    def close(self) -> None:
        """End it."""
        self.over = True
        self._slot.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slot, name)
