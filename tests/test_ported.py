"""The workflows after files of other tools are valid, planned, tested, and listed on their page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tramai import workflow
from tramai.cli._group import group
from tramai.testing import reading, running
from tramai.testing.suite import is_suite

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "ported.md"
FILES = sorted(path for path in (ROOT / "workflows" / "ported").glob("*.yaml") if not is_suite(path.name))
FEWEST = 18


def name(path: Path) -> str:
    return path.stem


def rows() -> list[str]:
    table = PAGE.read_text(encoding="utf-8").split("## Said in another way")[0]
    cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", table, re.M)
    return [name for cell in cells for name in re.findall(r"\w+", cell)]


def test_there_are_enough_of_them_and_all_are_listed() -> None:
    assert sorted(rows()) == [path.stem for path in FILES]
    assert len(FILES) >= FEWEST


@pytest.mark.parametrize("path", FILES, ids=name)
def test_it_has_no_problem_and_is_named_as_its_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "SPEECH_KEY"):
        monkeypatch.setenv(name, "fake")
    loaded, problems = workflow.check_file(str(path))
    assert [(problem.code, problem.message) for problem in problems] == []
    assert loaded is not None
    assert loaded.name == path.stem
    assert loaded.description


@pytest.mark.parametrize("path", FILES, ids=name)
def test_it_can_be_planned(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = CliRunner().invoke(group, ["plan", str(path), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["workflow"] == path.stem
    assert found["executions"]["least"] <= found["executions"]["limit"]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_its_tests_come_to_every_step_and_use_every_stub(path: Path) -> None:
    loaded = reading.load(str(path.with_name(f"{path.stem}.tramai-test.yaml")))
    outcomes = [running.run(loaded, index) for index, _ in running.cases(loaded)]
    assert [(one.name, found.message) for one in outcomes for found in one.problems] == []
    assert running.unused(loaded, outcomes) == ()
    assert running.missed(loaded, outcomes) == ()
