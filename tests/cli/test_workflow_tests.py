"""`tramai test`: what it prints, and every exit status."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.ci_logs import commands
from tests.cli.conftest import HELLO, document, write
from tests.reports import junit

Call = Callable[..., Result]
PASSES = (
    "workflow: hello.yaml\ntests:\n  - {name: it greets, stubs: {greet: {output: A}}, expect: {outputs: {said: A}}}\n"
)
FAILS = (
    "workflow: hello.yaml\ntests:\n  - {name: it is wrong, stubs: {greet: {output: A}}, expect: {outputs: {said: B}}}\n"
)
INVALID = "workflow: hello.yaml\ntests:\n  - {name: it is odd, stub: {}}\n"


@pytest.fixture(autouse=True)
def hello() -> None:
    write("hello.yaml", HELLO)


def test_tests_that_pass_are_listed_and_counted(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES)
    result = tramai("test", "a.tramai-test.yaml")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "a.tramai-test.yaml"
    assert lines[1].startswith("  ✓ it greets  (")
    assert lines[2].startswith("1 test: 1 passed, 0 failed in ")
    assert not Path(".tramai").exists()


def test_a_test_that_fails_says_what_and_where(tramai: Call) -> None:
    write("a.tramai-test.yaml", FAILS)
    result = tramai("test", ".")
    assert result.exit_code == 1
    assert 'error[TRM771]: outputs.said is "A", expected "B"' in result.stdout
    assert "--> a.tramai-test.yaml:3:79" in result.stdout
    assert "1 test: 0 passed, 1 failed" in result.stdout


def test_all_files_are_checked_before_any_test_runs(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES.replace("stubs: {greet: {output: A}}", "allow: [shell]"))
    write("b.tramai-test.yaml", INVALID)
    result = tramai("test", ".", "missing.tramai-test.yaml")
    assert result.exit_code == 3
    assert "error[TRM104]: unknown key `stub`" in result.stdout
    assert "no such file: missing.tramai-test.yaml" in result.stdout
    assert "no test was run: 2 files of 3 cannot be used" in result.stdout
    assert "it greets" not in result.stdout


def test_where_no_test_is_there_is_nothing_to_do(tramai: Call) -> None:
    result = tramai("test", ".")
    assert result.exit_code == 2
    assert "no test files in ." in result.stderr
    write("a.tramai-test.yaml", PASSES)
    result = tramai("test", ".", "-k", "nothing")
    assert result.exit_code == 2
    assert "no test has nothing in its name or file" in result.stderr


def test_tests_are_chosen_by_a_part_of_their_name(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES)
    write("b.tramai-test.yaml", FAILS)
    assert tramai("test", ".", "-k", "GREETS").exit_code == 0
    assert tramai("test", ".", "-k", "b.tramai").exit_code == 1
    assert "2 tests: 1 passed, 1 failed" in tramai("test", ".", "-k", "greets", "-k", "wrong").stdout


def test_they_can_be_listed_without_being_run(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES.replace("stubs: {greet: {output: A}}", "allow: [shell]"))
    write("b.tramai-test.yaml", FAILS)
    result = tramai("test", ".", "--list")
    assert (result.exit_code, result.stdout) == (
        0,
        "./a.tramai-test.yaml::it greets\n./b.tramai-test.yaml::it is wrong\n".replace("./", ""),
    )
    assert document(tramai("test", ".", "--list", "-k", "wrong", "--json")) == {
        "schema": "tramai.test-list/1",
        "tests": [{"file": "b.tramai-test.yaml", "name": "it is wrong"}],
    }
    assert tramai("test", ".", "--list", "-k", "nothing").exit_code == 2
    write("b.tramai-test.yaml", INVALID)
    assert tramai("test", ".", "--list").exit_code == 3


def test_a_failed_test_is_an_annotation_at_what_it_expected(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    write("a.tramai-test.yaml", PASSES)
    write("b.tramai-test.yaml", FAILS)
    result = tramai("test", ".")
    ((_, where, text),) = commands(result.stderr)
    assert (where["file"], where["line"], where["title"]) == ("b.tramai-test.yaml", "3", "TRM771")
    assert text == 'outputs.said is "A", expected "B"'
    write("b.tramai-test.yaml", INVALID)
    assert [where["title"] for _, where, _ in commands(tramai("test", ".", "gone.tramai-test.yaml").stderr)] == [
        "TRM703",
        "TRM104",
    ]


def test_stubs_of_a_file_that_nothing_used_are_told_only_when_all_ran(tramai: Call) -> None:
    write(
        "a.tramai-test.yaml",
        "workflow: hello.yaml\nstubs: {greet: {output: A}}\ntests:\n"
        "  - {name: one, stubs: {greet: {output: B}}}\n  - {name: two, stubs: {greet: {output: B}}}\n",
    )
    result = tramai("test", ".")
    assert result.exit_code == 1
    assert "error[TRM774]: the stub `greet` was never used" in result.stdout
    assert "2 tests: 2 passed, 0 failed, 1 unused stub in" in result.stdout
    assert tramai("test", ".", "-k", "one").exit_code == 0


def test_steps_that_no_test_came_to_are_named(tramai: Call) -> None:
    write("hello.yaml", HELLO.replace("outputs:", "  - {id: after, local: 1}\n  - {id: last, local: 1}\noutputs:"))
    write(
        "a.tramai-test.yaml",
        "workflow: hello.yaml\ntests:\n"
        "  - {name: one, stubs: {greet: {error: {type: exit.1}}}, expect: {status: failed}}\n",
    )
    assert "not reached by any test of hello.yaml: after, last" in tramai("test", ".").stdout
    write("b.tramai-test.yaml", PASSES)
    assert "not reached" not in tramai("test", ".").stdout


def test_quiet_prints_failures_and_the_count(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES)
    assert len(tramai("test", ".", "-q").stdout.splitlines()) == 1
    write("a.tramai-test.yaml", FAILS)
    assert "it is wrong" in tramai("test", ".", "-q").stdout


def test_the_document_has_every_test_and_every_problem(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES)
    write("b.tramai-test.yaml", FAILS)
    result = tramai("test", ".", "--json")
    assert result.exit_code == 1
    found = document(result)
    assert (found["schema"], found["passed"], found["failed"]) == ("tramai.tests/1", 1, 1)
    first, second = found["files"]
    assert (first["file"], first["workflow"], first["missed"]) == ("a.tramai-test.yaml", "hello.yaml", [])
    assert first["tests"][0]["status"] == "passed"
    (problem,) = second["tests"][0]["problems"]
    assert (problem["code"], problem["line"], problem["path"]) == ("TRM771", 3, "/tests/0/expect/outputs/said")


def test_the_document_of_files_that_cannot_be_used_says_why(tramai: Call) -> None:
    write("a.tramai-test.yaml", INVALID)
    result = tramai("test", "a.tramai-test.yaml", "gone.tramai-test.yaml", "--json")
    assert result.exit_code == 3
    files = document(result)["files"]
    assert [file["problems"][0]["code"] for file in files] == ["TRM104", "TRM703"]
    assert [file["tests"] for file in files] == [[], []]


def test_a_junit_report_is_written(tramai: Call) -> None:
    write(
        "a.tramai-test.yaml", PASSES + "  - {name: 'a <odd> & \\x01 \"name\"', allow: [shell]}\n".replace("\\x01 ", "")
    )
    write("b.tramai-test.yaml", FAILS)
    assert tramai("test", ".", "--report", "junit=r.xml").exit_code == 1
    root = junit(Path("r.xml").read_text(encoding="utf-8"))
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
    }
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["it greets", 'a <odd> & "name"', "it is wrong"]
    (failure,) = root.iter("failure")
    assert failure.get("type") == "TRM771"
    write("b.tramai-test.yaml", INVALID)
    assert tramai("test", ".", "--report", "junit=r.xml").exit_code == 3
    assert ElementTree.parse("r.xml").getroot().get("errors") == "1"


@pytest.mark.parametrize(("report", "status"), [("xml=r", 2), ("junit", 2), ("junit=nowhere/r.xml", 3)])
def test_a_report_that_cannot_be_written_is_refused(tramai: Call, report: str, status: int) -> None:
    write("a.tramai-test.yaml", PASSES)
    assert tramai("test", ".", "--report", report).exit_code == status


def test_a_run_that_is_cut_off_everywhere_is_counted(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES.replace("expect:", "crash_everywhere: true, expect:"))
    result = tramai("test", ".")
    assert result.exit_code == 0
    assert ", 6 crashes)" in result.stdout


def test_the_endings_of_test_files_are_known_without_an_import() -> None:
    from tramai.cli import _paths
    from tramai.testing import suite

    assert _paths.TESTS == suite.ENDINGS


def test_test_files_are_validated_with_the_workflows(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES)
    assert tramai("validate", ".").stdout == "2 files checked, no problems\n"
    write("a.tramai-test.yaml", INVALID)
    result = tramai("validate", ".")
    assert result.exit_code == 1
    assert "error[TRM104]: unknown key `stub`" in result.stdout
    assert result.stdout.endswith("2 files checked: 1 error, 0 warnings\n")
    assert tramai("validate", "a.tramai-test.yaml", "--fix").exit_code == 1
    assert Path("a.tramai-test.yaml").read_text() == INVALID
    write("hello.yaml", HELLO.replace("shell:", "shel:"))
    problems = {file["file"]: file["problems"] for file in document(tramai("validate", ".", "--json"))["files"]}
    assert [problem["code"] for problem in problems["hello.yaml"]] == ["TRM104"]
    assert problems["a.tramai-test.yaml"][0]["line"] == 3


def test_fmt_leaves_test_files_alone(tramai: Call) -> None:
    write("a.tramai-test.yaml", PASSES)
    assert "a.tramai-test.yaml" not in tramai("fmt", "--check", ".").output
