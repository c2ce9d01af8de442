"""The PostgreSQL store keeps the contract of a store; and what is its own: one statement a write, indexes, formats."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tramai.errors import (
    CheckpointCorrupt,
    ConfigurationError,
    ExtraMissing,
    LeaseHeld,
    LeaseLost,
    NotFound,
    StoreTooNew,
    StoreUnavailable,
)
from tramai.pool import Wanted, Worker
from tramai.store import Group, Mark, Note, Status, Store
from tramai.stores import _postgres_rows, _postgres_schema, older, open_store
from tramai.stores._postgres_connection import Db
from tramai.stores._postgres_url import place_of
from tramai.stores.postgres import Postgres
from tramai.testing._at_once import at_once
from tramai.testing._store_given import HERE, begin, change, claim, definition, done, new_run, record
from tramai.testing._store_pool import take
from tramai.testing.clock import FakeClock
from tramai.testing.store_contract import Opener, StoreContract
from tramai.timetable import DUE, Entry, Tick, tick_id, timetabled

from .postgres import Database, Pooler
from .processes import eventually

ROOT = Path(__file__).parent.parent
GONE = Note(at=7.0, type="run.removed")
PARTS = {"head", "lease", "record", "note", "label"}
TABLES = {"meta", "run", "head", "lease", "record", "note", "label", "blob", "definition", "group", "worker"} | {
    "schedule",
    "tick",
}


class TestPostgres(StoreContract):
    @pytest.fixture(autouse=True)
    def _with(self, database: Database) -> Iterator[None]:
        self.database = database
        self.lent: list[Store] = []
        yield
        for store in self.lent:
            database.give_back(store)

    def make_store(self, folder: Path) -> Store:
        self.lent.append(self.database.lent())
        return self.lent[-1]

    def clock_of(self, store: Store) -> FakeClock:
        return self.database.clock(store)

    def opener(self, store: Store) -> Opener:
        return functools.partial(open_store, store.url)


@pytest.fixture
def store(database: Database) -> Iterator[Postgres]:
    """A store whose clock the tests move."""
    store = database.store()
    assert isinstance(store, Postgres)
    yield store
    store.close()


@pytest.fixture
def clock(database: Database, store: Postgres) -> FakeClock:
    return database.clock(store)


def opened(url: str) -> Postgres:
    store = open_store(url)
    assert isinstance(store, Postgres)
    return store


def schema_of(store: Store) -> str:
    return store.url.rpartition("schema=")[2].partition("&")[0]


def tables(database: Database, schema: str) -> set[str]:
    found = database.admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    return {name for (name,) in found}


# The URL.


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("", "postgresql://"),
        ("//", "postgresql://"),
        ("//host/db", "postgresql://host/db"),
        ("//u@host:1/db", "postgresql://u@host:1/db"),
        ("//u:s3cret@host/db", "postgresql://u@host/db"),
        ("//u:s3cret@h1:1,h2:2/db?sslmode=require", "postgresql://u@h1:1,h2:2/db?sslmode=require"),
        ("//u@h/d?password=s3cret&schema=x", "postgresql://u@h/d?schema=x"),
        ("///d?host=/run/pg&sslpassword=s3cret", "postgresql:///d?host=/run/pg"),
        ("//:s3cret@h/d", "postgresql://@h/d"),
    ],
)
def test_a_url_is_shown_without_its_password(where: str, shown: str) -> None:
    place = place_of(where)
    assert place.shown == shown
    assert ("s3cret" in place.conninfo) is ("s3cret" in where)


@pytest.mark.parametrize(
    "where",
    [
        "host/db",
        "/host/db",
        "//u:s3cr/et@host/db",
        "//u:s3c@ret@host/db",
        "//u:s3cr?et@host/db",
        "//u:s3cr#et@host/db",
        "//h/d\0s3cret",
        "//u:s3cret@h/d?schema=",
        "//u:s3cret@h/d?schema=a-b",
        "//u:s3cret@h/d?schema=1a",
        '//u:s3cret@h/d?prefix=a"b',
        "//u:s3cret@h/d?prefix=" + "x" * 41,
        "//u:s3cret@h/d?pooler=session",
    ],
)
def test_a_url_that_cannot_be_right_is_refused_and_not_quoted(where: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        place_of(where)
    assert "s3c" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("url", ["postgres", "postgresql", "postgresqle://u:s3cret@h/d", "pg://u:s3c@ret@h/d"])
def test_an_unknown_scheme_is_told_without_the_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="no store goes by") as caught:
        open_store(url)
    assert "s3c" not in str(caught.value)


def test_the_settings_that_are_printed_hold_no_password(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tramai.cli._settings import gather

    monkeypatch.chdir(tmp_path)
    url = "postgresql://u:s3cret@h/d?sslpassword=s3cret&schema=x&password=s3cret"
    line = gather({"store": url}, {}).described()[0]
    assert line.startswith("store postgresql://u@h/d?sslpassword=…&schema=x&password=… ")


def test_what_libpq_does_not_understand_is_not_quoted(database: Database) -> None:
    for query in ("nonsense=s3cret", "connect_timeout=s3cret", "port=s3cret"):
        with pytest.raises((ConfigurationError, StoreUnavailable)) as caught:
            open_store(f"postgresql://u:s3cret@127.0.0.1/db?{query}")
        assert "s3cret" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_both_schemes_open_the_store(database: Database, scheme: str) -> None:
    url = database.url()
    store = opened(scheme + ":" + url.partition(":")[2])
    assert store.url == url
    store.close()


def test_schema_and_prefix_say_where_the_tables_are(database: Database) -> None:
    schema = database.schema()
    one = opened(f"{database.server.url}?schema={schema}")
    other = opened(f"{database.server.url}?schema={schema}&prefix=Acme_")
    bare = opened(f"{database.server.url}?schema={schema}&prefix=")
    names = tables(database, schema)
    assert names == {prefix + name for prefix in ("tramai_", "Acme_", "") for name in TABLES}
    for store in (one, other, bare):
        begin(store, FakeClock())
    for store in (one, other, bare):
        assert len(store.page(limit=9)[0]) == 1
        store.close()


def test_the_command_line_works_over_it(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from tramai.cli._group import group

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAMAI_STORE", database.url().replace("tramai@", "tramai:s3cret@"))
    (tmp_path / "hello.yaml").write_bytes((ROOT / "workflows" / "hello.yaml").read_bytes())
    for words, status in (
        (["run", "hello.yaml", "--start-key", "k", "--label", "l"], 0),
        (["run", "hello.yaml", "--start-key", "k"], 0),
        (["list", "--label", "l", "--json"], 0),
        (["show", "@last"], 0),
        (["resume", "@last"], 0),
        (["rerun", "@last"], 0),
        (["store", "info"], 0),
        (["store", "check"], 0),
        (["store", "migrate"], 0),
        (["store", "copy", "--all", "--to", "markdown:audit"], 0),
        (["store", "prune", "--older-than", "0s"], 0),
        (["run", "hello.yaml", "--start-key", "k"], 5),
        (["store", "move", "--all", "--to", "sqlite:elsewhere.db"], 0),
    ):
        result = CliRunner().invoke(group, words)
        assert result.exit_code == status, (words, result.output)
        assert "s3cret" not in result.output
    for url, kept in (("markdown:audit", 2), ("sqlite:elsewhere.db", 0)):
        result = CliRunner().invoke(group, ["list", "--json", "--store", url])
        assert result.stdout.count('"status":"completed"') == kept


def test_without_a_schema_the_tables_are_in_public(database: Database) -> None:
    opened(f"{database.server.url}?prefix=here_").close()
    assert {f"here_{name}" for name in TABLES} <= tables(database, "public")


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ExtraMissing, match="a store on PostgreSQL needs the extra 'postgres'") as caught:
        open_store("postgresql://u:s3cret@h/d")
    assert caught.value.hint == "pip install 'tramai[postgres]'"


def test_looking_makes_nothing(database: Database) -> None:
    url = database.url()
    store = open_store(url.replace("tramai@", "tramai:s3cret@"), create=False)
    assert store.url == url
    assert store.page(limit=5) == ((), None)
    with pytest.raises(NotFound):
        store.get("r1")
    with pytest.raises(StoreUnavailable):
        begin(store, FakeClock())
    assert Postgres.peek(url.partition(":")[2]) is None
    assert tables(database, schema_of(store)) == set()
    made = opened(url)
    begin(made, FakeClock())
    looking = open_store(url, create=False)
    assert looking.get("r1").run_id == "r1"
    looking.close()
    made.close()


# Tables and formats.


def test_many_makers_at_once_make_one_store(database: Database) -> None:
    url = database.url()
    stores = at_once([lambda: opened(url) for _ in range(8)])
    begin(stores[0], FakeClock())
    assert [store.get("r1").run_id for store in stores] == ["r1"] * 8
    for store in stores:
        store.close()


NEXT = "ALTER TABLE {run} ADD COLUMN colour text NOT NULL DEFAULT 'blue'; CREATE TABLE {meta}_2 (x text);"


def test_an_older_format_is_migrated_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    url = database.url()
    old = opened(url)
    lease = begin(old, FakeClock())
    nexts = NEXT.replace("{meta}_2", '"' + schema_of(old) + '"."second"')
    monkeypatch.setattr(_postgres_schema, "MIGRATIONS", (*_postgres_schema.MIGRATIONS, nexts))
    stores = at_once([lambda: opened(url) for _ in range(8)])
    assert [store.get("r1").run_id for store in stores] == ["r1"] * 8
    found = database.admin.execute(f'SELECT value FROM "{schema_of(old)}".tramai_meta').fetchall()
    assert found == [("5",)]
    assert old.commit(lease, change(FakeClock(), record(1))) == 2  # who was at work meanwhile goes on
    for store in (old, *stores):
        store.close()


def test_tables_of_format_1_learn_of_groups(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    url, clock = database.url(), FakeClock()
    with monkeypatch.context() as patch:
        patch.setattr(_postgres_schema, "MIGRATIONS", _postgres_schema.MIGRATIONS[:1])
        old = opened(url)
        begin(old, clock)
    store = opened(url)
    found = database.admin.execute(f'SELECT value FROM "{schema_of(store)}".tramai_meta').fetchall()
    assert found == [("4",)]
    assert store.get("r1").group is None
    assert store.enter(begin(store, clock, "r2", group=Group("g")), now=clock.now()) == ()
    for one in (old, store):
        one.close()


def test_a_migration_that_breaks_off_leaves_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    url = database.url()
    opened(url).close()
    schema = url.rpartition("=")[2]
    before = tables(database, schema)
    broken = f'CREATE TABLE "{schema}".half (x text); SELECT 1/0;'
    with monkeypatch.context() as patch:
        patch.setattr(_postgres_schema, "MIGRATIONS", (*_postgres_schema.MIGRATIONS, broken))
        with pytest.raises(StoreUnavailable):
            open_store(url)
    assert tables(database, schema) == before
    opened(url).close()


def test_a_newer_format_is_refused_and_left_alone(database: Database) -> None:
    url = database.url()
    store = opened(url)
    begin(store, FakeClock())
    store.close()
    schema = schema_of(store)
    database.admin.execute(f"UPDATE \"{schema}\".tramai_meta SET value = '7'")
    before = snapshot(database, schema)
    for create in (True, False):
        with pytest.raises(StoreTooNew, match="the store has format 7; this tramai knows formats up to 4"):
            open_store(url, create=create)
    assert Postgres.peek(url.partition(":")[2]) == 7
    assert snapshot(database, schema) == before


def snapshot(database: Database, schema: str) -> dict[str, Any]:
    return {
        name: database.admin.execute(f'SELECT x.xmin::text, x::text FROM "{schema}"."{name}" AS x').fetchall()
        for name in sorted(tables(database, schema))
    }


@pytest.mark.parametrize("wrong", ["DELETE FROM {0}", "UPDATE {0} SET value = 'x'", "UPDATE {0} SET value = '-1'"])
def test_tables_of_another_program_are_left_alone(database: Database, wrong: str) -> None:
    url = database.url()
    opened(url).close()
    database.admin.execute(wrong.format(f'"{url.rpartition("=")[2]}".tramai_meta'))
    with pytest.raises(StoreUnavailable, match="its tables are another program's, or damaged"):
        open_store(url)


def test_a_team_can_apply_the_schema_itself(database: Database) -> None:
    url = database.url()
    schema = url.rpartition("=")[2]
    database.admin.execute(Postgres.ddl(url.partition(":")[2]))
    database.admin.execute(f"""
        CREATE ROLE worker_{schema} LOGIN;
        GRANT USAGE ON SCHEMA "{schema}" TO worker_{schema};
        GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA "{schema}" TO worker_{schema};
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA "{schema}" TO worker_{schema}""")
    store = opened(url.replace("tramai@", f"worker_{schema}@"))
    lease = begin(store, FakeClock(), labels=("a",))
    store.commit(lease, change(FakeClock(), done(1), status=Status.COMPLETED))
    assert store.get("r1").status is Status.COMPLETED
    store.close()
    with pytest.raises(StoreUnavailable, match="the user may not do this there"):
        open_store(database.url().replace("tramai@", f"worker_{schema}@"))


def test_what_is_printed_is_what_is_made(database: Database) -> None:
    printed, made = database.url(), database.url()
    database.admin.execute(Postgres.ddl(printed.partition(":")[2]))
    opened(made).close()
    shapes = []
    for url in (printed, made):
        schema = url.rpartition("=")[2]
        columns = database.admin.execute(
            "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name "
            "FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, ordinal_position",
            (schema,),
        ).fetchall()
        indexes = database.admin.execute(
            "SELECT replace(indexdef, %s, '') FROM pg_indexes WHERE schemaname = %s ORDER BY 1", (schema, schema)
        ).fetchall()
        shapes.append((columns, indexes))
    assert shapes[0] == shapes[1]
    assert len(shapes[0][1]) > len(TABLES)


def test_a_database_in_another_encoding_is_refused(database: Database) -> None:
    database.admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreUnavailable, match="the database is not in UTF-8"):
        open_store(database.server.url.replace("/postgres", "/latin"))


# Writes.


class Count:
    """Counts the statements that a store sends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        real = Db._execute

        def counting(db: Db, query: str, values: Any, *, binary: bool) -> Any:
            self.sent.append(query)
            return real(db, query, values, binary=binary)

        monkeypatch.setattr(Db, "_execute", counting)

    def during(self, work: Callable[[], object]) -> int:
        self.sent.clear()
        work()
        return len(self.sent)


def test_a_commit_is_one_statement_and_one_transaction(
    database: Database, store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, count = begin(store, clock), Count(monkeypatch)
    changes = [
        change(clock, record(1)),
        change(clock, done(2), record(3, "other")),
        change(clock, done(4, "big", value='"' + "x" * 100_000 + '"')),
        change(clock, status=Status.RUNNING, wake_at=3.0),
        change(clock, definition=definition("d2")),
        change(clock, done(5, "last"), status=Status.COMPLETED, outputs='"' + "o" * 5000 + '"'),
    ]
    first = transaction(database)
    assert [count.during(lambda c=made: store.commit(lease, c)) for made in changes] == [1] * len(changes)  # type: ignore[misc]
    assert transaction(database) - first == len(changes) + 1
    assert len(store.journal("r1")) == 5


def transaction(database: Database) -> int:
    """The number of a new transaction: only those that write have one."""
    return int(database.admin.execute("SELECT txid_current()").fetchone()[0])


def test_a_renewal_and_a_look_are_one_statement(
    store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = begin(store, clock)
    store.cancel_requested("r1")
    count = Count(monkeypatch)
    assert count.during(lambda: store.renew(lease, ttl=9.0, now=0.0)) == 1
    assert count.during(lambda: store.cancel_requested("r1")) == 1


def test_somebody_elses_write_costs_the_next_commit_a_reading(
    store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, other = begin(store, clock), opened(store.url)
    other.commit(lease, change(clock, record(1)))
    count = Count(monkeypatch)
    assert count.during(lambda: store.commit(lease, change(clock, record(2)))) in (2, 3)
    assert count.during(lambda: store.commit(lease, change(clock, record(3)))) == 1
    other.close()


SENDS = """
import sys
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, done
from tramai.testing.clock import FakeClock
store, clock = open_store(sys.argv[1]), FakeClock()
lease = begin(store, clock)
for seq in range(1, int(sys.argv[2]) + 1):
    store.commit(lease, change(clock, done(seq, f"p{seq}")))
store.close()
"""


def test_a_commit_is_sent_at_once(database: Database, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: what is sent cannot be counted")
    probe = subprocess.run(["strace", "-qq", "true"], capture_output=True, timeout=60, check=False)
    if probe.returncode:
        pytest.skip("strace may not trace here (ptrace is forbidden): what is sent cannot be counted")
    sends = []
    for commits in (20, 70):
        log = tmp_path / f"{commits}"
        traced = ["strace", "-f", "-qq", "-e", "trace=sendto,sendmsg,write", "-e", "status=successful", "-o", str(log)]
        child = [sys.executable, "-c", SENDS, database.url() + "&sslmode=disable", str(commits)]
        subprocess.run([*traced, *child], cwd=ROOT, check=True, timeout=120, capture_output=True)
        sends.append(sum("send" in line for line in log.read_text().splitlines()))
    assert sends[1] - sends[0] == 50


def test_what_a_commit_writes_does_not_grow_with_the_run(database: Database, store: Postgres, clock: FakeClock) -> None:
    lease = begin(store, clock, inputs='"' + "i" * 500_000 + '"')
    written = []
    for first in (1, 501):
        before = position(database)
        for seq in range(first, first + 100):
            store.commit(lease, change(clock, done(seq, f"p{seq:05}")))
        written.append(position(database) - before)
        rest = [done(seq, f"p{seq:05}") for seq in range(first + 100, first + 500)]
        store.commit(lease, change(clock, *rest, outputs='"' + "o" * 500_000 + '"'))
    assert 0 < written[1] < written[0] * 1.3
    assert written[1] < 100 * 3000


def position(database: Database) -> int:
    return int(database.admin.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()[0])


def test_a_large_value_is_stored_once(database: Database, store: Postgres, clock: FakeClock) -> None:
    lease = begin(store, clock)
    value = '"' + "x" * 300_000 + '"'
    for seq in range(1, 6):
        store.commit(lease, change(clock, done(seq, f"p{seq}", value=value, saves=value), outputs=value))
    found = database.admin.execute(f'SELECT length(data) FROM "{schema_of(store)}".tramai_blob').fetchall()
    assert found == [(300_002,)]


def test_a_damaged_blob_is_made_good_by_the_next_who_writes_it(
    database: Database, store: Postgres, clock: FakeClock
) -> None:
    lease, value = begin(store, clock), '"' + "x" * 100_000 + '"'
    store.commit(lease, change(clock, done(1, "a", value=value)))
    database.admin.execute(f"UPDATE \"{schema_of(store)}\".tramai_blob SET data = '\\x00'")
    store.commit(lease, change(clock, done(2, "b", value=value)))
    assert [line.value for line in store.journal("r1")] == [value, value]


@pytest.mark.parametrize("part", ["run_id", "start_key", "label", "workflow", "path"])
def test_a_name_too_long_for_an_index_is_refused(store: Postgres, clock: FakeClock, part: str) -> None:
    long = "é" * 1001
    fields: dict[str, Any] = {
        "run_id": {"run_id": long},
        "start_key": {"start_key": long},
        "label": {"labels": (long,)},
        "workflow": {"definition": definition(name=long)},
        "path": {},
    }[part]
    if part == "path":
        lease = begin(store, clock)
        with pytest.raises(ValueError, match="the path of the step is longer than the 2000 bytes"):
            store.commit(lease, change(clock, record(1, long)))
        assert store.journal("r1") == ()
        return
    with pytest.raises(ValueError, match=r"is longer than the 1000 bytes that this store can index"):
        store.create(new_run(**fields), owner="a", holder=HERE, ttl=5.0, now=0.0)
    assert store.page(limit=1) == ((), None)


def test_names_as_long_as_they_may_be_are_kept(store: Postgres, clock: FakeClock) -> None:
    # What does not compress is as long in an index as it is.
    text = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(333))
    fields: dict[str, Any] = {"definition": definition(name=text), "labels": (text,), "start_key": text}
    lease = begin(store, clock, text, **fields)
    store.commit(lease, change(clock, done(1, text * 2)))
    assert store.get(text).start_key == text
    for filters in ({}, {"workflow": text}, {"label": text}, {"status": Status.RUNNING}):
        assert [run.run_id for run in store.page(limit=2, **filters)[0]] == [text]  # type: ignore[arg-type]


@given(st.text(st.characters() | st.sampled_from("\\\x00\ud800\udfff\U0010ffff0u"), max_size=12))
def test_every_name_has_a_column_of_its_own(text: str) -> None:
    column = _postgres_rows.name(text)
    assert _postgres_rows.name_of(column) == text
    assert column.encode().decode() == column
    assert "\0" not in column
    assert _postgres_rows.AFTER_ALL not in column


# What happens between a reading and the write that follows it.


def after_reading(store: Postgres, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Have work done by somebody else right after the store has next read a header."""
    real, pending = store._header, [work]

    def reading(db: Db, run_id: str) -> Any:
        found = real(db, run_id)
        while pending:
            pending.pop()()
        return found

    monkeypatch.setattr(store, "_header", reading)


def test_a_commit_between_is_not_undone(store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, other = begin(store, clock), opened(store.url)
    after_reading(store, monkeypatch, lambda: other.commit(lease, change(clock, done(1), notes=(GONE,), step="s")))
    run = store.request_cancel("r1", GONE, now=0.0)
    assert (run.revision, run.step, run.cancel_requested) == (3, "s", True)
    assert store.get("r1") == run
    assert (len(store.journal("r1")), len(store.notes("r1"))) == (1, 2)
    other.close()


def test_a_renewal_between_is_not_undone(store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, other = begin(store, clock), opened(store.url)
    after_reading(store, monkeypatch, lambda: other.renew(lease, ttl=500.0, now=0.0))
    run = store.request_cancel("r1", GONE, now=0.0)
    assert run.lease is not None
    assert run.lease.expires == clock.now() + 500.0
    assert store.get("r1") == run
    other.close()


def test_a_release_between_is_not_undone(store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, other = begin(store, clock), opened(store.url)
    after_reading(store, monkeypatch, lambda: other.release(lease, now=0.0))
    run = store.request_cancel("r1", GONE, now=0.0)
    assert (run.lease, run.status) == (None, Status.CANCELLED)
    assert store.get("r1") == run
    other.close()


def test_a_cancel_between_is_seen_by_the_next_commit(store: Postgres, clock: FakeClock) -> None:
    lease, other = begin(store, clock), opened(store.url)
    other.request_cancel("r1", GONE, now=0.0)
    assert store.commit(lease, change(clock, step="s")) == 3
    assert store.get("r1").cancel_requested
    other.close()


# Whole runs, and what is let go.


def test_what_is_written_again_meanwhile_is_not_let_go(
    store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = ['"' + letter * 100_000 + '"' for letter in "ab"]
    lease = begin(store, clock, "gone")
    store.commit(lease, change(clock, *(done(n, f"p{n}", v) for n, v in enumerate(values, 1)), release=True))
    store.bury("gone", GONE, revision=2, status=Status.REMOVED, now=0.0)
    lease, real = begin(store, clock), Postgres._alone

    def looking(self: Postgres, db: Db, query: str, lock: str | None = None) -> list[Any]:
        found = real(self, db, query, lock)
        if query == store._sql.unused_blobs:
            assert len(found) == 2
            store.commit(lease, change(clock, done(1, value=values[0])))  # needs one of them again
        return found

    monkeypatch.setattr(Postgres, "_alone", looking)
    assert store.tidy() == 100_002
    assert store.journal("r1")[0].value == values[0]
    assert store.verify() == ()


def test_the_definition_of_a_run_on_its_way_is_not_let_go(
    database: Database, store: Postgres, clock: FakeClock
) -> None:
    """The statement that makes a run is held up after it has found its definition there."""
    begin(store, clock, "gone")
    store.release(store.get("gone").lease, now=0.0)  # type: ignore[arg-type]
    store.bury("gone", GONE, revision=1, status=Status.REMOVED, now=0.0)
    schema, tidied = schema_of(store), threading.Event()
    database.admin.execute(f"""
        CREATE FUNCTION "{schema}".wait() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END $$;
        CREATE TRIGGER wait BEFORE INSERT ON "{schema}".tramai_label FOR EACH ROW EXECUTE FUNCTION "{schema}".wait();
        SELECT pg_advisory_lock(4711)""")
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    threads = [
        threading.Thread(target=lambda: begin(store, clock, labels=("a",))),
        threading.Thread(target=lambda: (store.tidy(), tidied.set())),
    ]
    threads[0].start()
    until(lambda: database.admin.execute(waiting).fetchone() == (1,))
    threads[1].start()
    until(lambda: database.admin.execute(waiting).fetchone() == (2,) or tidied.is_set())
    database.admin.execute("SELECT pg_advisory_unlock(4711)")
    for thread in threads:
        thread.join(60)
    assert store.get("r1").digest == "d1"
    assert store.definition("d1").name == "wf"


def test_no_run_loses_its_definition_to_tidying(store: Postgres, clock: FakeClock) -> None:
    stop = threading.Event()

    def tidy() -> int:
        freed = 0
        while not stop.is_set():
            freed += store.tidy()
        return freed

    def runs() -> None:
        for number in range(25):
            lease = begin(store, clock, f"r{number}")
            assert store.definition("d1").name == "wf"
            store.release(lease, now=0.0)
            store.bury(f"r{number}", GONE, revision=1, status=Status.REMOVED, now=0.0)
        stop.set()

    freed, _ = at_once([tidy, runs])
    assert freed > 0


def test_rows_without_a_run_and_damaged_texts_are_told(database: Database, store: Postgres, clock: FakeClock) -> None:
    lease = begin(store, clock, labels=("a",))
    store.commit(lease, change(clock, done(1, value='"' + "x" * 100_000 + '"'), notes=(GONE,)))
    assert store.verify() == ()
    schema = schema_of(store)
    database.admin.execute(f"UPDATE \"{schema}\".tramai_blob SET data = '\\x00'")
    database.admin.execute(f'DELETE FROM "{schema}".tramai_run')
    found = store.verify()
    assert found[0].startswith("the large value ")
    assert set(found[1:]) == {f"1 rows of table {name} belong to no run" for name in TABLES & PARTS}


def test_a_store_says_how_it_is(database: Database, store: Postgres, clock: FakeClock) -> None:
    begin(store, clock)
    found = store.info()
    assert (found.kind, found.url, found.format, found.runs) == ("postgres", store.url, 4, {"running": 1})
    assert found.place == f"127.0.0.1:{database.server.port}/postgres {schema_of(store)}.tramai_*"
    assert found.size is not None
    assert found.size > 50_000
    assert found.locks == ("sessions that wait for a lock of these tables: 0",)
    assert "synchronous_commit on" in found.hints[0]
    assert "fsync is off on this server" in found.hints[1]


# The clock is the server's.


@pytest.mark.parametrize("skew", [-2e9, -60.0, 60.0, 1e9])
def test_a_callers_clock_decides_nothing(database: Database, skew: float) -> None:
    store, mine, theirs = opened(database.url()), FakeClock(5.0), FakeClock(2e9)
    theirs.jump(skew)
    lease = begin(store, mine)
    for _ in range(3):
        with pytest.raises(LeaseHeld):
            claim(store, theirs)
        lease = store.renew(lease, ttl=30.0, now=theirs.now())
    store.commit(lease, change(theirs, record(1)))
    server = database.admin.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()[0]
    assert abs(store.get("r1").updated - server) < 60
    store.close()


def test_a_commit_that_had_to_wait_past_its_lease_is_refused(database: Database) -> None:
    import psycopg

    store, clock = opened(database.url()), FakeClock()
    _, lease = store.create(new_run(), owner="a", holder=HERE, ttl=1.0, now=0.0)
    assert lease is not None
    answers: list[object] = []

    def commit() -> None:
        try:
            answers.append(store.commit(lease, change(clock, record(1))))
        except LeaseLost as lost:
            answers.append(lost)

    with psycopg.connect(database.server.url) as other:
        other.execute(f'UPDATE "{schema_of(store)}".tramai_head SET updated = updated')
        thread = threading.Thread(target=commit)
        thread.start()
        until(lambda: time.time() > lease.expires + 0.1)
        other.commit()
    thread.join(60)
    assert isinstance(answers[0], LeaseLost)
    assert store.get("r1").revision == 1
    store.close()


def test_a_lease_ends_by_the_servers_clock(database: Database) -> None:
    store, clock = opened(database.url()), FakeClock()
    lease = begin(store, clock)
    schema = schema_of(store)
    database.admin.execute(f'UPDATE "{schema}".tramai_lease SET expires = "{schema}".tramai_now()')
    with pytest.raises(LeaseLost):
        store.commit(lease, change(clock, record(1)))
    with pytest.raises(LeaseLost):
        store.renew(lease, ttl=30.0, now=clock.now())
    assert claim(store, clock)[1].fence == 2
    store.close()


# Sessions and poolers.


def setting(store: Postgres, name: str) -> str:
    return str(store._pool.call(lambda db, _: db.rows("SELECT current_setting(%s)", (name,)))[0][0])


def test_a_session_flushes_and_has_limits(database: Database, store: Postgres) -> None:
    assert database.admin.execute("SELECT current_setting('synchronous_commit')").fetchone() == ("off",)
    wanted = {
        "synchronous_commit": "on",
        "default_transaction_isolation": "read committed",
        "statement_timeout": "1min",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "10s",
        "application_name": "tramai",
    }
    assert {name: setting(store, name) for name in wanted} == wanted


def test_a_stronger_setting_of_the_server_is_kept(database: Database) -> None:
    store = opened(database.url() + "&options=-c%20synchronous_commit%3Dremote_apply")
    assert setting(store, "synchronous_commit") == "remote_apply"
    store.close()


def test_a_store_behind_a_pooler_leaves_nothing_in_a_session(database: Database) -> None:
    durable = "&options=-c%20synchronous_commit%3Don"
    store, clock = opened(database.url() + "&pooler=transaction" + durable), FakeClock()
    lease = begin(store, clock)
    for seq in range(1, 12):
        store.commit(lease, change(clock, done(seq, f"p{seq}")))
    assert store._pool.call(lambda db, _: db.rows("SELECT count(*) FROM pg_prepared_statements")) == [(0,)]
    assert (setting(store, "statement_timeout"), setting(store, "lock_timeout")) == ("0", "0")
    store.close()


def test_behind_a_pooler_a_server_that_does_not_flush_is_refused(database: Database) -> None:
    with pytest.raises(StoreUnavailable, match="the server acknowledges commits before they are safe"):
        open_store(database.url() + "&pooler=transaction")


def test_statements_are_prepared_until_a_pooler_is_met(store: Postgres, clock: FakeClock) -> None:
    lease = begin(store, clock)
    prepared = "SELECT count(*) FROM pg_prepared_statements"

    def commits(first: int) -> int:
        for seq in range(first, first + 8):
            store.commit(lease, change(clock, done(seq, f"p{seq}")))
        return int(store._pool.call(lambda db, _: db.rows(prepared))[0][0])

    assert commits(1) > 0
    # As if the next statement met another session, and the driver did not know.
    store._pool.call(lambda db, _: db.script("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"))
    assert commits(9) == 0
    assert [line.seq for line in store.journal("r1")] == list(range(1, 17))
    assert store.get("r1").revision == 17


@pytest.fixture(scope="module")
def pooler(database: Database) -> Iterator[Pooler]:
    pooler = Pooler(database.server)
    yield pooler
    pooler.remove()


@pytest.mark.parametrize("said", ["&pooler=transaction", ""], ids=["said", "found out"])
def test_a_real_pooler_stands_between_without_harm(database: Database, pooler: Pooler, said: str) -> None:
    store = opened(f"{pooler.url}?schema={database.schema()}{said}")

    def carry(name: str) -> None:
        clock = FakeClock()
        lease = begin(store, clock, name)
        for seq in range(1, 31):
            store.commit(lease, change(clock, done(seq, f"p{seq}", value='"' + "x" * 70_000 + '"')))
            if seq % 10 == 0:
                store.renew(lease, ttl=30.0, now=0.0)
                assert not store.cancel_requested(name)
        store.commit(lease, change(clock, status=Status.COMPLETED))

    assert at_once([lambda n=n: carry(f"r{n}") for n in range(4)]) == [None] * 4  # type: ignore[misc]
    for number in range(4):
        assert [line.seq for line in store.journal(f"r{number}")] == list(range(1, 31))
        assert store.get(f"r{number}").revision == 32
    assert store.tidy() == 0
    assert store.info().runs == {"completed": 4}
    store.close()


# Indexes.


@pytest.mark.parametrize(
    "filters",
    [{}, {"status": Status.RUNNING}, {"workflow": "wf"}, {"label": "a"}, {"label": "a", "status": Status.FAILED}],
    ids=str,
)
def test_a_page_goes_down_an_index_and_sorts_nothing(
    database: Database, store: Postgres, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any]
) -> None:
    (plan,) = explained(store, monkeypatch, lambda: store.page(limit=3, **filters))
    assert "Sort" not in plan
    assert "Seq Scan" not in plan
    assert "Index" in plan


def test_every_look_up_goes_down_an_index(store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = begin(store, clock, labels=("a",), start_key="k")

    def everything() -> None:
        store.commit(lease, change(clock, done(1, value='"' + "x" * 70_000 + '"')))
        store.commit(lease, change(clock, status=Status.SLEEPING, wake_at=1.0))
        store.renew(lease, ttl=5.0, now=clock.now())
        store.get("r1"), store.journal("r1"), store.notes("r1"), store.cancel_requested("r1")
        store.match("1"), store.definition("d1")
        store.release(lease, now=clock.now())
        claim(store, clock)
        begin(store, clock, "r2", start_key="k2")

    plans = explained(store, monkeypatch, everything)
    assert len(plans) > 12
    for plan in plans:
        assert "Seq Scan" not in plan.replace("Seq Scan on the_time", ""), plan


@pytest.mark.parametrize(
    ("index", "query"),
    [
        (
            "run_wakes",
            "SELECT run_id FROM {0} WHERE status IN ('sleeping', 'waiting') AND queue = 'default' AND wake_at <= 5 "
            "ORDER BY wake_at LIMIT 9",
        ),
        (
            "run_claimable",
            "SELECT run_id FROM {0} WHERE status IN ('ready', 'running') AND queue = 'default' "
            "ORDER BY priority DESC, created LIMIT 9 FOR UPDATE SKIP LOCKED",
        ),
    ],
)
def test_what_workers_look_for_has_an_index(database: Database, store: Postgres, index: str, query: str) -> None:
    table = f'"{schema_of(store)}".tramai_run'
    with database.admin.transaction():
        database.admin.execute("SET LOCAL enable_seqscan = off")
        plan = str(database.admin.execute("EXPLAIN " + query.format(table)).fetchall())
    assert f"tramai_{index}" in plan
    assert "Sort" not in plan


def test_a_worker_looks_down_indexes_alone(store: Postgres, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        store.enqueue(new_run(f"r{number}", labels=("x",)), now=clock.now())
    wanted = Wanted(queues=("default", "gpu"), labels=("x",), without=("other",))

    def work() -> None:
        assert len(take(store, clock, wanted, limit=2)) == 2
        store.next_wake(wanted, now=clock.now())

    plans = explained(store, monkeypatch, work)
    assert any("tramai_run_claimable" in plan and "tramai_run_wakes" in plan for plan in plans)
    assert [plan for plan in plans if "Seq Scan on tramai_" in plan] == []


def explained(store: Postgres, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> list[str]:
    """How the server goes about each statement of some work, were the tables large."""
    plans, real = [], Db._execute

    def explaining(db: Db, query: str, values: Any, *, binary: bool) -> Any:
        if query.lstrip().startswith(("SELECT", "WITH", "UPDATE")) and "set_config" not in query:
            real(db, "SET enable_seqscan = off", None, binary=False)
            plans.append("\n".join(row[0] for row in real(db, "EXPLAIN " + query, values, binary=False).fetchall()))
        return real(db, query, values, binary=binary)

    monkeypatch.setattr(Db, "_execute", explaining)
    work()
    return plans


# Threads.


def test_a_renewal_waits_for_no_commit(database: Database, store: Postgres, clock: FakeClock) -> None:
    import psycopg

    lease = begin(store, clock)
    schema = schema_of(store)
    with psycopg.connect(database.server.url) as other:  # a commit that takes its time
        other.execute(f'UPDATE "{schema}".tramai_head SET updated = updated')
        commits = [
            threading.Thread(target=lambda: store.commit(lease, change(clock, done(1)))),
            *(threading.Thread(target=lambda: store.release(lease, now=0.0)) for _ in range(5)),
        ]
        commits[0].start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        until(lambda: database.admin.execute(waiting).fetchone() >= (1,))
        for thread in commits[1:]:
            thread.start()
        for _ in range(20):
            assert store.renew(lease, ttl=30.0, now=0.0).token == lease.token
            assert not store.cancel_requested("r1")
        assert database.admin.execute(waiting).fetchone() >= (1,)
        other.rollback()
    for thread in commits:
        thread.join(60)
    assert store.get("r1").lease is None


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread or the server is about to do."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def test_a_release_and_a_commit_at_once_never_mix(store: Postgres, clock: FakeClock) -> None:
    for number in range(20):
        lease = begin(store, clock, f"r{number}")
        turn = change(clock, record(1, mark=Mark.DECIDED), status=Status.WAITING, wake_at=7.0)
        commit, _ = at_once(
            [lambda: store.commit(lease, turn), lambda: store.release(lease, now=clock.now())]  # noqa: B023
        )
        run = store.get(f"r{number}")
        assert run.lease is None
        assert (run.revision, run.status) == ((2, Status.WAITING) if commit == 2 else (1, Status.RUNNING))
        claim(store, clock, f"r{number}")


def test_a_store_gives_its_connections_back(database: Database) -> None:
    url = database.url() + "&application_name=counted"
    mine = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'counted'"
    store, clock = opened(url), FakeClock()
    at_once([lambda n=n: begin(store, clock, f"r{n}") for n in range(30)])  # type: ignore[misc]
    assert database.admin.execute(mine).fetchone()[0] <= 4
    store.close()
    until(lambda: database.admin.execute(mine).fetchone() == (0,))
    forgotten = opened(url)
    assert database.admin.execute(mine).fetchone() == (1,)
    del forgotten
    until(lambda: database.admin.execute(mine).fetchone() == (0,))


# Workers.


def test_two_workers_share_a_store_and_one_takes_over_from_the_other(database: Database, tmp_path: Path) -> None:
    url = database.url()
    steps = "  - {id: it, replay: replayable, shell: 'echo x >> tries; [ -e go ] || { echo > asleep; sleep 60; }'}\n"
    (tmp_path / "slow.yaml").write_text(f"tramai: 1\nname: slow\nsteps:\n{steps}", encoding="utf-8")
    (tmp_path / "fine.yaml").write_text(
        "tramai: 1\nname: fine\nsteps:\n  - {id: it, replay: replayable, shell: 'echo 1'}\n", encoding="utf-8"
    )
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "TRAMAI_STORE": url, "XDG_CONFIG_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tramai"]

    def worker(*more: str) -> subprocess.Popen[bytes]:
        words = [*command, "worker", "--poll", "100ms", "--concurrency", "2", *more]
        return subprocess.Popen(words, cwd=tmp_path, env=variables, stderr=subprocess.PIPE)

    for file in ("slow.yaml", *["fine.yaml"] * 6):
        subprocess.run(
            [*command, "run", file, "--detach"], cwd=tmp_path, env=variables, check=True, capture_output=True
        )
    first = worker()
    try:
        assert eventually((tmp_path / "asleep").exists, within=30)
        first.kill()
        (tmp_path / "go").touch()
        ends = [one.communicate(timeout=60)[1] for one in (worker("--once"), worker("--once"))]
    finally:
        first.kill()
        first.communicate()
    assert b"error" not in b"".join(ends)
    store = opened(url)
    runs, _ = store.page(limit=10)
    assert [run.status for run in runs] == [Status.COMPLETED] * 7
    assert (tmp_path / "tries").read_text(encoding="utf-8").split() == ["x", "x"]
    assert len(store.workers(now=0.0)) == 1, "the one that was killed never said goodbye"
    store.close()


def test_a_schedule_or_a_tick_that_is_damaged_is_written_over_taken_out_or_let_go_of(database: Database) -> None:
    store = timetabled(database.store())

    def entry(name: str) -> Entry:
        return Entry(id=name, workflow=name[0], version="1", digest="d1", cron="* * * * *", zone="UTC")

    def due(name: str) -> Tick:
        return Tick(id=tick_id(name, 60.0), schedule=name, at=60.0, status=DUE, recorded=1.0, by="x")

    for name in ("a#1", "b#1", "c#1"):
        assert store.enroll(entry(name), after=0, ticks=(due(name),), definition=definition()) is not None
    schema = schema_of(store)
    database.admin.execute(f"UPDATE \"{schema}\".tramai_schedule SET body = '{{}}' WHERE id <> 'c#1'")
    database.admin.execute(f"UPDATE \"{schema}\".tramai_tick SET body = '{{}}' WHERE schedule = 'c#1'")
    roster = store.roster(now=1.0)
    assert ([one.id for one in roster.entries], len(roster.open), len(roster.faults)) == (["c#1"], 2, 3)
    assert store.enroll(entry("a#1"), after=9) is None
    again = store.enroll(entry("a#1"), after=0)
    assert again is not None
    assert store.enroll(entry("a#1"), after=0) is None  # that one can be read
    assert store.strike(entry("b#1"))
    assert not store.strike(entry("c#1"))
    assert (store.forget_ticks(before=60.0), store.forget_ticks(before=61.0)) == (0, 1)
    roster = store.roster(now=1.0)
    assert ([one.id for one in roster.entries], len(roster.open), roster.faults) == (["a#1", "c#1"], 2, ())
    store.close()


@pytest.mark.parametrize(("column", "value"), [("body", "{}"), ("body", "no json"), ("id", "w3")])
def test_a_worker_whose_row_is_damaged_hides_no_other_until_it_beats_again(
    database: Database, column: str, value: str
) -> None:
    store: Any = database.store()
    workers = [Worker(id=name, host="h", pid=1, started=1.0) for name in ("w1", "w2")]
    for worker in workers:
        store.beat(worker, now=0.0)
    table = f'"{schema_of(store)}".tramai_worker'
    database.admin.execute(f"UPDATE {table} SET {column} = %s WHERE id = 'w1'", (value,))
    name = value if column == "id" else "w1"
    assert [worker.id for worker in store.workers(now=0.0)] == ["w2"]
    assert store.verify() == (f"the worker {name} cannot be read",)
    with pytest.raises(CheckpointCorrupt, match="its next beat writes it anew"):
        store.drain(name, now=0.0)
    if column == "body":
        assert store.beat(workers[0], now=0.0) is True  # and hears that it was asked to end
        assert [worker.id for worker in store.workers(now=0.0)] == ["w1", "w2"]
        assert store.verify() == ()
    store.close()


def test_whoever_only_looks_is_told_that_the_tables_are_of_an_older_format(database: Database) -> None:
    url = database.url()
    assert older(url) is None  # there is nothing
    open_store(url).close()
    assert older(url) is None
    schema = url.rpartition("=")[2]
    database.admin.execute(f"UPDATE \"{schema}\".tramai_meta SET value = '3' WHERE name = 'format'")
    assert older(url) == (3, 4)


def test_a_run_with_labels_is_removed_without_a_look_at_the_labels_of_all_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = database.store()
    for number in range(3):
        store.release(begin(store, FakeClock(), f"r{number}", labels=("a", "b")), now=0.0)
    schema = schema_of(store)
    admin = database.admin
    many = "SELECT 'z' || i, i, i::text, -i FROM generate_series(1, 20000) AS i"
    admin.execute(f'INSERT INTO "{schema}".tramai_label {many}')
    admin.execute(f'ANALYZE "{schema}".tramai_label')
    sent: list[tuple[Any, ...]] = []
    real = Db.rows
    monkeypatch.setattr(Db, "rows", lambda db, *given: sent.append(given) or real(db, *given))  # type: ignore[func-returns-value]
    run = store.get("r1")
    note = Note(at=5.0, type="removed")
    store.bury("r1", note, revision=run.revision, status=Status.REMOVED, now=5.0)
    found = admin.execute(f"SELECT run_id FROM \"{schema}\".tramai_label WHERE name = 'a' ORDER BY 1").fetchall()
    assert found == [("r0",), ("r2",)]
    (removal,) = [given for given in sent if "gone_label" in given[0]]
    plan = "\n".join(row[0] for row in admin.execute(f"EXPLAIN {removal[0]}", removal[1]))
    assert "Delete on tramai_label" in plan
    assert "Seq Scan on tramai_label" not in plan, plan
    store.close()
