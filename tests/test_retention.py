"""Retention: which runs are due, and that one which went on meanwhile stays."""

from __future__ import annotations

import pytest

from tramai import retention
from tramai.store import Status
from tramai.stores.memory import Memory
from tramai.testing._store_given import begin, change, claim
from tramai.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@pytest.fixture
def store() -> Memory:
    return Memory()


def ended(store: Memory, clock: FakeClock, run_id: str, status: Status, **fields: float) -> None:
    store.commit(begin(store, clock, run_id), change(clock, status=status, release=True, **fields))


def due(store: Memory, before: float, *statuses: Status) -> list[str]:
    return sorted(run.run_id for run in retention.due(store, before=before, statuses=statuses or retention.OVER))


def test_a_run_is_due_by_its_end_not_by_its_beginning(store: Memory, clock: FakeClock) -> None:
    lease = begin(store, clock, "long", created=1.0)
    clock.advance(10)
    store.commit(lease, change(clock, status=Status.COMPLETED, finished=clock.now(), release=True))
    assert due(store, 1010.0) == []
    assert due(store, 1010.5) == ["long"]


def test_where_no_end_is_known_the_last_write_counts(store: Memory, clock: FakeClock) -> None:
    ended(store, clock, "r1", Status.DEAD)
    assert due(store, 1000.0) == []
    assert due(store, 1001.0) == ["r1"]


def test_only_what_is_over_is_due_and_failed_runs_when_they_are_named(store: Memory, clock: FakeClock) -> None:
    for status in Status:
        ended(store, clock, status.value, status)
    assert due(store, 9e9) == ["cancelled", "completed", "dead"]
    assert due(store, 9e9, Status.FAILED) == ["failed"]
    for status in set(Status) - set(retention.REMOVABLE):
        with pytest.raises(ValueError, match=f"a run that is {status.value} is not removed"):
            due(store, 9e9, status)


def test_many_runs_are_all_removed_while_they_are_read(
    store: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_PAGE", 3)
    for number in range(10):
        ended(store, clock, f"r{number}", Status.COMPLETED)
    removed = [
        run.run_id for run in retention.due(store, before=9e9) if retention.remove(store, run, by="ops", clock=clock)
    ]
    assert len(removed) == 10
    assert {run.status for run in store.page(limit=20, status=Status.REMOVED)[0]} == {Status.REMOVED}
    assert [(note.type, note.by) for note in store.notes("r3")] == [("run.removed", "ops")]


def test_a_failed_run_that_somebody_resumed_meanwhile_stays(store: Memory, clock: FakeClock) -> None:
    ended(store, clock, "r1", Status.FAILED)
    run = store.get("r1")
    claim(store, clock)
    assert not retention.remove(store, run, clock=clock)
    assert store.get("r1").status is Status.RUNNING
    clock.advance(30)
    assert not retention.remove(store, run, clock=clock)
