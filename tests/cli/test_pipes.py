"""Closed pipes, odd encodings and standard input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import HELLO, ROOT, write

Finished = Callable[..., "subprocess.CompletedProcess[str]"]
ENV = {"PYTHONPATH": str(ROOT)}


def piped(command: str, *arguments: str) -> tuple[int, str]:
    """The exit status and standard error of `tramai ARGUMENTS` with its output piped into a command."""
    script = f'"$0" -u -m tramai "$@" | {command}; exit ${{PIPESTATUS[0]}}'
    result = subprocess.run(
        ["bash", "-c", script, sys.executable, *arguments],
        env={**os.environ, **ENV},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return result.returncode, result.stderr


@pytest.mark.parametrize(
    "arguments", [("--help",), ("schema",), ("explain",), ("run", "--help"), ("completion", "bash")]
)
def test_a_reader_that_goes_away_is_quiet(arguments: tuple[str, ...]) -> None:
    status, err = piped("head -c 1 > /dev/null", *arguments)
    assert status in (0, 141)
    assert err == ""


def test_a_list_into_head_is_quiet(finished: Finished) -> None:
    write("hello.yaml", HELLO)
    for _ in range(3):
        finished("run", "hello.yaml", "-q")
    for arguments in (("list",), ("list", "--json"), ("show", "@last"), ("logs", "@last", "-f")):
        status, err = piped("true", *arguments)
        assert status in (0, 141)
        assert err == ""


@pytest.mark.parametrize("command", ["true", "head -c 10 > /dev/null"])
def test_a_run_goes_on_when_nobody_reads_its_events(finished: Finished, command: str) -> None:
    write(
        "slow.yaml", "tramai: 1\nname: slow\nsteps:\n  - {id: a, shell: sleep 0.5}\n  - {id: b, shell: echo b > done}\n"
    )
    status, err = piped(command, "run", "slow.yaml", "--json")
    assert status in (0, 141)
    assert err == ""
    assert Path("done").exists()
    assert json.loads(finished("show", "@last", "--json").stdout)["run"]["status"] == "completed"


def test_a_closed_standard_error_does_not_stop_a_run() -> None:
    write("hello.yaml", HELLO)
    script = '"$0" -m tramai run hello.yaml 2>&1 >out | true; exit ${PIPESTATUS[0]}'
    result = subprocess.run(["bash", "-c", script, sys.executable], env={**os.environ, **ENV}, timeout=60)
    assert result.returncode in (0, 141)
    assert Path("out").read_text() == "said: hello world\n"


def test_missing_standard_streams_do_not_stop_a_run() -> None:
    write("hello.yaml", HELLO)
    script = '"$0" -m tramai run hello.yaml >&- 2>&- <&-'
    subprocess.run(["bash", "-c", script, sys.executable], env={**os.environ, **ENV}, timeout=60)
    result = subprocess.run(
        [sys.executable, "-m", "tramai", "show", "@last", "--json"], env={**os.environ, **ENV}, capture_output=True
    )
    assert json.loads(result.stdout)["run"]["status"] == "completed"


# Wide, beyond the basic plane, combined, and longer than a column.
NAME = "日本語🚀-nai\u0308ve-" + "x" * 80


@pytest.mark.parametrize(
    "env", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_no_encoding_refuses_a_name(finished: Finished, env: dict[str, str]) -> None:
    write("hello.yaml", HELLO.replace("name: hello", f"name: {NAME}"))
    for arguments in (
        ("run", "hello.yaml"),
        ("list",),
        ("show", "@last"),
        ("plan", "hello.yaml"),
        ("graph", "hello.yaml"),
    ):
        result = finished(*arguments, env=env)
        assert result.returncode == 0, result.stderr
        assert (result.stdout + result.stderr).isascii()
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_pipe_sees_no_escape_and_no_animation(finished: Finished, env: dict[str, str]) -> None:
    write("hello.yaml", HELLO)
    result = finished("run", "hello.yaml", env=env)
    assert "\x1b" not in result.stdout + result.stderr
    assert "\r" not in result.stdout + result.stderr


def test_forced_colour_reaches_a_pipe(finished: Finished) -> None:
    write("hello.yaml", HELLO)
    assert "\x1b[" in finished("run", "hello.yaml", env={"FORCE_COLOR": "1"}).stderr
    assert "\x1b" not in finished("run", "hello.yaml", "--progress", "plain").stderr


@pytest.mark.parametrize("text", [HELLO, 'tramai = 1\nname = "hello"\n[[steps]]\nid = "a"\nshell = "echo x"\n'])
def test_a_workflow_is_read_from_standard_input(text: str) -> None:
    for arguments in (("validate", "-"), ("run", "-"), ("digest", "-"), ("plan", "-")):
        result = subprocess.run(
            [sys.executable, "-m", "tramai", *arguments],
            env={**os.environ, **ENV},
            input=text,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr


def test_a_mistake_on_standard_input_is_shown_with_its_line() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tramai", "validate", "-"],
        env={**os.environ, **ENV},
        input=HELLO.replace("shell:", "shel:"),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "shel: {run:" in result.stdout


@pytest.mark.parametrize("flag", ["--json", "--color=never"])
def test_what_a_function_prints_is_no_result_of_ours(finished: Finished, flag: str) -> None:
    write("chatty.py", "import sys\ndef f():\n    print('from inside')\n    sys.stdout.write('more')\n    return 1\n")
    write(
        "p.yaml",
        "tramai: 1\nname: p\nsteps:\n  - {id: a, local: {call: 'chatty:f'}}\noutputs: {a: '${{ steps.a.output }}'}\n",
    )
    result = finished("run", "p.yaml", flag)
    assert "from inside" in result.stderr
    if flag == "--json":
        assert [json.loads(line)["type"] for line in result.stdout.splitlines()][-1] == "run.finished"
    else:
        assert result.stdout == "a: 1\n"
