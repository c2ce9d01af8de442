"""The SQLite store keeps the contract of a store; and what is its own: indexes, flushes, permissions, formats."""

from __future__ import annotations

import functools
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tramai.errors import LeaseLost, NotFound, StoreTooNew, StoreUnavailable
from tramai.pool import Wanted, pooled
from tramai.store import Group, Mark, Status, Store
from tramai.stores import _files, _sqlite_connection, _sqlite_schema, open_store
from tramai.stores._sqlite_connection import Connection
from tramai.stores.sqlite import Sqlite
from tramai.testing._store_given import HERE, TTL, begin, change, done, expire, new_run, record
from tramai.testing._store_together import Turns
from tramai.testing.clock import FakeClock
from tramai.testing.store_contract import Opener, StoreContract
from tramai.timetable import timetabled

ROOT = Path(__file__).parent.parent


class TestSqlite(StoreContract):
    def make_store(self, folder: Path) -> Store:
        return open_store(f"sqlite:{folder}/runs.db")

    def opener(self, store: Store) -> Opener:
        return functools.partial(open_store, store.url)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def raw(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def test_a_url_without_a_path_is_the_default_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:")
    assert store.url == "sqlite:.tramai/tramai.db"
    store.close()
    assert (tmp_path / ".tramai" / "tramai.db").is_file()
    assert (tmp_path / ".tramai" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_is_there_is_kept_out_of_git_too(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name / ".tramai").mkdir(parents=True)
    (tmp_path / "other" / ".tramai" / ".gitignore").write_text("logs/\n")
    for name, said in (("one", "*\n"), ("other", "logs/\n")):
        open_store(f"sqlite:{tmp_path}/{name}/.tramai/tramai.db").close()
        assert (tmp_path / name / ".tramai" / ".gitignore").read_text() == said


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nobody_else_can_read_what_is_stored(tmp_path: Path, clock: FakeClock, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = open_store(f"sqlite:{tmp_path}/a/.tramai/tramai.db")
        store.commit(begin(store, clock), change(clock, record(1)))
    finally:
        os.umask(before)
    folder = tmp_path / "a" / ".tramai"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir() if file.name != ".gitignore"}
    assert modes == dict.fromkeys(("tramai.db", "tramai.db-wal", "tramai.db-shm", "tramai.db.lock"), 0o600)
    store.close()


def test_a_folder_of_another_name_is_not_told_what_git_should_ignore(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path}/data/runs.db").close()
    assert sorted(os.listdir(tmp_path / "data")) == ["runs.db", "runs.db.lock"]


def test_looking_makes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    url = f"sqlite:{tmp_path}/.tramai/tramai.db"
    store = open_store(url, create=False)
    assert store.url == url
    assert store.page(limit=5) == ((), None)
    with pytest.raises(NotFound):
        store.get("r1")
    with pytest.raises(StoreUnavailable):
        begin(store, clock)
    assert os.listdir(tmp_path) == []


def test_what_is_there_is_found_by_looking(path: Path, clock: FakeClock) -> None:
    with_run = open_store(f"sqlite:{path}")
    begin(with_run, clock)
    with_run.close()
    looking = open_store(f"sqlite:{path}", create=False)
    assert looking.get("r1").run_id == "r1"
    looking.close()


@pytest.mark.parametrize("name", ["per%cent.db", "que?ry.db", "ha#sh.db", "sp ace 'q\".db", "ümläut.db", "a:b.db"])
def test_any_file_name_will_do(tmp_path: Path, clock: FakeClock, name: str) -> None:
    store = open_store(f"sqlite:{tmp_path}/{name}")
    begin(store, clock)
    store.close()
    assert name in os.listdir(tmp_path)
    with_run = open_store(f"sqlite:{tmp_path}/{name}")
    assert with_run.get("r1").run_id == "r1"
    with_run.close()


def test_every_commit_is_flushed(path: Path) -> None:
    store = Sqlite(str(path))
    assert store._execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


FLUSHES = """
import sys
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, done
from tramai.testing.clock import FakeClock
store, clock = open_store("sqlite:" + sys.argv[1]), FakeClock()
lease = begin(store, clock)
for seq in range(1, int(sys.argv[2]) + 1):
    store.commit(lease, change(clock, done(seq, f"p{seq}")))
store.close()
"""


def flushes(folder: Path, commits: int) -> int:
    log = folder / f"strace-{commits}"
    traced = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(log)]
    child = [sys.executable, "-c", FLUSHES, str(folder / f"{commits}.db"), str(commits)]
    subprocess.run([*traced, *child], cwd=ROOT, check=True, timeout=120, capture_output=True)
    return sum("sync(" in line for line in log.read_text().splitlines())


def test_a_commit_costs_exactly_one_flush(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: flushes cannot be counted")
    probe = subprocess.run(["strace", "-qq", "true"], capture_output=True, timeout=60, check=False)
    if probe.returncode:
        pytest.skip("strace may not trace here (ptrace is forbidden): flushes cannot be counted")
    assert flushes(tmp_path, 60) - flushes(tmp_path, 10) == 50


def test_a_killed_maker_leaves_no_half_made_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail)
        with pytest.raises(KeyboardInterrupt):
            Sqlite(str(path))
    assert os.listdir(path.parent) == ["runs.db.lock"]
    Sqlite(str(path)).close()


def test_many_makers_at_once_make_one_store(path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    barrier, stores, built, build = threading.Barrier(8), [], [], _sqlite_schema.build

    def slowly(place: str) -> None:
        built.append(place)
        threading.Event().wait(0.2)  # long enough for the others to come to the same point
        build(place)

    def make() -> None:
        barrier.wait(30)
        stores.append(Sqlite(str(path)))

    monkeypatch.setattr(_sqlite_schema, "build", slowly)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert built == [str(path)]
    begin(stores[0], clock)
    assert [store.get("r1").run_id for store in stores] == ["r1"] * 8
    for store in stores:
        store.close()
    assert sorted(os.listdir(path.parent)) == ["runs.db", "runs.db.lock"]


@pytest.mark.parametrize(
    "filters",
    [{}, {"status": Status.RUNNING}, {"workflow": "wf"}, {"label": "a"}, {"label": "a", "status": Status.FAILED}],
    ids=str,
)
def test_a_page_goes_down_an_index_and_sorts_nothing(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any]
) -> None:
    store = Sqlite(str(path))
    plans = explained(store, monkeypatch, lambda: store.page(limit=3, **filters))
    assert plans
    for plan in plans:
        assert "TEMP B-TREE" not in plan
        assert "SCAN" not in plan
        assert "USING" in plan
    store.close()


def test_every_look_up_goes_down_an_index(path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Sqlite(str(path))
    lease = begin(store, clock, labels=("a",), start_key="k")

    def everything() -> None:
        store.commit(lease, change(clock, done(1, value='"' + "x" * 70_000 + '"')))
        store.commit(lease, change(clock, status=Status.SLEEPING, wake_at=1.0))
        store.renew(lease, ttl=5.0, now=clock.now())
        store.get("r1"), store.journal("r1"), store.notes("r1"), store.cancel_requested("r1")
        store.match("1"), store.definition("d1")
        begin(store, clock, "r2", start_key="k2")

    for plan in explained(store, monkeypatch, everything):
        assert "SCAN" not in plan or "SCAN CONSTANT ROW" in plan, plan
    store.close()


def explained(store: Sqlite, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> list[str]:
    """How SQLite goes about each statement of some work."""
    connection, plans = store._connection, []
    execute = connection.execute

    def explaining(statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        assert connection._raw is not None
        plan = connection._raw.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        plans.append("; ".join(row[3] for row in plan))
        return execute(statement, values)

    monkeypatch.setattr(connection, "execute", explaining)
    monkeypatch.setattr(store, "_execute", explaining)
    work()
    return plans


def test_a_large_value_is_stored_once(path: Path, clock: FakeClock) -> None:
    store = open_store(f"sqlite:{path}")
    lease = begin(store, clock)
    value = '"' + "x" * 1_000_000 + '"'
    for seq in range(1, 6):
        store.commit(lease, change(clock, done(seq, f"p{seq}", value=value, saves=value)))
    store.close()
    assert path.stat().st_size < 1_300_000


def test_what_a_commit_writes_does_not_grow_with_the_run(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite_connection, "CHECKPOINT_PAGES", 0)  # never: the log shows all that was written
    store = Sqlite(str(path))
    lease = begin(store, clock, inputs='"' + "i" * 500_000 + '"')
    sizes = []
    for first in (1, 501):
        before = Path(f"{path}-wal").stat().st_size
        for seq in range(first, first + 100):
            store.commit(lease, change(clock, done(seq, f"p{seq:05}"), outputs='"' + "o" * 50_000 + '"'))
        sizes.append(Path(f"{path}-wal").stat().st_size - before)
        for seq in range(first + 100, first + 500):
            store.commit(lease, change(clock, done(seq, f"p{seq:05}")))
    assert 0 < sizes[1] < sizes[0] * 1.2
    store.close()


def test_a_reader_does_not_stop_writers(path: Path, clock: FakeClock) -> None:
    store = open_store(f"sqlite:{path}")
    lease = begin(store, clock)
    reader = raw(path)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM record").fetchone() == (0,)
    for seq in range(1, 101):
        store.commit(lease, change(clock, done(seq, f"p{seq}")))
    assert reader.execute("SELECT count(*) FROM record").fetchone() == (0,)
    reader.close()
    assert len(store.journal("r1")) == 100
    store.close()


def test_a_writer_that_keeps_the_file_is_called_busy(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:{path}")
    lease = begin(store, clock)
    monkeypatch.setattr(_files, "PATIENCE", 0.05)
    other = raw(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"^the store cannot be used: busy \(ref \w+\)$") as caught:
        store.commit(lease, change(clock, record(1)))
    assert caught.value.exit_status == 7
    assert "locked" not in f"{caught.value} {caught.value.hint}"
    other.execute("ROLLBACK")
    other.close()
    assert store.commit(lease, change(clock, record(1))) == 2
    store.close()


@pytest.mark.parametrize("turns", [True, False])
def test_writers_take_turns_where_sqlite_needs_it(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, turns: bool
) -> None:
    monkeypatch.setattr(_sqlite_connection, "NEEDS_TURNS", turns)
    monkeypatch.setattr(_files, "PATIENCE", 0.05)
    store = open_store(f"sqlite:{path}")
    lease = begin(store, clock)
    other = _files.Lock.at(f"{path}.lock")
    other.take()
    if turns:
        with pytest.raises(StoreUnavailable, match="busy"):
            store.commit(lease, change(clock, record(1)))
    else:
        store.commit(lease, change(clock, record(1)))
    assert store.get("r1").run_id == "r1"
    other.give()
    other.close()
    store.close()


def test_turns_are_needed_below_the_version_that_mended_the_log() -> None:
    assert (sqlite3.sqlite_version_info < (3, 51, 3)) == _sqlite_connection.NEEDS_TURNS


def test_an_older_format_is_migrated_once(path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    old = open_store(f"sqlite:{path}")
    begin(old, clock)
    old.close()
    done_: list[int] = []

    def second(db: Any) -> None:
        done_.append(1)
        db["extra"].create({"a": int})

    monkeypatch.setattr(_sqlite_schema, "MIGRATIONS", (*_sqlite_schema.MIGRATIONS, second))
    barrier, stores = threading.Barrier(4), []

    def open_it() -> None:
        barrier.wait(30)
        stores.append(open_store(f"sqlite:{path}"))

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert done_ == [1]
    assert [store.get("r1").run_id for store in stores] == ["r1"] * 4
    for store in stores:
        store.close()
    check = raw(path)
    assert check.execute("PRAGMA user_version").fetchone() == (5,)
    check.close()


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(f"sqlite:{path}").close()

    def second(db: Any) -> None:
        db["extra"].create({"a": int})
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_sqlite_schema, "MIGRATIONS", (*_sqlite_schema.MIGRATIONS, second))
        with pytest.raises(KeyboardInterrupt):
            open_store(f"sqlite:{path}")
    check = raw(path)
    assert check.execute("PRAGMA user_version").fetchone() == (4,)
    assert check.execute("SELECT count(*) FROM sqlite_master WHERE name='extra'").fetchone() == (0,)
    check.close()
    open_store(f"sqlite:{path}").close()


@pytest.mark.parametrize("older", [1, 2, 3])
def test_a_file_of_an_older_format_learns_of_what_came_later(path: Path, clock: FakeClock, older: int) -> None:
    old = open_store(f"sqlite:{path}")
    lease = begin(old, clock)
    old.commit(lease, change(clock, done(1)))
    begin(old, clock, "r2", queue="gpu \ud800", priority=7)
    old.close()
    aged(path, older)
    store = open_store(f"sqlite:{path}")
    check = raw(path)
    assert check.execute("PRAGMA user_version").fetchone() == (4,)
    check.close()
    assert (store.get("r1").group, len(store.journal("r1"))) == (None, 1)
    assert (store.get("r2").queue, store.get("r2").priority) == ("gpu \ud800", 7)
    assert store.enter(begin(store, clock, "r3", group=Group("g")), now=clock.now()) == ()
    expire(clock)
    wanted = Wanted(queues=("gpu \ud800",))
    (one,) = pooled(store).take(wanted, limit=1, owner="w", holder=HERE, ttl=TTL, now=clock.now(), most_claims=5)
    assert one.run_id == "r2"
    assert timetabled(store).roster(now=clock.now()).entries == ()
    store.close()


def aged(path: Path, format: int) -> None:
    """Make a file what an older version would have left."""
    file = raw(path)
    steps = ["DROP TABLE schedule", "DROP TABLE tick"]
    if format < 3:
        steps += ["DROP INDEX run_ready", "DROP INDEX run_wakes", "DROP TABLE worker"]
        steps += [f"ALTER TABLE run DROP COLUMN {name}" for name in ("queue", "priority")]
        steps += ["CREATE INDEX run_due ON run (wake_at) WHERE status = 'sleeping'"]
    steps += ["DROP TABLE place"] if format == 1 else []
    for step in (*steps, f"PRAGMA user_version={format}"):
        file.execute(step)
    file.commit()
    file.close()


def test_what_workers_look_for_is_found_by_index(path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    store = pooled(open_store(f"sqlite:{path}"))
    store.enqueue(new_run(labels=("x",)), now=clock.now())
    plans: list[str] = []
    real = Connection.execute

    def explaining(connection: Connection, statement: str, values: tuple[Any, ...] = ()) -> Any:
        if statement.startswith("SELECT"):
            plans.extend(str(row[3]) for row in real(connection, "EXPLAIN QUERY PLAN " + statement, values))
        return real(connection, statement, values)

    monkeypatch.setattr(store._connection, "execute", explaining.__get__(store._connection))  # type: ignore[attr-defined]
    monkeypatch.setattr(store, "_execute", store._connection.execute)  # type: ignore[attr-defined]
    wanted = Wanted(labels=("x",), without=("other",))
    store.next_wake(wanted, now=clock.now() - 1)
    store.take(wanted, limit=3, owner="w", holder=HERE, ttl=TTL, now=clock.now(), most_claims=5)
    store.next_wake(wanted, now=clock.now())
    assert any("run_ready" in plan for plan in plans)
    assert any("run_wakes" in plan for plan in plans)
    assert any("run_in_status" in plan for plan in plans)
    assert [plan for plan in plans if plan.startswith("SCAN") and "json_each" not in plan] == []
    store.close()


@pytest.mark.parametrize("log", ["folded", "in the log"])
def test_a_newer_format_is_refused_untouched(path: Path, log: str) -> None:
    open_store(f"sqlite:{path}").close()
    newer = raw(path)
    newer.execute("PRAGMA user_version=99")
    if log == "folded":
        newer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        newer.close()
    copy = path.parent / "copy.db"
    for end in ("", "-wal"):
        if Path(f"{path}{end}").exists():
            shutil.copy(f"{path}{end}", f"{copy}{end}")
    before = {end: Path(f"{copy}{end}").read_bytes() for end in ("", "-wal") if Path(f"{copy}{end}").exists()}
    with pytest.raises(StoreTooNew, match="the store has format 99; this tramai knows formats up to 4") as caught:
        open_store(f"sqlite:{copy}")
    assert caught.value.exit_status == 7
    assert {end: Path(f"{copy}{end}").read_bytes() for end in before} == before
    newer.close()


def test_a_migration_that_comes_second_to_a_newer_version_takes_nothing_back(path: Path) -> None:
    open_store(f"sqlite:{path}").close()
    newer = raw(path)
    newer.execute("PRAGMA user_version=99")
    with pytest.raises(StoreTooNew):
        _sqlite_schema.migrate(newer, 99)
    assert newer.execute("PRAGMA user_version").fetchone() == (99,)
    newer.close()


def test_a_link_to_the_file_is_the_same_store_with_the_same_lock(path: Path, clock: FakeClock) -> None:
    alias = path.parent / "alias" / "link.db"
    alias.parent.mkdir()
    alias.symlink_to(path)
    by_link = pooled(open_store(f"sqlite:{alias}"))  # it makes the file
    by_name = pooled(open_store(f"sqlite:{path}"))
    assert (by_link.url, by_link.enqueue(new_run(), now=clock.now()).run_id) == (f"sqlite:{alias}", "r1")
    assert by_name.get("r1").run_id == "r1"
    assert [found.name for found in alias.parent.iterdir()] == ["link.db"]
    assert sorted(found.name for found in path.parent.iterdir() if found.is_file() and "lock" in found.name) == [
        f"{path.name}.lock"
    ]
    for store in (by_link, by_name):
        store.close()
    assert alias.is_symlink()


@pytest.mark.skipif(not _sqlite_connection.NEEDS_TURNS, reason="this SQLite needs no turns")
def test_a_lock_that_somebody_removes_is_made_again_and_taken_by_all(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = open_store(f"sqlite:{path}"), open_store(f"sqlite:{path}")
    lease = begin(store, clock)
    Path(f"{path}.lock").unlink()  # as people do with lock files that look stale
    store.commit(lease, change(clock, record(1)))
    taken = _files.Lock.at(f"{path}.lock")
    taken.take()
    monkeypatch.setattr(_files, "PATIENCE", 0.05)
    for one in (store, other):
        with pytest.raises(StoreUnavailable, match="busy"):
            one.commit(lease, change(clock, record(2)))
    taken.close()
    other.commit(lease, change(clock, record(2)))
    shutil.rmtree(path.parent)
    store.close()
    other.close()


def test_a_run_imports_no_schema_tools(path: Path) -> None:
    open_store(f"sqlite:{path}").close()
    code = (
        "import sys; from tramai.stores import open_store; open_store('sqlite:' + sys.argv[1]).close();"
        "print(sorted({'sqlite_utils', 'random', 'tempfile', 'urllib.parse', 'asyncio', 'logging'} & set(sys.modules)))"
    )
    child = [sys.executable, "-c", code, str(path)]
    answer = subprocess.run(child, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
    assert answer.stdout.strip() == "[]"


def test_one_file_opened_twice_in_a_process_stays_whole(path: Path, clock: FakeClock) -> None:
    one, other = open_store(f"sqlite:{path}"), open_store(f"sqlite:{path}")
    lease = begin(one, clock)
    one.commit(lease, change(clock, record(1)))
    other.commit(lease, change(clock, record(2, mark=Mark.FAILED)))
    other.close()
    one.commit(lease, change(clock, done(3)))
    assert [line.seq for line in one.journal("r1")] == [1, 2, 3]
    one.close()
    check = raw(path)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


def test_a_forgotten_store_closes_its_file(path: Path, clock: FakeClock) -> None:
    store = open_store(f"sqlite:{path}")
    begin(store, clock)
    del store
    assert not Path(f"{path}-wal").exists()


@pytest.mark.parametrize("statement", ["SAVEPOINT one", "RELEASE one", "COMMIT"])
def test_when_what_several_have_in_common_fails_each_is_written_by_itself(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    store: Any = open_store(f"sqlite:{path}")
    leases = [begin(store, clock, f"r{number}") for number in range(4)]
    store.release(leases[0], now=clock.now())
    cursor, failed = store._connection._cursor, []

    class Fails:
        """The cursor, once on a disk that is full."""

        def execute(self, text: str, values: tuple[Any, ...] = ()) -> Any:
            if text == statement and not failed:
                failed.append(text)
                raise sqlite3.OperationalError("database or disk is full")
            return cursor.execute(text, values)

    turns = Turns(store)
    monkeypatch.setattr(store._connection, "_cursor", Fails())
    mine = change(clock, done(1, "mine"))
    answers = turns.all([lambda lease=lease: store.commit(lease, mine) for lease in leases])  # type: ignore[misc]
    assert (failed, turns.sent) == ([statement], [4])
    assert isinstance(answers[0], LeaseLost)
    assert [len(store.journal(lease.run_id)) for lease in leases] == [0, 1, 1, 1]
    store.close()


def test_commits_that_go_together_wait_once_for_a_file_that_another_keeps(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Sqlite(str(path))
    leases = [begin(store, clock, f"r{number}") for number in range(4)]
    other, turns, waits = raw(path), Turns(store), []

    def patiently() -> Any:
        waits.append(1)
        return _files.patiently()

    monkeypatch.setattr(_files, "PATIENCE", 0.05)
    monkeypatch.setattr(_sqlite_connection, "patiently", patiently)
    calls = [lambda lease=lease: store.commit(lease, change(clock, done(1, "mine"))) for lease in leases]
    other.execute("BEGIN IMMEDIATE")
    answers = turns.all(calls)  # type: ignore[arg-type]
    assert [isinstance(one, StoreUnavailable) and "busy" in str(one) for one in answers] == [True] * 4
    assert (len(waits), len(set(map(id, answers)))) == (1, 4)
    other.execute("ROLLBACK")
    assert [isinstance(one, int) for one in turns.all(calls)] == [True] * 4  # type: ignore[arg-type]
    other.close()
    store.close()
