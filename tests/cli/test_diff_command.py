"""`tramai diff`: a run against its file, a run against another run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from tests.cli.conftest import FAILS, HELLO, SLEEPS, document, write

Call = Callable[..., Result]


def test_a_run_whose_file_has_not_changed_is_the_same(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    tramai("run", "hello.yaml")
    write("hello.yaml", "# a comment changes nothing\n" + HELLO)
    result = tramai("diff", "@last")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "the same"


def test_changes_are_listed_with_what_has_begun_and_the_ways_on(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml")
    write("fails.yaml", FAILS.replace("${{ 1 }}", "${{ 2 }}") + "  - {id: after, local: 1}\n")
    result = tramai("diff", "@last")
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert "step `first`: `local.value` changed: ${{ 1 }} → ${{ 2 }} has begun" in text
    assert "step `after` was added" in text
    assert "--as-started" in text
    assert "so --accept-changes is refused" in text


def test_a_harmless_change_can_be_accepted(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml")
    write("fails.yaml", FAILS + "  - {id: after, local: 1}\n")
    result = tramai("diff", "@last", "--json")
    assert result.exit_code == 1
    found = document(result)
    assert found["resume"] == ["as_started", "accept_changes"]
    (change,) = found["changes"]
    assert (change["kind"], change["step"], change["ran"], change["blocking"]) == ("added", "after", False, False)
    assert "--accept-changes    goes on" in tramai("diff", "@last").stdout


def test_a_run_that_is_over_does_not_go_on(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    tramai("run", "hello.yaml")
    write("hello.yaml", HELLO.replace("world", "you"))
    result = tramai("diff", "@last")
    assert result.stdout.splitlines()[-1] == "the run is completed: it does not go on"
    assert document(tramai("diff", "@last", "--json"))["resume"] == []


def test_a_sleeping_run_whose_file_is_the_same_goes_on_as_it_is(tramai: Call) -> None:
    write("sleeps.yaml", SLEEPS)
    tramai("run", "sleeps.yaml")
    assert document(tramai("diff", "@last", "--json"))["resume"] == ["plain"]


def test_another_file_can_be_compared(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    tramai("run", "hello.yaml")
    write("other.yaml", HELLO)
    assert tramai("diff", "@last", "other.yaml").exit_code == 0
    Path("hello.yaml").unlink()
    result = tramai("diff", "@last")
    assert result.exit_code == 3
    assert "the workflow file of this run is gone: hello.yaml" in result.stderr


def test_two_runs_are_compared_by_what_went_in_and_what_came_out(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    tramai("run", "hello.yaml")
    tramai("run", "hello.yaml", "-i", "who=you")
    first, second = (run["run_id"] for run in document(tramai("list", "--json"))["runs"])
    result = tramai("diff", second, first)
    assert result.exit_code == 1
    assert "  input who: world → you" in result.stdout
    assert "  output said: hello world → hello you" in result.stdout
    assert "  output of step greet: hello world → hello you" in result.stdout
    found = document(tramai("diff", second, first, "--json"))
    assert [value["what"] for value in found["values"]] == ["input", "output", "output of step"]
    assert tramai("diff", first, first).exit_code == 0


def test_how_a_step_ended_in_two_runs_is_told(tramai: Call) -> None:
    write("w.yaml", "tramai: 1\nname: w\nsteps: [{id: a, shell: test -e ok}, {id: b, local: 1}]\n")
    tramai("run", "w.yaml")
    Path("ok").touch()
    tramai("run", "w.yaml")
    first, second = (run["run_id"] for run in document(tramai("list", "--json"))["runs"])
    text = tramai("diff", second, first).stdout
    assert "  step a: failed → succeeded" in text
    assert "  step b: null → succeeded" in text


def test_what_is_not_there_is_said(tramai: Call) -> None:
    assert tramai("diff", "nothing").exit_code == 4
    assert tramai("diff").exit_code == 2
    write("hello.yaml", HELLO)
    tramai("run", "hello.yaml")
    assert tramai("diff", "@last", "nothing").exit_code == 4
    assert tramai("diff", "@last", "gone.yaml").exit_code == 3
    write("invalid.yaml", "tramai: 1\nname: x\nsteps: []\n")
    assert tramai("diff", "@last", "invalid.yaml").exit_code == 3
