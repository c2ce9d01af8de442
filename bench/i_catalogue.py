"""I. The catalogue: what is asked of a store with a thousand runs, and with a million.

    python3 bench/i_catalogue.py [runs=1000000] [few=1000] [asked=200] [kinds=sqlite,postgres]

Nine of ten runs are completed, one of a hundred is ready, three sleep; every other has a label. Each question is asked
so many times in one process, of the small store and of the large one in turn, and the median of its time passed is
shown. `take` claims one run and gives it back, which is not timed.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lib
from database import server
from lib import Report, worker, workplace

SCRIPT = Path(__file__).name
STATUSES = ["completed"] * 90 + ["failed"] * 6 + ["sleeping"] * 3 + ["ready"]
LATER = 4e9
"""When sleepers wake: not while this runs."""


# In the virtual environment of tramai.


def runs(count: int) -> Iterator[Any]:
    """As many runs, as a store keeps them."""
    from tramai.store import Run, Status

    for number in range(count):
        status = Status(STATUSES[number * 37 % 100])
        over = status in (Status.COMPLETED, Status.FAILED)
        yield Run(
            run_id=f"{number:08x}-{number * 2654435761 % (1 << 32):08x}",
            generation="g",
            workflow=f"flow-{number % 10}",
            version="1",
            digest="d",
            status=status,
            inputs='{"a":1}',
            cwd="/",
            file=None,
            fence=int(over),
            revision=5,
            created=1e9 + number,
            updated=1e9 + number,
            started_by="bench",
            wake_at=LATER + number if status is Status.SLEEPING else None,
            finished=1e9 + number if over else None,
            labels=(f"label-{number // 2 % 5}",) if number % 2 == 0 else (),
        )


def fill(store: Any, url: str, count: int) -> None:
    """Put them there, past the calls of the store: they would take an hour."""
    if url.startswith("sqlite"):
        with store._connection as execute:
            execute("PRAGMA cache_size=-200000")
            for run in runs(count):
                store._insert(run)
        return
    import psycopg

    from tramai.store import Change
    from tramai.stores._postgres_write import Write

    names, rows = store._sql.names, {name: [] for name in ("run", "head", "lease", "label")}  # type: ignore[var-annotated]
    with psycopg.connect(url.partition("?")[0], autocommit=True) as link:
        for key, run in enumerate(runs(count), 1):
            has = Write.of_life(key, run, Change(now=0.0)).values
            called = [has[name] for name in ("key", "run_id", "reversed", "workflow", "digest", "status", "queue")]
            more = [has[name] for name in ("priority", "created", "start_key", "wake_at", "run_body", "run_sum")]
            rows["run"].append((*called, *more))
            moving = ("key", "fence", "revision", "token", "updated", "last_seq", "last_note", "body", "sum")
            rows["head"].append(tuple(has[name] for name in moving))
            rows["lease"].append((key,))
            rows["label"] += [(label, has["created"], has["run_id"], key) for label in has["labels"]]
            if key % 20_000 == 0 or key == count:
                _copy(link, names, rows)
        link.execute(f"SELECT setval('{names['key']}', {count})")
        link.execute("VACUUM ANALYZE")


def _copy(link: Any, names: Any, rows: dict[str, list[Any]]) -> None:
    columns = {"lease": "(run)", "label": "(name, created, run_id, run)"}
    for table, kept in rows.items():
        with link.cursor().copy(f"COPY {names[table]} {columns.get(table, '')} FROM STDIN") as copy:
            for row in kept:
                copy.write_row(row)
        kept.clear()


def questions(store: Any, count: int) -> dict[str, Callable[[int], Any]]:
    """What is asked, each with the number of the question."""
    from tramai.pool import Wanted, given_back
    from tramai.store import Holder, Status

    holder = Holder.here()
    known = [run.run_id for run in runs(min(count, 1000))]

    def take(number: int) -> float:
        by = {"owner": "bench", "holder": holder, "ttl": 60.0, "now": time.time(), "most_claims": 5}
        began = time.perf_counter()
        (one,) = store.take(Wanted(), limit=1, **by)
        spent = time.perf_counter() - began
        store.commit(one.lease, given_back(one.run, time.time()))
        return spent

    return {
        "the newest 50": lambda n: store.page(limit=50),
        "the newest 50 that failed": lambda n: store.page(limit=50, status=Status.FAILED),
        "the newest 50 of a workflow": lambda n: store.page(limit=50, workflow=f"flow-{n % 10}"),
        "the newest 50 with a label": lambda n: store.page(limit=50, label=f"label-{n % 5}"),
        "one by the end of its id": lambda n: store.match(known[n % len(known)][-8:]),
        "one by its id": lambda n: store.get(known[n % len(known)]),
        "when the next wakes": lambda n: store.next_wake(Wanted(queues=("nobody",)), now=time.time()),
        "whether one is ready": lambda n: store.next_wake(Wanted(), now=time.time()),
        "take one": take,
    }


def child(where: str, counts: list[int], asked: int) -> None:
    from tramai.stores import open_store

    with tempfile.TemporaryDirectory(dir=lib.HOME) as folder:
        urls = [
            f"sqlite:{folder}/{count}.db" if where == "sqlite" else f"{where}?schema=c{count}{os.urandom(3).hex()}"
            for count in counts
        ]
        stores = [open_store(url) for url in urls]
        for store, url, count in zip(stores, urls, counts, strict=True):
            fill(store, url, count)
        every = [questions(store, count) for store, count in zip(stores, counts, strict=True)]
        found: dict[str, list[float]] = {}
        for name in every[0]:
            times: list[list[float]] = [[] for _ in stores]
            for number in range(asked + 10):
                for place, ask in enumerate(every):
                    began = time.perf_counter()
                    answer = ask[name](number)
                    spent = answer if name == "take one" else time.perf_counter() - began
                    if number >= 10:
                        times[place].append(spent)
            found[name] = [statistics.median(one) * 1e6 for one in times]
        for store in stores:
            store.close()
    lib.emit(found=found)


def main() -> None:
    many, few, asked = (int(text) for text in (*sys.argv[1:4], *("1000000", "1000", "200")[len(sys.argv[1:4]) :]))
    kinds = (sys.argv[4] if len(sys.argv) > 4 else "sqlite,postgres").split(",")
    report = Report("i_catalogue", "I. The catalogue, microseconds a question")
    goals: list[tuple[str, float, float | None, float]] = []
    with workplace(disk=True), server(shared_buffers="256MB") as url:
        for kind in kinds:
            where = url if kind == "postgres" else kind
            if where is None:
                continue
            sample = worker("tramai", SCRIPT, where, f"{few},{many}", asked, timeout=3600)
            if "error" in sample:
                raise SystemExit(f"{kind}: {sample['error']}")
            rows = [(name, small, large, large / small) for name, (small, large) in sample["found"].items()]
            report.table([f"{kind}", f"{few:,} runs", f"{many:,} runs", "x"], rows)
            slowest = max(rows, key=lambda row: row[3])
            goals.append((f"{kind}: the question that grows most ({slowest[0]})", 1.5, 1.1, slowest[3]))
    report.goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        child(sys.argv[2], [int(text) for text in sys.argv[3].split(",")], int(sys.argv[4]))
    else:
        main()
