"""The jobs on the page about CI: YAML whose lines are carried out, in the variables of their system."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cli.conftest import ROOT, write

PAGE = (ROOT / "docs/how-to/use-in-ci.md").read_text(encoding="utf-8")
BLOCKS = [
    (found[1], YAML(typ="safe").load(found[2])) for found in re.finditer(r"```yml\n# ([^\n]*)\n(.*?)```", PAGE, re.S)
]
REVIEW = """\
tramai: 1
name: review
inputs: {base: {type: string}}
steps:
  - {id: read, shell: {run: 'echo "$B"', env: {B: "${{ inputs.base }}"}, parse: text}}
outputs: {summary: "read ${{ steps.read.output }}"}
"""


def block(start: str) -> Any:
    """The one whose first line begins so."""
    (found,) = [data for head, data in BLOCKS if head.startswith(start)]
    return found


@pytest.fixture(autouse=True)
def repository(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository with a workflow, and `tramai` and `pip` as programs."""
    (place / "workflows").mkdir()
    write("workflows/review.yaml", REVIEW)
    (place / "bin").mkdir()
    tramai = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m tramai "$@"\n'
    for name, text in (("tramai", tramai), ("pip", '#!/bin/sh\n[ "$*" = "install tramai" ]\n')):
        write(f"bin/{name}", text)
        os.chmod(f"bin/{name}", stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{place}/bin:{os.environ['PATH']}")


def scripts(data: Any) -> Iterator[str]:
    """The lines of a job, in order."""
    if isinstance(data, list):
        for item in data:
            yield from scripts(item)
    elif isinstance(data, dict):
        for key in ("run", "script", "after_script"):
            found = data.get(key, [])
            yield from [found] if isinstance(found, str) else found
        for value in data.values():
            yield from scripts(value)


def shell(script: str, **env: str) -> str:
    done = subprocess.run(
        ["bash", "-ec", script], env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_job_for_github_hands_outputs_on() -> None:
    job = block(".github/workflows/review.yml")["jobs"]["review"]["steps"]
    lines = [step["run"] for step in job if "run" in step]
    github = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": "out", "GITHUB_STEP_SUMMARY": "page.md"}
    said = "".join(shell(line, **github) for line in lines[:2])
    assert "::group::read (shell)" in said
    outputs = dict(line.split("=", 1) for line in Path("out").read_text().splitlines())
    assert "### ✅ review v1: completed" in Path("page.md").read_text(encoding="utf-8")
    assert job[4]["env"]["SUMMARY"] == "${{ fromJSON(steps.review.outputs.outputs).summary }}"
    assert json.loads(outputs["outputs"])["summary"] == "read main"
    assert "== 'failed'" in job[3]["if"]
    shell(lines[2].replace("${{ steps.review.outputs.run-id }}", outputs["run-id"]))
    assert outputs["run-id"] in Path("failed.md").read_text(encoding="utf-8")


def test_the_job_for_gitlab_folds_and_reports() -> None:
    gitlab = {"GITLAB_CI": "true", "CI": "true", "CI_PIPELINE_ID": "77"}
    said = "".join(shell(line, **gitlab) for line in scripts(block(".gitlab-ci.yml")))
    assert "section_start" in said
    assert "review" in Path("report.md").read_text(encoding="utf-8")


def test_the_job_for_azure_sets_its_variables() -> None:
    first, second, third = block("azure-pipelines.yml")["steps"]
    azure = {"TF_BUILD": "True", "AGENT_TEMPDIRECTORY": str(Path.cwd())}
    said = shell(first["script"], **azure) + shell(second["script"], **azure)
    names = re.findall(r"##vso\[task\.setvariable variable=(\w+);isOutput=true\]", said)
    assert set(names) == {"run_id", "status"}
    assert set(re.findall(r"\$\(review\.(\w+)\)", third["script"])) == set(names)


def test_what_is_shown_to_check_files_works() -> None:
    shell("; ".join(scripts(block("GitHub Actions: annotations"))))
    assert json.loads(Path("tramai.sarif").read_text())["version"] == "2.1.0"
    shell("\n".join(scripts(block("GitLab: the code quality"))))
    assert json.loads(Path("quality.json").read_text()) == []
    shell("\n".join(scripts(block("Azure Pipelines: issues"))))
    assert ElementTree.parse("tramai.xml").getroot().get("errors") == "0"
