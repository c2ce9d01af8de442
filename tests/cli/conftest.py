"""What tests of the command line share: an empty folder, no settings from outside, and a store with runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tramai.cli._group import group

ROOT = Path(__file__).resolve().parents[2]
NOISE = (
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "TF_BUILD",
    "COLUMNS",
    "LINES",
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; the user's own configuration and cache are out of sight."""
    for name in [*NOISE, *(name for name in os.environ if name.startswith("TRAMAI_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("made") / "once"


@pytest.fixture
def once(place: Path, _made: Path) -> Callable[[Callable[[], object]], None]:
    """Makes what every test of a module begins with: the first one makes it, the others have a copy of it."""

    def call(make: Callable[[], object]) -> None:
        if _made.exists():
            shutil.copytree(_made, place, dirs_exist_ok=True)
        else:
            make()
            shutil.copytree(place, _made)

    return call


@pytest.fixture
def tramai() -> Callable[..., Result]:
    """Run a command line in this process."""

    def call(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(group, list(arguments), input=stdin)

    return call


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run a command line as a process of its own; whatever is still alive at the end is killed."""
    begun: list[subprocess.Popen[str]] = []

    def call(*arguments: str, env: dict[str, str] | None = None, **extra: Any) -> subprocess.Popen[str]:
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
        extra.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(
            [sys.executable, "-m", "tramai", *arguments],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            **extra,
        )
        begun.append(process)
        return process

    yield call
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def finished(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command line as a process and wait for its end."""

    def call(*arguments: str, **extra: Any) -> subprocess.CompletedProcess[str]:
        process = start(*arguments, **extra)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    return call


def document(result: Result | subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one JSON document on standard output."""
    lines = result.stdout.splitlines()
    assert len(lines) == 1, result.stdout
    found = json.loads(lines[0])
    assert isinstance(found, dict)
    return found


def write(name: str, text: str) -> str:
    """A file in the working folder; its name."""
    Path(name).write_text(text, encoding="utf-8")
    return name


HELLO = """\
tramai: 1
name: hello
inputs:
  who: {type: string, default: world}
steps:
  - id: greet
    shell: {run: 'echo "hello $WHO"', env: {WHO: "${{ inputs.who }}"}, parse: text}
outputs:
  said: ${{ steps.greet.output }}
"""
FAILS = """\
tramai: 1
name: fails
steps:
  - id: first
    local: ${{ 1 }}
  - id: build
    shell: 'echo compiling; echo no such file >&2; exit 3'
"""
GATE = """\
tramai: 1
name: gated
steps:
  - id: check
    gate: {check: "${{ 1 > 2 }}", reason: the score is too low}
"""
SLEEPS = """\
tramai: 1
name: sleeps
steps:
  - id: nap
    delay: 2h
"""
SLOW = """\
tramai: 1
name: slow
steps:
  - id: first
    shell: echo one
  - id: second
    shell: 'echo started > started; sleep 60'
  - id: third
    shell: 'echo third > third'
"""
