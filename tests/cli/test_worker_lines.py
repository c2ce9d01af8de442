"""Runs that wait for their group under workers: they hold no slot, and keep their order. All with real processes."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cases.support import call, content, save, shown
from tests.cli.test_worker import LONG, Start, enqueued, lines, of, once, status
from tests.processes import eventually

WORKER = ("worker", "--json", "--poll", "100ms", "--concurrency", "2", "--lease", "3s")
ONE = "concurrency: {group: deploy}\ninputs: {n: {type: string}}"
HELD = "[ $N != 0 ] || while [ ! -e go ]; do sleep 0.05; done"
LOG = "replay: replayable, shell: {run: 'echo $N >> begun; %s; echo $N >> ended', env: {N: \"${{ inputs.n }}\"}}"


def deploys(*numbers: int) -> list[str]:
    """Runs of one group, in a queue."""
    return [enqueued("-i", f"n={number}", file="deploy.yaml") for number in numbers]


def begun(start: Start, body: str, top: str = ONE) -> tuple[str, subprocess.Popen[str]]:
    """A run that has the only place of its group, and the worker that carries it."""
    save(f"- {{id: it, {LOG % body}}}\n", top=top, name="deploy.yaml")
    (first,) = deploys(0)
    worker = start(*WORKER)
    assert eventually(lambda: content("begun").split() == ["0"], within=LONG)
    return first, worker


def others(count: int) -> list[str]:
    save("- {id: fine, shell: 'echo x >> fine'}\n")
    return [enqueued() for _ in range(count)]


def test_who_waits_for_its_group_holds_no_slot_and_keeps_its_place(start: Start) -> None:
    first, worker = begun(start, HELD)
    line, free = [first, *deploys(1, 2, 3, 4)], others(3)
    assert eventually(lambda: {status(run) for run in free} == {"completed"}, within=LONG)
    assert (content("begun").split(), content("ended")) == (["0"], "")
    assert eventually(lambda: all(shown(run)["queued"] for run in line[1:]), within=LONG)
    assert [shown(run)["owner"] for run in line[1:]] == [None] * 4
    Path("go").touch()
    assert eventually(lambda: status(line[-1]) == "completed", within=LONG)
    worker.send_signal(signal.SIGTERM)
    told = lines(worker)
    assert (content("begun").split(), content("ended").split()) == (list("01234"), list("01234"))
    assert {line["status"] for line in of(told, "finished")} == {"completed", "queued"}
    events = [[event["type"] for event in shown(run)["events"]] for run in line]
    assert [found.count("run.queued") for found in events] == [0, 1, 1, 1, 1]
    assert not any("run.sleeping" in found for found in events)


def test_a_worker_that_works_once_comes_to_the_end_of_a_line(start: Start) -> None:
    save(f"- {{id: it, {LOG % 'true'}}}\n", top=ONE, name="deploy.yaml")
    line = deploys(0, 1, 2, 3)
    once(start, "--concurrency", "1")
    assert [status(run) for run in line] == ["completed"] * 4
    assert content("ended").split() == list("0123")


def test_who_is_cancelled_in_line_leaves_it(start: Start) -> None:
    first, worker = begun(start, HELD)
    line = [first, *deploys(1, 2)]
    assert eventually(lambda: all(shown(run)["queued"] for run in line[1:]), within=LONG)
    assert call("cancel", line[1]).status == 0
    assert status(line[1]) == "cancelled"
    Path("go").touch()
    assert eventually(lambda: status(line[2]) == "completed", within=LONG)
    worker.send_signal(signal.SIGTERM)
    lines(worker)
    assert content("begun").split() == ["0", "2"]


def test_the_line_goes_on_when_its_head_is_killed_with_its_worker(start: Start) -> None:
    first, worker = begun(start, "[ -e go ] || sleep 60")
    line = [first, *deploys(1, 2)]
    assert eventually(lambda: all(shown(run)["queued"] for run in line[1:]), within=LONG)
    worker.kill()
    worker.communicate()
    Path("go").touch()
    began = time.monotonic()
    second = start(*WORKER)
    assert eventually(lambda: {status(run) for run in line} == {"completed"}, within=LONG)
    assert time.monotonic() - began < LONG
    second.send_signal(signal.SIGTERM)
    lines(second)
    assert content("ended").split() == list("012")


def test_a_run_by_hand_waits_for_those_who_stand_in_line(start: Start) -> None:
    _, worker = begun(start, HELD)
    (second,) = deploys(1)
    assert eventually(lambda: shown(second)["queued"], within=LONG)
    by_hand = start("run", "deploy.yaml", "-i", "n=9")
    assert not eventually(lambda: "9" in content("begun").split(), within=0.5)
    Path("go").touch()
    by_hand.communicate(timeout=LONG)
    worker.send_signal(signal.SIGTERM)
    lines(worker)
    assert content("ended").split() == ["0", "1", "9"]


@pytest.mark.parametrize("policy", ["skip", "fail"])
def test_who_does_not_wait_ends_at_once(start: Start, policy: str) -> None:
    top = ONE.replace("deploy}", f"deploy, on_conflict: {policy}}}")
    first, worker = begun(start, HELD, top)
    (second,) = deploys(1)
    assert eventually(lambda: status(second) == "cancelled", within=LONG)
    Path("go").touch()
    assert eventually(lambda: status(first) == "completed", within=LONG)
    worker.send_signal(signal.SIGTERM)
    lines(worker)


def test_who_takes_the_place_of_the_older_waits_for_its_end_without_a_slot(start: Start) -> None:
    top = ONE.replace("deploy}", "deploy, on_conflict: cancel_running}")
    first, worker = begun(start, "[ $N = 1 ] || sleep 60", top)
    (second,) = deploys(1)
    assert eventually(lambda: status(second) == "completed", within=LONG)
    assert status(first) == "cancelled"
    worker.send_signal(signal.SIGTERM)
    lines(worker)
