"""The SQLite store beyond the life of one run: what tidying frees, what a check of the file finds, format and SQL."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai import stores
from tramai.portable import Bundle, Unsupported
from tramai.store import Note, Status
from tramai.stores._sqlite_connection import Connection
from tramai.stores.sqlite import Sqlite
from tramai.testing._at_once import at_once
from tramai.testing._store_given import begin, change, definition, done, everything, header
from tramai.testing.clock import FakeClock

LARGE = '"' + "v" * 500_000 + '"'
GONE = Note(at=1.0, type="run.removed")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[Sqlite]:
    store = Sqlite(str(path))
    yield store
    store.close()


def rows(path: Path, table: str) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    connection.close()
    return int(count)


def full(store: Sqlite, clock: FakeClock, run_id: str, value: str = LARGE) -> None:
    more: dict[str, Any] = {"notes": (Note(at=1.0, type="n", data=value),), "outputs": value}
    end = change(clock, done(1, value=value, saves=value), status=Status.COMPLETED, **more)
    store.commit(begin(store, clock, run_id, inputs=value, labels=("x",)), end)


def test_a_tombstone_leaves_rows_of_its_header_and_its_event_only(store: Sqlite, path: Path, clock: FakeClock) -> None:
    full(store, clock, "r1")
    store.bury("r1", GONE, revision=store.get("r1").revision, status=Status.REMOVED, now=clock.now())
    assert store.tidy() >= len(LARGE)
    counts = {table: rows(path, table) for table in ("run", "head", "record", "note", "label", "blob", "definition")}
    assert counts == {"run": 1, "head": 1, "record": 0, "note": 1, "label": 0, "blob": 0, "definition": 0}


def test_a_large_value_goes_with_its_last_run(store: Sqlite, path: Path, clock: FakeClock) -> None:
    for run_id in "abc":
        full(store, clock, run_id)
    full(store, clock, "d", '"@' + "0" * 64 + '"')  # looks like a reference, and is none
    assert rows(path, "blob") == 1
    for run_id, left in (("a", 1), ("b", 1), ("d", 1), ("c", 0)):
        store.bury(run_id, GONE, revision=store.get(run_id).revision, status=Status.REMOVED, now=clock.now())
        store.tidy()
        assert rows(path, "blob") == left


def test_definitions_stay_while_a_run_cannot_be_read(store: Sqlite, path: Path, clock: FakeClock) -> None:
    begin(store, clock, "a", definition=definition("d1"))
    begin(store, clock, "b", definition=definition("d2"))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE run SET body='{' WHERE run_id='a'")
    connection.commit()
    connection.close()
    store.tidy()
    assert rows(path, "definition") == 2


def test_tidying_takes_nothing_from_those_who_write_meanwhile(path: Path, clock: FakeClock) -> None:
    stores_ = [Sqlite(str(path)) for _ in range(3)]

    def write() -> None:
        for number in range(12):
            full(stores_[0], clock, f"w{number}", f'"{number}' + "v" * 70_000 + '"')

    def remove() -> None:
        for number in range(12):
            full(stores_[1], clock, f"r{number}", f'"{number}' + "v" * 70_000 + '"')
            revision = stores_[1].get(f"r{number}").revision
            stores_[1].bury(f"r{number}", GONE, revision=revision, status=Status.REMOVED, now=clock.now())

    def tidy() -> None:
        for _ in range(20):
            stores_[2].tidy()

    assert at_once([write, remove, tidy]) == [None] * 3
    for number in range(12):
        assert len(everything(stores_[0], f"w{number}")) == 3
    assert stores_[0].verify() == ()
    for store in stores_:
        store.close()


def test_a_write_that_is_cut_off_leaves_the_run_as_it_was(
    store: Sqlite, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(store, clock, "r1")
    before = everything(store, "r1")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tramai.stores._rows.note_row", die)
        with pytest.raises(KeyboardInterrupt):
            store.bury("r1", GONE, revision=before[0].revision, status=Status.REMOVED, now=1.0)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            store.adopt(Bundle(run=header("r2"), definition=definition(), notes=(Note(seq=1, at=1.0, type="n"),)))
    assert everything(store, "r1") == before
    assert store.match("r2") == ()
    assert store.verify() == ()


def test_info_says_how_the_file_is(store: Sqlite, path: Path, clock: FakeClock) -> None:
    full(store, clock, "r1")
    store.bury("r1", GONE, revision=store.get("r1").revision, status=Status.REMOVED, now=clock.now())
    store.tidy()
    found = store.info()
    assert (found.kind, found.format, found.place) == ("sqlite", 4, str(path))
    assert found.size == sum(os.path.getsize(f"{path}{end}") for end in ("", "-wal"))
    assert found.locks == ("runs.db.lock: free",)
    assert any("are free and will be used again" in hint for hint in found.hints)
    with open(f"{path}.lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert store.info().locks == ("runs.db.lock: taken, somebody writes or migrates",)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("INSERT INTO note VALUES (7, 1, '', 0)", "1 rows of table note belong to no run"),
        ("UPDATE blob SET data=x'00'", "is damaged"),
        ("DELETE FROM run", "1 rows of table head belong to no run"),
    ],
)
def test_the_check_of_the_file_finds(store: Sqlite, path: Path, clock: FakeClock, statement: str, said: str) -> None:
    full(store, clock, "r1")
    assert store.verify() == ()
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert any(said in what for what in store.verify())


def test_the_format_is_known_without_opening(path: Path, tmp_path: Path) -> None:
    assert stores.peek(f"sqlite:{path}") is None
    assert not path.exists()
    Sqlite(str(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    before = path.read_bytes()
    assert stores.peek(f"sqlite:{path}") == 99
    assert path.read_bytes() == before
    (tmp_path / "other.db").write_bytes(b"no database" * 500)
    assert stores.peek(f"sqlite:{tmp_path}/other.db") is None
    assert stores.peek("memory:") is None


def test_only_a_store_with_tables_has_sql() -> None:
    assert "CREATE TABLE" in stores.ddl("sqlite:")
    with pytest.raises(Unsupported, match="the store memory: cannot be made by SQL"):
        stores.ddl("memory:")


def test_a_run_is_removed_without_a_look_at_the_rows_of_others(
    store: Sqlite, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(store, clock, "r1", value='"v"')
    full(store, clock, "r2", value='"v"')
    plans: list[str] = []
    real = Connection.execute

    def explaining(connection: Connection, statement: str, values: tuple[Any, ...] = ()) -> Any:
        if statement.startswith("DELETE"):
            plans.extend(str(row[3]) for row in real(connection, f"EXPLAIN QUERY PLAN {statement}", values))
        return real(connection, statement, values)

    monkeypatch.setattr(Connection, "execute", explaining)
    store.bury("r1", GONE, revision=store.get("r1").revision, status=Status.REMOVED, now=clock.now())
    assert len(plans) >= 5
    assert [plan for plan in plans if "SCAN" in plan] == []
    assert [run.run_id for run in store.page(limit=9, label="x")[0]] == ["r2"]
