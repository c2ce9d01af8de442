"""Many processes at one store at one moment: `python -m tests.faults.racers …`. They are forked, for they are many.

The argument is a JSON object: url, folder, game (`resume`, `start`, `crowd`), processes, rounds. The answer is one too.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing
import os
import signal
import sqlite3
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tramai import build, engine, plan
from tramai.errors import TramaiError
from tramai.store import Holder, Mark, NewRun, Status, Store
from tramai.stores import open_store

PATIENCE = 60.0
_DIE_WITH_PARENT = 1

EFFECT = plan.of(
    build.build(
        {
            "tramai": 1,
            "name": "effect",
            "inputs": {"folder": {"type": "string"}},
            "steps": [
                {
                    "id": "effect",
                    "shell": {
                        # It ends when all others have been told: who comes late finds it still running.
                        "run": 'echo "$RUN" >> "$FOLDER/effects"; while [ ! -e "$FOLDER/go" ]; do sleep 0.01; done',
                        "env": {"RUN": "${{ run.id }}", "FOLDER": "${{ inputs.folder }}"},
                    },
                },
                {"id": "last", "local": "done"},
            ],
            "outputs": {"last": "${{ steps.last.output }}"},
        }
    )
)
SMALL = plan.of(
    build.build(
        {
            "tramai": 1,
            "name": "small",
            "state": {"last": {"initial": 0}},
            "steps": [{"id": f"s{n}", "local": n, "save": {"last": "${{ result }}"}} for n in range(3)],
        }
    )
)


def main() -> None:
    """Play one game and print what came of it."""
    given = json.loads(sys.argv[1])
    game = {"resume": resume, "start": start, "crowd": crowd}[given.pop("game")]
    print(json.dumps(game(**given)))


def resume(url: str, folder: str, processes: int, rounds: int) -> dict[str, Any]:
    """Each round all of them resume one run whose runner is dead."""
    with forked(processes, url, _resume) as crowd:
        store = open_store(url)
        tally = Tally(folder)
        for _ in range(rounds):
            tally.begin()
            run_id = uuid.uuid4().hex
            new = NewRun(
                run_id=run_id,
                definition=EFFECT.definition(),
                inputs=json.dumps({"folder": folder}),
                cwd=folder,
                created=time.time(),
            )
            dead = replace(Holder.here(), start="1")
            store.create(new, owner="dead", holder=dead, ttl=3600.0, now=time.time())
            tally.end(store, run_id, crowd.play((run_id,), tally.go), fence=2)
        store.close()
    return tally.answer()


def start(url: str, folder: str, processes: int, rounds: int) -> dict[str, Any]:
    """Each round all of them start a run with one key."""
    with forked(processes, url, _start) as crowd:
        store = open_store(url)
        tally = Tally(folder)
        for number in range(rounds):
            tally.begin()
            answers = crowd.play((f"key-{number}", folder), tally.go)
            ids = {answer["run_id"] for answer in answers if "run_id" in answer}
            tally.violations += [f"one key, {len(ids)} runs"] * (len(ids) != 1)
            tally.violations += [answer["text"] for answer in answers if "text" in answer]
            tally.end(store, min(ids), answers, fence=1)
        runs = store.page(limit=1000)[0]
        tally.violations += [f"{rounds} keys, {len(runs)} runs"] * (len(runs) != rounds)
        store.close()
    return tally.answer()


def crowd(url: str, folder: str, processes: int, rounds: int) -> dict[str, Any]:
    """Each makes so many runs, while somebody reads a SQLite file in one long transaction."""
    del folder
    began = time.monotonic()
    open_store(url).close()
    with forked(processes, url, _many) as crowd, _reader(url):
        answers = crowd.play((rounds,), lambda: None)
    store = open_store(url)
    runs = store.page(limit=processes * rounds + 1)[0]
    whole = sum(run.status is Status.COMPLETED and len(store.journal(run.run_id)) == 3 for run in runs)
    store.close()
    errors = [text for answer in answers for text in answer["errors"]]
    return {"runs": len(runs), "whole": whole, "errors": errors, "seconds": time.monotonic() - began}


class Tally:
    """What came of the rounds."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._effects = self._folder / "effects"
        self._kinds: Counter[str] = Counter()
        self._slowest = 0.0
        self.violations: list[str] = []
        self._rounds = 0

    def go(self) -> None:
        """Let the winner's step end."""
        (self._folder / "go").touch()

    def begin(self) -> None:
        """Before a round."""
        (self._folder / "go").unlink(missing_ok=True)
        self._effects.write_text("")

    def end(self, store: Store, run_id: str, answers: list[dict[str, Any]], *, fence: int) -> None:
        """After a round: one winner, one effect, one completed record a step, and every revision accounted for."""
        self._rounds += 1
        winners = [answer for answer in answers if answer["kind"] == "completed"]
        losers = [answer for answer in answers if answer["kind"] in ("LeaseHeld", "interrupted")]
        self._kinds.update(answer["kind"] for answer in answers)
        self._slowest = max([self._slowest, *(answer["seconds"] for answer in losers)])
        run, records = store.get(run_id), store.journal(run_id)
        done = sorted(record.path for record in records if record.mark is Mark.COMPLETED)
        wrong = {
            f"{len(winners)} winners": len(winners) != 1,
            f"{len(losers)} were told": len(losers) != len(answers) - 1,
            f"effects {self._effects.read_text().split()}": self._effects.read_text().split() != [run_id],
            f"completed {done}": done != ["effect", "last"],
            f"status {run.status}": run.status is not Status.COMPLETED,
            f"fence {run.fence}": run.fence != fence,
        }
        self.violations += [f"round {self._rounds}: {what}" for what, is_so in wrong.items() if is_so]

    def answer(self) -> dict[str, Any]:
        """All of it."""
        return {
            "rounds": self._rounds,
            "kinds": dict(self._kinds),
            "slowest": self._slowest,
            "violations": self.violations,
        }


class Crowd:
    """Processes that each have the store open and wait for a call."""

    def __init__(self, count: int, url: str, work: Callable[..., dict[str, Any]]) -> None:
        self._pids: list[int] = []
        self._pipes: list[Connection] = []
        self._gate, self._starter = os.pipe()
        for _ in range(count):
            here, there = multiprocessing.Pipe()
            pid = os.fork()
            if pid == 0:
                _child(url, work, there, self._gate)
            there.close()
            self._pids.append(pid)
            self._pipes.append(here)

    def play(self, call: tuple[Any, ...], when_all_but_one: Callable[[], None]) -> list[dict[str, Any]]:
        """All of them make the call at one moment; `when_all_but_one` of them have answered, somebody is told."""
        for pipe in self._pipes:
            pipe.send(call)
        for pipe in self._pipes:
            assert pipe.poll(PATIENCE), "a process is not ready"
            pipe.recv()
        os.write(self._starter, b"x" * len(self._pipes))  # one byte for each: all wake at once
        answers: list[dict[str, Any]] = []
        left = list(self._pipes)
        end = time.monotonic() + PATIENCE
        while left:
            if len(left) == 1 or time.monotonic() > end:
                when_all_but_one()
            for pipe in wait(left, 0.5):
                assert isinstance(pipe, Connection)
                answers.append(pipe.recv())
                left.remove(pipe)
            assert time.monotonic() < end + PATIENCE, f"{len(left)} processes did not answer"
        return answers

    def close(self) -> None:
        """End them."""
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)
        for pid in self._pids:
            os.waitpid(pid, 0)


@contextlib.contextmanager
def forked(count: int, url: str, work: Callable[..., dict[str, Any]]) -> Iterator[Crowd]:
    """So many processes. Nothing may be open yet that must not be shared with them."""
    crowd = Crowd(count, url, work)
    try:
        yield crowd
    finally:
        crowd.close()


def _child(url: str, work: Callable[..., dict[str, Any]], pipe: Connection, gate: int) -> None:
    try:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        store = open_store(url)
        while True:
            call = pipe.recv()
            pipe.send("ready")
            os.read(gate, 1)
            began = time.monotonic()
            try:
                answer = work(store, *call)
            except TramaiError as error:
                answer = {"kind": type(error).__name__, "text": error.message}
            pipe.send({"seconds": time.monotonic() - began, **answer})
    finally:
        os._exit(1)


def _resume(store: Store, run_id: str) -> dict[str, Any]:
    result = engine.resume(run_id, store=store)
    return {"kind": result.status, "run_id": run_id}


def _start(store: Store, key: str, folder: str) -> dict[str, Any]:
    options = engine.Options(start_key=key, cwd=folder)
    result = engine.run(EFFECT, {"folder": folder}, store=store, options=options)
    return {"kind": result.status, "run_id": result.run_id}


def _many(store: Store, count: int) -> dict[str, Any]:
    errors = []
    for _ in range(count):
        try:
            result = engine.run(SMALL, {}, store=store)
            errors += [f"a run ended as {result.status}"] * (result.status != "completed")
        except Exception as error:  # whatever it is, it is counted
            errors.append(f"{type(error).__name__}: {error}")
    return {"kind": "done", "errors": errors}


@contextlib.contextmanager
def _reader(url: str) -> Iterator[None]:
    if not url.startswith("sqlite:"):
        yield
        return
    reader = sqlite3.connect(url.removeprefix("sqlite:"))
    reader.execute("BEGIN")
    before = reader.execute("SELECT count(*) FROM run").fetchone()
    yield
    assert reader.execute("SELECT count(*) FROM run").fetchone() == before, "it did not keep its snapshot"
    reader.close()


if __name__ == "__main__":
    main()
