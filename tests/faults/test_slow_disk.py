"""A flush that takes longer than the lease: nothing more is begun, what it wrote is there, and a resume goes on."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.engine.support import make
from tests.engine.support import run_r as run
from tramai import engine
from tramai.store import Mark, Status
from tramai.stores import open_store

from .support import PLAIN, until, url_of

LEASE, SLOW = 0.9, 1.4
_DISK: dict[str, float] = {}
_DONE: list[str] = []


def act(name: str, pause: float) -> str:
    """A step; the disk takes so long for the flushes that follow it."""
    _DONE.append(name)
    _DISK["pause"] = pause
    return name


def _wait() -> None:
    threading.Event().wait(_DISK.pop("pause", 0.0))


class Slowly:
    """A cursor whose COMMIT takes its time, as it does while the disk flushes."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT":
            _wait()
        return self._cursor.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    _DISK.clear()
    _DONE.clear()
    for name in ("fsync", "fdatasync"):
        flush = getattr(os, name)
        monkeypatch.setattr(os, name, lambda handle, flush=flush: (_wait(), flush(handle))[1])


@pytest.mark.usefixtures("_slow")
@pytest.mark.parametrize("kind", PLAIN)
def test_a_flush_that_outlasts_the_lease_ends_the_work(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = url_of(kind, tmp_path, request)
    store: Any = open_store(url)
    if kind == "sqlite":
        store._connection._cursor = Slowly(store._connection._cursor)
    names = {"a": 0.0, "b": SLOW, "c": 0.0}
    calls = {name: {"call": f"{__name__}:act", "with": {"name": name, "pause": pause}} for name, pause in names.items()}
    steps = [{"id": name, "local": made, "replay": "non_replayable"} for name, made in calls.items()]
    began = time.monotonic()
    result = run(store, make(steps), options={"lease": LEASE})
    assert time.monotonic() - began >= SLOW
    assert (result.status, result.exit_status, result.error and result.error["type"]) == (
        "interrupted",
        5,
        "lease_lost",
    )
    assert _DONE == ["a", "b"]
    other = open_store(url)
    found = [record.path for record in other.journal("r") if record.mark is Mark.COMPLETED]
    assert found == ["a", "b"]  # it took long, but it was done
    assert other.get("r").status is Status.RUNNING
    lease = other.get("r").lease
    assert lease is not None
    until(lambda: lease.expires <= time.time())
    assert engine.resume("r", store=other).status == "completed"
    assert _DONE == ["a", "b", "c"]
    store.close()
    other.close()
