"""Leases: a runner that is gone, and a run that was made anew under an old id."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tramai.errors import TramaiError
from tramai.store import Holder, Status
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, done, new_run
from tramai.testing.clock import FakeClock

from .support import alive, call, content, eventually, save, shown, text_of

Start = Callable[..., "subprocess.Popen[str]"]

# M08


def killed(start: Start, *arguments: str) -> str:
    """A run whose runner was killed in its second step; its id."""
    save(
        """
        - {id: one, shell: echo 1}
        - {id: two, shell: 'echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done'}
        """
    )
    process = start("run", "case.yaml", *arguments)
    eventually(lambda: content("pid").strip())
    process.kill()
    process.communicate()
    return str(shown()["run_id"])


def test_a_run_whose_runner_was_killed_is_not_running(start: Start) -> None:
    run = killed(start)
    eventually(lambda: not alive(int(content("pid"))))
    (listed,) = call("list").last["runs"]
    assert (listed["status"], listed["stale"], listed["step"]) == ("running", True, "two")
    assert "interrupted" in text_of("list")
    said = text_of("show", run)
    assert "interrupted" in said
    assert "running" not in said
    assert "tramai resume" in said
    assert {step["id"]: step["status"] for step in shown()["steps"]} == {"one": "succeeded", "two": "interrupted"}
    Path("go").touch()
    assert call("resume", run).last["status"] == "blocked"
    assert call("resolve", run, "two", "--as", "retry").status == 0
    assert call("resume", run).status == 0


def test_such_a_run_can_be_cancelled(start: Start) -> None:
    run = killed(start)
    assert call("cancel", run).last["status"] == "cancelled"
    assert shown()["status"] == "cancelled"
    assert {step["id"]: step["status"] for step in shown()["steps"]} == {"one": "succeeded", "two": "cancelled"}


def test_the_lease_of_another_host_counts_until_it_ends() -> None:
    store = open_store("sqlite:.tramai/tramai.db")
    elsewhere, now = Holder("another-host", "", 1, ""), time.time()
    store.create(new_run("held"), owner="them", holder=elsewhere, ttl=600.0, now=now)
    store.create(new_run("left"), owner="them", holder=elsewhere, ttl=600.0, now=now - 601.0)
    store.close()
    assert (shown("held")["status"], shown("held")["stale"]) == ("running", False)
    assert (shown("left")["status"], shown("left")["stale"]) == ("running", True)
    assert {line.split()[2] for line in text_of("list").splitlines()} == {"running", "interrupted"}
    assert "them, which is gone" in text_of("show", "left")


# M10


def test_a_late_write_of_a_deleted_run_does_not_touch_the_new_one() -> None:
    clock = FakeClock()
    store = open_store("sqlite:runs.db")
    old = begin(store, clock, "same")
    store.commit(old, change(clock, done(1, "a", value='"old"')))
    assert store.get("same").revision == 2
    store.close()
    raw = sqlite3.connect("runs.db")
    for table in ("head", "record", "note", "label", "run"):
        column = "id" if table == "run" else "run"
        raw.execute(f"DELETE FROM {table} WHERE {column} = (SELECT id FROM run WHERE run_id = 'same')")
    raw.commit()
    raw.close()
    store = open_store("sqlite:runs.db")
    new = begin(store, clock, "same")
    store.commit(new, change(clock, done(1, "a", value='"new"')))
    before = store.get("same"), store.journal("same")
    assert before[0].revision == 2
    for late in (
        lambda: store.commit(old, change(clock, done(2, "b"))),
        lambda: store.commit(old, change(clock, done(2, "b"), status=Status.FAILED, release=True)),
        lambda: store.renew(old, ttl=60.0, now=clock.now()),
    ):
        with pytest.raises(TramaiError):
            late()
    with pytest.raises(TramaiError):
        store.release(old, now=clock.now())
    assert (store.get("same"), store.journal("same")) == before
    store.close()
