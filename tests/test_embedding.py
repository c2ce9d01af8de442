"""A service on asyncio that carries out workflows: the one of the documentation, as a process, by HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "how-to" / "embed-in-a-service.md"


class Service:
    """The service of the page, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        text = PAGE.read_text(encoding="utf-8")
        for name, body in re.findall(r"^```\w+\n# (\S+\.(?:py|yaml))\n(.*?)^```", text, re.M | re.S):
            (folder / name).write_text(body, encoding="utf-8")
        self.process: subprocess.Popen[str] | None = None
        self.port = 0

    def start(self) -> None:
        line = [sys.executable, "-W", "error", "service.py", "greet.yaml", f"sqlite:{self.folder}/runs.db", "0"]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(ROOT)}
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                line, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split()[-1])

    def end(self, number: signal.Signals) -> tuple[int, str]:
        assert self.process is not None
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=60)
        return self.process.returncode, said

    def ask(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                found = json.load(error)
        return found

    def until(self, run_id: str, *wanted: str) -> dict[str, Any]:
        for _ in range(600):
            found = self.ask("GET", f"/runs/{run_id}")
            if found.get("status") in wanted:
                return found
            time.sleep(0.05)
        raise AssertionError(found)

    def begun(self, name: str, times: int = 1) -> None:
        """Wait until the step with this name was begun so often."""
        for _ in range(600):
            with contextlib.suppress(FileNotFoundError):
                if (self.folder / "begun.txt").read_text(encoding="utf-8").split().count(name) >= times:
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text(encoding="utf-8"))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    made.start()
    yield made
    assert made.process is not None
    if made.process.poll() is None:
        made.end(signal.SIGKILL)


def test_it_runs_what_is_asked_for_and_refuses_what_does_not_fit(service: Service) -> None:
    ids = [service.ask("POST", "/runs", name=f"n{number}")["run_id"] for number in range(6)]
    for number, run_id in enumerate(ids):
        assert service.until(run_id, "completed")["outputs"] == {"greeting": f"Hello, n{number}!"}
    refused = service.ask("POST", "/runs", nobody=1)
    assert refused["code"] == "TRM702"
    assert service.ask("GET", "/runs/no-such-run")["code"] == "TRM704"
    assert service.end(signal.SIGTERM) == (0, "stopped\n")


def test_a_run_is_cancelled_and_the_service_goes_on(service: Service) -> None:
    run_id = service.ask("POST", "/runs", name="long", seconds=60)["run_id"]
    service.begun("long")
    service.ask("DELETE", f"/runs/{run_id}")
    service.until(run_id, "cancelled")
    other = service.ask("POST", "/runs", name="next")["run_id"]
    service.until(other, "completed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_next_process_goes_on_with_what_was_under_way(number: signal.Signals, service: Service) -> None:
    run_id = service.ask("POST", "/runs", name="twice", seconds=1.0)["run_id"]
    service.begun("twice")
    status, said = service.end(number)
    assert (status, said) == ((0, "stopped\n") if number == signal.SIGTERM else (-9, ""))
    service.start()
    service.begun("twice", times=2)
    assert service.until(run_id, "completed")["outputs"] == {"greeting": "Hello, twice!"}
