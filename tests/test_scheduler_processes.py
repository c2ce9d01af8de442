"""Schedulers as real processes: several at once, killed at every place, and beside the runs of a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tramai import enrolling
from tramai.enrolling import Asked
from tramai.stores import open_store
from tramai.timetable import DUE, FIRED, Entry, Timetable, timetabled

from .postgres import new_server
from .processes import eventually
from .reading import planned

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0
# Once a year: three years ago there were three of its times, whenever the tests run.
YEARLY = """\
tramai: 1
name: {name}
{top}schedules: [{{cron: "0 0 1 1 *", timezone: UTC, catchup: all, overlap: allow}}]
steps:
  - {{id: a, {step}}}
"""
DIES = """\
import os, signal, sys
from tramai.scheduler import Scheduler
from tramai.stores import open_store
from tramai.timetable import timetabled

class Mortal:
    def __init__(self, store, at, before):
        self.store, self.at, self.before, self.calls = store, at, before, 0
    def __getattr__(self, name):
        real = getattr(self.store, name)
        if not callable(real):
            return real
        def call(*given, **named):
            self.calls += 1
            if self.calls == self.at and self.before:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = real(*given, **named)
            if self.calls == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer
        return call

store = timetabled(open_store(sys.argv[1]))
Scheduler(Mortal(store, int(sys.argv[2]), sys.argv[3] == "before"), lambda kind, about: None, by="s").turn()
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'runs.db'}"
    found: str = request.getfixturevalue("database").url()
    return found


@pytest.fixture
def store(url: str) -> Iterator[Timetable]:
    opened = timetabled(open_store(url))
    yield opened
    opened.close()


class Started:
    """A command of ours in a process, and the lines that it has told so far."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._log = folder / f"log-{time.monotonic_ns()}"
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)}
        with open(self._log, "wb") as log, open(f"{self._log}.err", "wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tramai", *arguments, "--json"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=errors,
            )

    def lines(self, kind: str = "") -> list[dict[str, Any]]:
        told = [json.loads(line) for line in self._log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in told if line["type"].startswith(kind)]

    def said(self, kind: str) -> bool:
        """Wait until it has told this."""
        assert self.process.poll() is None or self.lines(kind), Path(f"{self._log}.err").read_text()
        return eventually(lambda: self.lines(kind), within=PATIENCE)

    def end(self) -> int:
        """Ask it to end; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    begun: list[Started] = []

    def call(*arguments: str) -> Started:
        begun.append(Started(tmp_path, *arguments))
        return begun[-1]

    yield call
    for one in begun:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


def register(store: Timetable, name: str, years: int = 3, step: str = "local: 1", top: str = "") -> Entry:
    """A schedule that nobody has looked at for so many of its times."""
    plan = planned(YEARLY.format(name=name, step=step, top=top))
    (entry,) = enrolling.entries(plan, f"/flows/{name}.yaml", Asked(cwd="/"))
    since = datetime(datetime.now(UTC).year - years, 6, 1, tzinfo=UTC).timestamp()
    written = store.enroll(replace(entry, evaluated=since), after=0, definition=plan.definition())
    assert written is not None
    return written


def slots(store: Timetable) -> Counter[tuple[str, ...]]:
    """How many runs there are for each time of each schedule."""
    found, after = [], None
    while True:
        page, after = store.page(limit=200, after=after)
        found += page
        if after is None:
            return Counter(tuple(label for label in run.labels if ":" in label) for run in found)


def test_two_schedulers_make_one_run_for_each_of_three_times(url: str, store: Timetable, start: Any) -> None:
    serving = [start("schedule", "serve", "--store", url, "--poll", "50ms") for _ in range(2)]
    assert all(one.said("schedule.serving") for one in serving)
    for round_ in range(1, 6):
        for number in range(3):
            register(store, f"wf{round_}{number}")
        assert eventually(lambda n=round_: len(store.ticks(status=FIRED, limit=500)) >= 9 * n, within=PATIENCE)
    time.sleep(0.3)  # whoever would fire twice has looked again by now
    assert [one.end() for one in serving] == [0, 0]
    found = slots(store)
    assert (len(found), set(found.values())) == (45, {1})
    fired = [line for one in serving for line in one.lines("schedule.fired")]
    assert len({(line["schedule"], line["slot"]) for line in fired}) == len(fired) == 45
    assert not [line for one in serving for line in one.lines("schedule.") if "fail" in line["type"]]
    assert {line["type"] for one in serving for line in one.lines("schedule.s")} == {
        "schedule.serving", "schedule.stopped"
    }  # fmt: skip


def test_one_that_is_killed_anywhere_leaves_one_run_for_each_time(url: str, store: Timetable, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    killed = 0
    for at in range(1, 12):
        names = {side: f"wf{at}{side}" for side in ("before", "after")}
        ended = []
        for side, name in names.items():
            entry = register(store, name, years=1)
            done = subprocess.run(
                [sys.executable, "-c", DIES, url, str(at), side], env=environment, check=False, timeout=PATIENCE
            )
            ended.append(done.returncode)
            assert done.returncode in (0, -signal.SIGKILL)
            assert scheduled(url, store) == []
            (tick,) = store.ticks(entry.id, limit=9)
            assert (tick.status, slots(store)[f"schedule:{entry.id}", f"slot:{tick_time(tick.at)}"]) == (FIRED, 1)
            current = next(one for one in store.roster(now=time.time()).entries if one.id == entry.id)
            assert store.strike(current)
        killed += ended.count(-signal.SIGKILL)
        if ended == [0, 0]:
            break
    assert killed == 12
    assert set(slots(store).values()) == {1}


def scheduled(url: str, store: Timetable) -> list[str]:
    """Have another scheduler look; the ids of ticks that are still open."""
    from tramai.scheduler import Scheduler

    Scheduler(store, lambda kind, about: None, by="other").turn()
    return [tick.id for tick in store.roster(now=time.time()).open if tick.status == DUE]


def tick_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_worker_fires_and_carries_out_and_with_once_ends(url: str, store: Timetable, start: Any) -> None:
    register(store, "wf", years=2)
    worker = start("worker", "--scheduler", "--once", "--poll", "100ms", "--store", url)
    assert worker.process.wait(PATIENCE) == 0
    assert len(worker.lines("schedule.fired")) == 2
    assert [line["status"] for line in worker.lines("worker.finished")] == ["completed"] * 2
    assert all(line["made_up"] is True for line in worker.lines("schedule.fired"))


def test_a_secret_that_is_long_in_coming_stops_neither_runs_nor_the_end(url: str, store: Timetable, start: Any) -> None:
    slow = 'secrets: {T: {command: [sleep, "300"]}}\n'
    step = 'shell: {run: "true", env: {T: "${{ secrets.T }}"}}'
    register(store, "slow", years=1, step=step, top=slow)
    worker = start("worker", "--scheduler", "--poll", "100ms", "--concurrency", "1", "--store", url)
    assert worker.said("worker.started")
    assert eventually(lambda: [tick.status for tick in store.ticks(limit=9)] == [DUE], within=PATIENCE)
    for number in range(2):
        quick = start("run", str(quick_file(worker, number)), "--detach", "--store", url)
        assert quick.process.wait(PATIENCE) == 0
    assert eventually(lambda: len(worker.lines("worker.finished")) == 2, within=PATIENCE)
    began = time.monotonic()
    assert worker.end() == 0
    assert time.monotonic() - began < 20
    assert worker.lines("worker.stopped")


def quick_file(worker: Started, number: int) -> Path:
    path = worker._log.parent / f"quick{number}.yaml"
    path.write_text(f"tramai: 1\nname: quick{number}\nsteps:\n  - {{id: a, local: 1}}\n")
    return path


def test_a_server_that_was_away_is_told_of_and_nothing_is_lost_or_doubled(start: Any) -> None:
    server = new_server()
    try:
        url = f"{server.url}?schema=flows"
        store = timetabled(open_store(url))
        serving = [start("schedule", "serve", "--store", url, "--poll", "50ms") for _ in range(2)]
        assert all(one.said("schedule.serving") for one in serving)
        for round_ in range(3):
            register(store, f"wf{round_}")
            server.restart()
            assert eventually(lambda n=round_: len(fired(store)) == 3 * n + 3, within=PATIENCE)
        assert [one.end() for one in serving] == [0, 0]
        found = slots(store)
        assert (len(found), set(found.values())) == (9, {1})
        store.close()
    finally:
        server.remove()


def fired(store: Timetable) -> tuple[Any, ...]:
    return store.ticks(status=FIRED, limit=100)
