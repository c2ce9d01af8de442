"""Runs that lie ahead of a slot: they are given back as they were when a run before them lasts or kills the slot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.slots import Told
from tests.test_worker import enqueue, of
from tramai import carrying, pacing
from tramai.interrupt import Interrupt
from tramai.pool import Pool, Taken, pooled
from tramai.results import Options
from tramai.store import Holder, Status
from tramai.stores import open_store
from tramai.worker import Plan, Report, Worker


class Slow(Told):
    """A slot that begins what it is given and carries it when it is told to."""

    def __init__(self, store: Pool) -> None:
        super().__init__()
        self._store = store
        self.waiting: list[tuple[Taken, float]] = []
        self.say(Report(kind="ready", holder=Holder.here()))

    def give(self, taken: Taken, sent: float) -> None:
        self.waiting.append((taken, sent))

    def carry(self, *, beside: bool = False) -> None:
        """Carry out the first that waits."""
        taken, sent = self.waiting.pop(0)
        assert taken.run is not None
        assert taken.lease is not None
        self.say(Report(kind="began", run_id=taken.run_id, beside=beside))
        ended = carrying.carry(taken.run, taken.lease, sent=sent, store=self._store, options=Options(wait=0.0))
        self.say(Report(kind="done", run_id=ended.run_id, status=ended.status))

    def begin(self) -> Taken:
        """Begin with the first that waits, and not end."""
        taken, _ = self.waiting.pop(0)
        self.say(Report(kind="began", run_id=taken.run_id))
        return taken

    def withdraw(self) -> None:
        for taken, _ in self.waiting:
            self.say(Report(kind="returned", run_id=taken.run_id))
        self.waiting.clear()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, the runs of these tests are brief."""
    monkeypatch.setattr(pacing, "_AHEAD", 1e9)
    monkeypatch.setattr(pacing, "_BEHIND", 1e9)
    monkeypatch.setattr(pacing, "_LASTS", 1e9)


@pytest.fixture
def store() -> Iterator[Pool]:
    store = pooled(open_store("memory:"))
    yield store
    store.close()


class Bench:
    """A worker whose turns are taken one by one, with slots that do as they are told."""

    def __init__(self, store: Pool, **how: Any) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.slots: list[Slow] = []
        self.stop, self.hurry = Interrupt(), Interrupt()
        self.store = store
        plan = Plan(poll=0.01, **how)
        self.worker = Worker(
            store,
            plan,
            self._new,
            lambda kind, about: self.told.append((kind, about)),
            stop=self.stop,
            hurry=self.hurry,
        )
        self.worker._places = [_place(self._new()) for _ in range(plan.concurrency)]
        self.worker._wait_for_slots()

    def _new(self) -> Slow:
        self.slots.append(Slow(self.store))
        return self.slots[-1]

    def turn(self, count: int = 1) -> None:
        for _ in range(count):
            self.worker._turn()
            self.worker._listen(0.0)


def _place(slot: Slow) -> Any:
    from tramai.slots import Place

    return Place(slot)


def brief(bench: Bench, store: Pool, count: int = 8) -> None:
    """Let it carry brief runs, until it is given many ahead."""
    for _ in range(count):
        enqueue(store)
    while of(bench.told, "finished").__len__() < count:
        bench.turn()
        for slot in bench.slots:
            while slot.waiting:
                slot.carry()
    bench.turn()


def as_before(store: Pool, run_id: str) -> bool:
    """Whether it is there for others, and nobody has paid for it."""
    run = store.get(run_id)
    return (run.status, run.lease, run.claims_without_progress) == (Status.READY, None, 0)


def test_what_stands_behind_a_run_that_lasts_goes_back_as_it_was(store: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(store)
    brief(bench, store)
    runs = [enqueue(store) for _ in range(6)]
    bench.turn()
    (slot,) = bench.slots
    assert len(slot.waiting) == 6
    first = slot.begin()
    bench.turn()
    monkeypatch.setattr(pacing, "_LASTS", -1.0)  # it lasts already
    bench.turn(2)
    assert [as_before(store, run) for run in runs] == [run != first.run_id for run in runs]
    assert len(slot.waiting) == 0, "nothing is given while it lasts"
    assert {about["run_id"] for about in of(bench.told, "took")} & set(runs) == {first.run_id}


def test_what_lies_ahead_of_a_slot_that_became_slow_goes_back_before_each_of_them_lasts(
    store: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store)
    brief(bench, store)
    runs = [enqueue(store) for _ in range(64)]
    bench.turn()
    (slot,) = bench.slots
    assert len(slot.waiting) == 64
    monkeypatch.setattr(pacing, "_BEHIND", 4.0)
    place = bench.worker._places[0]
    place.pace._each = 0.15  # none of them lasts, and the last of them would wait for ten seconds
    slot.carry()
    begun = slot.begin().run_id
    bench.turn()
    assert [as_before(store, run) for run in runs] == [run not in (runs[0], begun) for run in runs]


def test_a_run_that_kills_its_slot_costs_those_behind_it_nothing(store: Pool) -> None:
    bench = Bench(store)
    brief(bench, store)
    runs = [enqueue(store) for _ in range(6)]
    bench.turn()
    (slot,) = bench.slots
    slot.carry()
    poison = slot.begin()
    slot.say(Report(kind="gone", status="signal 9"))
    bench.worker._listen(0.0)
    assert [about.get("run_id") for about in of(bench.told, "slot_lost")] == [poison.run_id]
    assert store.get(poison.run_id).claims_without_progress == 1
    assert [as_before(store, run) for run in runs] == [run not in (runs[0], poison.run_id) for run in runs]
    bench.turn(2)
    assert len(bench.slots[1].waiting) == 1, "of a new slot nothing is known"


def test_a_worker_that_drains_gives_back_what_was_not_begun(store: Pool) -> None:
    bench = Bench(store, concurrency=2)
    brief(bench, store)
    runs = [enqueue(store) for _ in range(8)]
    bench.turn(2)
    begun = {slot.begin().run_id for slot in bench.slots if slot.waiting}
    bench.worker._listen(0.0)
    bench.stop.set("signal")
    bench.worker._turn()
    bench.worker._listen(0.0)
    assert [as_before(store, run) for run in runs] == [run not in begun for run in runs]


def test_as_many_as_were_asked_for_are_carried_and_no_more(store: Pool) -> None:
    bench = Bench(store, max_runs=10)
    brief(bench, store)
    for _ in range(6):
        enqueue(store)
    bench.turn()
    assert len(bench.slots[0].waiting) == 2


def test_a_slot_of_brief_runs_is_given_more_before_it_is_idle(store: Pool) -> None:
    bench = Bench(store)
    brief(bench, store, 16)
    for _ in range(200):
        enqueue(store)
    bench.turn()
    (slot,) = bench.slots
    assert len(slot.waiting) == 64
    for _ in range(40):
        slot.carry()
    bench.turn(2)
    assert len(slot.waiting) == 64


def test_one_lease_that_is_gone_already_does_no_harm(store: Pool) -> None:
    bench = Bench(store)
    brief(bench, store)
    runs = [enqueue(store) for _ in range(3)]
    bench.turn()
    (slot,) = bench.slots
    lost = slot.waiting[2][0].lease
    assert lost is not None
    store.release(lost, now=0.0)
    slot.begin()
    slot.say(Report(kind="gone", status="exit 1"))
    bench.worker._listen(0.0)
    assert as_before(store, runs[1])
    assert of(bench.told, "store_failed") == []
