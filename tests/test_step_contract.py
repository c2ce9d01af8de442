"""The contract of step types: a good one keeps it, and every way to break it is found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tramai_example.ticket import Ticket

from tramai.testing.step_contract import StepContract

from .plugin_install import environment


class TestTicket(StepContract):
    """The example keeps it."""

    step = Ticket
    name = "ticket"
    top = {"secrets": {"KEY": {"env": "KEY"}}, "inputs": {"title": {"type": "string", "default": "red"}}}
    secrets = {"KEY": "a-secret-that-nobody-sees"}

    def settings(self, folder: Path) -> dict[str, Any]:
        board = {"file": f"{folder}/tickets.jsonl"}
        return {"title": "${{ inputs.title }}", "board": board, "token": "${{ secrets.KEY }}"}


STEP = '''\
from typing import Annotated, Any, ClassVar
import msgspec
from tramai.expression import Text
from tramai.step import Done, Finding, Replay, Step, StepError
from tramai.testing.step_contract import StepContract


class Mine(Step, frozen=True, kw_only=True):
    """Mine."""

    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    what: Annotated[Text, msgspec.Meta(description="What.")]

    async def run(self, ctx):
        return Done(ctx.text(self.what))


class TestMine(StepContract):
    step = Mine
    name = "mine"
    top = {"secrets": {"KEY": {"env": "KEY"}}}
    secrets = {"KEY": "a-secret-that-nobody-sees"}

    def settings(self, folder):
        return {"what": "x ${{ secrets.KEY }}"}
'''

BROKEN = {
    "every_setting_are_described": ('Annotated[Text, msgspec.Meta(description="What.")]', "str"),
    "it_succeeds_and_gives": ("Done(ctx.text(self.what))", "Done({1, 2})"),
    "before_its_end_was_stored": ("Done(ctx.text(self.what))", "Done(open(ctx.cwd + '/done', 'x').close())"),
    "has_the_shape": (
        "    async def run",
        "    def shape(self, known):\n        return {'type': 'array'}\n\n    async def run",
    ),
    "its_own_check": ("    async def run", "    def check(self):\n        return ('no',)\n\n    async def run"),
    "the_class_is_a_step": ("frozen=True, kw_only=True):", "frozen=True, kw_only=True, forbid_unknown_fields=False):"),
    "an_unknown_setting": ("what: Annotated", "no_such_setting: int = 0\n    what: Annotated"),
}
"""Part of the name of a test, and a change that it must find."""


def contract(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, code in files.items():
        (folder / name).write_text(code)
    line = [sys.executable, "-m", "pytest", "-q", "-rfs", "--tb=no", "-p", "no:cacheprovider", *files]
    return subprocess.run(
        line, cwd=folder, env=environment(folder, ()), capture_output=True, text=True, timeout=300, check=False
    )


def test_a_small_step_keeps_it(tmp_path: Path) -> None:
    found = contract(tmp_path, {"test_mine.py": STEP})
    assert found.returncode == 0, found.stdout
    assert "no package that is installed here brings the step type mine" in found.stdout


def test_a_suite_that_everything_passes_proves_nothing(tmp_path: Path) -> None:
    files = {}
    for name, (old, new) in BROKEN.items():
        assert old in STEP
        files[f"test_{name}.py"] = STEP.replace(old, new, 1)
    found = contract(tmp_path, files)
    failed = re.findall(r"^FAILED (\w+)\.py::TestMine::(\w+)", found.stdout, re.M)
    missed = [name for name in BROKEN if not any(file == f"test_{name}" and name in test for file, test in failed)]
    assert missed == [], found.stdout
