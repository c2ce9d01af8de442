"""kill -9, SIGSTOP and a second runner in the middle of a step, through the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

SLOW = """
tramai: 1
name: slow
env: {{FOLDER: "{folder}"}}
steps:
  - id: first
    shell: echo first >> "$FOLDER/effects"
  - id: slow
    shell:
      run: |
        echo slow >> "$FOLDER/effects"
        echo before the end
        echo $$ >> "$FOLDER/pids"
        {before}
        touch "$FOLDER/started"
        while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done
        echo done
      parse: lines
    {extra}
  - id: last
    shell: echo last >> "$FOLDER/effects"
outputs:
  slow: ${{{{ steps.slow.output }}}}
"""


class Run:
    """One workflow with a step that waits for a file, in a folder of its own."""

    def __init__(self, folder: Path, *, extra: str = "", before: str = "") -> None:
        self.folder = folder
        self.file = folder / "slow.yaml"
        self.file.write_text(SLOW.format(folder=folder, extra=extra, before=before or ":"))
        self.started: list[subprocess.Popen[str]] = []

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tramai", *arguments, "--store", f"sqlite:{self.folder / 't.db'}", "--json"]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(self.folder / "cache")}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def call(self, *arguments: str) -> tuple[int, list[Any]]:
        ended = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]

    def in_the_middle(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a runner and return while its slow step runs."""
        process = self.start(*arguments)
        wait_for(lambda: (self.folder / "started").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        return process

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    def effects(self) -> list[str]:
        return (self.folder / "effects").read_text().split()

    def pids(self) -> list[int]:
        return [int(line) for line in (self.folder / "pids").read_text().split()]

    def alive(self) -> list[int]:
        return [pid for pid in self.pids() if running(pid)]

    def run_id(self) -> str:
        return str(self.call("list")[1][0]["runs"][0]["run_id"])


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.02)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    made: list[Run] = []

    def new(**settings: str) -> Run:
        made.append(Run(tmp_path, **settings))
        return made[-1]

    yield new
    for run in made:
        (run.folder / "go").touch()
        for process in run.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.communicate()


def test_a_killed_shell_step_blocks_the_run_until_somebody_says_what_happened(make: Callable[..., Run]) -> None:
    run = make()
    run.kill(run.in_the_middle("run", "slow.yaml"))
    wait_for(lambda: not run.alive())
    (run.folder / "go").touch()
    status, lines = run.call("resume", "@last")
    assert status == 5
    assert lines[-1]["type"] == "run.finished"
    assert lines[-1]["status"] == "blocked"
    status, lines = run.call("resume", "@last")
    assert status == 5
    assert lines[0]["error"]["code"] == "TRM505"
    assert "slow --as retry" in lines[0]["error"]["hint"]
    assert run.effects() == ["first", "slow"]
    logs = [name for name in run.command("logs", "@last", "slow") if name != "--json"]
    shown = subprocess.run(logs, cwd=run.folder, env=run.environment(), capture_output=True, text=True, check=True)
    assert "before the end" in shown.stdout
    assert (
        run.call("resolve", "@last", "slow", "--as", "completed", "--output", '"by hand"', "--comment", "seen")[0] == 0
    )
    status, lines = run.call("resume", "@last")
    assert (status, lines[-1]["outputs"]) == (0, {"slow": "by hand"})
    assert run.effects() == ["first", "slow", "last"]


@pytest.mark.parametrize("policy", ["replayable", "idempotent"])
def test_a_killed_step_that_may_be_repeated_runs_again(make: Callable[..., Run], policy: str) -> None:
    run = make(extra=f"replay: {policy}")
    run.kill(run.in_the_middle("run", "slow.yaml"))
    (run.folder / "go").touch()
    status, lines = run.call("resume", "@last")
    assert (status, lines[-1]["outputs"]) == (0, {"slow": ["before the end", "done"]})
    assert run.effects() == ["first", "slow", "slow", "last"]
    replayed = [line["path"] for line in lines if line["type"] == "step.finished" and line["status"] == "replayed"]
    assert replayed == ["first"]


ASK = """verify:
      shell:
        run: grep -c '^{effect}$' "$FOLDER/effects" || true
        parse: json
      replay: replayable
      output:
        happened: ${{{{ result.value > 0 }}}}
        output: found by looking"""


def test_a_killed_step_that_is_found_to_have_happened_is_not_run_again(make: Callable[..., Run]) -> None:
    run = make(extra=ASK.format(effect="slow"))
    run.kill(run.in_the_middle("run", "slow.yaml"))
    wait_for(lambda: not run.alive())
    (run.folder / "go").touch()
    status, lines = run.call("resume", "@last")
    assert (status, lines[-1]["outputs"]) == (0, {"slow": "found by looking"})
    assert run.effects() == ["first", "slow", "last"]
    shown = run.call("show", "@last")[1][0]["run"]
    (step,) = [step for step in shown["steps"] if step["id"] == "slow"]
    assert step["status"] == "succeeded"
    assert [attempt["attempt"] for attempt in step["attempts"]] == [1]
    assert "step.verified" in [event["type"] for event in shown["events"]]


def test_a_killed_step_that_is_found_not_to_have_happened_runs_again(make: Callable[..., Run]) -> None:
    run = make(extra=ASK.format(effect="nothing of the kind"))
    run.kill(run.in_the_middle("run", "slow.yaml"))
    (run.folder / "go").touch()
    status, lines = run.call("resume", "@last")
    assert (status, lines[-1]["outputs"]) == (0, {"slow": ["before the end", "done"]})
    assert run.effects() == ["first", "slow", "slow", "last"]


def test_a_killed_step_that_nothing_is_found_out_about_blocks_the_run_until_it_is(make: Callable[..., Run]) -> None:
    look = (
        'verify: {shell: {run: cat "$FOLDER/answer", parse: json}, replay: replayable, output: "${{ result.value }}"}'
    )
    run = make(extra=look)
    run.kill(run.in_the_middle("run", "slow.yaml"))
    (run.folder / "go").touch()
    for _ in range(2):
        status, lines = run.call("resume", "@last")
        assert (status, lines[-1]["status"]) == (5, "blocked")
        assert "`verify` cannot tell: exit status 1" in lines[-1]["error"]["message"]
    (run.folder / "answer").write_text("true")
    status, lines = run.call("resume", "@last")
    assert (status, lines[-1]["outputs"]) == (0, {"slow": None})
    assert run.effects() == ["first", "slow", "last"]


def test_a_runner_that_is_killed_while_it_asks_leaves_the_question_open(make: Callable[..., Run]) -> None:
    look = (
        'verify: {shell: \'touch "$FOLDER/asking"; [ -e "$FOLDER/answered" ] || exec sleep 60\', '
        "replay: replayable, output: true}"
    )
    run = make(extra=look)
    run.kill(run.in_the_middle("run", "slow.yaml"))
    asking = run.start("resume", "@last")
    wait_for(lambda: (run.folder / "asking").exists())
    run.kill(asking)
    (run.folder / "answered").touch()
    status, lines = run.call("resume", "@last")
    assert (status, lines[-1]["outputs"]) == (0, {"slow": None})
    assert run.effects() == ["first", "slow", "last"]


def test_a_second_resume_names_the_owner_and_runs_nothing(make: Callable[..., Run]) -> None:
    run = make(extra="replay: replayable")
    run.kill(run.in_the_middle("run", "slow.yaml"))
    (run.folder / "started").unlink()
    first = run.in_the_middle("resume", "@last")
    status, lines = run.call("resume", "@last")
    assert status == 5
    assert lines[0]["error"]["code"] == "TRM502"
    assert str(first.pid) in lines[0]["error"]["message"]
    (run.folder / "go").touch()
    assert first.wait(30) == 0
    assert run.effects() == ["first", "slow", "slow", "last"]


def test_a_resume_ends_what_survived_before_it_repeats_anything(make: Callable[..., Run]) -> None:
    # A process in a session of its own outlives its parent's death signal; without the watchdog a resume is left.
    script = 'echo $$ >> "$FOLDER/pids"; trap "" TERM; exec sleep 300'
    hidden = f"setsid sh -c '{script}' > /dev/null 2>&1 < /dev/null &"
    run = make(extra="replay: replayable", before=hidden)
    runner = run.in_the_middle("run", "slow.yaml")
    wait_for(lambda: len(run.pids()) == 2)
    runner.send_signal(signal.SIGSTOP)  # or it would start another watchdog
    for pid in children(runner.pid):
        if pid not in run.pids():
            os.kill(pid, signal.SIGKILL)  # the watchdog
    run.kill(runner)
    wait_for(lambda: run.alive() == [run.pids()[-1]])
    survivor = run.alive()[0]
    (run.folder / "go").touch()
    assert run.call("resume", "@last")[0] == 0
    assert not running(survivor)


def test_a_runner_that_was_stopped_past_its_lease_writes_nothing_more(make: Callable[..., Run]) -> None:
    run = make()
    runner = run.in_the_middle("run", "slow.yaml", "--lease", "2s")
    os.kill(runner.pid, signal.SIGSTOP)
    lines: list[Any] = []
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        lines = run.call("resume", "@last")[1]
        if lines[-1].get("type") == "run.finished":
            break
        time.sleep(0.3)
    assert lines[-1]["status"] == "blocked"
    before = run.call("show", "@last")[1][0]["run"]
    os.kill(runner.pid, signal.SIGCONT)
    assert runner.wait(30) == 5
    assert not run.alive()
    assert run.call("show", "@last")[1][0]["run"] == before
    assert run.effects() == ["first", "slow"]


def test_a_run_can_be_cancelled_from_elsewhere(make: Callable[..., Run]) -> None:
    run = make()
    runner = run.in_the_middle("run", "slow.yaml")
    assert run.call("cancel", "@last", "--comment", "enough")[0] == 0
    assert runner.wait(30) == 12
    assert not run.alive()
    assert run.call("list")[1][0]["runs"][0]["status"] == "cancelled"
    assert run.call("resume", "@last")[0] == 5


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_the_run_and_ends_the_children(make: Callable[..., Run], number: int, status: int) -> None:
    run = make()
    runner = run.in_the_middle("run", "slow.yaml")
    runner.send_signal(number)
    assert runner.wait(30) == status
    assert not run.alive()
    (run.folder / "go").touch()
    assert run.call("resume", "@last")[0] == 0
    assert run.effects() == ["first", "slow", "slow", "last"]


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(entry.name))
            except (OSError, IndexError):
                continue
    return found


SECRET = """
tramai: 1
name: secret
secrets: {{TOKEN: {{env: TRAMAI_TEST_TOKEN}}}}
steps:
  - id: tell
    shell:
      run: |
        printf '%s\\\\n' "$TOKEN"; echo "$TOKEN" >&2
        exit {status}
      env: {{TOKEN: "${{{{ secrets.TOKEN }}}}"}}
"""


@pytest.mark.parametrize("status", [0, 3])
def test_a_secret_that_a_child_prints_is_nowhere(tmp_path: Path, status: int) -> None:
    value = 'S3cr3t-Val+/=ue "é"'
    run = Run(tmp_path)
    run.file.write_text(SECRET.format(status=status))
    environment = {**run.environment(), "TRAMAI_TEST_TOKEN": value}
    ended = subprocess.run(
        [*run.command("run", "slow.yaml"), "--debug"], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    plain = subprocess.run(
        [part for part in run.command("run", "slow.yaml") if part != "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, plain.returncode) == (bool(status), bool(status))
    shown = [ended.stdout, ended.stderr, plain.stdout, plain.stderr]
    shown += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for part in ("S3cr3t-Val+/=ue", "S3cr3t-Val+\\/=ue"):
        assert not any(part.encode() in text for text in shown)
    assert any(b"***" in text for text in shown)
