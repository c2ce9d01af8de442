"""What a slot does with its orders: each is begun or returned, alone or side by side with others that only compute."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from tests.test_worker import TEXT, enqueue, from_text
from tramai import carrying, plan
from tramai.cli._carrier import Carrier
from tramai.cli._slot import Desk, Order, Setup
from tramai.pool import Pool, Wanted, pooled
from tramai.store import Holder, Status
from tramai.stores import open_store
from tramai.worker import Report

SHELL = "tramai: 1\nname: s\nsteps:\n- {id: it, shell: 'true'}\n"


class Heard:
    """The pipe of a slot, as a list."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def __call__(self, *reports: Report) -> None:
        self.reports += reports

    def returned(self, *orders: Order) -> None:
        self(*(Report(kind="returned", run_id=order.run.run_id) for order in orders))

    def of(self, kind: str) -> list[Report]:
        return [report for report in self.reports if report.kind == kind]


@pytest.fixture
def store() -> Iterator[Pool]:
    store = pooled(open_store("memory:"))
    yield store
    store.close()


def carrier(store: Pool, **observers: Any) -> tuple[Carrier, Desk, Heard]:
    settings = SimpleNamespace(observers=observers, servers={}, http={}, providers={})
    session: Any = SimpleNamespace(settings=settings, store=lambda: store, diagnose=lambda _: None)
    desk, heard = Desk(), Heard()
    report: Any = heard
    return Carrier(session, Setup({}, 60.0, None), desk, report), desk, heard


def orders(store: Pool, count: int, *, sent: float | None = None) -> list[Order]:
    """So many runs, taken."""
    by = {"owner": "w", "holder": Holder.here(), "ttl": 60.0, "now": time.time(), "most_claims": 9}
    found = store.take(Wanted(), limit=count, **by)  # type: ignore[arg-type]
    at = time.monotonic() if sent is None else sent
    return [Order(one.run, one.lease, at) for one in found if one.run is not None and one.lease is not None]


def test_runs_that_only_compute_stand_side_by_side(store: Pool) -> None:
    ids = {enqueue(store) for _ in range(40)}
    ours, desk, heard = carrier(store)
    for order in orders(store, 40):
        desk.put(order)
    ours.turn()
    assert {report.run_id for report in heard.of("done")} == ids
    assert all(report.beside for report in heard.of("began"))
    assert {store.get(run).status for run in ids} == {Status.COMPLETED}


def test_a_run_that_may_hurt_its_process_has_it_for_itself(store: Pool) -> None:
    made = plan.Plan(from_text(SHELL))
    assert not made.computes
    assert plan.Plan(from_text(TEXT)).computes
    carrying.enqueue(made, {}, store=store)
    for _ in range(3):
        enqueue(store)
    ours, desk, heard = carrier(store)
    for order in orders(store, 4):
        desk.put(order)
    ours.turn()
    assert [(report.kind, report.beside) for report in heard.reports] == [("began", False), ("done", False)]
    ours.turn()
    assert len(heard.of("done")) == 4


OUTSIDE = {
    "code of others": "steps:\n- {id: it, local: {call: 'json:dumps', with: {obj: 1}}}\n",
    "a request": "steps:\n- {id: it, http: {get: 'https://example.org/x'}}\n",
    "a secret": "secrets: {token: {env: TOKEN}}\nsteps:\n- {id: it, local: 1}\n",
    "a group": "concurrency: {group: g}\nsteps:\n- {id: it, local: 1}\n",
    "a process inside": "steps:\n- {id: b, branch: {if: '${{ 1 < 2 }}', then: [{id: c, shell: 'true'}]}}\n",
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_what_reaches_outside_or_runs_the_code_of_others_does_not_only_compute(what: str) -> None:
    assert not plan.Plan(from_text(f"tramai: 1\nname: s\n{OUTSIDE[what]}")).computes


def test_one_that_was_claimed_without_progress_before_is_carried_alone(store: Pool) -> None:
    enqueue(store)
    (first,) = orders(store, 1)
    store.release(first.lease, now=time.time())
    enqueue(store)
    ours, desk, heard = carrier(store)
    again = next(order for order in orders(store, 2) if order.run.run_id == first.run.run_id)
    assert again.run.claims_without_progress == 2
    desk.put(again)
    ours.turn()
    assert [(report.kind, report.beside) for report in heard.reports] == [("began", False), ("done", False)]


def test_a_claim_that_has_grown_old_on_the_desk_is_returned_and_never_begun(store: Pool) -> None:
    enqueue(store)
    (order,) = orders(store, 1, sent=time.monotonic() - 31)
    ours, desk, heard = carrier(store)
    desk.put(order)
    ours.turn()
    assert [report.kind for report in heard.reports] == ["returned"]
    assert store.get(order.run.run_id).status is Status.RUNNING, "its worker gives it back"
    assert store.journal(order.run.run_id) == ()


def test_each_order_is_begun_or_returned_whoever_is_faster(store: Pool) -> None:
    enqueue(store)
    (order,) = orders(store, 1)
    all_orders = [replace(order, run=replace(order.run, run_id=f"r{number}")) for number in range(3000)]
    desk, begun, returned = Desk(), [], []
    for one in all_orders:
        desk.put(one)

    def begin() -> None:
        while (first := desk.first(unless=lambda: True)) is not None:
            if desk.begin(first):
                begun.append(first)

    def withdraw() -> None:
        returned.extend(desk.clear())

    threads = [threading.Thread(target=begin), threading.Thread(target=withdraw)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.run.run_id for one in (*begun, *returned)) == sorted(one.run.run_id for one in all_orders)
