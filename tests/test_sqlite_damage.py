"""One row of a SQLite store that is damaged stops nothing else, in whatever table it stands, and a check finds it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tramai.errors import CheckpointCorrupt
from tramai.pool import Wanted, Worker
from tramai.store import Note
from tramai.stores.sqlite import Sqlite
from tramai.testing._store_given import HERE, TTL, begin, change, definition, done, new_run
from tramai.testing.clock import FakeClock
from tramai.timetable import DUE, QUEUED, Entry, Tick, tick_id

NO_TEXT = "CAST(x'7bff' AS TEXT)"
"""What a turned bit often makes of a text: SQLite's own driver gives out no result that has it."""
BAD = ("'{}'", "5", NO_TEXT)
TEXTS = [(column, value) for column in ("body", "digest") for value in BAD] + [("revision", "'{}'"), ("sum", "5")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Sqlite]:
    store = Sqlite(str(tmp_path / "runs.db"))
    yield store
    store.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def entry(name: str) -> Entry:
    return Entry(id=name, workflow=name[0], version="1", digest="d1", cron="* * * * *", zone="UTC")


def tick(name: str, status: str = DUE) -> Tick:
    return Tick(id=tick_id(name, 60.0), schedule=name, at=60.0, status=status, recorded=1.0, by="x", run_id="r")


def scheduled(store: Sqlite) -> None:
    for name in ("a#1", "b#1"):
        assert store.enroll(entry(name), after=0, ticks=(tick(name),), definition=definition()) is not None


def damage(store: Sqlite, table: str, column: str, value: str, where: str) -> None:
    raw = sqlite3.connect(store.url.removeprefix("sqlite:"), isolation_level=None)
    assert raw.execute(f"UPDATE {table} SET {column}={value} WHERE {where}").rowcount == 1
    raw.close()


@pytest.mark.parametrize(("column", "value"), TEXTS)
def test_a_schedule_that_is_damaged_stops_no_other(store: Sqlite, clock: FakeClock, column: str, value: str) -> None:
    scheduled(store)
    damage(store, "schedule", column, value, "id='a#1'")
    roster = store.roster(now=clock.now())
    assert ([one.id for one in roster.entries], [name for name, _ in roster.faults]) == (["b#1"], ["a#1"])
    assert [one.schedule for one in roster.open] == ["a#1", "b#1"]
    assert store.verify() == ("corrupt checkpoint: the schedule a#1 does not match its checksum",)
    assert store.tidy() == 0
    assert store.definition("d1").digest == "d1"
    assert store.enroll(replace(entry("b#1"), paused=1.0), after=1) is not None


@pytest.mark.parametrize(("column", "value"), [*(("body", value) for value in BAD), ("run_id", NO_TEXT), ("sum", "5")])
def test_a_tick_that_is_damaged_stops_no_other_and_is_let_go_of(
    store: Sqlite, clock: FakeClock, column: str, value: str
) -> None:
    scheduled(store)
    damage(store, "tick", column, value, "schedule='a#1'")
    roster = store.roster(now=clock.now())
    assert ([one.schedule for one in roster.open], [name for name, _ in roster.faults]) == (["b#1"], ["a#1"])
    assert [one.schedule for one in store.ticks(limit=9)] == ["b#1"]
    assert len(store.verify()) == 1
    assert store.forget_ticks(before=60.0) == 0
    assert store.forget_ticks(before=61.0) == 1
    assert store.verify() == ()
    assert [one.schedule for one in store.roster(now=clock.now()).open] == ["b#1"]


def test_a_schedule_that_cannot_be_read_is_written_over_or_taken_out(store: Sqlite, clock: FakeClock) -> None:
    scheduled(store)
    damage(store, "schedule", "body", NO_TEXT, "id='a#1'")
    assert store.enroll(entry("a#1"), after=1) is None
    assert store.enroll(entry("a#1"), after=0, ticks=(tick("a#1", QUEUED),)) is not None
    assert store.roster(now=clock.now()).faults == ()
    damage(store, "schedule", "id", NO_TEXT, "id='a#1'")
    ((name, _),) = store.roster(now=clock.now()).faults
    assert not store.strike(entry("a#1"))
    assert store.strike(entry(name))
    assert store.roster(now=clock.now()).faults == ()
    assert not store.strike(entry("b#1"))  # that one can be read, and stands at another revision


@pytest.mark.parametrize(("column", "value"), [*(("body", value) for value in BAD), ("seen", "'{}'")])
def test_a_worker_whose_row_is_damaged_hides_no_other_until_it_beats_again(
    store: Sqlite, clock: FakeClock, column: str, value: str
) -> None:
    workers = [Worker(id=name, host="h", pid=1, started=1.0) for name in ("w1", "w2")]
    for worker in workers:
        store.beat(worker, now=clock.now())
    damage(store, "worker", column, value, "id='w1'")
    assert [worker.id for worker in store.workers(now=clock.now())] == ["w2"]
    assert store.verify() == ("the worker w1 cannot be read",)
    with pytest.raises(CheckpointCorrupt, match="its next beat writes it anew"):
        store.drain("w1", now=clock.now())
    assert store.beat(workers[0], now=clock.now()) is False
    assert [worker.id for worker in store.workers(now=clock.now())] == ["w1", "w2"]
    assert store.verify() == ()


@pytest.mark.parametrize("table", ["run", "head", "record", "note"])
def test_a_run_that_is_damaged_keeps_nothing_from_being_tidied_but_definitions(
    store: Sqlite, clock: FakeClock, table: str
) -> None:
    long = '"' + "x" * 100_000 + '"'
    for run_id in ("r1", "r2"):
        lease = begin(store, clock, run_id)
        note = Note(at=1.0, type="note", data='"@"')
        store.commit(lease, change(clock, replace(done(1), value=long, saves='"@"'), notes=(note,)))
    damage(store, table, "body", NO_TEXT, f"{'id' if table == 'run' else 'run'}=1")
    raw = sqlite3.connect(store.url.removeprefix("sqlite:"), isolation_level=None)
    raw.execute("INSERT INTO blob (sha, data) VALUES (?, x'00')", ("0" * 64,))
    raw.close()
    assert store.tidy() == 1
    assert store.journal("r2")[0].value == long
    assert store.definition("d1").digest == "d1"


def test_runs_are_taken_beside_a_damaged_one_in_line_for_a_place(store: Sqlite, clock: FakeClock) -> None:
    for name in ("r1", "r2"):
        store.enqueue(new_run(name), now=clock.now())
    damage(store, "run", "workflow", NO_TEXT, "id=1")
    taken = store.take(Wanted(), limit=9, owner="w", holder=HERE, ttl=TTL, now=clock.now(), most_claims=5)
    assert [(one.run_id, one.fault is None) for one in taken] == [("r1", False), ("r2", True)]
