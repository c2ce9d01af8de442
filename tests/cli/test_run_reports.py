"""`--report KIND=FILE` of the verbs that carry a run out."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, GATE, HELLO, SLEEPS, document, write
from tests.cli.test_documents import meets

Call = Callable[..., Result]
ALL = ("--report", "junit=r.xml", "--report", "json=r.json", "--report", "md=r.md")


def suite() -> ET.Element:
    """The only suite of the report; its counts are those of its cases."""
    root = ET.parse("r.xml").getroot()
    (found,) = root
    cases = found.findall("testcase")
    for element in (root, found):
        assert int(element.attrib["tests"]) == len(cases)
        assert int(element.attrib["failures"]) == len(found.findall("testcase/failure"))
        assert int(element.attrib["skipped"]) == len(found.findall("testcase/skipped"))
    return found


def test_all_reports_of_a_failed_run_are_written_and_its_exit_status_stays(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    assert tramai("run", "fails.yaml", *ALL).exit_code == 1
    failure = suite().find("testcase[@name='build']/failure")
    assert failure is not None
    assert (failure.attrib["type"], failure.attrib["message"]) == ("exit.3", "exit status 3")
    assert "no such file" in (failure.text or "")
    whole = json.loads(Path("r.json").read_text(encoding="utf-8"))
    meets(whole, "export")
    assert whole["run"]["status"] == "failed"
    assert Path("r.md").read_text(encoding="utf-8") == tramai("export", "@last").stdout


@pytest.mark.parametrize("verb", ["resume", "rerun"])
def test_the_other_verbs_write_them_too(tramai: Call, verb: str) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml")
    assert tramai(verb, "@last", "--report", "junit=r.xml").exit_code == 1
    assert suite().attrib["id"] == document(tramai("show", "@last", "--json"))["run"]["run_id"]


def test_skipped_steps_and_a_gate_are_cases_and_a_caught_failure_has_passed(tramai: Call) -> None:
    text = HELLO.replace(
        "outputs:",
        "  - {id: no, when: '${{ 1 > 2 }}', local: 1}\n  - {id: c, shell: exit 1, catch: [{output: 1}]}\noutputs:",
    )
    assert tramai("run", write("h.yaml", text), "--report", "junit=r.xml").exit_code == 0
    assert suite().attrib | {"failures": "0", "skipped": "1"} == suite().attrib
    assert tramai("run", write("gate.yaml", GATE), "--report", "junit=r.xml").exit_code == 10
    failure = suite().find("testcase/failure")
    assert failure is not None
    assert failure.attrib["type"] == "rejected"


def test_a_run_that_fails_beside_its_steps_has_a_failure(tramai: Call) -> None:
    text = HELLO.replace("${{ steps.greet.output }}", "${{ steps.greet.output | int }}")
    assert tramai("run", write("h.yaml", text), "--report", "junit=r.xml").exit_code == 1
    case = suite().find("testcase[@name='the run']/failure")
    assert case is not None
    assert "outputs" in case.attrib["message"]


def test_a_suspended_run_has_a_report_and_so_has_one_that_is_over_already(tramai: Call) -> None:
    assert tramai("run", write("sleeps.yaml", SLEEPS), "--report", "junit=r.xml").exit_code == 11
    assert [case.find("skipped") is not None for case in suite().findall("testcase")] == [True]
    tramai("run", write("hello.yaml", HELLO))
    assert tramai("resume", "@last:hello", "--report", "md=r.md").exit_code == 0
    assert ": completed" in Path("r.md").read_text(encoding="utf-8")


def test_who_decides_and_goes_on_can_have_a_report(tramai: Call) -> None:
    asks = write("asks.yaml", "tramai: 1\nname: asks\nsteps: [{id: ok, gate: {ask: Go on?}}]\n")
    for word, status, failures in (("approve", 0, "0"), ("reject", 10, "1")):
        assert tramai("run", asks).exit_code == 11
        assert tramai(word, "@last", "--as", "ann", "--resume", "--report", "junit=r.xml").exit_code == status
        assert suite().attrib["failures"] == failures
        os.unlink("r.xml")


def test_a_report_that_cannot_be_written_keeps_a_decision_from_being_stored(tramai: Call) -> None:
    tramai("run", write("asks.yaml", "tramai: 1\nname: asks\nsteps: [{id: ok, gate: {ask: Go on?}}]\n"))
    for more, says in (
        (("--resume", "--report", "md=missing/r.md"), "there is no folder missing"),
        (("--report", "md=r.md"), "--report goes with --resume"),
    ):
        refused = tramai("approve", "@last", "--as", "ann", *more)
        assert (refused.exit_code, says in refused.stderr) == (2, True)
    assert document(tramai("show", "@last", "--json"))["run"]["status"] == "waiting"
    assert tramai("approve", "@last", "--as", "ann").exit_code == 0


def test_what_a_child_wrote_is_no_markup_in_it(tramai: Call) -> None:
    write("evil.yaml", HELLO.replace('echo "hello $WHO"', 'printf "%s" "$WHO" >&2; exit 3'))
    evil = "]]></failure><x> \x1b[31m & ##vso[task]"
    assert tramai("run", "evil.yaml", "-i", f"who={evil}", "--report", "junit=r.xml").exit_code == 1
    failure = suite().find("testcase/failure")
    assert failure is not None
    assert "]]></failure><x> " in (failure.text or "")
    assert "\x1b" not in Path("r.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("xml=r",), "'xml=r' is no report"),
        (("junit",), "'junit' is no report"),
        (("junit=",), "'junit=' is no report"),
        (("md=missing/r.md",), "there is no folder missing"),
        (("md=.",), "it is a folder"),
        (("md=r", "json=./r"), "two reports cannot go to one file"),
    ],
)
def test_a_report_that_cannot_be_is_refused_before_anything_happens(
    tramai: Call, given: tuple[str, ...], says: str
) -> None:
    write("hello.yaml", HELLO)
    result = tramai("run", "hello.yaml", *(word for one in given for word in ("--report", one)))
    assert result.exit_code == 2
    assert says in result.stderr
    assert document(tramai("list", "--json"))["runs"] == []


def test_a_report_that_cannot_be_written_any_more_is_a_warning(tramai: Call) -> None:
    os.mkdir("gone")
    write("hello.yaml", HELLO.replace('echo "hello $WHO"', "rm -r gone"))
    result = tramai("run", "hello.yaml", "--report", "md=gone/r.md")
    assert result.exit_code == 0
    assert "warning: the report is not written: cannot write gone/r.md" in result.stderr
