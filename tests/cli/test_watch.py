"""`tramai watch`: a run of another process, followed from the store until it is over."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import FAILS, GATE, HELLO, SLEEPS, document, write
from tests.cli.test_documents import meets
from tests.cli.test_people import ASKS, SIMPLE, steady

Call = Callable[..., Result]
SEVERAL = """\
tramai: 1
name: several
steps:
  - id: fan
    parallel:
      items: [1, 2]
      on_error: collect
      do: [{id: work, shell: "exit $N", retry: {max_attempts: 2, delay: 1ms}}]
  - id: no
    when: ${{ false }}
    local: 1
  - id: choose
    branch: {if: "${{ true }}", then: [{id: yes_, local: 1}], else: []}
"""


def events(result: Any) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in result.stdout.splitlines()]
    for event in found:
        meets(event, "events")
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    return found


@pytest.mark.parametrize(("text", "status"), [(HELLO, 0), (FAILS, 1), (GATE, 10)])
def test_a_run_that_is_over_is_told_and_its_exit_status_is_that_of_the_run(
    tramai: Call, snapshot: SnapshotAssertion, text: str, status: int
) -> None:
    write("w.yaml", text)
    ran = tramai("run", "w.yaml")
    result = tramai("watch", "@last")
    assert (ran.exit_code, result.exit_code) == (status, status)
    assert result.stdout == ran.stdout
    assert steady(result.stderr) == snapshot


def test_a_cancelled_run_is_12(tramai: Call) -> None:
    write("w.yaml", SLEEPS)
    tramai("run", "w.yaml")
    tramai("cancel", "@last")
    assert tramai("watch", "@last").exit_code == 12


def test_the_events_are_those_that_the_runner_told(tramai: Call) -> None:
    write("w.yaml", SEVERAL.replace("exit $N", "exit 3"))
    told = events(tramai("run", "w.yaml", "--json"))
    seen = events(tramai("watch", "@last", "--json"))

    def of(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        kept = [event for event in found if event["type"] == "step.finished"]
        return sorted((event["path"], event["attempt"], event["status"]) for event in kept)

    assert of(seen) == of(told)
    assert (seen[0]["type"], seen[-1]["type"], seen[-1]["status"]) == ("run.started", "run.finished", "completed")
    begun = {(event["path"], event["attempt"]) for event in seen if event["type"] == "step.started"}
    ended = {(event["path"], event["attempt"]) for event in seen if event["type"] == "step.finished"}
    assert begun == {one for one in ended if one[1]}, "a skipped step never begins"


def test_a_time_limit_is_11_and_the_run_goes_on(tramai: Call) -> None:
    write("w.yaml", SLEEPS)
    tramai("run", "w.yaml")
    result = tramai("watch", "@last", "--timeout", "50ms")
    assert result.exit_code == 11
    assert result.stderr.endswith("still sleeping; the run goes on without being watched\n")
    assert document(tramai("show", "@last", "--json"))["run"]["status"] == "sleeping"
    assert tramai("watch", "@last", "--timeout", "soon").exit_code == 2
    assert tramai("watch", "@last", "--timeout", "10ms", "--json").exit_code == 11


def test_a_run_is_watched_through_its_wait_to_its_end(tramai: Call, start: Callable[..., Any]) -> None:
    write("w.yaml", SIMPLE)
    tramai("run", "w.yaml")
    watcher = start("watch", "@last", "--json")
    assert json.loads(watcher.stdout.readline())["type"] == "run.started"
    asked = [json.loads(watcher.stdout.readline()) for _ in range(2)]
    assert [event["type"] for event in asked] == ["step.started", "gate.asked"]
    assert tramai("approve", "@last", "--as", "ann", "--resume").exit_code == 0
    out, _ = watcher.communicate(timeout=60)
    found = [json.loads(line) for line in out.splitlines()]
    assert [event["type"] for event in found] == ["gate.decided", "step.finished", "run.finished"]
    assert (watcher.returncode, found[-1]["outputs"]) == (0, {"by": "ann"})


def test_people_see_what_it_waits_for_and_what_to_type(tramai: Call) -> None:
    write("w.yaml", ASKS)
    tramai("run", "w.yaml")
    result = tramai("watch", "@last", "--timeout", "20ms")
    assert "Release it to production?" in result.stderr
    assert "waiting for a decision: tramai status, tramai approve " in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_watching_and_not_the_run(tramai: Call, start: Callable[..., Any], number: int) -> None:
    write("w.yaml", SLEEPS)
    tramai("run", "w.yaml")
    watcher = start("watch", "@last", "--json")
    watcher.stdout.readline()
    watcher.send_signal(number)
    watcher.communicate(timeout=60)
    assert watcher.returncode == 128 + number
    assert document(tramai("show", "@last", "--json"))["run"]["status"] == "sleeping"
