"""A slot that somebody has stopped does not stop its worker."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_worker import from_text
from tramai import carrying, plan
from tramai.cli._slot import Setup
from tramai.cli._slots import Process
from tramai.pool import Pool, Taken, Wanted, pooled
from tramai.store import Holder, Status
from tramai.stores import open_store
from tramai.worker import Report

LARGE = """\
tramai: 1
name: large
inputs: {text: {type: string}}
outputs: {text: "${{ inputs.text }}"}
steps:
  - {id: it, local: {value: 1}}
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Pool]:
    store = pooled(open_store(f"sqlite:{tmp_path}/runs.db"))
    yield store
    store.close()


@pytest.fixture
def slot(tmp_path: Path, store: Pool) -> Iterator[Process]:
    slot = Process(Setup(flags={"store": f"sqlite:{tmp_path}/runs.db"}, lease=600.0, logs=None))
    yield slot
    slot.close()


def heard(slot: Process, kind: str, count: int) -> list[Report]:
    found: list[Report] = []
    end = time.monotonic() + 60
    while len(found) < count and time.monotonic() < end:
        select.select([slot.fileno()], [], [], 0.1)
        found += [report for report in slot.read() if report.kind == kind]
    return found


def take(store: Pool, holder: Holder, count: int) -> tuple[Taken, ...]:
    by = {"owner": "somebody", "holder": holder, "ttl": 600.0, "most_claims": 5}
    return store.take(Wanted(), limit=count, now=time.time(), **by)  # type: ignore[arg-type]


def test_what_a_stopped_slot_does_not_take_in_is_sent_when_it_goes_on(store: Pool, slot: Process) -> None:
    made = plan.Plan(from_text(LARGE))
    runs = [carrying.enqueue(made, {"text": "x" * 60_000}, store=store).run_id for _ in range(5)]
    (ready,) = heard(slot, "ready", 1)
    assert ready.holder is not None
    pid = ready.holder.pid
    os.kill(pid, signal.SIGSTOP)
    taken = take(store, ready.holder, len(runs))

    def give() -> None:
        for one in taken:
            slot.give(one, time.monotonic())

    giving = threading.Thread(target=give, daemon=True)
    giving.start()
    giving.join(20)
    blocked = giving.is_alive()
    os.kill(pid, signal.SIGCONT)
    assert not blocked
    assert {report.run_id for report in heard(slot, "done", len(runs))} == set(runs)
    assert {store.get(run).status for run in runs} == {Status.COMPLETED}
