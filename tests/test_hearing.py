"""What a worker hears of its store before its next poll, and that it does without where nothing can be heard."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.postgres import Database
from tests.test_worker import enqueue, work
from tramai.hearing import Hearing
from tramai.pool import Pool, Wanted, pooled
from tramai.store import Change, Note, Status
from tramai.stores import open_store
from tramai.testing._store_given import HERE, new_run
from tramai.worker import Plan

SOON = 30.0


@pytest.fixture
def url(database: Database) -> str:
    return database.url()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    where = f"sqlite:{tmp_path}/s.db" if request.param == "sqlite" else request.getfixturevalue("url")
    store = open_store(where)
    yield store
    store.close()


def heard(ear: Any, within: float = SOON) -> bool:
    end = time.monotonic() + within
    while not ear.heard():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def take(store: Any) -> Any:
    by = {"owner": "w", "holder": HERE, "ttl": 60.0, "now": time.time(), "most_claims": 5}
    (one,) = pooled(store).take(Wanted(), limit=1, **by)  # type: ignore[arg-type]
    return one.lease


def test_whoever_listens_hears_of_runs_that_come_up(store: Any) -> None:
    ear = store.ear()
    try:
        pooled(store).enqueue(new_run("r"), now=time.time())
        assert heard(ear)
        lease = take(store)
        heard(ear, 0.05)
        store.commit(lease, Change(now=time.time(), status=Status.READY, release=True))
        assert heard(ear), "a run that is given back"
        lease = take(store)
        store.commit(lease, Change(now=time.time(), status=Status.WAITING, release=True))
        heard(ear, 0.05)
        store.post("r", Note(at=time.time(), type="gate.decided"), after=0, due=True, now=time.time())
        assert heard(ear), "a decision"
    finally:
        ear.close()


def test_on_postgres_nothing_is_said_of_what_cannot_be_taken(url: str) -> None:
    store: Any = open_store(url)
    pooled(store).enqueue(new_run("r"), now=time.time())
    lease = take(store)
    ear = store.ear()
    store.commit(lease, Change(now=time.time(), step="a"))
    store.commit(lease, Change(now=time.time(), status=Status.SLEEPING, wake_at=time.time() + 3600, release=True))
    pooled(store).enqueue(new_run("s"), now=time.time())
    assert select.select([ear], [], [], SOON)[0]
    link, said = ear._raw.pgconn, 0
    link.consume_input()
    while link.notifies() is not None:
        said += 1
    assert said == 1
    ear.close()
    store.close()


def test_behind_a_pooler_there_is_nothing_to_hear(url: str) -> None:
    store: Any = open_store(f"{url}&pooler=transaction&options=-csynchronous_commit%3Don")
    assert store.ear() is None
    store.close()


def test_a_worker_begins_at_once_though_its_next_poll_is_far_away(store: Any) -> None:
    def put() -> None:
        time.sleep(0.5)
        enqueue(store)

    late = threading.Thread(target=put)
    began = time.monotonic()
    late.start()
    told = work(store, Plan(max_runs=1, poll=120.0))
    late.join()
    assert [kind for kind, _ in told if kind == "worker.finished"]
    assert time.monotonic() - began < 60


class Deaf:
    """A pool whose ear breaks when it is asked, or cannot be made."""

    def __init__(self, store: Pool, *, made: bool) -> None:
        self._store = store
        self._made = made
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def ear(self) -> Any:
        self.asked += 1
        if not self._made:
            raise OSError("no")
        reader, writer = os.pipe()
        os.close(writer)
        return _Broken(reader)


class _Broken:
    every = None

    def __init__(self, reader: int) -> None:
        self._reader = reader

    def fileno(self) -> int:
        return self._reader

    def heard(self) -> bool:
        raise OSError("the connection is lost")

    def close(self) -> None:
        os.close(self._reader)


@pytest.mark.parametrize("made", [True, False])
def test_a_worker_that_hears_nothing_goes_on_by_polls(made: bool) -> None:
    store = pooled(open_store("memory:"))
    deaf: Any = Deaf(store, made=made)
    run = enqueue(store)
    work(deaf, Plan(max_runs=1, poll=0.02))
    hearing = Hearing(deaf)
    for _ in range(5):
        hearing.wait(select.poll(), 0.0, listens=True)
    assert deaf.asked <= 2, "it is not asked for again at once"
    assert store.get(run).status is Status.COMPLETED
    store.close()


def test_hints_in_a_swarm_are_heeded_once(tmp_path: Path) -> None:
    store: Any = open_store(f"sqlite:{tmp_path}/s.db")
    hearing, rounds = Hearing(store), 0
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        pooled(store).enqueue(replace(new_run(f"r{rounds}")), now=time.time())
        hearing.wait(select.poll(), 10.0, listens=True)
        rounds += 1
    assert rounds < 40
    hearing.close()
    store.close()
