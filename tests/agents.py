"""Agents that are scripts of a test: they keep how they were started, and say what the test has them say."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tramai.interrupt import Interrupt
from tramai.step import Done, Step, StepError

from .step_context import StepContext
from .step_context import run as result_of

_HEAD = """\
import json, os, sys, time
if "env" not in sys.argv[1:2]:
    given = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode()
    with open(HERE + "/started.json", "w") as file:
        json.dump({"argv": sys.argv[1:], "env": dict(os.environ), "stdin": given, "cwd": os.getcwd()}, file)
def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
def say(**event):
    raw(json.dumps(event).encode() + b"\\n")
def after(flag):
    return sys.argv[sys.argv.index(flag) + 1]
"""


class Folder:
    """A folder to work in, with a program of the test first on PATH."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bin = path / "bin"
        self.work = path / "work"
        self.bin.mkdir()
        self.work.mkdir()
        self.shown: list[str] = []

    def program(self, name: str, body: str) -> None:
        """Install a program; `body` may use `say(**event)`, `raw(bytes)` and `after(flag)`."""
        file = self.bin / name
        head = f"#!{sys.executable} -IS\nHERE = {str(self.path)!r}\n"
        file.write_text(f"{head}{_HEAD}{body}\n", encoding="utf-8")
        file.chmod(0o755)

    def context(self, scope: dict[str, Any] | None = None, **given: Any) -> Context:
        """A context in the folder."""
        return Context(self, scope, **given)

    @property
    def started(self) -> Any:
        """How the program was started."""
        return json.loads((self.path / "started.json").read_text(encoding="utf-8"))


class Context(StepContext):
    """A step context whose child finds the program of the test."""

    def __init__(self, folder: Folder, scope: dict[str, Any] | None = None, **given: Any) -> None:
        super().__init__(scope, **given)
        self.cwd = str(folder.work)
        self.env = {"PATH": f"{folder.bin}:{os.environ['PATH']}"}
        self.hurry = Interrupt()
        self.signals: list[tuple[str, dict[str, Any]]] = []
        self._shown = folder.shown

    def output(self, stream: str, text: str) -> None:
        self._shown.append(text)

    def signal(self, name: str, **attributes: Any) -> None:
        self.signals.append((name, attributes))


def result(step: Step, ctx: Context) -> Any:
    """The full record of a step that succeeds."""
    return result_of(step, ctx)


def failure(step: Step, ctx: Context) -> StepError:
    """How a step fails."""
    with pytest.raises(StepError) as raised:
        result_of(step, ctx)
    return raised.value


def usage(step: Step, ctx: Context) -> Any:
    """What a step that succeeds counts against the limits."""
    import asyncio

    outcome = asyncio.run(step.run(ctx))
    assert isinstance(outcome, Done)
    return outcome.usage
