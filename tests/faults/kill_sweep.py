"""Kill a run at its store's system calls, one by one, resume it, and count what was lost, done twice, or in doubt.

    python -m tests.faults.kill_sweep 'file:{folder}/runs'
    python -m tests.faults.kill_sweep 'sqlite:{folder}/runs.db' --stride 5
    python -m tests.faults.kill_sweep 'markdown:{folder}/runs' --again
    python -m tests.faults.kill_sweep postgres

`{folder}` is a fresh folder for each kill, `{name}` its name; `postgres` is a server started for the sweep, with a
schema for each. `--stride N` takes every Nth place, `--again` kills the resume as well, at each of its own places in
turn. strace does the killing: `signal=KILL` strikes before the call is made.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
TEN = Path(__file__).with_name("ten.yaml")

CALLS = ("write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "renameat2", "unlink", "unlinkat")
CALLS += ("ftruncate", "fallocate", "sendto", "sendmsg", "recvfrom")  # killed as it waits for a server's answer, too
UNSAFE = {"unsafe_two": "unsafe_two", "unsafe_four": "unsafe_four", "unsafe_ten": "unsafe_ten"}
UNSAFE["unsafe_inner"] = "six[then].unsafe_inner"
OUTPUTS = {"total": 42, "letters": "a1,b2"}
PATIENCE = 120


class Place(msgspec.Struct, frozen=True):
    """The nth time that a thread makes a call."""

    call: str
    nth: int

    def __str__(self) -> str:
        return f"{self.call} {self.nth}"


class Figures(msgspec.Struct):
    """What a sweep has counted; `wrong` says each thing that must not be."""

    places: int = 0
    killed: int = 0
    resumed: int = 0
    blocked: int = 0
    lost: int = 0
    twice: int = 0
    wrong: list[str] = []

    def __str__(self) -> str:
        figures = (
            f"{self.places} places, {self.killed} kills, {self.resumed} runs resumed, {self.blocked} of them blocked"
        )
        return f"{figures}; {self.lost} lost, {self.twice} done twice, {len(self.wrong)} wrong"


def unable() -> str | None:
    """Why nothing can be killed here; None when it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    probe = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=fsync:signal=KILL:when=1", "true"]
    found = subprocess.run(probe, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return None if found.returncode == 0 else f"strace may not trace here: {found.stderr.strip()[-200:]}"


class Case:
    """One run in a folder of its own."""

    def __init__(self, url: str, run_id: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tramai-kill-"))
        self.url = url.format(folder=self.folder, name=self.folder.name.replace("-", "_"))
        self.run_id = run_id
        self.effects, self.acks = self.folder / "effects", self.folder / "acks"
        self.effects.mkdir()
        self.acks.mkdir()

    def __enter__(self) -> Case:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)

    def carry(self, action: str, *tracing: str) -> int:
        """Run or resume, as a process of its own; its exit status, negative for a signal."""
        given = {"action": action, "url": self.url, "run_id": self.run_id, "folder": str(self.folder)}
        command = [*tracing, sys.executable, "-m", "tests.faults.kill_sweep", "--carry", json.dumps(given)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if ended.returncode not in (0, 1, 4, 5, -9, 137):
            raise AssertionError(f"{action} ended with {ended.returncode}: {ended.stderr[-2000:]}")
        return ended.returncode

    def kill(self, action: str, place: Place) -> bool:
        """Run or resume until that place; whether it was reached."""
        inject = f"inject={place.call}:signal=KILL:when={place.nth}"
        tracing = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={place.call}", "-e", inject)
        return self.carry(action, *tracing) in (-9, 137)

    def count(self, action: str) -> dict[str, int]:
        """How often the thread that makes a call most often makes it, call by call, in a whole run or resume."""
        log = self.folder / "strace"
        tracing = ("strace", "-f", "--seccomp-bpf", "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)}")
        self.carry(action, *tracing)
        found = Counter(re.findall(r"^(\d+) +(\w+)\(", log.read_text(errors="replace"), re.M))
        most: dict[str, int] = {}
        for (_, call), times in found.items():
            most[call] = max(most.get(call, 0), times)
        return most

    def done(self, name: str) -> int:
        """How often an effect happened."""
        return sum(path.name.startswith(f"{name}.") for path in self.effects.iterdir())

    def acknowledged(self) -> int:
        """The last revision that the run was told of; 0 for none."""
        return max((int(path.name) for path in self.acks.iterdir()), default=0)


def check(case: Case, figures: Figures, what: str) -> None:
    """Resume until the run is over, resolving as an operator would, and count what is not as it must be."""
    from tramai.errors import NotFound

    told = case.acknowledged()
    try:
        with _opened(case) as store:
            found = store.get(case.run_id).revision
    except NotFound:
        found = 0
    if found < told:
        figures.lost += 1
        figures.wrong.append(f"{what}: told of revision {told}, found {found}")
    if not found:
        return
    blocked = False
    for _ in range(6):
        ended = case.carry("resume")
        if ended == 0:
            break
        if ended != 5:
            figures.wrong.append(f"{what}: the resume ended with {ended}")
            return
        blocked = True
        resolve(case)
    figures.resumed += 1
    figures.blocked += blocked
    for name in UNSAFE:
        if case.done(name) != 1:
            figures.twice += case.done(name) > 1
            figures.lost += case.done(name) < 1
            figures.wrong.append(f"{what}: {name} was done {case.done(name)} times")
    keys = {path.name.split(".")[1] for path in case.effects.glob("keyed_eight.*")}
    if len(keys) != 1:
        figures.wrong.append(f"{what}: the idempotency key was {len(keys)} keys")
    audit(case, figures, what)


def audit(case: Case, figures: Figures, what: str) -> None:
    """What the store must say in the end."""
    from tramai.store import Mark, Status

    with _opened(case) as store:
        run, records = store.get(case.run_id), store.journal(case.run_id)
        shown = [one.run_id for one in store.page(limit=5)[0]]
        if store.faults() or case.run_id not in shown:
            figures.wrong.append(f"{what}: the store lists {shown} and the faults {store.faults()}")
    paths = [record.path for record in records if record.mark is Mark.COMPLETED]
    wanted = run.status is Status.COMPLETED and json.loads(run.outputs or "null") == OUTPUTS
    if not wanted or len(set(paths)) != len(paths):
        figures.wrong.append(f"{what}: ended as {run.status} with {run.outputs}, completed {paths}")


def resolve(case: Case) -> None:
    """Look at the world and say what happened."""
    from tramai import recovery
    from tramai.clock import SystemClock

    with _opened(case) as store:
        run = store.get(case.run_id)
        for record in recovery.unknown_attempts(store.journal(case.run_id)):
            happened = case.done(record.path.rsplit(".", 1)[-1]) > 0
            options: dict[str, Any] = {"as_": "completed", "output": ""} if happened else {"as_": "retry"}
            run = recovery.resolve(store, run, record.path, comment="looked", clock=SystemClock(), **options)


def places(counts: dict[str, int], *, stride: int = 1, sample: int | None = None) -> list[Place]:
    """Every place, every so many of them, or so many in all, spread over all calls."""
    everywhere = [Place(call, nth) for call in CALLS for nth in range(1, counts.get(call, 0) + 1)]
    if sample is None:
        return everywhere[:: max(1, stride)]
    step = len(everywhere) / sample
    return [everywhere[int(step * (number + 0.5))] for number in range(sample)]


def sweep(url: str, *, stride: int = 1, sample: int | None = None, again: bool = False) -> Figures:
    """Kill a run at its places and check each; with `again`, kill its resumes as well, at places further on in turn."""
    figures = Figures()
    with Case(url, "whole") as case:
        counts = case.count("run")
        if sample is None:
            check(case, figures, "undisturbed")
    figures.resumed = 0
    onward = itertools.cycle([Place(call, nth) for nth in (1, 3, 2, 5) for call in CALLS if counts.get(call, 0) >= nth])
    for number, place in enumerate(places(counts, stride=stride, sample=sample)):
        figures.places += 1
        with Case(url, f"run{number}") as case:
            if not case.kill("run", place):
                figures.wrong.append(f"{place}: it was not reached")
                continue
            figures.killed += 1
            if again and case.acknowledged():
                figures.killed += sum(case.kill("resume", next(onward)) for _ in range(4))
            check(case, figures, str(place))
    return figures


def _opened(case: Case) -> Any:
    from tramai.stores import open_store

    return contextlib.closing(open_store(case.url))


def carry(given: dict[str, str]) -> int:
    """In the process that is killed: run or resume; each acknowledged write leaves a folder named as its revision."""
    from tramai import engine, plan, workflow
    from tramai.errors import OutcomeUnknown, TramaiError
    from tramai.stores import open_store

    store = open_store(given["url"])
    folder = given["folder"]

    def told(revision: int) -> int:
        os.makedirs(f"{folder}/acks/{revision}", exist_ok=True)
        return revision

    commit, create = store.commit, store.create

    def made(*words: Any, **options: Any) -> Any:
        run, lease = create(*words, **options)
        told(run.revision)
        return run, lease

    store.commit = lambda *words: told(commit(*words))  # type: ignore[method-assign]
    store.create = made  # type: ignore[method-assign]
    options = engine.Options(run_id=given["run_id"], logs=f"{folder}/logs")
    try:
        if given["action"] == "run":
            ten = plan.of(workflow.load(str(TEN)))
            result = engine.run(ten, {"effects": f"{folder}/effects"}, store=store, options=options)
        else:
            result = engine.resume(given["run_id"], store=store, options=options)
    except OutcomeUnknown:
        return 5
    except TramaiError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return result.exit_status


@contextlib.contextmanager
def server_of(url: str) -> Iterator[str]:
    """The URL; that of a server which is started for it where it says only `postgres`."""
    if url != "postgres":
        yield url
        return
    from tests.postgres import new_server

    server = new_server()
    try:
        yield f"{server.url}?schema={{name}}"
    finally:
        server.remove()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Kill a run at its store's system calls and resume it.")
    parser.add_argument("url", nargs="?", help="the store, with {folder} or {name} for what is fresh")
    parser.add_argument("--stride", type=int, default=1, help="take every Nth place")
    parser.add_argument("--again", action="store_true", help="kill the resume as well")
    parser.add_argument("--carry", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.carry:
        return carry(json.loads(given.carry))
    reason = unable()
    if reason is not None or given.url is None:
        print(reason or "say which store, such as 'file:{folder}/runs'", file=sys.stderr)
        return 2
    with server_of(given.url) as url:
        figures = sweep(url, stride=given.stride, again=given.again)
    print(figures)
    for wrong in figures.wrong:
        print(f"  {wrong}")
    return 1 if figures.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
