"""SIGSTOP past the lease, a takeover, SIGCONT: who wakes up too late writes nothing, and its children are gone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai import engine
from tramai.audience import Audience
from tramai.errors import LeaseHeld, LeaseLost, StoreUnavailable
from tramai.journal import Journal
from tramai.store import Change, Holder, Store
from tramai.stores import _files, open_store
from tramai.testing._store_given import begin, done, everything
from tramai.testing.clock import FakeClock

from ..engine.support import call, make
from ..engine.support import run_r as run
from .support import PLAIN, ROOT, SHARED, environment, running, until, url_of

LEASE = 1.0


@contextlib.contextmanager
def started(game: str, url: str, folder: Path, run_id: str) -> Iterator[subprocess.Popen[str]]:
    """A runner in a process of its own; ended afterwards, stopped or not."""
    given = {"game": game, "url": url, "folder": str(folder), "run_id": run_id, "lease": LEASE}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.stoppable", json.dumps(given)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def claimed(store: Store, run_id: str, seen: list[int]) -> Any:
    """Take over as soon as the lease is over; nobody may before."""
    attempts = 0
    while True:
        seen.append(store.get(run_id).revision)
        try:
            return store.claim(run_id, owner="second", holder=Holder.here(), ttl=60.0, now=time.time())[1]
        except LeaseHeld:
            attempts += 1
            assert attempts < 3000, "the lease never ended"
            time.sleep(0.02)


@pytest.mark.parametrize("kind", SHARED)
def test_who_was_stopped_past_his_lease_writes_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url, run_id = url_of(kind, tmp_path, request), uuid.uuid4().hex
    with contextlib.closing(open_store(url)) as store, started("store", url, tmp_path, run_id) as runner:
        assert said(runner) == {"held": 1}
        os.kill(runner.pid, signal.SIGSTOP)
        held = store.get(run_id).lease
        assert held is not None
        seen: list[int] = []
        lease = claimed(store, run_id, seen)
        assert time.time() >= held.expires
        seen.append(store.commit(lease, Change(now=time.time(), records=(done(1, value='"new"', fence=2),))))
        before = everything(store, run_id)
        os.kill(runner.pid, signal.SIGCONT)
        assert runner.stdin is not None
        print(file=runner.stdin, flush=True)
        answers = said(runner)
        assert answers.pop("release") in ("CheckpointConflict", "LeaseLost")
        assert set(answers.values()) == {"LeaseLost"}, answers
        assert everything(store, run_id) == before
        seen.append(store.commit(lease, Change(now=time.time(), records=(done(2, "next", fence=2),))))
    assert seen == sorted(seen)
    assert set(seen) == {1, 3, 4}


@pytest.mark.parametrize("kind", SHARED)
def test_a_runner_stopped_past_its_lease_leaves_no_child_and_no_word(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url, run_id = url_of(kind, tmp_path, request), uuid.uuid4().hex
    pids = tmp_path / "pids"

    def children() -> list[int]:
        return [int(line) for line in pids.read_text().split()] if pids.exists() else []

    with contextlib.closing(open_store(url)) as store, started("engine", url, tmp_path, run_id) as runner:
        until(lambda: len(children()) == 2 or runner.poll() is not None)
        os.kill(runner.pid, signal.SIGSTOP)
        fence, revision = store.get(run_id).fence, store.get(run_id).revision
        stale = children()
        (tmp_path / "go").touch()
        result = resumed(store, run_id, runner)
        assert (result.status, result.outputs) == ("completed", {"last": "done"})
        assert [pid for pid in stale if running(pid)] == [], "the children of the stopped runner live"
        before = everything(store, run_id)
        os.kill(runner.pid, signal.SIGCONT)
        answer = said(runner)
        assert runner.wait(60) == 0
        assert (answer["status"], answer["exit_status"], answer["error"]["type"]) == ("interrupted", 5, "lease_lost")
        assert everything(store, run_id) == before
        assert [pid for pid in children() if running(pid)] == []
        run, records = store.get(run_id), store.journal(run_id)
    assert run.fence == fence + 1
    assert run.revision > revision
    assert [record.fence for record in records] == sorted(record.fence for record in records)
    ends = [record.path for record in records if record.mark == "completed"]
    assert ends == ["effect", "last"]
    keys = (tmp_path / "keys").read_text().split()
    assert len(keys) == 2
    assert keys[0] == keys[1], "the idempotency key changed between attempts"


def resumed(store: Store, run_id: str, runner: subprocess.Popen[str]) -> engine.Result:
    """Resume when the lease is over. A runner that happened to be stopped while it was renewing it goes on a little."""
    end = time.monotonic() + 60
    while True:
        try:
            return engine.resume(run_id, store=store)
        except LeaseHeld:
            time.sleep(0.02)
        except StoreUnavailable:
            os.kill(runner.pid, signal.SIGCONT)
            time.sleep(0.2)
            os.kill(runner.pid, signal.SIGSTOP)
        assert time.monotonic() < end, "the lease never ended"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait long for who is stopped."""
    monkeypatch.setattr(_files, "PATIENCE", 0.5)


@pytest.mark.parametrize("kind", PLAIN)
def test_who_is_stopped_in_the_middle_of_a_commit_keeps_others_out_and_loses_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url, run_id = url_of(kind, tmp_path, request), uuid.uuid4().hex
    with contextlib.closing(open_store(url)) as store, started("inside", url, tmp_path, run_id) as runner:
        pid = said(runner)["pid"]
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
        until(lambda: store.get(run_id).stale(time.time()))
        before = everything(store, run_id)  # to look is always possible
        with pytest.raises(StoreUnavailable, match="busy"):
            store.claim(run_id, owner="second", holder=Holder.here(), ttl=60.0, now=time.time())
        assert everything(store, run_id) == before
        os.kill(pid, signal.SIGCONT)
        assert said(runner) == {"revision": 2}
        lease = claimed(store, run_id, [])
        assert lease.fence == 2
        assert [record.path for record in store.journal(run_id)] == ["step"]
        assert store.commit(lease, Change(now=time.time(), records=(done(2, "next", fence=2),))) == 4


class Told:
    """A store that notes what it is asked, and says once, at a commit, that the lease is lost."""

    def __init__(self, store: Store, *, lost_at: int = 0) -> None:
        self._store = store
        self._lost_at = lost_at
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("commit", "renew"):
            return found

        def asked(*given: Any, **more: Any) -> Any:
            self.asked.append(name)
            if name == "commit" and self.asked.count("commit") == self._lost_at:
                raise LeaseLost
            return found(*given, **more)

        return asked


def test_who_hears_once_that_the_lease_is_lost_asks_no_more() -> None:
    """The results of pure steps side by side are written while nobody waits: what comes after them must not be."""
    told: Any = Told(open_store("memory:"), lost_at=1)
    lease = begin(told, FakeClock())
    journal = Journal(told, lease, (), retry_base=0, now=FakeClock().now, audience=Audience((), "r1"))
    for _ in range(3):
        journal.note("said")
        with pytest.raises(LeaseLost):
            journal.write()
    assert told.asked == ["commit"]
    assert told.notes("r1") == ()


def test_a_runner_keeps_its_lease_while_a_step_goes_on(tmp_path: Path) -> None:
    told: Any = Told(open_store(f"sqlite:{tmp_path}/runs.db"))
    run(told, make([{"id": "long", "local": call("nap", seconds=1.5)}]), options={"lease": 2.0})
    assert told.asked.count("renew") >= 1
    told.close()
