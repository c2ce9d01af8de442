"""`tramai init`: templates that are valid and run offline, and a folder in which nothing is lost."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import ROOT, document, write
from tests.cli.test_documents import check
from tramai import document as documents
from tramai import formatting, workflow
from tramai.cli.init import TEMPLATES

Call = Callable[..., Result]
ENDS = {"review": 0, "etl": 0, "agent": 0, "approval": 11}
"""How a first run ends: `approval` waits for a person."""


@pytest.mark.parametrize("form", ["yaml", "toml"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_valid_can_be_planned_and_runs_offline(tramai: Call, template: str, form: str) -> None:
    flags = ("--toml",) if form == "toml" else ()
    assert tramai("init", "--template", template, *flags).exit_code == 0
    file = f"{template}.{form}"
    checked = tramai("validate", file, "--strict")
    assert checked.exit_code == 0, checked.stdout
    assert tramai("plan", file).exit_code == 0
    ran = tramai("run", file, "--json")
    assert ran.exit_code == ENDS[template], ran.stdout
    assert json.loads(ran.stdout.splitlines()[-1])["status"] == ("waiting" if ENDS[template] == 11 else "completed")


@pytest.mark.parametrize("template", TEMPLATES)
def test_both_formats_are_the_same_workflow_in_canonical_form(tramai: Call, template: str) -> None:
    tramai("init", "--template", template), tramai("init", "--template", template, "--toml")
    digests = {line.split()[0] for line in tramai("digest", f"{template}.yaml", f"{template}.toml").stdout.splitlines()}
    assert len(digests) == 1
    assert tramai("fmt", "--check", ".").exit_code == 0


@pytest.mark.parametrize("template", TEMPLATES)
def test_no_comment_of_a_template_is_lost_in_toml(template: str) -> None:
    source = documents.read(str(ROOT / "tramai" / "templates" / f"{template}.yaml"))
    assert workflow.examine(source)[1] == ()
    assert formatting.convert_document(source, "toml").lost == ()


@pytest.mark.parametrize(("form", "line"), [("yaml", "# yaml-language-server: $schema="), ("toml", "#:schema ")])
def test_the_first_line_names_the_schema_that_lies_beside_it(tramai: Call, form: str, line: str) -> None:
    tramai("init", *(("--toml",) if form == "toml" else ()))
    first = Path(f"review.{form}").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"{line}workflow.schema.json"
    published = (ROOT / "schemas" / "workflow.schema.json").read_text(encoding="utf-8")
    assert Path("workflow.schema.json").read_text(encoding="utf-8") == published


def test_what_an_etl_has_loaded_is_right_and_is_not_loaded_twice(tramai: Call) -> None:
    tramai("init", "--template", "etl")
    assert tramai("run", "etl.yaml").exit_code == 0
    assert tramai("run", "etl.yaml").exit_code == 0
    rows = [json.loads(line) for line in Path("orders.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == [{"amount": 120, "customer": "Ada", "id": "1"}, {"amount": 75, "customer": "Alan", "id": "3"}]


def test_an_approval_has_not_released_before_it_was_given(tramai: Call) -> None:
    tramai("init", "--template", "approval")
    assert tramai("run", "approval.yaml").exit_code == 11
    assert Path("build/app.txt").exists()
    assert not Path("released.txt").exists()


def test_a_folder_is_made_and_told(tramai: Call) -> None:
    result = tramai("init", "deep/flows")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "written: deep/flows/review.yaml",
        "written: deep/flows/workflow.schema.json",
        "written: deep/flows/.gitignore",
    ]
    assert "tramai run deep/flows/review.yaml" in result.stderr
    found = check(document(tramai("init", "deep/flows", "--template", "etl", "--json")))
    assert found["files"] == ["deep/flows/etl.yaml"]


def test_a_file_that_is_there_is_3_and_stays(tramai: Call) -> None:
    write("review.yaml", "mine\n")
    result = tramai("init")
    assert result.exit_code == 3
    assert "review.yaml is there already" in result.stderr
    assert Path("review.yaml").read_text(encoding="utf-8") == "mine\n"
    assert os.listdir() == ["review.yaml"]
    os.remove("review.yaml")
    os.symlink("nowhere", "review.yaml")
    assert tramai("init").exit_code == 3
    assert os.path.islink("review.yaml")


def test_a_schema_and_an_ignore_file_that_are_there_stay(tramai: Call) -> None:
    write("workflow.schema.json", "{}"), write(".gitignore", "*.log")
    assert tramai("init").exit_code == 0
    assert Path("workflow.schema.json").read_text(encoding="utf-8") == "{}"
    assert Path(".gitignore").read_text(encoding="utf-8") == "*.log\n.tramai/\n"
    assert tramai("init", "--toml").exit_code == 0
    assert Path(".gitignore").read_text(encoding="utf-8") == "*.log\n.tramai/\n"


def test_a_folder_that_cannot_be_is_3(tramai: Call) -> None:
    write("taken", "")
    result = tramai("init", "taken/flows")
    assert result.exit_code == 3
    assert re.search("cannot make taken/flows", result.stderr)


def test_an_approval_is_released_once_it_was_given(tramai: Call) -> None:
    tramai("init", "--template", "approval")
    assert tramai("run", "approval.yaml").exit_code == 11
    assert tramai("approve", "@last", "--comment", "looks good").exit_code == 0
    assert tramai("resume", "@last").exit_code == 0
    assert Path("released.txt").read_text(encoding="utf-8") == "app 1.0\n"


def test_a_file_that_cannot_be_written_whole_is_not_there(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from tramai.cli import init

    monkeypatch.setattr(init, "_text", lambda name, toml: "x" * 100_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        result = tramai("init")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert (result.exit_code, "cannot write" in result.stderr) == (3, True)
    assert os.listdir() == []
