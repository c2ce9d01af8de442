"""The loop of a worker, with slots that carry in place: what it takes, when it ends, and what it makes of trouble."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slots import Told
from tramai import carrying, plan, worker, workflow
from tramai.codec import decode
from tramai.errors import LeaseLost, StoreUnavailable
from tramai.interrupt import Interrupt
from tramai.pool import Pool, Taken, Wanted, pooled
from tramai.portable import Unsupported
from tramai.results import Options
from tramai.standing import ran_before
from tramai.store import Holder, Status
from tramai.stores import open_store
from tramai.testing.clock import FakeClock
from tramai.worker import Plan, Report, SlotLost, Worker

TEXT = """\
tramai: 1
name: small
inputs: {n: {type: integer, default: 1}}
outputs: {n: "${{ inputs.n + 1 }}"}
steps:
  - {id: it, local: {value: "${{ inputs.n }}"}}
"""


def from_text(text: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "small.yaml")
        file.write_text(text, encoding="utf-8")
        return workflow.load(str(file))


class Inline(Told):
    """A slot that carries at once, in this process."""

    def __init__(self, store: Pool, *, born: bool = True, dies: bool = False) -> None:
        super().__init__()
        self._store = store
        self._dies = dies
        self.say(Report(kind="ready", holder=Holder.here()) if born else Report(kind="gone", status="exit 1"))

    def give(self, taken: Taken, sent: float) -> None:
        assert taken.run is not None
        assert taken.lease is not None
        if self._dies:
            self.say(Report(kind="gone", status="signal 9"))
            return
        try:
            ended = carrying.carry(taken.run, taken.lease, sent=sent, store=self._store, options=Options(wait=0.0))
        except carrying.NotCarried as error:
            self.say(Report(kind="refused", code=str(error.details["because"]), message=error.message))
        else:
            self.say(Report(kind="done", run_id=ended.run_id, status=ended.status))


@pytest.fixture
def store() -> Iterator[Pool]:
    store = pooled(open_store("memory:"))
    yield store
    store.close()


def enqueue(store: Pool, n: int = 1, **options: Any) -> str:
    return carrying.enqueue(plan.Plan(from_text(TEXT)), {"n": n}, store=store, options=Options(**options)).run_id


def work(store: Pool, how: Plan, new_slot: Callable[[], worker.Slot] | None = None) -> list[tuple[str, dict[str, Any]]]:
    told: list[tuple[str, dict[str, Any]]] = []
    stop, hurry = Interrupt(), Interrupt()
    make = new_slot or (lambda: Inline(store))
    try:
        Worker(store, how, make, lambda kind, about: told.append((kind, about)), stop=stop, hurry=hurry).run()
    finally:
        stop.close()
        hurry.close()
    return told


def of(told: list[tuple[str, dict[str, Any]]], kind: str) -> list[dict[str, Any]]:
    return [about for name, about in told if name == f"worker.{kind}"]


def test_a_worker_carries_what_is_ready_by_priority_and_ends(store: Pool) -> None:
    low, high = enqueue(store, 1), enqueue(store, 2, priority=9)
    other = enqueue(store, queue="other")
    told = work(store, Plan(once=True, poll=0.05))
    assert [about["run_id"] for about in of(told, "took")] == [high, low]
    assert decode(store.get(high).outputs or "") == {"n": 3}
    assert [store.get(run).status for run in (low, high, other)] == [Status.COMPLETED, Status.COMPLETED, Status.READY]
    assert [note.type for note in store.notes(low)] == ["run.taken", "run.completed"]
    assert store.workers(now=0.0) == ()


def test_a_start_key_enqueues_once(store: Pool) -> None:
    assert enqueue(store, start_key="k") == enqueue(store, 5, start_key="k")


def test_the_time_in_the_queue_is_no_time_of_the_run(store: Pool) -> None:
    before = FakeClock(time.time() - 3600)
    run = carrying.enqueue(plan.Plan(from_text(TEXT)), {"n": 1}, store=store, clock=before)
    work(store, Plan(once=True, poll=0.05))
    assert ran_before(store, store.get(run.run_id), store.journal(run.run_id)) < 60


def test_it_ends_after_as_many_runs_as_it_was_told(store: Pool) -> None:
    for _ in range(3):
        enqueue(store)
    told = work(store, Plan(max_runs=2, concurrency=2, poll=0.05))
    assert (len(of(told, "took")), of(told, "draining")[0]["reason"]) == (2, "max_runs")


def test_a_slot_that_dies_is_replaced_and_its_run_is_dead_in_the_end(store: Pool) -> None:
    run = enqueue(store)
    slots = iter([True, True, False])

    def new_slot() -> Inline:
        return Inline(store, dies=next(slots))

    lost = Inline.give

    def give(slot: Inline, taken: Taken, sent: float) -> None:
        lost(slot, taken, sent)
        if slot._dies and taken.lease is not None:
            store.release(taken.lease, now=0.0)  # in life the holder is gone with the slot

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Inline, "give", give)
        told = work(store, Plan(once=True, poll=0.05, most_claims=2), new_slot)
    assert [about["run_id"] for about in of(told, "slot_lost")] == [run, run]
    assert [about["run_id"] for about in of(told, "dead")] == [run]
    assert store.get(run).status is Status.DEAD


def test_slots_that_never_start_end_the_worker(store: Pool) -> None:
    with pytest.raises(SlotLost, match="exit 1"):
        work(store, Plan(once=True), lambda: Inline(store, born=False))


def test_a_store_in_trouble_is_told_once_and_asked_again(store: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run, real, failures = enqueue(store), store.take, iter([True, True, False, False])

    def take(*arguments: Any, **named: Any) -> Any:
        if next(failures, False):
            raise StoreUnavailable(what="it is away")
        return real(*arguments, **named)

    monkeypatch.setattr(store, "take", take)
    told = work(store, Plan(max_runs=1, poll=0.05))
    assert (len(of(told, "store_failed")), len(of(told, "store_back"))) == (1, 1)
    assert store.get(run).status is Status.COMPLETED


def test_who_works_once_says_that_the_store_is_in_trouble(store: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable(what="it is away")

    enqueue(store)
    monkeypatch.setattr(store, "take", take)
    with pytest.raises(StoreUnavailable):
        work(store, Plan(once=True, poll=0.05))


def test_a_run_whose_definition_is_gone_is_given_back_and_told(store: Pool) -> None:
    run = enqueue(store)
    store._definitions.clear()  # type: ignore[attr-defined]
    told = work(store, Plan(once=True, poll=0.05))
    (refused,) = of(told, "refused")
    assert refused["run_id"] == run
    found = store.get(run)
    assert (found.status, found.lease, found.claims_without_progress) == (Status.READY, None, 0)
    assert [note.type for note in store.notes(run)] == ["worker.refused"]


def test_an_answer_that_took_half_a_lease_is_not_acted_on(store: Pool) -> None:
    run = enqueue(store)
    (one,) = store.take(
        Wanted(), limit=1, owner="w", holder=Holder.here(), ttl=1e6, now=store.get(run).created, most_claims=5
    )
    assert one.run is not None
    assert one.lease is not None
    with pytest.raises(LeaseLost):
        carrying.carry(one.run, one.lease, sent=-1e9, store=store)
    assert store.get(run).status is Status.READY


def test_a_store_without_queues_takes_no_run_for_workers(tmp_path: Any) -> None:
    files = open_store(f"file:{tmp_path}/runs")
    with pytest.raises(Unsupported, match="give runs to workers"):
        enqueue(files)  # type: ignore[arg-type]
    files.close()
