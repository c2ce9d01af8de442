"""Runs that come up again: before their worker heard how they ended, or because they cannot be begun here."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator, Sequence

import pytest

from tramai import carrying, plan
from tramai.interrupt import Interrupt
from tramai.pacing import Shunned
from tramai.pool import MOST_CLAIMS, Pool, Taken, Wanted, pooled
from tramai.results import Options
from tramai.store import Change, Holder, Note, Status
from tramai.stores import open_store
from tramai.worker import Plan, Report, Worker

from .slots import Told
from .test_worker import TEXT, from_text

READS = 5


class LateToTell(Told):
    """Puts one run to sleep for no time, and tells it some looks later, when the store gives it out again already."""

    def __init__(self, store: Pool, sleeper: str) -> None:
        super().__init__()
        self._store = store
        self._sleeper = sleeper
        self._slept = False
        self._reports = [Report(kind="ready", holder=Holder.here())]
        self._later: list[Report] = []
        self._reads = 0
        self.carrying: set[tuple[str, int]] = set()
        self.left: set[tuple[str, int]] = set()
        os.write(self._writer, b"x")

    def give(self, taken: Taken, sent: float) -> None:
        assert taken.run is not None
        assert taken.lease is not None
        self.carrying.add((taken.run_id, taken.lease.fence))
        if taken.run_id == self._sleeper and not self._slept:
            self._slept = True
            now = time.time()
            asleep = Change(now=now, status=Status.SLEEPING, wake_at=now, release=True, unclaimed=True)
            self._store.commit(taken.lease, asleep)
            self.carrying.remove((taken.run_id, taken.lease.fence))
            self._later.append(Report(kind="done", run_id=taken.run_id, status="sleeping"))
            self._reads = 0
            return
        if taken.run_id == self._sleeper:  # it lasts
            self._later.append(Report(kind="done", run_id=taken.run_id, status="completed"))
            self._lease = taken.lease
            return
        self._store.commit(taken.lease, Change(now=time.time(), status=Status.COMPLETED, release=True))
        self.carrying.remove((taken.run_id, taken.lease.fence))
        self._reports.append(Report(kind="done", run_id=taken.run_id, status="completed"))

    def read(self) -> Sequence[Report]:
        self._reads += 1
        if select.select([self._reader], [], [], 0.0)[0]:
            os.read(self._reader, 100)
        if self._reports:
            return (self._reports.pop(0),)
        if self._later and self._reads > READS:
            self._reads, told = 0, self._later.pop(0)
            if told.status == "completed":
                self._store.commit(self._lease, Change(now=time.time(), status=Status.COMPLETED, release=True))
                self.carrying.clear()
            return (told,)
        return ()

    def withdraw(self) -> None:
        pass

    def close(self) -> None:
        self.left |= self.carrying
        super().close()


@pytest.fixture
def store() -> Iterator[Pool]:
    store = pooled(open_store("memory:"))
    yield store
    store.close()


def test_a_run_that_wakes_before_its_worker_heard_that_it_slept_is_waited_for(store: Pool) -> None:
    made = plan.Plan(from_text(TEXT))
    for _ in range(3):  # so quick that the slot is given something ahead
        carrying.enqueue(made, {}, store=store, options=Options(priority=9))
    sleeper = carrying.enqueue(made, {}, store=store).run_id
    told: list[tuple[str, object]] = []
    stop, hurry = Interrupt(), Interrupt()
    slot = LateToTell(store, sleeper)

    def tell(kind: str, about: object) -> None:
        told.append((kind, about))

    Worker(store, Plan(once=True, poll=0.02), lambda: slot, tell, stop=stop, hurry=hurry).run()
    assert slot.left == set()
    assert store.get(sleeper).status is Status.COMPLETED
    ends = [kind for kind, about in told if isinstance(about, dict) and about.get("run_id") == sleeper]
    assert ends == ["worker.took", "worker.finished", "worker.took", "worker.finished"]


GROUPED = """\
tramai: 1
name: grouped
concurrency: {group: one}
secrets: {token: {env: TOKEN_OF_A_GROUP}}
steps:
  - {id: it, local: {value: 1}}
"""


def test_a_run_of_a_group_that_cannot_be_begun_here_is_not_dead_after_some_tries(
    store: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_A_GROUP", "of-no-worker")
    run = carrying.enqueue(plan.Plan(from_text(GROUPED)), {}, store=store).run_id
    monkeypatch.delenv("TOKEN_OF_A_GROUP")
    for _ in range(MOST_CLAIMS + 2):
        taken = take(store)
        assert taken.run is not None
        assert taken.lease is not None
        with pytest.raises(carrying.NotCarried):
            carrying.carry(taken.run, taken.lease, sent=time.monotonic(), store=store)
        assert (store.get(run).status, store.get(run).claims_without_progress) == (Status.READY, 0)


def take(store: Pool) -> Taken:
    by = {"owner": "somebody", "holder": Holder.here(), "ttl": 30.0, "most_claims": MOST_CLAIMS}
    (taken,) = store.take(Wanted(), limit=1, now=time.time(), **by)  # type: ignore[arg-type]
    return taken


def test_what_is_left_alone_comes_later_each_time_and_nothing_is_kept_for_ever() -> None:
    shunned = Shunned()
    assert shunned.add("often", 0.0)
    assert [shunned.now(at) for at in (0.9, 1.0)] == [("often",), ()]
    assert not shunned.add("often", 1.0)
    assert [shunned.now(at) for at in (2.9, 3.0)] == [("often",), ()]
    for number in range(100_000):
        assert shunned.add(f"r{number}", 10.0 + number)
    assert len(shunned._runs) < 400
    assert shunned.add("often", 100_010.0), "others had it since"
    shunned.forget("often")
    assert "often" not in shunned.now(100_010.0)


LONG = """\
tramai: 1
name: long
steps:
  - {id: nap, delay: 30d}
"""


def test_a_run_that_goes_to_sleep_just_as_it_is_to_be_cancelled_does_not_sleep_on(store: Pool) -> None:
    run = carrying.enqueue(plan.Plan(from_text(LONG)), {}, store=store).run_id
    taken = take(store)
    assert taken.run is not None
    assert taken.lease is not None
    store.request_cancel(run, Note(at=1.0, type="cancel.requested"), now=time.time())
    carrying.carry(taken.run, taken.lease, sent=time.monotonic(), store=store, options=Options(wait=0.0))
    again = take(store)
    assert again.run is not None
    assert again.lease is not None
    carrying.carry(again.run, again.lease, sent=time.monotonic(), store=store, options=Options(wait=0.0))
    assert store.get(run).status is Status.CANCELLED
