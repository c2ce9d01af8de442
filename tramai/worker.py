"""The loop of a worker: takes as many runs as it has free slots, has them carried out, and ends when it is told to.

A slot carries one run at a time and is a process of its own (`cli/_slot.py`), with its own store, watchdog and lease
keeper. So a run that kills whoever carries it ends its slot and nobody else's work, a run that computes without end
keeps nobody's lease from being renewed, and the holder of a lease is the very process whose death frees the run. The
loop itself is one thread that never carries anything.

A slot whose last runs were brief is given some ahead (`pacing.py`), so that it need not wait for its worker between
two. What it has not begun goes back to the store as it was, for others, when a run before it lasts, when the worker
drains, and when the slot has died: nobody pays for his neighbour.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import select
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from . import pool
from .clock import Clock, SystemClock
from .errors import LeaseLost, NotInThatState, TramaiError
from .event import Attribute
from .faults import public
from .hearing import Hearing
from .interrupt import Interrupt
from .pacing import Pace, Shunned
from .pool import Pool, Taken, Wanted
from .slots import Carried as Carried
from .slots import Given, Place
from .slots import Report as Report
from .slots import Slot as Slot
from .store import Holder

BEAT = 10.0
"""Seconds between two beats in the registry; a wish to drain is heard of as often, at least every poll."""
_SOON = 0.02
_MOST_LOST = 8


class SlotLost(TramaiError):
    """the processes that carry out runs end before they are ready ({status})"""

    code = "TRM454"
    exit_status = 7


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker works. Times are seconds; `drain` is how long it waits for its runs when it is told to end."""

    wanted: Wanted = Wanted()
    concurrency: int = 1
    lease: float = 30.0
    drain: float = 30.0
    poll: float = 1.0
    most_claims: int = pool.MOST_CLAIMS
    pool: str = ""
    once: bool = False
    max_runs: int | None = None


Tell = Callable[[str, dict[str, Attribute]], None]


class Worker:
    """One worker: `run` returns when it has drained. `stop` asks it to drain, `hurry` to end its runs at once."""

    def __init__(
        self,
        store: Pool,
        plan: Plan,
        new_slot: Callable[[], Slot],
        tell: Tell,
        *,
        stop: Interrupt,
        hurry: Interrupt,
        clock: Clock | None = None,
    ) -> None:
        here = Holder.here()
        self.id = f"{here.host}:{here.pid}-{os.urandom(2).hex()}"
        self._store = store
        self._plan = plan
        self._new_slot = new_slot
        self._tell = tell
        self._stop = stop
        self._hurry = hurry
        self._clock = clock or SystemClock()
        self._started = self._clock.now()
        self._host = here.host
        self._pid = here.pid
        self._places: list[Place] = []
        self._shunned = Shunned()
        self._given = 0
        self._beaten = -BEAT
        self._dry = -BEAT
        """When fewer came up than were wanted."""
        self._draining: float | None = None
        """Since when."""
        self._trouble = 0.0
        """Until when a store in trouble is left alone."""
        self._failure: TramaiError | None = None
        self._lost = 0
        """Slots in a row that ended before they were ready."""
        self._hurried = False
        self._hearing = Hearing(store)

    def run(self) -> int:
        """Work until there is nothing more to do, or somebody says so; how many runs were given out."""
        self._tell(
            "worker.started", {"concurrency": self._plan.concurrency, "queues": ",".join(self._plan.wanted.queues)}
        )
        try:
            self._places = [Place(self._new_slot()) for _ in range(self._plan.concurrency)]
            self._wait_for_slots()
            while not self._over():
                wait = self._turn()
                self._listen(wait)
        finally:
            for place in self._places:
                place.slot.close()
            self._hearing.close()
            self._guarded(lambda: self._store.leave(self.id))
        self._tell("worker.stopped", {"runs": self._given})
        return self._given

    # One turn of the loop.

    def _turn(self) -> float:
        """Beat, take, drain; seconds until there is something to do again."""
        now = time.monotonic()
        if self._stop.is_set:
            self._drain("signal")
        if now - self._beaten >= min(BEAT, self._plan.poll * 5):
            self._beat(now)
        if self._draining is not None:
            return self._end_runs(now)
        wait = self._fill()
        if self._plan.max_runs is not None and self._given >= self._plan.max_runs and not self._busy:
            self._drain("max_runs")
            return 0.0
        if self._plan.once and not self._busy and wait is not None and wait > 0:
            if self._failure is not None:
                raise self._failure
            self._drain("nothing is ready")
            return 0.0
        return min(self._plan.poll if wait is None else wait, self._watch(now))

    def _over(self) -> bool:
        return self._draining is not None and not self._busy

    @property
    def _busy(self) -> list[Place]:
        return [place for place in self._places if place.runs]

    def _beat(self, now: float) -> None:
        plan, wanted = self._plan, self._plan.wanted
        row = pool.Worker(
            id=self.id,
            host=self._host,
            pid=self._pid,
            started=self._started,
            queues=wanted.queues,
            labels=wanted.labels,
            concurrency=plan.concurrency,
            running=len(self._busy),
            every=min(BEAT, plan.poll * 5),
            pool=plan.pool,
        )
        self._beaten = now
        if self._guarded(lambda: self._store.beat(row, now=self._clock.now())):
            self._drain("asked")

    def _fill(self) -> float | None:
        """Take runs for the free slots; seconds until another look is worth it, None while every slot is taken."""
        now = time.monotonic()
        free = sorted((len(place.runs), number) for number, place in enumerate(self._places) if place.room(now))
        if not free:
            return None
        if now < self._trouble:
            return self._trouble - now
        for has, number in free:
            if has and now - self._dry < _SOON:
                continue  # it has something to do, and there was nothing more just now
            most = self._places[number].room(now)
            if self._plan.max_runs is not None:
                most = min(most, self._plan.max_runs - self._given)
            if most <= 0:
                return None
            if self._take(self._places[number], most) < most:
                self._dry = now
                if not self._places[number].runs:
                    return self._pause()
        return None

    def _take(self, place: Place, most: int) -> int:
        """Give a slot runs; how many there were."""
        assert place.holder is not None
        sent = time.monotonic()
        by = {"owner": self.id, "holder": place.holder, "ttl": self._plan.lease, "most_claims": self._plan.most_claims}
        found = self._guarded(
            lambda: self._store.take(self._wanted(place.runs), limit=most, now=self._clock.now(), **by)  # type: ignore[arg-type]
        )
        if found is not None and self._failure is not None:
            self._failure, self._trouble = None, 0.0
            self._tell("worker.store_back", {})
        before = len(place.runs)
        for one in found or ():
            if one.lease is not None:
                self._give(place, one, sent)
            elif one.run is not None:
                self._tell("worker.dead", {"run_id": one.run_id, "claims": one.run.claims_without_progress})
            else:
                self._shun(one.run_id, "CheckpointCorrupt", one.fault)
        if len(place.runs) > before:
            place.slot.flush()
        return len(place.runs) - before

    def _give(self, place: Place, taken: Taken, sent: float) -> None:
        first, place.stopped = not place.runs, False
        given = place.runs[taken.run_id] = Given(taken)
        self._given += 1
        if first:
            self._begun(given, sent)
        place.slot.give(taken, sent)

    def _begun(self, given: Given, at: float) -> None:
        """A slot begins to carry a run; this is when it is told."""
        run, lease = given.taken.run, given.taken.lease
        if given.began is None and run is not None and lease is not None:
            given.began = at
            about = {"run_id": run.run_id, "workflow": run.workflow, "from_status": run.status.value}
            self._tell("worker.took", {**about, "fence": lease.fence})

    def _withdraw(self, place: Place) -> None:
        """Have a slot return what it has not begun: others may carry it meanwhile."""
        if not place.withdrawn and len(place.begun) < len(place.runs):
            place.withdrawn = True
            place.pace.slow()
            place.slot.withdraw()

    def _give_back(self, given: Given) -> None:
        """Let others have a run that was not begun, as it was."""
        taken = given.taken
        if taken.run is not None and taken.lease is not None:
            self._given -= 1
            change, lease = pool.given_back(taken.run, self._clock.now()), taken.lease

            def commit() -> None:
                with contextlib.suppress(LeaseLost, NotInThatState):  # it is free, or another's
                    self._store.commit(lease, change)

            self._guarded(commit)

    def _watch(self, now: float) -> float:
        """Withdraw what stands behind a run that lasts; seconds until the next may."""
        soon = math.inf
        for place in self._places:
            if len(place.runs) > 1 and not place.withdrawn:
                left = place.left(now)
                if left <= 0:
                    self._withdraw(place)
                else:
                    soon = min(soon, left)
        return soon

    def _pause(self) -> float:
        """Seconds to wait when nothing came up: until the next one does, and never longer than a poll."""
        poll = self._plan.poll * random.uniform(0.75, 1.25)  # noqa: S311 - so that many workers do not ask as one
        if time.monotonic() < self._trouble:
            return self._trouble - time.monotonic()
        wake = self._guarded(lambda: self._store.next_wake(self._wanted(), now=self._clock.now()))
        return poll if wake is None or wake <= 0 else min(max(wake, _SOON), poll)

    def _wanted(self, has: Iterable[str] = ()) -> Wanted:
        """What is wanted for a slot. What it `has` may have ended and come up again before that was told here."""
        now = time.monotonic()
        without = (*has, *self._shunned.now(now))
        return replace(self._plan.wanted, without=without)

    def _shun(self, run_id: str, code: str, message: str | None, hint: str | None = None) -> None:
        """Leave a run alone for a while, longer each time; it is told once."""
        if self._shunned.add(run_id, time.monotonic()):
            self._tell("worker.refused", {"run_id": run_id, "code": code, "message": message, "hint": hint})

    # The end.

    def _drain(self, why: str) -> None:
        if self._draining is None:
            self._draining = time.monotonic()
            for place in self._places:
                self._withdraw(place)
            self._tell("worker.draining", {"reason": why, "running": len(self._busy)})

    def _end_runs(self, now: float) -> float:
        """What is left to do while draining; seconds until the next look."""
        assert self._draining is not None
        left = self._draining + self._plan.drain - now
        if self._hurry.is_set and not self._hurried:
            self._hurried = True
            for place in self._busy:
                place.stopped = True
                place.slot.stop("hurry")
        if left <= 0:
            for place in self._busy:
                if not place.stopped:
                    place.stopped = True
                    place.slot.stop("drain")
        return min(left if left > 0 else self._plan.poll, self._plan.poll)

    def _wants(self) -> bool:
        """Whether a run that comes up now would be taken."""
        now = time.monotonic()
        return self._draining is None and now >= self._trouble and any(place.room(now) for place in self._places)

    # What slots say.

    def _wait_for_slots(self) -> None:
        """No run is taken before there is somebody to be its holder."""
        while any(place.holder is None for place in self._places) and not self._stop.is_set:
            self._listen(1.0)

    def _listen(self, seconds: float) -> None:
        """Wait for a slot, a signal, or for time to pass."""
        poll = select.poll()
        for place in self._places:
            poll.register(place.slot.fileno(), select.POLLIN)
        if self._draining is None and not self._stop.is_set:
            poll.register(self._stop.fileno(), select.POLLIN)
        if not self._hurried:
            poll.register(self._hurry.fileno(), select.POLLIN)
        self._hearing.wait(poll, seconds, self._wants())
        for place in self._places:
            for report in place.slot.read():
                self._heard(place, report)

    def _heard(self, place: Place, report: Report) -> None:
        if report.kind == "ready":
            place.holder, self._lost = report.holder, 0
            return
        if report.kind == "gone":
            self._gone(place, report)
            return
        given = place.runs.get(report.run_id or next(iter(place.runs), ""))
        if given is None:
            return
        if report.kind == "began":
            given.beside = report.beside
            self._begun(given, time.monotonic())
            return
        del place.runs[given.taken.run_id]
        place.withdrawn = place.withdrawn and len(place.begun) < len(place.runs)
        if report.kind == "returned":
            self._give_back(given)
            return
        now = time.monotonic()
        self._begun(given, now)  # unless it was told
        spent = now - (given.began or now)
        place.pace.ended(now, spent, beside=given.beside)
        if report.kind == "refused":
            self._shun(given.taken.run_id, report.code or "", report.message, report.hint)
            return
        self._shunned.forget(given.taken.run_id)
        about = {"run_id": given.taken.run_id, "status": report.status, "duration": round(spent, 3)}
        self._tell("worker.finished", {**about, "wake_at": report.wake_at})

    def _gone(self, place: Place, report: Report) -> None:
        """A slot has ended, and what it carried is free with it. What it had not begun is given back."""
        place.slot.close()
        runs, place.runs = place.runs, {}
        for given in runs.values():
            if given.began is None:
                self._give_back(given)
        for about in [{"run_id": run_id} for run_id, given in runs.items() if given.began is not None] or [{}]:
            self._tell("worker.slot_lost", {**about, "status": report.status})
        self._lost += place.holder is None
        if self._lost > _MOST_LOST:
            raise SlotLost(status=report.status or "unknown")
        place.slot, place.holder, place.pace, place.withdrawn = self._new_slot(), None, Pace(), False

    def _guarded(self, ask: Callable[[], Any]) -> Any:
        """Ask the store; trouble with it is told once, and is no reason to end."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - a store in trouble may come back
            found: TramaiError = public(error)
            if self._failure is None:
                self._tell("worker.store_failed", {"code": found.code, "message": found.message})
            self._failure, self._trouble = found, time.monotonic() + max(self._plan.poll, 1.0)
            return None
