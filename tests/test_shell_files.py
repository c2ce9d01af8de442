"""`shell`: values of any length by files that only the child's user reads, and that are gone with the step."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tramai.steps._watchdog import ensure_watchdog

from .processes import eventually
from .shell_steps import Context, fails, findings, shell, text
from .step_context import run

ROOT = Path(__file__).resolve().parent.parent
VALUE = "${{ inputs.x }}"
T = TypeVar("T")


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    return Context(tmp_path, {"inputs": {"x": "y" * 200_000}})


def test_a_value_of_any_length_is_handed_over_in_a_file(ctx: Context) -> None:
    assert text(ctx, 'wc -c < "$BIG"', files={"BIG": VALUE}) == "200000"
    step = shell(argv=["sh", "-c", 'wc -c < "$BIG"'], files={"BIG": VALUE}, parse="text")
    assert run(step, ctx)["value"].strip() == "200000"
    assert "stdin, or a file" in str(fails(ctx, run="true", env={"BIG": VALUE}).hint)


def test_text_is_written_as_it_is_and_all_else_as_json(ctx: Context) -> None:
    ctx.scope = {"inputs": {"x": 'it\'s "x" $(touch pwned)\r\né\0'}}
    assert run(shell(run='cat "$X"', files={"X": VALUE}), ctx)["stdout"] == ctx.scope["inputs"]["x"]
    assert text(ctx, 'cat "$X"', files={"X": {"a": [1, None, "${{ inputs.x | length }}"]}}) == '{"a":[1,null,27]}'
    assert text(ctx, 'cat "$X"; wc -c < "$Y"', files={"X": "", "Y": None}) == "4"


def test_only_its_user_reads_it_and_nothing_is_left(ctx: Context) -> None:
    said = text(ctx, 'stat -c %a "$X" "$(dirname "$X")" "$(dirname "$(dirname "$X")")"; echo "$X"', files={"X": "s"})
    *modes, path = said.split()
    assert modes == ["600", "700", "700"]
    assert path.endswith("/X")
    assert not os.path.exists(os.path.dirname(os.path.dirname(path)))


def test_it_is_gone_when_the_step_is_cancelled_while_it_is_written(tmp_path: Path) -> None:
    class Cancelled(Context):
        async def blocking(self, work: Callable[[], T], *, grace: float = 60.0) -> T:
            work()
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(shell(run="true", files={"X": "canary"}), Cancelled(tmp_path))
    assert not os.path.exists(ensure_watchdog().folder)


@pytest.mark.parametrize("how", ["exit 3", 'touch "$(dirname "$X")/more"; exit 3', "sleep 60"])
def test_it_is_gone_after_a_failure_as_well(ctx: Context, how: str) -> None:
    ctx.deadline = time.monotonic() + (1.5 if how == "sleep 60" else 60)
    error = fails(ctx, run=f'echo "$X"; {how}', files={"X": "s"}, kill_after="100ms")
    path = str(error.details["output"]).strip()
    assert path.endswith("/X")
    assert not os.path.exists(os.path.dirname(os.path.dirname(path)))


def test_it_is_gone_after_the_end_of_tramai_itself(ctx: Context) -> None:
    script = 'echo "$X" > path.new; mv path.new path; sleep 60'
    code = (
        "from pathlib import Path; from tests.shell_steps import *\n"
        f"run(shell(run={script!r}, files={{'X': 'secret'}}), Context(Path({ctx.cwd!r})))"
    )
    runner = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)})
    told = Path(ctx.cwd) / "path"
    assert eventually(told.exists, within=20)
    path = told.read_text().strip()
    assert Path(path).read_text() == "secret"
    runner.kill()
    runner.wait()
    assert eventually(lambda: not os.path.exists(os.path.dirname(os.path.dirname(path))), within=5)


def test_what_cannot_be_written_starts_nothing(ctx: Context) -> None:
    ctx.scope = {"inputs": {"x": "\ud800"}}
    error = fails(ctx, run="echo x > ran", files={"X": VALUE})
    assert (error.type, error.message) == (
        "refused",
        "the value of X holds half of a surrogate pair, which UTF-8 cannot say",
    )
    assert not (Path(ctx.cwd) / "ran").exists()


def test_names_are_names_of_variables_and_stand_once() -> None:
    found = findings(run="true", files={"a-b": 1, "TRAMAI_STEP": 1, "X": 1}, env={"X": "1"})
    assert [(one.code, one.pointer) for one in found] == [
        ("TRM312", ("files", "a-b")),
        ("TRM313", ("files", "TRAMAI_STEP")),
        ("TRM379", ("files", "X")),
    ]
