"""Workers whose clocks are wrong, over a store that has a clock of its own: a run sleeps and wakes by the store's."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.postgres import Database
from tests.test_worker import from_text
from tramai import carrying, plan
from tramai.clock import SystemClock
from tramai.pool import Pool, Taken, Wanted, pooled
from tramai.results import Options, Result
from tramai.store import Holder, Status
from tramai.stores import open_store

NAP = """\
tramai: 1
name: nap
steps:
  - {id: rest, delay: 300ms}
  - {id: after, local: done}
"""


class Wrong(SystemClock):
    """A clock that somebody has set wrong."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def now(self) -> float:
        return super().now() + self._seconds


@pytest.fixture
def store(database: Database) -> Iterator[Pool]:
    store = pooled(open_store(database.url()))
    yield store
    store.close()


def take(store: Pool) -> tuple[Taken, float]:
    """The next run that comes up, as soon as it does; and when it was asked for."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        sent = time.monotonic()
        by = {"owner": "w", "holder": Holder.here(), "ttl": 30.0, "most_claims": 5}
        for one in store.take(Wanted(), limit=1, now=0.0, **by):  # type: ignore[arg-type]
            return one, sent
        time.sleep(0.02)
    raise AssertionError("it never came up")


def carried(store: Pool, clock: SystemClock) -> Result:
    one, sent = take(store)
    assert one.run is not None
    assert one.lease is not None
    return carrying.carry(one.run, one.lease, sent=sent, store=store, options=Options(wait=0.0), clock=clock)


@pytest.mark.parametrize(("first", "second"), [(600.0, -600.0), (-600.0, 600.0), (0.2, -0.2)])
def test_a_run_sleeps_by_the_clock_of_the_store(store: Pool, first: float, second: float) -> None:
    run = carrying.enqueue(plan.Plan(from_text(NAP)), {}, store=store)
    before = time.time()
    asleep = carried(store, Wrong(first))
    assert asleep.status == "sleeping"
    assert asleep.wake_at is not None
    assert before + 0.3 <= asleep.wake_at <= time.time() + 0.3 + 0.2
    assert carried(store, Wrong(second)).status == "completed"
    after = store.get(run.run_id)
    assert (after.status, after.fence) == (Status.COMPLETED, 2)
    assert time.time() >= asleep.wake_at
