"""The error edge: a short text or one document, an exit status, never a traceback."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import HELLO, document, write
from tramai import errors
from tramai.cli import _errors
from tramai.cli._session import Session
from tramai.errors import Position, Problem, Related

Call = Callable[..., Result]
RUN = "0193a000-0000-7000-8000-0000k3f9q2mz"


def shown(capsys: pytest.CaptureFixture[str], error: Exception, *arguments: str) -> tuple[int, str, str]:
    """The exit status and both streams of a command that raises."""

    def fail(session: Session) -> int:
        raise error

    status = _errors.guarded(list(arguments), fail)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


SAMPLES: list[errors.TramaiError] = [
    errors.UsageError(what="no such command 'rnu'", hint="did you mean 'tramai run'?"),
    errors.InvalidInput(name="limit", what="must be an integer, not 'x'", hint="write digits only, such as 42"),
    errors.ConfigurationError(what="unknown key 'stor' in tramai.toml", hint="did you mean 'store'?"),
    errors.NotFound(kind="run", name="k3f9q2mz"),
    errors.SecretMissing(name="TOKEN", source="environment variable TOKEN", hint="set it: export TOKEN=…"),
    errors.LeaseHeld(run_id=RUN, owner="host:17", until="Tue 14:05:00"),
    errors.OutcomeUnknown(path="deploy", run_id=RUN),
    errors.NotInThatState(run_id=RUN, status="cancelled", what="it cannot be resumed"),
    errors.StoreUnavailable(what="'/x' cannot be written (Permission denied)"),
    errors.StoreTooNew(found=9, known=1),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_has_a_text_and_a_status(
    error: errors.TramaiError, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    status, out, err = shown(capsys, error)
    assert status == error.exit_status
    assert out == ""
    assert re.sub(r"\(ref [0-9a-f]{8}\)", "(ref 3fa9c2d1)", err) == snapshot


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_has_a_document(error: errors.TramaiError, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    status, out, err = shown(capsys, error, "show", "--json")
    found = json.loads(out)
    assert out.count("\n") == 1
    assert err == ""
    assert found["schema"] == "tramai.error/1"
    assert found["exit_status"] == status == error.exit_status
    assert found["error"]["code"] == error.code
    assert found["error"]["run_id"] == error.details.get("run_id")


def invalid(**fields: Any) -> errors.InvalidDefinition:
    text = "tramai: 1\nsteps:\n  - id: build\n    shel: ./build.sh\n"
    write("review.yaml", text)
    problem = Problem(
        code="TRM104",
        message="unknown key `shel` in step `build`",
        hint="did you mean `shell`?",
        position=Position("review.yaml", 4, 5, 4, 9),
        pointer=("steps", 0, "shel"),
        **fields,
    )
    return errors.InvalidDefinition((problem,), file="review.yaml")


def test_an_invalid_definition_shows_the_place(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    status, _, err = shown(capsys, invalid())
    assert status == 3
    assert err == snapshot


def test_two_places_are_shown_both(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    related = (Related(Position("review.yaml", 1, 1, 1, 7), "the first of the two"),)
    _, _, err = shown(capsys, invalid(related=related))
    assert err == snapshot


def test_the_document_of_an_invalid_definition_names_the_first_problem_and_lists_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import json

    _, out, _ = shown(capsys, invalid(), "run", "--json")
    found = json.loads(out)
    assert found["error"] == {
        "code": "TRM104",
        "message": "unknown key `shel` in step `build`",
        "hint": "did you mean `shell`?",
        "file": "review.yaml",
        "line": 4,
        "column": 5,
        "end_line": 4,
        "end_column": 9,
        "path": "/steps/0/shel",
        "run_id": None,
    }
    assert [problem["code"] for problem in found["problems"]] == ["TRM104"]


def test_more_than_twenty_problems_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    one = invalid().problems[0]
    _, _, err = shown(capsys, errors.InvalidDefinition((one,) * 23, file="review.yaml"))
    assert err.count("error[TRM104]") == 20
    assert "and 3 more" in err


def test_a_bug_is_short_and_has_an_owner_only_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status, out, err = shown(capsys, KeyError("boom"), "run", "x.yaml", "-i", "token=canary")
    assert status == 70
    assert "Traceback" not in out + err
    (report,) = tmp_path.glob("tramai-report-*.txt")
    assert stat.S_IMODE(os.stat(report).st_mode) == 0o600
    assert str(report) in err
    text = report.read_text()
    assert "KeyError: 'boom'" in text
    assert "run x.yaml -i token=…" in text
    assert "canary" not in text


def test_a_bug_inside_the_engine_has_a_report_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status, _, err = shown(capsys, errors.BugError(what="a step was lost"))
    assert status == 70
    assert "a step was lost" in err
    assert len(list(tmp_path.glob("tramai-report-*.txt"))) == 1


def test_debug_shows_what_the_report_holds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail(session: Session) -> int:
        session.flags["debug"] = True
        raise ValueError("boom")

    _errors.guarded(["run"], fail)
    assert "ValueError: boom" in capsys.readouterr().err


def test_ctrl_c_outside_a_run_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(session: Session) -> int:
        raise KeyboardInterrupt

    assert _errors.guarded([], fail) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["rnu"], ["run"], ["run", "--nope", "x"], ["list", "--limit", "x"], ["--nope"]])
def test_a_wrong_command_line_is_a_usage_error(tramai: Call, arguments: list[str]) -> None:
    result = tramai(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error[TRM701]: ")
    found = tramai(*arguments, "--json")
    assert document(found)["error"]["code"] == "TRM701"
    assert found.exit_code == 2


def test_an_error_message_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = shown(capsys, errors.UsageError(what="no such file: \x1b[2J\r::error::x"))
    assert "\x1b" not in err
    assert "\r" not in err


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("hello.yml", "did you mean hello.yaml?"),
        ("hello", "did you mean hello.yaml?"),
        ("flows/nigtly.yaml", "did you mean flows/nightly.yaml?"),
        ("nowhere/x.yaml", "there is no folder nowhere either"),
        ("zzzzzz.yaml", "tramai explain TRM703"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "plan", "digest"])
def test_a_file_that_is_not_there_names_the_one_that_is_meant(tramai: Call, verb: str, path: str, hint: str) -> None:
    os.mkdir("flows")
    write("hello.yaml", HELLO), write("flows/nightly.yaml", HELLO), write("hello.txt", "")
    result = tramai(verb, path)
    assert result.exit_code == 3
    assert f"no such file: {path}" in result.stderr
    assert hint in result.stderr
