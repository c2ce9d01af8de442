"""Many runs that wake together: `python -m tests.chaos.sleepers --runs 100000`. How fast they go, and how late.

The runs are copies of one that a worker has put to sleep, whole to the last checksum, made in bulk. Real workers wake
them. With `--over` their times are spread over so many seconds: then lateness shows how exact an idle worker is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tramai import carrying, plan, workflow
from tramai.codec import encode
from tramai.pool import Wanted, pooled
from tramai.results import Options
from tramai.store import Change, Holder, Mark, Record, Run
from tramai.stores import open_store
from tramai.stores._postgres_write import Write

from ..postgres import Server, new_server, roomy_memory
from .fleet import Fleet, Kind

_SCHEMA = "sleepers"
_NAP = "tramai: 1\nname: nap\nsteps:\n  - {id: rest, delay: 1h}\n  - {id: after, local: done}\n"
_TRIAL = 300
"""So many are made, and taken back, to see how long it takes."""
_SETTINGS = {"synchronous_commit": "on", "shared_buffers": "256MB", "autovacuum": "on"}
_LATE = f"""SELECT (r.body::json->>'at')::float - w.wake_at FROM "{_SCHEMA}".tramai_record AS r
    JOIN "{_SCHEMA}".due AS w ON w.run = r.run WHERE r.path = 'rest' AND r.mark = 'completed'"""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it; times are seconds."""

    runs: int
    over: float
    slots: int
    completed: int
    twice: int
    """Of these, those that went on more than once. One that lay ahead of a slot and was given back did not go on."""
    drained: float
    """From the first wake time to the last end."""
    per_second: float
    most_in_a_second: int
    late_p50: float
    late_p99: float
    late_most: float


def measure(
    runs: int, *, over: float = 0.0, workers: int = 1, concurrency: int = 2, patience: float = 3600.0
) -> Figures:
    """Make them, wake them, and wait until all have ended."""
    server = new_server(settings=_SETTINGS)
    try:
        with tempfile.TemporaryDirectory(prefix="tramai-sleepers-", dir=roomy_memory()) as folder:
            return _measured(server, Path(folder), runs, over, workers, concurrency, patience)
    finally:
        server.remove()


def _measured(
    server: Server, folder: Path, runs: int, over: float, workers: int, concurrency: int, patience: float
) -> Figures:
    url = f"{server.url}?schema={_SCHEMA}"
    due = _make(server, url, folder, runs, over)
    if time.time() > due:
        raise SystemExit(f"they were made {time.time() - due:.0f} s too late: the machine is too busy")
    fleet = Fleet(folder, [Kind("plain", url=url)] * workers, concurrency=concurrency)
    try:
        limit = due + over + patience
        while time.time() < limit and _count(server, "status <> 'completed'") > 0:
            time.sleep(0.5)
    finally:
        fleet.end(30)
    return _figures(server, runs, due, over, workers * concurrency)


def _make(server: Server, url: str, folder: Path, runs: int, over: float) -> float:
    """The sleepers, and when the first is due; a table keeps it of each, for a run that goes on forgets it."""
    import psycopg

    store: Any = open_store(url)
    run, records = _first(store, folder)
    statement = store._sql.write(*_write(run, records, 0, 0, 0.0).parts)
    store.close()
    server.sql(f'CREATE TABLE "{_SCHEMA}".due (run bigint PRIMARY KEY, wake_at double precision)')
    key = f"'\"{_SCHEMA}\".tramai_key'"
    ((first,),) = server.sql(f"SELECT setval({key}, nextval({key}) + {runs}) - {runs}")

    def insert(cursor: psycopg.Cursor[Any], numbers: range, due: float) -> None:
        times = [due + over * number / runs for number in numbers]
        whole = [_write(run, records, number, first + number, at) for number, at in zip(numbers, times, strict=True)]
        cursor.executemany(statement, [one.values for one in whole])
        rows = [(one.head.key, at) for one, at in zip(whole, times, strict=True)]
        cursor.executemany(f'INSERT INTO "{_SCHEMA}".due VALUES (%s, %s)', rows)

    with psycopg.connect(server.url) as connection, connection.cursor() as cursor:
        began = time.monotonic()
        insert(cursor, range(_TRIAL), 0.0)
        connection.rollback()
        due = time.time() + (time.monotonic() - began) / _TRIAL * runs * 1.5 + 10.0
        for begin in range(0, runs, 1000):
            insert(cursor, range(begin, min(begin + 1000, runs)), due)
            connection.commit()
    server.sql(f'DELETE FROM "{_SCHEMA}".tramai_run WHERE run_id = %s', (run.run_id,))
    server.sql("ANALYZE")
    return due


def _first(store: Any, folder: Path) -> tuple[Run, tuple[Record, ...]]:
    """One run that was really put to sleep."""
    (folder / "nap.yaml").write_text(_NAP, encoding="utf-8")
    nap = plan.of(workflow.load(str(folder / "nap.yaml")))
    run = carrying.enqueue(nap, {}, store=store, options=Options(cwd=str(folder)))
    sent = time.monotonic()
    (one,) = pooled(store).take(
        Wanted(), limit=1, owner="first", holder=Holder.here(), ttl=30.0, now=time.time(), most_claims=5
    )
    assert one.run is not None
    assert one.lease is not None
    carrying.carry(one.run, one.lease, sent=sent, store=store, options=Options(wait=0.0))
    return store.get(run.run_id), store.journal(run.run_id)


def _write(run: Run, records: tuple[Record, ...], number: int, key: int, wake_at: float) -> Write:
    """The same run again, under a name of its own, to be woken then."""
    ours = replace(run, run_id=f"nap-{number:07}", generation=f"g{number}", created=run.created + number * 1e-6)
    told = [replace(one, value=encode(wake_at)) if one.mark is Mark.DECIDED else one for one in records]
    return Write.of_life(key, replace(ours, wake_at=wake_at), Change(now=run.updated, records=tuple(told)))


def _count(server: Server, which: str) -> int:
    return int(server.sql(f'SELECT count(*) FROM "{_SCHEMA}".tramai_run WHERE {which}')[0][0])


def _figures(server: Server, runs: int, due: float, over: float, slots: int) -> Figures:
    late = sorted(float(row[0]) for row in server.sql(_LATE))
    ends = [
        float(row[0])
        for row in server.sql(
            f'SELECT updated FROM "{_SCHEMA}".tramai_head AS h '
            f"JOIN \"{_SCHEMA}\".tramai_run AS r ON r.id = h.run WHERE r.status = 'completed'"
        )
    ]
    again = (
        f"SELECT count(*) FROM (SELECT run FROM \"{_SCHEMA}\".tramai_note WHERE body::json->>'type' = 'run.resumed' "
        "GROUP BY run HAVING count(*) > 1) AS more"
    )
    drained = max(ends) - due if ends else 0.0
    return Figures(
        runs=runs,
        over=over,
        slots=slots,
        completed=_count(server, "status = 'completed'"),
        twice=int(server.sql(again)[0][0]),
        drained=round(drained, 2),
        per_second=round(len(ends) / max(drained, 0.001), 1),
        most_in_a_second=max(Counter(int(end) for end in ends).values(), default=0),
        late_p50=round(late[len(late) // 2], 3),
        late_p99=round(late[len(late) * 99 // 100], 3),
        late_most=round(late[-1], 3),
    )


def main() -> None:
    """Measure once, and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.sleepers", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--over", type=float, default=0.0, help="spread their times over so many seconds")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=2)
    given = parser.parse_args()
    found = measure(given.runs, over=given.over, workers=given.workers, concurrency=given.concurrency)
    print(msgspec.json.encode(found).decode())
    sys.exit(found.completed != found.runs or found.twice > 0)


if __name__ == "__main__":
    main()
