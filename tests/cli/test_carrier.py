"""Runs that a slot carries side by side: whoever wants it to end reaches every one of them."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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


class Gathers:
    """A store that has commits sent together: here, whatever somebody parks."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self.before: Callable[[], None] = lambda: None
        self.park: Callable[[str], bool] = lambda item: False

    def gather(self, park: Callable[[str], bool]) -> Callable[[Sequence[str]], None]:
        self.park = park
        return self.send

    def send(self, items: Sequence[str]) -> None:
        self.before()
        self.sent.append(list(items))


class Some(Carrier):
    """Carries what commits twice, whatever it is, or until somebody stops it."""

    def __init__(self, desk: Desk) -> None:
        self.ended: list[tuple[str, str | None]] = []
        self.told: list[list[tuple[str, str | None]]] = []
        self.gathers = Gathers()
        session = SimpleNamespace(settings=SimpleNamespace(observers=()), store=lambda: self.gathers)
        setup = Setup(flags={}, lease=600.0, logs=None)
        super().__init__(cast(Any, session), setup, desk, cast(Reports, self.tell))

    def tell(self, *reports: Report) -> None:
        self.told.append([(report.kind, report.run_id) for report in reports])

    def _may_share(self, order: Order) -> bool:
        return not order.run.run_id.startswith("own")

    def _carried(self, order: Order, interrupt: Interrupt, hurry: Interrupt) -> Report:
        name = order.run.run_id
        for commit in ("one", "two"):
            if not interrupt.is_set:
                self.gathers.park(f"{name}.{commit}")
        self.ended.append((name, interrupt.reason))
        return Report(kind="done", run_id=name)


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """What a signal sets."""
    interrupt = Interrupt()

    @contextlib.contextmanager
    def signals() -> Iterator[Any]:
        yield SimpleNamespace(interrupt=interrupt, hurry=Interrupt())

    monkeypatch.setattr(_carrier, "Signals", signals)
    return interrupt


def on_desk(*names: str) -> Desk:
    desk = Desk()
    for name in names:
        desk.put(order(name))
    return desk


def test_those_side_by_side_commit_together_and_are_told_of_in_one_piece() -> None:
    some = Some(on_desk("a", "b"))
    some.turn()
    assert some.gathers.sent == [["a.one", "b.one"], ["a.two", "b.two"]]
    assert some.told == [[("began", "a"), ("began", "b")], [("done", "a"), ("done", "b")]]


def test_one_that_comes_later_takes_a_place_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_carrier, "TOGETHER", 2)
    desk = on_desk("a")
    some = Some(desk)
    later = iter([["b", "c"]])

    def come() -> None:
        for name in next(later, ()):
            desk.put(order(name))

    some.gathers.before = come
    some.turn()
    assert some.gathers.sent == [["a.one"], ["a.two", "b.one"], ["b.two", "c.one"], ["c.two"]]
    assert [run for told in some.told for kind, run in told if kind == "done"] == ["a", "b", "c"]


def test_one_that_needs_the_process_for_itself_waits_until_the_others_have_ended(stop: Interrupt) -> None:
    some = Some(on_desk("a", "own", "b"))
    some.turn()
    assert (some.gathers.sent, some.ended) == ([["a.one"], ["a.two"]], [("a", None)])
    some.turn()
    assert some.ended == [("a", None), ("own", None)]
    some.turn()
    assert [name for name, _ in some.ended] == ["a", "own", "b"]


@pytest.mark.parametrize("at", [1, 2])
def test_whoever_stops_the_slot_reaches_all_and_no_other_is_begun(at: int, stop: Interrupt) -> None:
    desk = on_desk("a", "b")
    some = Some(desk)
    sends = iter(range(1, 9))

    def before() -> None:
        if next(sends) == at:
            desk.put(order("c"))
            stop.set("signal")

    some.gathers.before = before
    some.turn()
    assert some.ended == [("a", "signal"), ("b", "signal")]
    assert len(some.gathers.sent) == at
    assert desk.first(unless=lambda: True) is not None


def test_one_that_is_begun_just_as_the_slot_is_stopped_is_stopped_too(stop: Interrupt) -> None:
    looked = [True, False]  # it is looked at when it comes, and when it is taken

    class Late(Some):
        def _is_late(self, order: Order) -> bool:
            if looked.pop():
                stop.set("signal")  # when there is nobody yet to be stopped
            return False

    late = Late(on_desk("a"))
    late.turn()
    assert (late.ended, late.gathers.sent) == ([("a", "signal")], [])


def test_a_slot_ends_with_whoever_ends_it_from_within_a_run() -> None:
    class Breaks(Some):
        def _carried(self, order: Order, interrupt: Interrupt, hurry: Interrupt) -> Report:
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        Breaks(on_desk("a")).turn()


def test_without_what_takes_turns_each_is_carried_alone(monkeypatch: pytest.MonkeyPatch, stop: Interrupt) -> None:
    monkeypatch.setitem(sys.modules, "greenlet", None)
    monkeypatch.delitem(sys.modules, "tramai.cli._strands", raising=False)
    some = Some(on_desk("a", "b"))
    some.turn()
    assert (some.ended, some.gathers.sent) == ([("a", None)], [])
    assert some.told == [[("began", "a")], [("done", "a")]]
