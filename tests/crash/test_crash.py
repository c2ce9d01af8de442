"""kill -9 at every commit boundary and in mid-step: nothing done runs again, nothing unsafe runs twice."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tramai import recovery
from tramai.clock import SystemClock
from tramai.store import Mark, Status
from tramai.stores.sqlite import Sqlite

ROOT = Path(__file__).parents[2]
TWELVE = Path(__file__).with_name("twelve.yaml")
UNSAFE = ("unsafe_one", "unsafe_inner", "unsafe_last")
PATHS = {"unsafe_one": "unsafe_one", "unsafe_inner": "route[then].unsafe_inner", "unsafe_last": "unsafe_last"}
OUTPUT = {"unsafe_one": "one", "unsafe_inner": "inner", "unsafe_last": "last"}


class Numbers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"numbers": list(range(50))}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Numbers)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


class Case:
    """One run in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        # Its own in every process that tests: a resume ends the children of its run wherever they are.
        self.run_id = uuid.uuid4().hex
        self.db = folder / "t.db"
        self.effects = folder / "effects"
        self.effects.touch()
        self.inputs = {"effects": str(self.effects), "url": url}

    def start(self, action: str, **more: Any) -> subprocess.CompletedProcess[str]:
        given = {
            "action": action,
            "db": str(self.db),
            "file": str(TWELVE),
            "inputs": self.inputs,
            "run_id": self.run_id,
            **more,
        }
        command = [sys.executable, "-m", "tests.crash.runner", json.dumps(given)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    def counts(self) -> Counter[str]:
        return Counter(line.split()[0] for line in self.effects.read_text().splitlines())

    def completed(self) -> set[str]:
        store = Sqlite(str(self.db))
        try:
            return {record.path for record in store.journal(self.run_id) if record.mark is Mark.COMPLETED}
        finally:
            store.close()

    def resolve(self) -> None:
        """Look at the world and say what happened, as an operator would."""
        store = Sqlite(str(self.db))
        try:
            run = store.get(self.run_id)
            assert run.status is Status.BLOCKED
            waiting = recovery.unknown_attempts(store.journal(self.run_id))
            assert len(waiting) == 1
            path = waiting[0].path
            name = path.rsplit(".", 1)[-1]
            assert name in UNSAFE
            happened = self.counts()[name] > 0
            as_ = "completed" if happened else "retry"
            recovery.resolve(
                store,
                run,
                path,
                as_=as_,
                output=OUTPUT[name] if happened else None,
                comment="looked",
                clock=SystemClock(),
            )
        finally:
            store.close()

    def finish(self) -> dict[str, Any]:
        """Resume until it is completed; resolve where an operator is needed."""
        for _ in range(4):
            ended = self.start("resume")
            if ended.returncode == 0:
                return json.loads(ended.stdout)
            assert ended.returncode == 5, ended.stderr
            self.resolve()
        raise AssertionError("the run never completed")


def expected() -> dict[str, Any]:
    fan = [{"item": n * 2, "plus": n * 2 + 1} for n in range(50)]
    return {
        "begin": 21,
        "one": "one",
        "total": sum(item["plus"] for item in fan),
        "fan": fan,
        "inner": "inner",
        "letters": "a1,b2,c3",
        "keyed": "keyed",
        "last": "last",
        "seen": 50,
    }


@pytest.fixture(scope="module")
def writes(tmp_path_factory: pytest.TempPathFactory, url: str) -> int:
    """How many commits an uninterrupted run makes; the batches of its fan-out make this vary a little."""
    case = Case(tmp_path_factory.mktemp("whole"), url)
    ended = case.start("run")
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["outputs"] == expected()
    return int(answer["writes"])


def kill_and_check(case: Case, at: int, after: bool) -> bool:
    """Kill at one boundary, resume, compare; False when the run ended before that boundary."""
    killed = case.start("run", at=at, after=after)
    if killed.returncode == 0:
        return False
    assert killed.returncode == -9, killed.stderr
    if at == 1 and not after:
        return True  # killed before the run existed: there is nothing to resume
    done, before = case.completed(), case.counts()
    answer = case.finish()
    assert answer["outputs"] == expected()
    counts = case.counts()
    for name in UNSAFE:
        assert counts[name] == 1, f"{name} ran {counts[name]} times"
    for n in range(50):
        path = f"fan[n{n}].item"
        if path in done:
            assert counts[path] == before[path] == 1, f"{path} was done and ran again"
    keys = {line.split()[1] for line in case.effects.read_text().splitlines() if line.startswith("keyed")}
    assert len(keys) == 1, "the idempotency key changed between attempts"
    return True


# What is stored after one commit is what is stored before the next: there is no need of both at each of them.
@pytest.mark.parametrize(("share", "after"), [(share, share % 2 == 1) for share in range(8)])
def test_a_run_killed_at_a_commit_resumes_to_the_same_outputs(
    share: int, after: bool, writes: int, tmp_path: Path, url: str
) -> None:
    at = 1 + share * max(writes - 1, 1) // 7
    kill_and_check(Case(tmp_path, url), at, after)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_killed_at_every_commit_resumes_to_the_same_outputs(
    after: bool, writes: int, tmp_path: Path, url: str
) -> None:
    killed = 0
    for at in range(1, writes + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        killed += kill_and_check(Case(folder, url), at, after)
    assert killed >= writes * 0.8
