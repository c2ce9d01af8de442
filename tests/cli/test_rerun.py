"""`tramai rerun`: a new run of an earlier one's inputs, what `list` and `show` say of it, and every exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.conftest import GATE, HELLO, SLEEPS, document, write
from tests.cli.test_exit_codes import blocked_run

Call = Callable[..., Result]

TWO = """\
tramai: 1
name: two
inputs:
  who: {type: string, default: world}
steps:
  - id: first
    shell: {run: 'echo "$WHO" >> first.txt; cat first.txt | wc -l', env: {WHO: "${{ inputs.who }}"}, parse: text}
  - id: second
    shell: 'echo x >> second.txt; test -e works'
outputs:
  first: ${{ steps.first.output }}
"""


@pytest.fixture
def two(tramai: Call) -> str:
    """A run whose second step has failed; its id."""
    tramai("run", write("two.yaml", TWO), "-i", "who=you", "-q")
    return str(document(tramai("list", "--json"))["runs"][0]["run_id"])


def lines(name: str) -> int:
    return len(Path(name).read_text().splitlines())


def events(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def newest(tramai: Call) -> dict[str, Any]:
    found = document(tramai("show", "@last", "--json"))["run"]
    assert isinstance(found, dict)
    return found


def test_a_rerun_is_a_new_run_with_the_inputs_of_the_old_one(tramai: Call, two: str) -> None:
    Path("works").touch()
    result = tramai("rerun", two)
    assert result.exit_code == 0, result.output
    assert "first:" in result.stdout
    assert (lines("first.txt"), lines("second.txt")) == (2, 2)
    found = newest(tramai)
    assert found["run_id"] != two
    assert (found["inputs"], found["rerun_of"], found["status"]) == ({"who": "you"}, two, "completed")
    assert document(tramai("show", two, "--json"))["run"]["status"] == "failed"


def test_list_and_show_say_of_what_it_is_a_rerun(tramai: Call, two: str) -> None:
    tramai("rerun", two)
    assert f"(rerun of {two[-8:]})" in tramai("list").stdout.splitlines()[0]
    assert two[-8:] in next(line for line in tramai("show", "@last").stdout.splitlines() if "rerun of" in line)
    runs = document(tramai("list", "--json"))["runs"]
    assert [run["rerun_of"] for run in runs] == [two, None]


def test_from_a_step_nothing_before_it_runs_again(tramai: Call, two: str) -> None:
    Path("works").touch()
    result = tramai("rerun", two, "--from", "second", "--json", "--label", "again")
    assert result.exit_code == 0
    found = events(result)
    assert (found[0]["type"], found[0]["resumed"]) == ("run.started", False)
    ended = {event["path"]: event["status"] for event in found if event["type"] == "step.finished"}
    assert ended == {"first": "replayed", "second": "succeeded"}
    assert (lines("first.txt"), lines("second.txt")) == (1, 2)
    assert newest(tramai)["labels"] == ["again"]
    assert newest(tramai)["events"][0]["data"] == {"from": "second", "records": 2, "run_id": two}


def test_it_can_be_started_from_any_folder(tramai: Call, two: str) -> None:
    Path("works").touch()
    url = f"sqlite:{os.getcwd()}/.tramai/tramai.db"
    Path("elsewhere").mkdir()
    assert tramai("rerun", two, "-C", "elsewhere", "--store", url).exit_code == 0
    assert lines("first.txt") == 2


# Exit statuses, one after another.


def test_a_step_that_fails_is_1(tramai: Call, two: str) -> None:
    assert tramai("rerun", two).exit_code == 1


def test_a_wrong_command_line_is_2(tramai: Call, two: str) -> None:
    for arguments in ((), (two, "--as-started", "--file", "two.yaml"), (two, "--lease", "0s"), (two, "x")):
        assert tramai("rerun", *arguments).exit_code == 2


def test_inputs_that_the_changed_file_does_not_take_are_2(tramai: Call, two: str) -> None:
    write("two.yaml", TWO.replace("who: {", "whom: {").replace("inputs.who", "inputs.whom"))
    result = tramai("rerun", two, "--file", "two.yaml")
    assert result.exit_code == 2
    assert "TRM702" in result.stderr


def test_a_file_that_is_gone_is_3_and_the_ways_on_are_said(tramai: Call, two: str) -> None:
    os.rename("two.yaml", "moved.yaml")
    result = tramai("rerun", two)
    assert result.exit_code == 3
    assert f"tramai rerun {two[-8:]} --file FILE" in result.stderr
    assert f"tramai rerun {two[-8:]} --as-started" in result.stderr
    assert tramai("rerun", two, "--file", "moved.yaml").exit_code == 1
    assert tramai("rerun", two, "--as-started").exit_code == 1


def test_no_such_run_or_step_is_4(tramai: Call, two: str) -> None:
    assert tramai("rerun", "k3f9q2mz").exit_code == 4
    result = tramai("rerun", two, "--from", "secnd")
    assert result.exit_code == 4
    assert "did you mean second?" in result.stderr
    assert len(document(tramai("list", "--json"))["runs"]) == 1


def test_a_changed_file_is_5_and_the_ways_on_are_said(tramai: Call, two: str) -> None:
    write("two.yaml", TWO.replace("test -e works", "true"))
    result = tramai("rerun", two)
    assert result.exit_code == 5
    assert "step `second`: `shell.run` changed" in result.stderr
    assert f"tramai rerun {two[-8:]} --file FILE" in result.stderr
    assert "--accept-changes" not in result.stderr
    assert tramai("rerun", two, "--as-started").exit_code == 1
    assert tramai("rerun", two, "--file", "two.yaml", "--from", "second").exit_code == 0
    assert lines("first.txt") == 2


def test_a_change_of_what_would_be_taken_over_is_5(tramai: Call, two: str) -> None:
    write("two.yaml", TWO.replace("wc -l", "wc -c"))
    result = tramai("rerun", two, "--file", "two.yaml", "--from", "second")
    assert result.exit_code == 5
    assert "reach back to results that would be taken over" in result.stderr


def test_a_step_before_that_has_not_ended_is_5(tramai: Call) -> None:
    run_id = blocked_run()
    write("owned.yaml", HELLO.replace("outputs:", "  - {id: later, local: 1}\noutputs:"))
    assert tramai("rerun", run_id, "--file", "owned.yaml", "--from", "later").exit_code == 5


def test_a_missing_secret_is_6_and_nothing_starts(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_RERUN", "abcdef")
    tramai("run", write("secret.yaml", HELLO.replace("steps:", "secrets: {T: {env: TOKEN_OF_RERUN}}\nsteps:")))
    monkeypatch.delenv("TOKEN_OF_RERUN")
    assert tramai("rerun", "@last").exit_code == 6
    assert len(document(tramai("list", "--json"))["runs"]) == 1


def test_a_store_that_is_no_store_is_7(tramai: Call) -> None:
    write("broken.db", "this is no database, whatever its name says\n" * 40)
    assert tramai("rerun", "x", "--store", "sqlite:broken.db").exit_code == 7


def test_a_rejected_gate_is_10(tramai: Call) -> None:
    tramai("run", write("gate.yaml", GATE))
    assert tramai("rerun", "@last").exit_code == 10


def test_a_suspended_run_is_11_and_0_when_that_is_fine(tramai: Call) -> None:
    tramai("run", write("sleeps.yaml", SLEEPS))
    assert tramai("rerun", "@last").exit_code == 11
    assert tramai("rerun", "@last", "--ok-if-suspended").exit_code == 0


def test_a_start_key_reruns_once(tramai: Call, two: str) -> None:
    Path("works").touch()
    for _ in range(2):
        assert tramai("rerun", two, "--start-key", "k").exit_code == 0
    assert len(document(tramai("list", "--json"))["runs"]) == 2
