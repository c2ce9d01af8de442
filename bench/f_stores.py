"""F. Stores: a durable step of each beside the bare operation that it cannot do without.

    python3 bench/f_stores.py [rounds=5]

On the disk, in a process of its own, over a fresh store, after a small run that warms up. Time passed is mostly the
disk's (of PostgreSQL, the server's); CPU is that of the process alone. PostgreSQL is started for it, with its flushes
on, where `initdb` is found; else it is left out, and that is said.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lib
from database import server
from lib import Report, in_turn, median, ratio, rounds_wanted, worker, workplace

SCRIPT = Path(__file__).name
STEPS = 300
ROW = b'{"seq":1,"path":"s1","mark":"completed","attempt":1,"value":"2"}' + b" " * 300 + b"\n"
"""About as much as a step writes to a journal."""

BARE = {
    "sqlite": "INSERT + COMMIT",
    "file": "append + fdatasync",
    "markdown": "a new file, flushed, renamed, folder flushed",
    "postgres": "INSERT + COMMIT at the server",
}

GOALS = {"sqlite": (4.0, 2.0), "file": (5.0, 3.0), "markdown": (8.0, 5.0), "postgres": (4.0, 2.0)}


# What runs in processes of its own: CPU and wall seconds a step.


class Watch:
    """CPU and wall seconds of what stands under `with`, for each of so many steps."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def __enter__(self) -> Watch:
        self._began = lib.cpu(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        spent = lib.cpu() - self._began[0], time.perf_counter() - self._began[1]
        self.cpu, self.wall = (value / self._steps for value in spent)


def bare(kind: str, folder: Path, url: str, steps: int) -> Watch:
    act = {"sqlite": _insert, "file": _append, "markdown": _replace, "postgres": _insert_there}[kind]
    with contextlib.ExitStack() as stack:
        do = act(folder, url, stack)
        do(0)
        with Watch(steps) as watch:
            for number in range(1, steps + 1):
                do(number)
    return watch


def _insert(folder: Path, url: str, stack: contextlib.ExitStack) -> Callable[[int], Any]:
    database = stack.enter_context(contextlib.closing(sqlite3.connect(folder / "bare.db", isolation_level=None)))
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("CREATE TABLE step(run INT, seq INT, out TEXT, PRIMARY KEY(run, seq)) WITHOUT ROWID")
    return lambda number: database.execute("INSERT INTO step VALUES (1, ?, ?)", (number, "2"))


def _append(folder: Path, url: str, stack: contextlib.ExitStack) -> Callable[[int], Any]:
    handle = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    stack.callback(os.close, handle)

    def act(number: int) -> None:
        os.write(handle, ROW)
        os.fdatasync(handle)

    return act


def _replace(folder: Path, url: str, stack: contextlib.ExitStack) -> Callable[[int], Any]:
    above = os.open(folder, os.O_RDONLY)
    stack.callback(os.close, above)

    def act(number: int) -> None:
        handle = os.open(folder / "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(handle, ROW * number)
        os.fsync(handle)
        os.close(handle)
        os.rename(folder / "new", folder / "bare")
        os.fsync(above)

    return act


def _insert_there(folder: Path, url: str, stack: contextlib.ExitStack) -> Callable[[int], Any]:
    import psycopg

    database = stack.enter_context(psycopg.connect(url, autocommit=True, prepare_threshold=1))
    table = f"bare_{os.urandom(6).hex()}"
    database.execute(f"CREATE TABLE {table} (run int, seq int, out text, PRIMARY KEY (run, seq))")
    return lambda number: database.execute(f"INSERT INTO {table} VALUES (1, %s, %s)", (number, "2"))


def step(kind: str, folder: Path, url: str, steps: int) -> Watch:
    from tramai import build, engine, plan
    from tramai.stores import open_store

    named = {"sqlite": f"sqlite:{folder}/runs.db", "postgres": f"{url}?schema=b{os.urandom(6).hex()}"}
    store = open_store(named.get(kind, "memory:" if kind == "memory" else f"{kind}:{folder}/runs"))
    for count in (10, steps):
        nodes = [{"id": f"s{number}", "local": "${{ 1 + 1 }}"} for number in range(count)]
        made = plan.of(build.build({"tramai": 1, "name": "bench", "steps": nodes}))
        with Watch(count) as watch:
            result = engine.run(made, {}, store=store)
        assert result.status == "completed", result
    store.close()
    return watch


def child(what: str, kind: str, url: str) -> None:
    with workplace(disk=True) as folder:
        watch = {"bare": bare, "step": step}[what](kind, folder, url, STEPS)
    lib.emit(cpu=watch.cpu, wall=watch.wall)


def main() -> None:
    report = Report("f_stores", "F. Stores: a durable step against the bare operation")
    rounds = rounds_wanted(5)
    with server() as url:
        kinds = [kind for kind in BARE if kind != "postgres" or url is not None]
        contenders = {f"{what} {kind}": (what, kind) for kind in kinds for what in ("bare", "step")}
        contenders["step memory"] = ("step", "memory")
        found = in_turn(rounds, contenders, lambda spec: worker("tramai", SCRIPT, *spec, url or ""))
    rows = []
    for kind in kinds:
        if f"step {kind}" not in found or f"bare {kind}" not in found:
            continue
        ours, theirs = found[f"step {kind}"], found[f"bare {kind}"]
        times = [median(samples, key) * 1e6 for key in ("wall", "cpu") for samples in (ours, theirs)]
        rows.append((kind, BARE[kind], *times[:2], ratio(ours, theirs, "wall"), *times[2:], ratio(ours, theirs)))
    alone = found["step memory"]
    rows.append(("memory", "-", median(alone, "wall") * 1e6, None, None, median(alone) * 1e6, None, None))
    columns = ["a step of", "beside", "us", "bare us", "x", "cpu us", "bare cpu us", "x cpu"]
    report.table(columns, rows)
    report.goals(
        [(f"a step of {row[0]} beside the bare operation, time passed", *GOALS[row[0]], row[4]) for row in rows[:-1]]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        child(*sys.argv[2:])
    else:
        main()
