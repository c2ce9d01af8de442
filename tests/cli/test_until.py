"""`--until STEP`: the run stops, saved, once a step is done, and `resume` goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import document, write

Call = Callable[..., Result]
THREE = """\
tramai: 1
name: three
steps:
  - {id: first, shell: 'echo 1 >> log'}
  - id: fan
    KIND:
      items: [1, 2, 3]
      as: item
      do:
        - {id: each, shell: {run: 'echo "$N" >> each', env: {N: "${{ item }}"}}}
  - {id: maybe, when: "${{ 1 > 2 }}", shell: 'echo never >> log'}
  - {id: last, shell: 'echo 3 >> log'}
outputs: {done: true}
"""


@pytest.fixture(params=["foreach", "parallel"])
def three(request: pytest.FixtureRequest) -> str:
    """With an event loop and without one."""
    return write("three.yaml", THREE.replace("KIND", request.param))


def lines(name: str) -> list[str]:
    return Path(name).read_text(encoding="utf-8").split() if Path(name).exists() else []


def test_it_stops_behind_the_step_and_resume_goes_on(tramai: Call, three: str) -> None:
    result = tramai("run", three, "--until", "first", "--json")
    assert result.exit_code == 11
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert (events[-1]["status"], events[-1]["exit_status"]) == ("interrupted", 11)
    assert [event["path"] for event in events if event["type"] == "step.started"] == ["first"]
    assert lines("log") == ["1"]
    assert tramai("resume", "@last").exit_code == 0
    assert lines("log") == ["1", "3"]
    assert sorted(lines("each")) == ["1", "2", "3"]


def test_a_fan_out_is_done_when_all_of_it_is(tramai: Call, three: str) -> None:
    result = tramai("run", three, "--until", "fan")
    assert result.exit_code == 11
    assert "stopped behind fan, as --until says" in result.stderr
    assert "tramai resume" in result.stderr
    assert sorted(lines("each")) == ["1", "2", "3"]
    assert lines("log") == ["1"]
    assert tramai("resume", "@last").exit_code == 0
    assert sorted(lines("each")) == ["1", "2", "3"]


def test_a_skipped_step_is_done_and_a_resume_can_stop_as_well(tramai: Call, three: str) -> None:
    assert tramai("run", three, "--until", "first").exit_code == 11
    assert tramai("resume", "@last", "--until", "maybe", "--ok-if-suspended").exit_code == 0
    assert lines("log") == ["1"]
    assert tramai("resume", "@last", "--until", "last").exit_code == 0, "nothing stands behind it"
    assert lines("log") == ["1", "3"]


def test_a_rerun_can_stop_too(tramai: Call, three: str) -> None:
    assert tramai("run", three).exit_code == 0
    assert tramai("rerun", "@last", "--until", "first").exit_code == 11
    assert lines("log") == ["1", "3", "1"]
    assert tramai("rerun", "@last", "--from", "fan", "--until", "first").exit_code == 2


def test_a_step_that_fails_fails_the_run_and_one_that_is_caught_is_done(tramai: Call) -> None:
    write("fails.yaml", "tramai: 1\nname: f\nsteps:\n  - {id: a, shell: exit 4}\n  - {id: b, shell: echo}\n")
    assert tramai("run", "fails.yaml", "--until", "a").exit_code == 1
    caught = "tramai: 1\nname: c\nsteps:\n  - {id: a, shell: exit 4, catch: [{output: 1}]}\n  - {id: b, shell: echo}\n"
    assert tramai("run", write("caught.yaml", caught), "--until", "a").exit_code == 11


@pytest.mark.parametrize(
    ("step", "status", "says"),
    [
        ("each", 2, "--until fan stops when all of it is done"),
        ("frist", 4, "did you mean 'first'?"),
        ("qqqq", 4, "its steps: first, fan, maybe, last"),
        ("fan[0].each", 4, "its steps"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_happens(
    tramai: Call, three: str, step: str, status: int, says: str
) -> None:
    result = tramai("run", three, "--until", step)
    assert result.exit_code == status
    assert says in result.stderr
    assert document(tramai("run", three, "--until", step, "--json"))["exit_status"] == status
    assert not Path("log").exists()
    assert document(tramai("list", "--json"))["runs"] == []


def test_a_step_that_is_done_already_is_refused(tramai: Call, three: str) -> None:
    tramai("run", three, "--until", "fan")
    result = tramai("resume", "@last", "--until", "first")
    assert result.exit_code == 2
    assert "this run has done it already" in result.stderr
    assert lines("log") == ["1"]


def test_steps_of_finally_are_refused(tramai: Call) -> None:
    text = "tramai: 1\nname: f\nsteps:\n  - {id: a, shell: echo}\nfinally:\n  - {id: tidy, shell: echo}\n"
    assert tramai("run", write("f.yaml", text), "--until", "tidy").exit_code == 2


def test_a_run_that_nobody_carries_here_cannot_be_stopped_here(tramai: Call, three: str) -> None:
    for flag in (("--until", "first"), ("--report", "md=run.md")):
        result = tramai("run", three, "--detach", *flag)
        assert result.exit_code == 2
        assert "do not go with --detach" in result.stderr
    assert document(tramai("list", "--json"))["runs"] == []
