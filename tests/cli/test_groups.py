"""Runs of one group as processes: how they wait, what they say, what a signal or a kill does to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import write

Start = Callable[..., "subprocess.Popen[str]"]
Finished = Callable[..., "subprocess.CompletedProcess[str]"]

HELD = """\
tramai: 1
name: held
concurrency: {group: deploy, on_conflict: POLICY}
steps:
  - id: hold
    timeout: 60s
    shell: 'echo $$ > started; while ! test -e go; do sleep 0.05; done'
finally:
  - id: tidy
    shell: echo tidied >> tidied
"""
LATE = """\
tramai: 1
name: late
concurrency: {group: deploy, on_conflict: POLICY}
steps:
  - id: work
    shell: echo worked >> worked
"""
MANY = """\
tramai: 1
name: many
inputs: {n: {type: integer}}
concurrency: {group: many, limit: 2}
steps:
  - id: first
    shell: &work
      run: python3 -c 'import time; print(time.monotonic(), end=" ")' >> "log-$N";
        python3 -c 'import time; print(time.monotonic())' >> "log-$N"
      env: {N: "${{ inputs.n }}"}
  - id: second
    shell: *work
"""


def until(done: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What it gives as soon as that is something."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        found = done()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it never came")


def holding(start: Start, policy: str = "queue") -> subprocess.Popen[str]:
    write("held.yaml", HELD.replace("POLICY", policy))
    process = start("run", "held.yaml")
    until(lambda: Path("started").exists() and Path("started").read_text())
    return process


def late(policy: str = "queue") -> str:
    write("late.yaml", LATE.replace("POLICY", policy))
    return "late.yaml"


def runs(finished: Finished) -> dict[str, dict[str, Any]]:
    return {run["workflow"]: run for run in json.loads(finished("list", "--json").stdout)["runs"]}


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_run_waits_says_for_whom_and_goes_on(start: Start, finished: Finished) -> None:
    holder = holding(start)
    waiting = start("run", late(), "--json")
    assert waiting.stdout is not None
    first, second = (json.loads(waiting.stdout.readline()) for _ in range(2))
    held = runs(finished)["held"]
    assert first["type"] == "run.started"
    assert (second["type"], second["group"], second["limit"]) == ("run.queued", "deploy", 1)
    assert [(one["run_id"], one["workflow"]) for one in second["before"]] == [(held["run_id"], "held")]
    found = runs(finished)["late"]
    assert (found["status"], found["group"], found["queued"]) == ("ready", {"name": "deploy", "limit": 1}, True)
    shown = finished("show", "@last:late").stdout
    assert "group     deploy, 1 at a time, waits for a place" in shown
    assert "tramai resume" not in shown
    status = json.loads(finished("status", "--json").stdout)
    assert ({run["workflow"] for run in status["running"]}, status["interrupted"]) == ({"held", "late"}, [])
    assert finished("resume", "@last:late").returncode == 5  # somebody stands in line with it
    Path("go").touch()
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, lines(out)[-1]["status"]) == (0, "completed"), err
    assert holder.wait(60) == 0
    assert Path("worked").read_text() == "worked\n"


def test_people_read_that_a_run_waits(start: Start) -> None:
    holding(start)
    waiting = start("run", late(), "--progress", "plain")
    assert waiting.stderr is not None
    said = waiting.stderr.readline(), waiting.stderr.readline()
    assert "waits in the group 'deploy', one at a time: before it run " in said[1]
    assert " of held (" in said[1]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_waiting_and_the_run_can_be_resumed(
    start: Start, finished: Finished, number: signal.Signals, status: int
) -> None:
    holding(start)
    waiting = start("run", late(), "--json", restore_signals=True)
    assert waiting.stdout is not None
    until(lambda: '"run.queued"' in waiting.stdout.readline())  # type: ignore[union-attr]
    waiting.send_signal(number)
    out, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, lines(out)[-1]["status"]) == (status, "interrupted"), err
    found = runs(finished)["late"]
    assert (found["status"], found["queued"]) == ("ready", False)
    assert not Path("worked").exists()
    Path("go").touch()
    assert finished("resume", "@last:late").returncode == 0
    assert Path("worked").read_text() == "worked\n"


def test_a_run_is_cancelled_where_it_stands_in_line(start: Start, finished: Finished) -> None:
    holding(start)
    waiting = start("run", late(), "--json")
    assert waiting.stdout is not None
    until(lambda: '"run.queued"' in waiting.stdout.readline())  # type: ignore[union-attr]
    assert finished("cancel", "@last:late").returncode == 0
    out, _ = waiting.communicate(timeout=30)
    assert (waiting.returncode, lines(out)[-1]["status"]) == (12, "cancelled")
    assert not Path("worked").exists()


def test_a_skipped_run_exits_with_12_and_says_why(start: Start, finished: Finished) -> None:
    holding(start)
    done = finished("run", late("skip"))
    assert done.returncode == 12
    assert "cancelled after" in done.stderr
    assert "skipped: the group 'deploy' has no place (1 at a time): before this run comes run " in done.stderr
    assert runs(finished)["late"]["status"] == "cancelled"


def test_a_run_that_fails_for_want_of_a_place_exits_with_5_and_names_the_holder(
    start: Start, finished: Finished
) -> None:
    holding(start)
    done = finished("run", late("fail"))
    assert done.returncode == 5
    held = runs(finished)["held"]["run_id"]
    assert "error[TRM450]: the group 'deploy' has no place (1 at a time)" in done.stderr
    assert f"run {held} of held" in done.stderr
    done = finished("run", "late.yaml", "--json")
    last = lines(done.stdout)[-1]
    assert (done.returncode, last["exit_status"], last["error"]["held_by"]) == (5, 5, [held])
    assert not Path("worked").exists()


def test_cancel_running_ends_the_older_run_whose_finally_runs(start: Start, finished: Finished) -> None:
    holder = holding(start)
    done = finished("run", late("cancel_running"))
    assert done.returncode == 0, done.stderr
    assert holder.wait(60) == 12
    assert (Path("tidied").read_text(), Path("worked").read_text()) == ("tidied\n", "worked\n")


def test_a_killed_holder_frees_its_place_at_once(start: Start, finished: Finished) -> None:
    holder = holding(start)
    waiting = start("run", late(), "--json")
    assert waiting.stdout is not None
    until(lambda: '"run.queued"' in waiting.stdout.readline())  # type: ignore[union-attr]
    began = time.monotonic()
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait(10)
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert time.monotonic() - began < 20  # a lease lasts 30 s
    Path("go").touch()
    assert finished("resume", "@last:held").returncode in (0, 5)  # its step was cut off; it is not in its own way


def test_eight_processes_get_through_two_at_a_time(start: Start) -> None:
    write("many.yaml", MANY)
    processes = [start("run", "many.yaml", "-i", f"n={n}", "-q") for n in range(8)]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    found = [Path(f"log-{n}").read_text().split() for n in range(8)]
    assert [len(times) for times in found] == [4] * 8
    stays = [(float(times[0]), float(times[-1])) for times in found]
    assert max(sum(came <= at <= went for came, went in stays) for at, _ in stays) <= 2


def test_a_plan_tells_the_group(finished: Finished) -> None:
    write("many.yaml", MANY.replace("group: many", 'group: "many-${{ inputs.n }}"'))
    planned = json.loads(finished("plan", "many.yaml", "-i", "n=3", "--json").stdout)
    assert planned["concurrency"] == {"group": "many-3", "limit": 2, "on_conflict": "queue"}
    assert (
        "runs of the group 'many-3': 2 at a time; one more waits" in finished("plan", "many.yaml", "-i", "n=3").stdout
    )


def test_a_name_that_no_group_can_have_is_a_bad_input(finished: Finished) -> None:
    write(
        "late.yaml",
        LATE.replace("group: deploy", 'group: "${{ inputs.host }}"')
        .replace("POLICY", "queue")
        .replace("steps:", "inputs: {host: {type: string}}\nsteps:"),
    )
    done = finished("run", "late.yaml", "-i", "host=")
    assert done.returncode == 2
    assert "error[TRM451]: the name of the group of this run is empty" in done.stderr
    assert runs(finished) == {}
