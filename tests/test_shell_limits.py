"""`shell` under limits of resources: each is kept by the system, and the error names the one that was met."""

from __future__ import annotations

import resource
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tramai.steps import _shell_limits

from .shell_steps import Context, fails, findings, shell, text
from .step_context import run

PYTHON = [sys.executable, "-ISc"]
SHOW = "for which in -v -t -n -f; do ulimit $which; done"


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    return Context(tmp_path)


def test_each_limit_holds_for_the_program_and_what_it_starts(ctx: Context) -> None:
    limits = {"memory": "512MiB", "cpu": "1500ms", "open_files": 64, "file_size": "1MiB"}
    shown = text(ctx, f"{SHOW}; bash -c '{SHOW}'; sh -c 'ulimit -H -t; ulimit -f'", resources=limits).split()
    assert shown == ["524288", "2", "64", "1024"] * 2 + ["7", "2048"]
    before = [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE)]
    unlimited = text(ctx, SHOW)
    assert text(ctx, SHOW, resources={"open_files": 32}).split()[2] == "32"
    assert text(ctx, SHOW) == unlimited
    assert before == [
        resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE)
    ]


def test_a_program_without_a_shell_has_them_as_well_and_its_arguments_stay_as_they_are(ctx: Context) -> None:
    ctx.scope = {"inputs": {"x": 'it\'s "x" $(touch pwned) `id`\n'}}
    step = shell(argv=["printf", "%s", "${{ inputs.x }}"], resources={"cpu": "5s"})
    assert run(step, ctx)["stdout"] == ctx.scope["inputs"]["x"]
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    step = shell(argv=[*PYTHON, code], resources={"open_files": 50}, parse="text")
    assert run(step, ctx)["value"] == "(50, 50)"


def test_a_limit_of_tramai_itself_is_never_raised(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (10, 1_000_000) if kind == resource.RLIMIT_FSIZE else (0, -1)
    )
    assert text(ctx, "ulimit -f", resources={"file_size": "1GiB"}) == "977"


@pytest.mark.parametrize("script", [True, False])
def test_too_much_computing_is_told(ctx: Context, script: bool) -> None:
    way: dict[str, Any] = {"run": "while :; do :; done"} if script else {"argv": [*PYTHON, "while True: pass"]}
    error = fails(ctx, **way, resources={"cpu": "1s"})
    assert (error.type, error.message) == ("limit", "more time of computing than `resources.cpu` (1s) was used")
    assert error.details["exit_code"] == 128 + signal.SIGXCPU


@pytest.mark.slow
def test_too_much_computing_below_a_script_is_told(ctx: Context) -> None:
    error = fails(ctx, run="sh -c 'while :; do :; done'", resources={"cpu": "1s"})
    assert (error.type, error.details["exit_code"]) == ("limit", 152)


@pytest.mark.slow
def test_who_goes_on_after_the_signal_is_killed(ctx: Context) -> None:
    error = fails(ctx, run="trap '' XCPU; while :; do :; done", resources={"cpu": "1s"})
    assert error.type == "exit.137"
    assert "resources.cpu" in str(error.hint)


def test_too_much_memory_is_told_by_what_the_program_says(ctx: Context) -> None:
    error = fails(ctx, argv=[*PYTHON, "x = b'x' * (600 << 20)"], resources={"memory": "256MiB"})
    assert error.type == "exit.1"
    assert error.message == "exit status 1; its output says that memory ran out, and `resources.memory` is 256MiB"
    assert "MemoryError" in str(error.details["output"])
    assert run(shell(argv=[*PYTHON, "x = b'x' * (600 << 20)"]), ctx)["exit_code"] == 0
    error = fails(ctx, run="kill -SEGV $$", resources={"memory": "256MiB"})
    assert (error.type, error.message) == ("exit.139", "ended by SIGSEGV")
    assert str(error.hint).endswith("`resources.memory` is 256MiB")


def test_too_many_open_files_and_too_long_ones_are_told(ctx: Context) -> None:
    code = "import os; fds = [os.dup(1) for _ in range(100)]"
    error = fails(ctx, argv=[*PYTHON, code], resources={"open_files": 64})
    assert (
        error.message
        == "exit status 1; its output says that too many files were open, and `resources.open_files` is 64"
    )
    error = fails(ctx, run="head -c 3000000 /dev/zero > big", resources={"file_size": "1MiB"})
    assert (error.type, error.message) == ("limit", "a file grew beyond `resources.file_size` (1MiB)")
    assert (Path(ctx.cwd) / "big").stat().st_size == 1 << 20
    # Python ignores the signal, and is told by the call.
    code = "open('big', 'wb').write(b'x' * 3000000)"
    error = fails(ctx, argv=[*PYTHON, code], resources={"file_size": 1_048_576})
    assert error.message.endswith("a file became too large, and `resources.file_size` is 1MiB")


def test_a_failure_that_no_limit_explains_stays_what_it_is(ctx: Context) -> None:
    limits = {"memory": "512MiB", "cpu": "5s", "open_files": 64, "file_size": "1MiB"}
    error = fails(ctx, run="echo oops; exit 3", resources=limits)
    assert (error.type, error.message, error.hint) == ("exit.3", "exit status 3", None)
    error = fails(ctx, run="echo MemoryError; exit 3", resources={"cpu": "5s"})
    assert (error.message, error.hint) == ("exit status 3", None)
    assert run(shell(run="exit 152", ok_exit_codes=[152], resources={"cpu": "5s"}), ctx)["exit_code"] == 152


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="NOT TESTED, limits in a sandbox: no bubblewrap")
def test_limits_hold_inside_a_sandbox(ctx: Context) -> None:
    limits = {"memory": "512MiB", "open_files": 64}
    assert text(ctx, "ulimit -v; ulimit -n", sandbox=True, resources=limits).split() == ["524288", "64"]
    assert fails(ctx, run="kill -XCPU $$", sandbox=True, resources={"cpu": "1s"}).type == "limit"


def test_limits_that_cannot_be_meant_are_refused_before_the_run() -> None:
    wrong = {"memory": "0B", "cpu": "200ms", "file_size": "0KiB"}
    assert [(found.code, found.pointer) for found in findings(run="true", resources=wrong)] == [
        ("TRM378", ("resources", "memory")),
        ("TRM378", ("resources", "file_size")),
        ("TRM378", ("resources", "cpu")),
    ]
    assert [(found.code, found.pointer) for found in findings(run="true", resources={})] == [("TRM378", ("resources",))]
    assert not findings(run="true", resources={"cpu": "1s"})
    for settings in ({"open_files": 3}, {"memory": "1XB"}, {"memory": 0}, {"processes": 3}):
        with pytest.raises(msgspec.ValidationError):
            shell(run="true", resources=settings)


def test_a_limit_that_cannot_be_set_starts_nothing(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shell_limits, "_commands", lambda resources: ["ulimit -n 99999999999"])
    error = fails(ctx, run="echo x > ran", resources={"open_files": 64})
    assert error.type == "refused"
    assert error.message.startswith("the limits of `resources` cannot be set: ")
    assert not (Path(ctx.cwd) / "ran").exists()


def test_a_system_that_cannot_limit_memory_says_so(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shell_limits.sys, "platform", "darwin")
    error = fails(ctx, run="echo x > ran", resources={"memory": "1GiB"})
    assert (error.type, error.message) == ("refused", "macOS does not limit the memory of a process")
    assert not (Path(ctx.cwd) / "ran").exists()
