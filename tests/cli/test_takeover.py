"""Workers over PostgreSQL that are killed: who takes their runs over, and when. Real processes, on one host and on two.

The other host is a namespace with a host name of its own: whoever stands outside cannot know that its processes are
dead. The clock of such a host is set wrong by libfaketime. Where either is missing, the tests say so.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cases.support import call, content, save, shown
from tests.chaos.fleet import wrong_clock
from tests.postgres import Database
from tests.processes import eventually
from tramai.pool import pooled
from tramai.store import Lease, Store
from tramai.stores import open_store

from .conftest import ROOT

pytestmark = pytest.mark.sweep

LONG = 60.0
LEASE, POLL = 2.5, 0.3
SLACK = 15.0
"""What a busy machine may need to get to it; less than the lease where nobody is to wait for its end."""
_ELSEWHERE = 'echo "$0" > /proc/sys/kernel/hostname && exec "$@"'

Begin = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def store(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store that the command line takes too."""
    url = database.url()
    monkeypatch.setenv("TRAMAI_STORE", url)
    store = open_store(url)
    yield store
    store.close()


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Starts workers, on a host of another name if one is given; what is still there at the end is killed."""
    begun: list[subprocess.Popen[bytes]] = []

    def call(host: str | None = None, lease: float = LEASE, more: Mapping[str, str] | None = None) -> Any:
        words = [sys.executable, "-m", "tramai", "worker", "--lease", f"{lease:g}s", "--poll", f"{POLL:g}s"]
        if host is not None:
            if os.geteuid() != 0 or shutil.which("unshare") is None:
                pytest.skip("NOT TESTED, workers on two hosts: only root may give a namespace a host name")
            words = ["unshare", "--uts", "sh", "-c", _ELSEWHERE, host, *words]
        given = dict(more or {})
        given["PYTHONPATH"] = ":".join(filter(None, (given.get("PYTHONPATH"), str(ROOT))))
        with open("workers.log", "ab") as log:
            process = subprocess.Popen(
                words, env={**os.environ, **given}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        begun.append(process)
        return process

    yield call
    for process in begun:
        process.kill()
        process.wait()
    assert "Traceback" not in content("workers.log")


STEP = "echo x >> tries; if [ ! -e go ]; then echo $$ > pid; while :; do sleep 0.05; done; fi"


def under_way(begin: Begin, store: Store, **given: Any) -> tuple[str, subprocess.Popen[bytes]]:
    """A run in the middle of a step that does not end by itself, and its worker."""
    save(f"- {{id: it, replay: replayable, shell: '{STEP}'}}\n")
    run = str(call("run", "case.yaml", "--detach").last["run_id"])
    worker = begin(**given)
    assert eventually(lambda: content("pid").strip(), within=LONG), content("workers.log")
    return run, worker


def both_there(store: Store) -> None:
    """Wait until two workers are ready to take runs."""
    assert eventually(lambda: len(pooled(store).workers(now=time.time())) == 2, within=LONG), content("workers.log")


def lease_of(store: Store, run: str, fence: int) -> Lease:
    """The lease of the run's claim of that number."""
    found: list[Lease] = []

    def there() -> bool:
        lease = store.get(run).lease
        found.extend([lease] if lease is not None and lease.fence == fence else [])
        return bool(found)

    assert eventually(there, within=LONG), content("workers.log")
    return found[0]


def finish(store: Store, run: str) -> None:
    Path("go").touch()
    assert eventually(lambda: shown(run)["status"] == "completed", within=LONG), content("workers.log")


def test_a_worker_that_was_killed_on_another_host_is_replaced_when_its_lease_is_over(
    begin: Begin, store: Store
) -> None:
    run, worker = under_way(begin, store, host="elsewhere")
    begin()
    both_there(store)
    time.sleep(LEASE * 1.5)  # it renews, and nobody else gets the run
    held = store.get(run).lease
    assert held is not None
    assert (held.fence, held.holder.host) == (1, "elsewhere")
    worker.kill()
    last = held.expires
    while (lease := store.get(run).lease) is not None and lease.fence == 1:
        last = max(last, lease.expires)
        time.sleep(0.01)
    second = lease_of(store, run, 2)
    assert last <= second.acquired <= last + POLL * 1.25 + SLACK
    finish(store, run)
    assert content("tries").split() == ["x", "x"]


def test_a_worker_that_was_killed_on_this_host_is_replaced_at_once(begin: Begin, store: Store) -> None:
    run, worker = under_way(begin, store, lease=120.0)
    begin(lease=120.0)
    both_there(store)
    held = store.get(run).lease
    assert held is not None
    worker.kill()
    killed = time.time()
    second = lease_of(store, run, 2)
    assert second.acquired < killed + POLL * 1.25 + SLACK < held.expires
    finish(store, run)


def test_a_run_that_kills_its_workers_is_dead_there_too_and_ten_behind_it_finish(begin: Begin, store: Store) -> None:
    save("- {id: bomb, replay: replayable, shell: 'echo x >> tries; kill -9 $PPID; sleep 5'}\n", name="bomb.yaml")
    save("- {id: fine, shell: 'echo 1'}\n")
    bomb = str(call("run", "bomb.yaml", "--detach").last["run_id"])
    healthy = [str(call("run", "case.yaml", "--detach").last["run_id"]) for _ in range(10)]
    worker = begin(lease=120.0)
    assert eventually(lambda: {shown(run)["status"] for run in healthy} == {"completed"}, within=LONG)
    assert eventually(lambda: shown(bomb)["status"] == "dead", within=LONG)
    assert content("tries").split() == ["x"] * 5, "the documented number of claims"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(LONG) == 0


# M03


@pytest.mark.parametrize("minutes", [10, pytest.param(-10, marks=pytest.mark.slow)])
def test_a_worker_whose_clock_is_wrong_gets_no_lease_before_its_end(begin: Begin, store: Store, minutes: int) -> None:
    clock = wrong_clock(minutes)
    if clock is None:
        pytest.skip("NOT TESTED, two workers whose clocks differ: there is no libfaketime; apt-get install faketime")
    run, worker = under_way(begin, store)
    other = begin(host="elsewhere", more=clock)
    both_there(store)
    time.sleep(LEASE * 2.5)
    held = store.get(run).lease
    assert held is not None
    assert (held.fence, other.poll(), worker.poll()) == (1, None, None)
    assert abs(held.expires - time.time()) < LEASE * 2
    worker.kill()
    last = held.expires
    while (lease := store.get(run).lease) is not None and lease.fence == 1:
        last = max(last, lease.expires)
        time.sleep(0.01)
    second = lease_of(store, run, 2)
    assert second.holder.host == "elsewhere"
    assert last <= second.acquired <= last + POLL * 1.25 + SLACK
    finish(store, run)
