"""H. Workers over PostgreSQL: runs a second, how soon one starts, and what an idle worker costs.

    python3 bench/h_workers.py [rounds=1] [n=1000] [seconds=60] [only=words of contenders]

One server on the disk, with its flushes on, for all. A run has 1 or 5 steps, each durable before the next: `local`
expressions here, trivial functions elsewhere. The runs are put into a queue first, then 1, 2 and 4 worker processes
start. The rate is taken from the times of completion in the database, between the 20th and the 90th of a hundred,
so that no start-up counts. `pgbench` is the limit: claim by SKIP LOCKED with a lease and a fence, then one fenced
commit a step, the last of which ends the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lib
from database import programs, server
from lib import Report

SCRIPT = str(Path(__file__).resolve())
CONCURRENCY = 2
"""Slots of each of our workers."""
WORKERS = (1, 2, 4)
SCHEMA = """
CREATE TABLE wf(id bigint PRIMARY KEY, status text NOT NULL, owner text, fence bigint NOT NULL DEFAULT 0,
  lease timestamptz, rev int NOT NULL DEFAULT 0, state text, done timestamptz) WITH (fillfactor=60);
CREATE INDEX wf_queued ON wf(id) WHERE status='queued';
CREATE TABLE wfstep(wf bigint, seq int, out text, at timestamptz DEFAULT now(), PRIMARY KEY(wf, seq));
INSERT INTO wf(id, status) SELECT i, 'queued' FROM generate_series(1, 200000) i; ANALYZE wf"""
CLAIM = (
    "UPDATE wf SET status='running', owner=:client_id, fence=fence+1, lease=now()+interval '30 s' WHERE id IN "
    "(SELECT id FROM wf WHERE status='queued' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, fence \\gset\n"
)
STEP = (
    "WITH u AS (UPDATE wf SET rev=rev+1{end} WHERE id=:id AND fence=:fence RETURNING id) "
    "INSERT INTO wfstep(wf, seq, out) SELECT id, {step}, '{{}}' FROM u;\n"
)
DONE = {
    "tramai": "SELECT h.updated FROM tramai_run r JOIN tramai_head h ON h.run = r.id WHERE r.status='completed'",
    "dbos": "SELECT completed_at/1000.0 FROM dbos.workflow_status WHERE status='SUCCESS'",
    "procrastinate": "SELECT extract(epoch FROM at) FROM procrastinate_events WHERE type='succeeded'",
}


class Database:
    """A new database on the server for one measurement."""

    def __init__(self, url: str, name: str) -> None:
        self._admin = url
        self.name = name
        self.url = url.rpartition("/")[0] + "/" + name
        self.port = url.rpartition(":")[2].partition("/")[0]
        self._ask(self._admin, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self._ask(self._admin, f"CREATE DATABASE {name}")

    def ask(self, text: str) -> list[str]:
        """The rows that a statement gives."""
        return self._ask(self.url, text)

    def _ask(self, url: str, text: str) -> list[str]:
        command = [f"{programs()}/psql", url, "-AtqX", "-v", "ON_ERROR_STOP=1", "-c", text]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])
        return done.stdout.split("\n")[:-1]


# The contenders.


def pgbench(database: Database, steps: int, workers: int, *, connections: int) -> float:
    """Transactions a second of what each of the others does at least."""
    database.ask(SCHEMA)
    ends = {steps: ", status='done', done=now()"}
    lines = [CLAIM, *(STEP.format(step=step, end=ends.get(step, "")) for step in range(1, steps + 1))]
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write("".join(lines))
        file.flush()
        to = ["-h", "127.0.0.1", "-p", database.port, "-U", "tramai", database.name]
        many = ["-c", str(workers * connections), "-j", str(min(2, workers)), "-T", "4", "-f", file.name]
        command = [f"{programs()}/pgbench", "-n", "-M", "prepared", *many, *to]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    (rate,) = (line.split("=")[1].split()[0] for line in done.stdout.splitlines() if line.startswith("tps"))
    return float(rate)


def queue(database: Database, steps: int, workers: int, *, kind: str, n: int) -> float:
    """Runs a second of workers that take them from a queue."""
    venv = {"procrastinate": "proc"}.get(kind, kind)
    fill = [lib.program(venv), SCRIPT, "--fill", kind, database.url, str(steps), str(n)]
    filled = subprocess.run(fill, env=lib.environment(), capture_output=True, text=True, check=False)
    if filled.returncode:
        raise RuntimeError(filled.stderr[-400:])
    each = steps if kind == "procrastinate" else 1  # completions in the database that make a run
    with working(kind, venv, database, workers):
        end = time.monotonic() + 90
        while len(times := database.ask(DONE[kind])) < n * each and time.monotonic() < end:
            time.sleep(0.3)
    if len(times) < n * each / 2:
        raise RuntimeError(f"only {len(times)} of {n * each} are done")
    sorted_times = sorted(map(float, times))
    first, last = int(len(times) * 0.2), int(len(times) * 0.9) - 1
    return (last - first) / each / max(1e-3, sorted_times[last] - sorted_times[first])


@contextlib.contextmanager
def working(kind: str, venv: str, database: Database, workers: int) -> Iterator[list[int]]:
    """So many worker processes; their ids."""
    if kind == "tramai":
        many = ["--concurrency", str(CONCURRENCY), "--json"]
        command = [lib.program(venv, "tramai"), "worker", "--store", database.url, *many]
    else:
        command = [lib.program(venv), SCRIPT, "--work", kind, database.url]
    with lib.workplace(disk=True) as folder:
        shared = {"cwd": folder, "env": lib.environment(folder), "stdin": subprocess.DEVNULL}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        processes = [subprocess.Popen(command, **shared, **quiet) for _ in range(workers)]  # type: ignore[call-overload]
        try:
            yield [process.pid for process in processes]
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM if kind == "tramai" else signal.SIGKILL)
            for process in processes:
                process.wait(60)


# In the virtual environments of the contenders.


def fill(kind: str, url: str, steps: int, n: int) -> None:
    """Put runs into the queue."""
    if kind == "tramai":
        from concurrent.futures import ThreadPoolExecutor

        from tramai import build, carrying, plan
        from tramai.stores import open_store

        nodes = [{"id": f"s{number}", "local": "${{ 1 + 1 }}"} for number in range(steps)]
        made = plan.of(build.build({"tramai": 1, "name": "bench", "steps": nodes}))
        store = open_store(url)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: carrying.enqueue(made, {}, store=store), range(n)))
    elif kind == "dbos":
        from concurrent.futures import ThreadPoolExecutor

        app, flow = _dbos(url)
        app.listen_queues(["none"])
        app.launch()
        app.register_queue("bench", worker_concurrency=32, polling_interval_sec=0.02)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: app.enqueue_workflow("bench", flow, steps), range(n)))
        app.destroy()
    else:
        import asyncio

        app, step = _procrastinate(url)

        async def go() -> None:
            async with app.open_async():
                await app.schema_manager.apply_schema_async()
                await step.batch_defer_async(*[{"k": steps, "i": 1} for _ in range(n)])

        asyncio.run(go())


def work(kind: str, url: str) -> None:
    """Be a worker until somebody ends this process."""
    if kind == "dbos":
        app, _ = _dbos(url)
        app.launch()
        app.register_queue("bench", worker_concurrency=32, polling_interval_sec=0.02)
        signal.pause()
        return
    import asyncio

    app, _ = _procrastinate(url)

    async def go() -> None:
        async with app.open_async():
            quick = {"concurrency": 32, "fetch_job_polling_interval": 0.05}
            await app.run_worker_async(install_signal_handlers=False, **quick)

    asyncio.run(go())


def _dbos(url: str) -> tuple[Any, Any]:
    from dbos import DBOS

    settings = {"log_level": "ERROR", "application_version": "1", "sys_db_pool_size": 20, "max_executor_threads": 64}
    DBOS(config={"name": "bench", "system_database_url": url, "executor_id": f"w{os.getpid()}", **settings})

    @DBOS.step()
    def step(i: int) -> int:
        return i + 1

    @DBOS.workflow()
    def flow(k: int) -> int:
        i = 0
        for _ in range(k):
            i = step(i)
        return i

    return DBOS, flow


def _procrastinate(url: str) -> tuple[Any, Any]:
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

    @app.task(name="step")
    async def step(k: int, i: int) -> None:
        if i < k:  # a chain: each finished job queues the next one
            await step.defer_async(k=k, i=i + 1)

    return app, step


# What one worker does while there is nothing to do, and when something comes.


def idle(database: Database, seconds: float) -> float:
    """CPU of a worker and its slots, of one core, while it waits."""
    with working("tramai", "tramai", database, 1) as (pid,):
        _settle()
        before, began = _cpu_of_tree(pid), time.monotonic()
        time.sleep(seconds)
        return (_cpu_of_tree(pid) - before) / (time.monotonic() - began)


def latency(database: Database, times: int = 40) -> list[float]:
    """Seconds from the commit of an enqueued run to its start, at moments of no pattern."""
    with working("tramai", "tramai", database, 1):
        _settle()
        command = [lib.program("tramai"), SCRIPT, "--drip", database.url, str(times)]
        done = subprocess.run(command, env=lib.environment(), capture_output=True, text=True, check=True)
    found: list[float] = json.loads(done.stdout)
    return found


def drip(url: str, times: int) -> None:
    """Enqueue a run now and then; print how long each took to start."""
    import random

    from tramai import build, carrying, plan
    from tramai.stores import open_store

    made = plan.of(build.build({"tramai": 1, "name": "bench", "steps": [{"id": "s", "local": "${{ 1 + 1 }}"}]}))
    store = open_store(url)
    put = []
    for _ in range(times):
        run = carrying.enqueue(made, {}, store=store)
        put.append((run.run_id, time.time()))
        time.sleep(random.uniform(0.05, 0.4))
    time.sleep(2.0)
    print(json.dumps([store.notes(run_id)[0].at - at for run_id, at in put]))


def _settle() -> None:
    time.sleep(10.0)  # it and its slots have started


def _cpu_of_tree(pid: int) -> float:
    """CPU seconds of a process and all that it has started and that are there."""
    parents, spent = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
                spent[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    tree = {pid}
    while more := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(spent.get(one, 0.0) for one in tree)


def contenders(n: int) -> dict[str, Callable[[Database, int, int], float]]:
    """Each by its name."""

    def limit(connections: int) -> Callable[[Database, int, int], float]:
        return lambda database, steps, workers: pgbench(database, steps, workers, connections=connections)

    def queued(kind: str, n: int) -> Callable[[Database, int, int], float]:
        return lambda database, steps, workers: queue(database, steps, workers, kind=kind, n=n)

    found = {"pgbench, 1 connection a worker": limit(1), "pgbench, 8 connections a worker": limit(8)}
    found[f"tramai, --concurrency {CONCURRENCY}"] = queued("tramai", n * 3)
    found["procrastinate, 32 a worker"] = queued("procrastinate", n)
    found["DBOS, 32 threads a worker"] = queued("dbos", n // 2)
    return found


def main() -> None:
    rounds, n, seconds = (int(text) for text in (*sys.argv[1:4], *("1", "1000", "60")[len(sys.argv[1:4]) :]))
    only = sys.argv[4:]
    report = Report("h_workers", "H. Workers over PostgreSQL, runs a second")
    rates: dict[tuple[str, int], float] = {}
    with server(max_connections="200", shared_buffers="256MB") as url:
        if url is None:
            return
        for steps in (1, 5):
            rows = []
            for label, measure in contenders(n).items():
                if only and not any(word in label for word in only):
                    continue
                row = []
                for workers in WORKERS:
                    found = [measure(Database(url, "bench"), steps, workers) for _ in range(rounds)]
                    row.append(statistics.median(found))
                rates[label.partition(",")[0], steps] = max(rates.get((label.partition(",")[0], steps), 0.0), *row)
                rows.append((label, *row))
            report.table([f"{steps} durable steps", *(f"{workers} workers" for workers in WORKERS)], rows)
        if not only or "idle" in only:
            waits = sorted(latency(Database(url, "bench")))
            cost = idle(Database(url, "bench"), seconds)
            rows = [("enqueue to start, ms", waits[len(waits) // 2] * 1000, waits[-1] * 1000)]
            report.table(["one worker", "median", "worst"], rows)
            report.table(["one idle worker", "% of a core"], [("worker and slots", cost * 100)])
        else:
            waits, cost = [0.0], 0.0
    goals: list[tuple[str, float, float | None, float]] = []
    for steps in (1, 5):
        ours = rates.get(("tramai", steps))
        for other, must, aim in (("pgbench", 2.0, 0.5), ("procrastinate", 1.0, None), ("DBOS", 1.0, None)):
            if ours and (other, steps) in rates:
                goals.append((f"{other} to tramai, runs of {steps}", must, aim, rates[other, steps] / ours))
    goals.append(("enqueue to start, median ms", 50.0, 5.0, waits[len(waits) // 2] * 1000))
    goals.append(("idle worker, % of a core", 1.0, 0.1, cost * 100))
    report.goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fill"]:
        fill(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    elif sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3])
    elif sys.argv[1:2] == ["--drip"]:
        drip(sys.argv[2], int(sys.argv[3]))
    else:
        main()
