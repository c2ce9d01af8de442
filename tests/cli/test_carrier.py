"""Runs that a slot carries side by side: whoever wants it to end reaches every one of them."""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tramai.cli import _carrier
from tramai.cli._carrier import Carrier
from tramai.cli._slot import Desk, Order, Reports, Setup
from tramai.interrupt import Interrupt
from tramai.store import Holder, Lease
from tramai.worker import Report


def order(name: str) -> Order:
    lease = Lease(run_id=name, owner="o", token=name, fence=1, acquired=0.0, expires=600.0, holder=Holder.here())
    return Order(cast(Any, SimpleNamespace(run_id=name)), lease, time.monotonic())


class Two(Carrier):
    """Carries what needs no store: whatever it is, until somebody stops it."""

    def __init__(self, desk: Desk) -> None:
        self.ended: list[tuple[str, str | None]] = []
        self.began: list[str] = []
        self.begun = threading.Semaphore(0)
        store = SimpleNamespace()
        session = SimpleNamespace(settings=SimpleNamespace(observers=()), store=lambda: store)
        setup = Setup(flags={}, lease=600.0, logs=None)
        super().__init__(cast(Any, session), setup, desk, cast(Reports, self.told))

    def told(self, *reports: Report) -> None:
        self.began += [report.run_id or "" for report in reports if report.kind == "began"]

    def _may_share(self, order: Order) -> bool:
        return True

    def _carried(self, order: Order, interrupt: Interrupt, hurry: Interrupt) -> Report:
        fd = interrupt.fileno()
        self.begun.release()
        select.select([fd], [], [], 20)
        self.ended.append((order.run.run_id, interrupt.reason))
        return Report(kind="done", run_id=order.run.run_id)


def test_a_run_that_is_begun_just_as_the_slot_is_stopped_is_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Interrupt()

    @contextlib.contextmanager
    def signals() -> Iterator[Any]:
        yield SimpleNamespace(interrupt=stop)

    monkeypatch.setattr(_carrier, "Signals", signals)
    monkeypatch.setattr(_carrier, "TOGETHER", 1)
    desk = Desk()
    desk.put(order("first"))
    desk.put(order("second"))  # begun when the first has ended, and that ends when all are stopped
    two = Two(desk)

    def interrupt() -> None:
        two.begun.acquire()
        stop.set("signal")

    threading.Thread(target=interrupt, daemon=True).start()
    two.turn()
    assert two.ended == [("first", "signal"), ("second", "signal")]


class Breaks(Two):
    """Whoever carries a run here is gone before it has ended."""

    def _carried(self, order: Order, interrupt: Interrupt, hurry: Interrupt) -> Report:
        raise SystemExit(3)


def test_a_slot_ends_with_the_thread_of_a_run_and_does_not_wait_for_it_for_ever() -> None:
    desk = Desk()
    desk.put(order("first"))
    with pytest.raises(SystemExit):
        Breaks(desk).turn()
