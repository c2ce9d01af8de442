"""The command line: readers that go away, odd terminals, exit statuses, standard input, two runs at once."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT
from tramai.cli._terminal import cells
from tramai.store import Holder
from tramai.stores import open_store
from tramai.testing._store_given import new_run

from .support import call, content, eventually, save, shown, text_of, workflow

Finished = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


# O01


def piped(script: str, *arguments: str) -> tuple[int, str]:
    """The exit status and standard error of an unbuffered `tramai ARGUMENTS` in a pipe."""
    ended = subprocess.run(
        ["bash", "-c", f'"$0" -u -m tramai "$@" {script}; exit ${{PIPESTATUS[0]}}', sys.executable, *arguments],
        env=_env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.returncode, ended.stderr


def test_a_long_list_into_head_is_quiet() -> None:
    store = open_store("sqlite:.tramai/tramai.db")
    for number in range(300):
        store.create(
            new_run(f"run-{number}", labels=("x" * 300,)), owner="o", holder=Holder("h", "", 1, ""), ttl=1.0, now=1.0
        )
    store.close()
    for arguments in (("list", "--limit", "300"), ("list", "--limit", "300", "--json")):
        status, err = piped("| head -n 1 | head -c 10 > /dev/null", *arguments)
        assert status in (0, 141)
        assert err == ""


def test_a_run_outlives_the_reader_of_its_events() -> None:
    save("- {id: a, shell: sleep 0.3}\n- {id: b, shell: 'seq 20000'}\n- {id: c, shell: touch ran}")
    status, err = piped("| head -c 10 > /dev/null", "run", "case.yaml", "--json")
    assert status in (0, 141)
    assert err == ""
    assert Path("ran").exists()
    assert shown()["status"] == "completed"
    status, err = piped("| head -n 1 > /dev/null", "logs", "@last", "-f")
    assert status in (0, 141)
    assert err == ""


# O03

NAMES = ["日本語🚀", "nai\u0308ve", "x" * 90, "plain"]


def on_a_terminal(*arguments: str, columns: int = 80, **env: str) -> str:
    """Everything that a command writes to a terminal of so many columns."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tramai", *arguments],
        env={**_env(), "COLUMNS": str(columns), **env},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    seen = b""
    while select.select([controller], [], [], 30)[0]:
        try:
            data = os.read(controller, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    process.wait(30)
    os.close(controller)
    return seen.decode()


def test_columns_line_up_and_long_names_are_cut_but_not_in_json() -> None:
    for name in NAMES:
        Path("case.yaml").write_text(
            workflow("- {id: a, local: 1}").replace("name: case", f"name: {name}"), encoding="utf-8"
        )
        assert call("run", "case.yaml").status == 0
    seen = on_a_terminal("list", columns=40, NO_COLOR="1")
    lines = seen.replace("\r\n", "\n").splitlines()
    dates = [cells(line[: re.search(r"\d{4}-\d\d-\d\d", line).start()]) for line in lines]  # type: ignore[union-attr]
    assert len(set(dates)) == 1
    assert any("…" in line for line in lines)
    assert {run["workflow"] for run in call("list").last["runs"]} == set(NAMES)


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"CI": "1"}])
def test_a_terminal_that_wants_no_colour_gets_none(env: dict[str, str]) -> None:
    save("- {id: a, shell: echo x}")
    seen = on_a_terminal("run", "case.yaml", **env)
    assert not re.search(r"\x1b\[[\d;]*m", seen) or "CI" in env
    if "TERM" in env:
        assert "\x1b" not in seen
        assert "\r" not in seen.replace("\r\n", "\n")


@pytest.mark.parametrize("arguments", [("list",), ("show", "@last"), ("validate", "case.yaml"), ("graph", "case.yaml")])
def test_no_locale_refuses_a_character(finished: Finished, arguments: tuple[str, ...]) -> None:
    Path("case.yaml").write_text(
        workflow("- {id: a, local: 日本}").replace("name: case", "name: 日本語🚀"), encoding="utf-8"
    )
    call("run", "case.yaml")
    ended = finished(*arguments, env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert ended.returncode == 0
    assert (ended.stdout + ended.stderr).isascii()
    assert "\x1b" not in ended.stdout + ended.stderr


# O05


def test_every_ending_has_its_own_status_and_the_page_says_so(start: Start) -> None:
    seen: dict[str, int] = {}

    def end(what: str, steps: str, top: str = "") -> None:
        seen[what] = call("run", save(steps, top)).status

    end("completed", "- {id: a, local: 1}")
    end("failed", "- {id: a, shell: exit 9}")
    end("invalid", "- {id: a, shel: x}")
    end("rejected", "- {id: a, gate: {check: '${{ 1 > 2 }}', reason: no}}")
    end("suspended", "- {id: a, delay: 2h}")
    end("no secret", "- {id: a, local: 1}", "secrets: {T: {env: TRAMAI_NO_SUCH}}")
    save("- {id: a, local: 1}")
    seen["wrong command line"] = call("run", "case.yaml", "--no-such-flag").status
    seen["no such run"] = call("show", "nobody").status
    Path("broken.db").write_text("x" * 5000)
    seen["no store"] = call("run", "case.yaml", "--store", "sqlite:broken.db").status
    save("- {id: a, shell: 'touch started; sleep 60'}")
    process = start("run", "case.yaml")
    eventually(lambda: Path("started").exists())
    seen["conflict"] = call("resume", "@last").status
    call("cancel", "@last")
    process.communicate(timeout=20)
    seen["cancelled"] = process.returncode
    assert seen == {
        "completed": 0,
        "failed": 1,
        "wrong command line": 2,
        "invalid": 3,
        "no such run": 4,
        "conflict": 5,
        "no secret": 6,
        "no store": 7,
        "rejected": 10,
        "suspended": 11,
        "cancelled": 12,
    }
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    rows = page.partition("## Exit codes")[2].partition("\n## ")[0]
    assert set(seen.values()) <= {int(number) for number in re.findall(r"\b\d+\b", rows)}


# O06


@pytest.mark.parametrize("format", ["yaml", "toml"])
def test_a_file_on_standard_input_works_where_we_are(format: str) -> None:
    text = workflow("- {id: a, shell: {run: 'cat here', parse: text}}", "outputs: {a: '${{ steps.a.output }}'}")
    if format == "toml":
        text = (
            'tramai = 1\nname = "case"\noutputs = {a = "${{ steps.a.output }}"}\n'
            '[[steps]]\nid = "a"\nshell = {run = "cat here", parse = "text"}\n'
        )
    Path("here").write_text("beside")
    ended = subprocess.run(
        [sys.executable, "-m", "tramai", "run", "-"], env=_env(), input=text, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, "a: beside\n")
    checked = subprocess.run(
        [sys.executable, "-m", "tramai", "validate", "-"], env=_env(), input=text, capture_output=True, text=True
    )
    assert checked.returncode == 0
    assert "1 file checked, no problems" in checked.stdout


def test_two_runs_at_once_share_nothing(start: Start) -> None:
    save(
        """
        - id: a
          shell: {run: 'echo "$ME"; echo "$TRAMAI_RUN_ID" >> ids; mktemp', env: {ME: "${{ inputs.me }}"}, parse: lines}
        """,
        "inputs: {me: {type: string}}\noutputs: {a: '${{ steps.a.output }}'}",
    )
    both = [start("run", "case.yaml", "--json", "-i", f"me={me}") for me in ("one", "two")]
    ends = [process.communicate(timeout=60)[0].splitlines() for process in both]
    last = [json.loads(lines[-1]) for lines in ends]
    assert [end["outputs"]["a"][0] for end in last] == ["one", "two"]
    assert len({end["outputs"]["a"][1] for end in last}) == 2
    assert len(set(content("ids").split())) == 2
    logs: Any = [call("logs", json.loads(lines[0])["run_id"]).last["logs"] for lines in ends]
    assert [log["text"].splitlines()[0] for (log,) in logs] == ["one", "two"]
    assert len({log["file"] for (log,) in logs}) == 2


def test_what_a_step_writes_is_seen_at_once_with_its_name_and_kept(start: Start) -> None:
    save("- {id: talk, shell: 'echo first; while [ ! -e go ]; do sleep 0.05; done; echo last'}")
    process = start("run", "case.yaml")
    assert process.stderr is not None
    began = time.monotonic()
    for line in process.stderr:
        if "first" in line:
            break
    assert time.monotonic() - began < 20
    assert re.search(r"talk\W+first", line)
    assert process.poll() is None
    Path("go").touch()
    process.communicate(timeout=20)
    assert text_of("logs", "@last") == "first\nlast\n"
