"""`validate` for machines: GitHub annotations, SARIF, JUnit; and reports that go to a file."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result

from tests.ci_logs import azure_commands
from tests.cli.conftest import HELLO, ROOT, document, write
from tests.reports import junit

Call = Callable[..., Result]

WRONG = """\
tramai: 1
name: wrong
steps:
  - id: one
    shel: make
  - id: two
    local: 1
  - id: two
    local: {value: [010]}
"""
WARNS = """\
tramai: 1
name: warns
steps:
  - id: one
    local: {value: [1.10]}
"""


@pytest.fixture
def wrong() -> str:
    return write("wrong.yaml", WRONG)


# GitHub


def test_a_problem_is_an_annotation_with_its_place_code_and_hint(tramai: Call, wrong: str) -> None:
    result = tramai("validate", wrong, "--format", "github")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == (
        "::error file=wrong.yaml,line=5,col=5,endLine=5,title=TRM104::"
        "unknown key `shel` in step `one`%0Adid you mean `shell`?"
    )
    assert "3 errors" in result.stderr


def test_the_other_place_of_a_problem_is_in_the_text_of_its_annotation(tramai: Call, wrong: str) -> None:
    write("twice.yaml", "tramai: 1\nname: x\nname: y\nsteps: [{id: a, local: 1}]\n")
    lines = tramai("validate", "twice.yaml", "--format", "github").stdout.splitlines()
    assert lines == [
        "::error file=twice.yaml,line=3,col=1,endLine=3,title=TRM103::duplicate key `name`%0Akeep one of the two"
        "%0Atwice.yaml:2:1: `name` is first written here"
    ]


def test_warnings_are_warnings_and_come_after_errors(tramai: Call, wrong: str) -> None:
    write("a_warns.yaml", WARNS)
    lines = tramai("validate", "a_warns.yaml", wrong, "--format", "github").stdout.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error"] * 3 + ["::warning"]


def test_nothing_in_a_file_or_its_name_is_a_command(tramai: Call) -> None:
    name = "a,b:c%\n::set-output name=x::y.yaml"
    write(name, 'tramai: 1\nname: x\nsteps:\n  - id: one\n    "::error::x\\r\\n::warning::y\\e[1m%": 1\n    local: 1\n')
    result = tramai("validate", name, "--format", "github")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("::error file=a%2Cb%3Ac%25%0A%3A%3Aset-output name=x%3A%3Ay.yaml,line=5,")
    assert "%0D%0A::warning" in lines[0]
    assert "\x1b" not in result.stdout


def test_paths_are_those_of_the_repository(tramai: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(place))
    (place / "flows").mkdir()
    write("flows/w.yaml", WRONG)
    result = tramai("-C", "flows", "validate", "w.yaml", "--format", "github")
    assert "file=flows/w.yaml," in result.stdout


def test_more_annotations_than_github_shows_are_counted(tramai: Call) -> None:
    write(
        "many.yaml",
        "tramai: 1\nname: x\nsteps:\n" + "".join(f"  - {{id: s{n}, local: 1, z{n}: 1}}\n" for n in range(11)),
    )
    lines = tramai("validate", "many.yaml", "--format", "github").stdout.splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 11
    assert lines[-1].startswith("11 errors;")


# SARIF

with (ROOT / "tests/data/sarif-2.1.0-rtm.5.json").open(encoding="utf-8") as schema:
    SARIF = jsonschema.Draft4Validator(json.load(schema))


def regions(found: Any) -> Iterator[dict[str, int]]:
    if isinstance(found, dict):
        for key, value in found.items():
            if key in {"region", "deletedRegion"}:
                yield value
            yield from regions(value)
    elif isinstance(found, list):
        for item in found:
            yield from regions(item)


def sarif(text: str) -> dict[str, Any]:
    """The one run of a log, after what SARIF 2.1.0 requires of it was checked."""
    log = json.loads(text)
    assert [error.message for error in SARIF.iter_errors(log)] == []
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"] == "tramai"
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert {"id", "shortDescription", "fullDescription", "help"} <= rule.keys()
        assert rule["help"]["text"]
    for result in run["results"]:
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"]
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for place in [*result["locations"], *result.get("relatedLocations", [])]:
            assert re.fullmatch(r"[\w.~%/@:=+,-]+", place["physicalLocation"]["artifactLocation"]["uri"], re.ASCII)
        for fix in result.get("fixes", []):
            assert [change["replacements"] for change in fix["artifactChanges"]] != [[]]
    for region in regions(run):
        start, end = (region["startLine"], region["startColumn"]), (region.get("endLine"), region.get("endColumn"))
        assert min(start) >= 1
        assert end == (None, None) or end >= start
    return run


def test_a_log_has_rules_regions_related_places_and_fixes(tramai: Call, wrong: str) -> None:
    write("twice.yaml", "tramai: 1\nname: x\nname: y\nsteps: [{id: a, local: 1}]\n")
    result = tramai("validate", wrong, "twice.yaml", "missing ü.yaml", "--format", "sarif")
    assert result.exit_code == 3
    run = sarif(result.stdout)
    by_code = {one["ruleId"]: one for one in run["results"]}
    assert set(by_code) == {"TRM104", "TRM211", "TRM119", "TRM103", "TRM703"}
    misspelt = by_code["TRM104"]
    assert misspelt["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 5, "startColumn": 5, "endLine": 5, "endColumn": 9,
    }  # fmt: skip
    (change,) = misspelt["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"] == {"text": "shell"}
    (other,) = by_code["TRM103"]["relatedLocations"]
    assert other["physicalLocation"]["region"]["startLine"] == 2
    unread = by_code["TRM703"]["locations"][0]["physicalLocation"]
    assert unread == {"artifactLocation": {"uri": "missing%20%C3%BC.yaml"}}


def test_a_clean_log_has_no_results(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    result = tramai("validate", "hello.yaml", "--format", "sarif")
    assert result.exit_code == 0
    assert sarif(result.stdout)["results"] == []


def test_the_replacements_of_a_log_mend_the_file(tramai: Call, wrong: str) -> None:
    run = sarif(tramai("validate", wrong, "--format", "sarif").stdout)
    lines = WRONG.splitlines(keepends=True)
    for result in run["results"]:
        for one in result.get("fixes", [{"artifactChanges": []}])[0]["artifactChanges"]:
            for part in one["replacements"]:
                at = part["deletedRegion"]
                assert at["startLine"] == at["endLine"]
                line = lines[at["startLine"] - 1]
                lines[at["startLine"] - 1] = (
                    line[: at["startColumn"] - 1] + part["insertedContent"]["text"] + line[at["endColumn"] - 1 :]
                )
    assert "    shell: make\n" in lines
    assert '    local: {value: ["010"]}\n' in lines


# JUnit


def suite(text: str) -> ElementTree.Element:
    """The one suite of a report, its counts checked."""
    root = junit(text)
    (found,) = root
    assert found.tag == "testsuite"
    for of in (root, found):
        assert int(of.attrib["tests"]) == len(found.findall("testcase"))
        assert int(of.attrib["failures"]) == len(found.findall("testcase/failure"))
        assert int(of.attrib["errors"]) == len(found.findall("testcase/error"))
    for case in found:
        assert {"name", "classname", "time"} <= case.attrib.keys()
        assert {part.tag for part in case} <= {"failure", "error", "system-out"}
    return found


def test_a_file_is_a_test_case_and_a_problem_a_failure(tramai: Call, wrong: str) -> None:
    write("hello.yaml", HELLO)
    result = tramai("validate", wrong, "hello.yaml", "missing.yaml", "--format", "junit")
    assert result.exit_code == 3
    cases = {case.attrib["name"]: case for case in suite(result.stdout)}
    assert list(cases) == ["wrong.yaml", "hello.yaml", "missing.yaml"]
    assert [one.attrib["type"] for one in cases["wrong.yaml"]] == ["TRM104", "TRM211", "TRM119"]
    assert cases["wrong.yaml"][0].attrib["message"] == "unknown key `shel` in step `one`"
    assert "wrong.yaml:5:5: error[TRM104]" in (cases["wrong.yaml"][0].text or "")
    assert list(cases["hello.yaml"]) == []
    assert [one.tag for one in cases["missing.yaml"]] == ["error"]


def test_a_warning_is_a_failure_only_if_it_counts(tramai: Call) -> None:
    write("warns.yaml", WARNS)
    lenient = tramai("validate", "warns.yaml", "--format", "junit")
    assert lenient.exit_code == 0
    assert [part.tag for part in suite(lenient.stdout)[0]] == ["system-out"]
    strict = tramai("validate", "warns.yaml", "--format", "junit", "--strict")
    assert strict.exit_code == 1
    assert [part.tag for part in suite(strict.stdout)[0]] == ["failure"]


def test_what_xml_cannot_hold_is_spelled_out(tramai: Call) -> None:
    write("odd.yaml", 'tramai: 1\nname: x\nsteps:\n  - id: one\n    "a\\e]]><b>&\\uFFFE\\U0001F600": 1\n    local: 1\n')
    case = suite(tramai("validate", "odd.yaml", "--format", "junit").stdout)[0]
    assert "a\\u001b]]><b>&\\ufffe\U0001f600" in (case[0].text or "")


# GitLab's code quality, Azure's issues


def test_code_quality_has_what_gitlab_needs_and_marks_that_stay(tramai: Call, wrong: str) -> None:
    result = tramai("validate", wrong, "missing.yaml", "--format", "gitlab")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    for one in found:
        assert one.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert one["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert one["location"]["lines"]["begin"] >= 1
    assert [(one["check_name"], one["location"]["lines"]["begin"]) for one in found] == [
        ("TRM104", 5), ("TRM211", 8), ("TRM119", 9), ("TRM703", 1),
    ]  # fmt: skip
    assert len({one["fingerprint"] for one in found}) == 4
    write(wrong, "# a line more\n" + WRONG)
    again = json.loads(tramai("validate", wrong, "--format", "gitlab").stdout)
    assert [one["fingerprint"] for one in again] == [one["fingerprint"] for one in found[:3]]


def test_azure_has_an_issue_for_each_problem(tramai: Call, wrong: str) -> None:
    write("warns.yaml", WARNS)
    said = azure_commands(tramai("validate", "warns.yaml", wrong, "--format", "azure").stdout)
    assert [(name, where["type"], where["code"]) for name, where, _ in said] == [
        ("task.logissue", "error", "TRM104"), ("task.logissue", "error", "TRM211"),
        ("task.logissue", "error", "TRM119"), ("task.logissue", "warning", "TRM121"),
    ]  # fmt: skip


# Where the report goes


@pytest.mark.parametrize("form", ["text", "json", "github", "gitlab", "azure", "sarif", "junit"])
def test_a_report_can_go_to_a_file(tramai: Call, wrong: str, form: str) -> None:
    shown = tramai("validate", wrong, "--format", form)
    result = tramai("validate", wrong, "--format", form, "-o", "report")
    assert result.exit_code == shown.exit_code == 1
    assert result.stdout == ""
    report = Path("report").read_text(encoding="utf-8")
    assert report
    if form not in {"text"}:
        assert report == shown.stdout


def test_a_report_that_cannot_be_written_is_3(tramai: Call, wrong: str) -> None:
    result = tramai("validate", wrong, "-o", "no/such/folder/report")
    assert result.exit_code == 3
    assert "cannot write no/such/folder/report" in result.stderr


def test_two_formats_at_once_are_2(tramai: Call, wrong: str) -> None:
    result = tramai("validate", wrong, "--json", "--format", "sarif")
    assert result.exit_code == 2
    assert document(result)["error"]["code"] == "TRM701"


def test_json_is_the_format_json(tramai: Call, wrong: str) -> None:
    assert tramai("validate", wrong, "--json").stdout == tramai("validate", wrong, "--format", "json").stdout
