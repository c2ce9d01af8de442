"""A hundred thousand runs asleep cost a worker that looks for work no more than a thousand: counted, not timed.

On PostgreSQL it is the pages that the server touches and the rows that it reads for the very statements that a worker
sends; on SQLite the instructions of its virtual machine. The sleepers are copies of a real one, made in bulk.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Database
from tramai.pool import Pool, Taken, Wanted, Worker, pooled
from tramai.store import Change, Status
from tramai.stores import open_store
from tramai.stores._postgres_connection import Db
from tramai.testing._store_given import HERE, new_run

FEW, MANY = 1_000, 100_000
VALID = 80
"""Due sleepers that are whole: what a test takes. The copies stand behind them."""


def asleep(store: Pool, number: int, wake_at: float) -> None:
    """A run that sleeps until then, made as any other."""
    now = time.time()
    _, lease = store.create(new_run(f"r{number}"), owner="w", holder=HERE, ttl=30.0, now=now)
    assert lease is not None
    store.commit(lease, Change(now=now, status=Status.SLEEPING, wake_at=wake_at, release=True))


def take(store: Pool, limit: int) -> tuple[Taken, ...]:
    return store.take(Wanted(), limit=limit, owner="w", holder=HERE, ttl=30.0, now=time.time(), most_claims=5)


def look(store: Pool) -> None:
    """What an idle worker does at each poll and beat, when nothing has come up."""
    assert take(store, limit=1) == ()
    wake = store.next_wake(Wanted(), now=time.time())
    assert wake is not None
    assert wake > 60
    store.beat(Worker(id="w", host="h", pid=1, started=1.0), now=time.time())


# PostgreSQL.

_COPY = """INSERT INTO "{schema}".tramai_{table} ({names}) SELECT {values} FROM "{schema}".tramai_{table} AS t,
    generate_series(1, {count}) AS n WHERE t.{key} = (SELECT max(id) FROM "{schema}".tramai_run)"""


def copied(database: Database, schema: str, count: int) -> None:
    """So many more sleepers, of the last run; as the server knows them when it has looked at its tables."""
    for table, key in (("head", "run"), ("lease", "run"), ("run", "id")):  # `run` last: it says what is copied
        rows = database.admin.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
            (schema, f"tramai_{table}"),
        ).fetchall()
        names = [name for (name,) in rows]
        new = {key: f"t.{key} + n", "run_id": "t.run_id || '-' || n", "reversed": "n || '-' || t.reversed"}
        new["wake_at"] = "t.wake_at + n * 0.001"
        values = ", ".join(new.get(name, f"t.{name}") for name in names)
        database.admin.execute(
            _COPY.format(schema=schema, table=table, key=key, names=", ".join(names), values=values, count=count)
        )
        database.admin.execute(f'VACUUM ANALYZE "{schema}".tramai_{table}')


class Cost:
    """What the server did for the statements of some work."""

    def __init__(self) -> None:
        self.pages = 0
        self.rows = 0.0
        self.nodes: set[str] = set()

    def add(self, plan: dict[str, Any]) -> None:
        """Take in the plan of one statement."""
        self.pages += plan.get("Shared Hit Blocks", 0) + plan.get("Shared Read Blocks", 0)
        self._walk(plan)

    def _walk(self, node: dict[str, Any]) -> None:
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
        self.rows += (node.get("Actual Rows", 0) + removed) * node.get("Actual Loops", 0)
        self.nodes.add(f"{node['Node Type']} {node.get('Index Name') or node.get('Relation Name') or ''}")
        for inner in node.get("Plans", ()):
            self._walk(inner)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cost]:
    """Each statement is explained as it is carried out, once, and then answered as usual."""
    cost, real = Cost(), Db._execute

    def counting(db: Db, query: str, values: Any, *, binary: bool) -> Any:
        if query.lstrip().startswith(("SELECT", "WITH")) and "set_config" not in query:
            real(db, "BEGIN", None, binary=False)  # what is explained with its effects is taken back
            explained = real(db, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query, values, binary=False).fetchone()
            real(db, "ROLLBACK", None, binary=False)
            assert explained is not None
            cost.add(explained[0][0]["Plan"])
        return real(db, query, values, binary=binary)

    with monkeypatch.context() as patch:
        patch.setattr(Db, "_execute", counting)
        yield cost


def of_postgres(
    database: Database, monkeypatch: pytest.MonkeyPatch, count: int, wake_in: float, work: Callable[[Pool], None]
) -> Cost:
    """What some work costs beside so many sleepers."""
    url = database.url()
    store = pooled(open_store(url))
    for number in range(VALID):
        asleep(store, number, time.time() + wake_in)
    copied(database, url.rpartition("=")[2], count)
    with counted(monkeypatch) as cost:
        work(store)
    store.close()
    return cost


def test_looking_for_work_costs_the_server_the_same(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (of_postgres(database, monkeypatch, count, 86_400.0, look) for count in (FEW, MANY))
    assert not {node for node in many.nodes if node.startswith("Seq Scan tramai_") and "worker" not in node}, many.nodes
    assert any("Index" in node and "tramai_run_wakes" in node for node in many.nodes), many.nodes
    assert many.pages <= few.pages + 20, (few.pages, many.pages)
    assert many.rows <= few.rows + 20, (few.rows, many.rows)


def test_taking_one_of_those_that_are_due_costs_the_server_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(store: Pool) -> None:
        for _ in range(5):
            (one,) = take(store, limit=1)
            assert one.lease is not None
            assert store.next_wake(Wanted(), now=time.time()) == 0.0

    few, many = (of_postgres(database, monkeypatch, count, -86_400.0, work) for count in (FEW, MANY))
    assert not {node for node in many.nodes if node.startswith("Seq Scan tramai_run")}, many.nodes
    assert many.pages <= few.pages * 1.5 + 100, (few.pages, many.pages)
    assert many.rows <= few.rows * 1.5 + 100, (few.rows, many.rows)


# SQLite.


def of_sqlite(folder: Path, count: int, wake_in: float, work: Callable[[Pool], None]) -> tuple[int, set[str]]:
    """The instructions that some work takes beside so many sleepers, and how its statements are planned."""
    path = folder / f"{count}.db"
    store = pooled(open_store(f"sqlite:{path}"))
    for number in range(VALID):
        asleep(store, number, time.time() + wake_in)
    raw = sqlite3.connect(path)
    for table, key in (("head", "run"), ("run", "id")):
        names = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
        new = {key: f"t.{key}+n", "run_id": "t.run_id||'-'||n", "reversed": "CAST(n||'-'||t.reversed AS BLOB)"}
        values = ", ".join((new | {"wake_at": "t.wake_at+n*0.001"}).get(name, f"t.{name}") for name in names)
        raw.execute(
            f"WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM count WHERE n<{count}) "
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table} AS t, count "
            f"WHERE t.{key}=(SELECT max(id) FROM run)"
        )
    raw.execute("ANALYZE")
    raw.commit()
    raw.close()
    store.close()
    store = pooled(open_store(f"sqlite:{path}"))
    connection: Any = store._connection  # type: ignore[attr-defined]
    ticks, plans = 0, set[str]()

    def tick() -> int:
        nonlocal ticks
        ticks += 1
        return 0

    def planned(statement: str) -> None:
        if statement.startswith("SELECT"):
            other = sqlite3.connect(path)
            plans.update(str(row[3]) for row in other.execute("EXPLAIN QUERY PLAN " + statement))
            other.close()

    store.workers(now=time.time())  # it is open
    connection._raw.set_trace_callback(planned)
    work(store)
    connection._raw.set_trace_callback(None)
    connection._raw.set_progress_handler(tick, 10)
    work(store)
    connection._raw.set_progress_handler(None, 0)
    store.close()
    return ticks * 10, plans


def test_looking_for_work_takes_sqlite_the_same(tmp_path: Path) -> None:
    (few, _), (many, plans) = (of_sqlite(tmp_path, count, 86_400.0, look) for count in (FEW, MANY))
    assert any("run_wakes" in plan for plan in plans), plans
    assert not {plan for plan in plans if plan.startswith("SCAN run") or plan == "SCAN head"}, plans
    assert 0 < many <= few * 1.2 + 200, (few, many)


def test_taking_one_of_those_that_are_due_takes_sqlite_the_same(tmp_path: Path) -> None:
    def work(store: Pool) -> None:
        (one,) = take(store, limit=1)
        assert one.lease is not None

    (few, _), (many, plans) = (of_sqlite(tmp_path, count, -86_400.0, work) for count in (FEW, MANY))
    assert not {plan for plan in plans if plan.startswith("SCAN run") or plan == "SCAN head"}, plans
    assert 0 < many <= few * 1.5 + 500, (few, many)
