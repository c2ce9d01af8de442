"""Who keeps a lease stops the run in time, also when the store does not answer, and when no thread can be had."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.processes import eventually
from tramai import keeper
from tramai.audience import Audience
from tramai.interrupt import Interrupt
from tramai.keeper import Keeper
from tramai.store import Holder, Lease, Store

LEASE = Lease(run_id="r", owner="o", token="t", fence=1, acquired=0.0, expires=1.0, holder=Holder.here())


class Mute:
    """A store that does not answer until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked = threading.Event()

    def cancel_requested(self, run_id: str) -> bool:
        self.asked.set()
        self.let_go.wait(60)
        return False


@pytest.fixture
def stop() -> Iterator[Interrupt]:
    stop = Interrupt()
    stop.fileno()
    yield stop
    stop.close()


def kept(store: Any, stop: Interrupt, ttl: float) -> Keeper:
    return Keeper(
        cast(Store, store),
        LEASE,
        ttl=ttl,
        sent=time.monotonic(),
        interrupt=stop,
        now=time.time,
        audience=Audience((), "r"),
    )


def reason(stop: Interrupt) -> str | None:
    """Why it was stopped, long before the store answers."""
    select.select([stop.fileno()], [], [], 30)
    return stop.reason


def test_a_store_that_does_not_answer_keeps_nobody_beyond_the_lease(stop: Interrupt) -> None:
    store = Mute()
    one = kept(store, stop, 0.3)
    one.start()
    try:
        assert store.asked.wait(60)
        assert reason(stop) == "lease_lost"
    finally:
        store.let_go.set()
        one.stop()


def test_without_a_thread_to_renew_it_the_lease_is_lost_and_others_are_kept(
    stop: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(thread: threading.Thread) -> None:
        if thread.name == "tramai-lease":
            raise RuntimeError("can't start new thread")
        real(thread)

    real = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", none_left)
    first = kept(Mute(), stop, 0.3)
    first.start()
    assert reason(stop) == "lease_lost"
    first.stop()
    monkeypatch.undo()
    thread = keeper._LATER._thread
    assert thread is not None
    assert thread.is_alive()


def test_a_run_that_is_over_is_looked_after_no_more(stop: Interrupt) -> None:
    one = kept(Mute(), stop, 0.05)
    one.stop()
    time.sleep(0.06)
    assert one.look() is None
    assert stop.reason is None


class Brief:
    """What stands in for the keeper of a run: whether the run is over, and how often it was looked at."""

    def __init__(self, *, over: bool) -> None:
        self.over = over
        self.looked = threading.Semaphore(0)

    def look(self) -> None:
        self.looked.release()


def test_nobody_is_woken_for_each_of_the_runs_that_are_over_by_then() -> None:
    later, soon = keeper._Later(), time.monotonic() + 0.05
    over = [Brief(over=True) for _ in range(20)]
    last = Brief(over=False)
    later.add(cast(Any, last), soon)
    for one in over:
        later.add(cast(Any, one), soon + 3600.0)
    assert last.looked.acquire(timeout=20)
    assert eventually(lambda: not later._due)
    assert not any(one.looked.acquire(blocking=False) for one in over)
