"""Run a workflow by the command line, in this process or one of its own, and look at what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from click.testing import CliRunner

from tests.cli.conftest import ROOT
from tramai.cli._group import group


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    lines: list[Any]
    """The JSON documents on standard output."""
    err: str

    @property
    def last(self) -> Any:
        """The last document: of a run, how it finished."""
        return self.lines[-1]

    @property
    def outputs(self) -> Any:
        """The outputs of a run that completed."""
        assert self.last.get("status") == "completed", self
        return self.last["outputs"]

    @property
    def error(self) -> Any:
        """The error of a run or of a command that failed."""
        return self.last["error"]

    def step_ends(self) -> list[tuple[str, str]]:
        """`(path, status)` of every step, as they ended."""
        return [(line["path"], line["status"]) for line in self.lines if line.get("type") == "step.finished"]


def workflow(steps: str, top: str = "") -> str:
    """A whole file around some steps."""
    head, block = textwrap.dedent(top).strip(), textwrap.indent(textwrap.dedent(steps), "  ")
    return f"tramai: 1\nname: case\n{head}\nsteps:\n{block}\n"


def save(steps: str, top: str = "", *, name: str = "case.yaml") -> str:
    """Write such a file into the working folder; its name."""
    Path(name).write_text(workflow(steps, top), encoding="utf-8")
    return name


def call(*arguments: str, stdin: str | None = None) -> Ended:
    """Run a command in this process, with `--json`."""
    result = CliRunner().invoke(group, [*arguments, "--json"], input=stdin)
    assert "Traceback" not in result.output
    return Ended(result.exit_code, [msgspec.json.decode(line) for line in result.stdout.splitlines()], result.stderr)


def text_of(*arguments: str) -> str:
    """What a command prints for people, on both streams, whatever its exit status."""
    result = CliRunner().invoke(group, list(arguments))
    assert "Traceback" not in result.output
    return result.output


def problems(file: str) -> list[dict[str, Any]]:
    """What `validate` finds in a file; its exit status must fit, and `run` must refuse the file without a trace."""
    checked = call("validate", file)
    found = [dict(problem) for problem in checked.last["files"][0]["problems"]]
    errors = [problem for problem in found if problem["severity"] == "error"]
    assert checked.status == bool(errors)
    if errors:
        refused = call("run", file)
        assert refused.status == 3
        assert refused.error["code"] == errors[0]["code"]
        assert refused.error["line"] == errors[0]["line"]
        assert not Path(".tramai").exists()
    return found


def shown(run: str = "@last") -> dict[str, Any]:
    """The run in the store, as `show` tells it."""
    return dict(call("show", run).last["run"])


def attempts(run: dict[str, Any]) -> dict[str, list[str]]:
    """The status of every attempt of every step."""
    return {step["path"]: [attempt["status"] for attempt in step["attempts"]] for step in run["steps"]}


def eventually(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """The first true answer."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if answer := condition():
            return answer
        time.sleep(0.02)
    raise AssertionError("it never happened")


def content(path: str) -> str:
    """The text of a file, empty while there is none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Measured(NamedTuple):
    """How a process ended, and what it cost."""

    status: int
    out: str
    err: str
    seconds: float
    """CPU time."""
    megabytes: float
    """The most memory it had at once."""


_LAUNCHER = """
import os, sys
process = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[2:]], os.environ)
_, status, used = os.wait4(process, 0)
os.write(int(sys.argv[1]), f"{status} {used.ru_utime + used.ru_stime} {used.ru_maxrss}".encode())
"""


def measure(*arguments: str) -> Measured:
    """Run a command as a process of its own.

    Between fork and exec a process counts the memory of its parent as its own, so a small one starts it.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reader, writer = os.pipe()
        subprocess.run(
            [sys.executable, "-S", "-E", "-c", _LAUNCHER, str(writer), "-m", "tramai", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            pass_fds=(writer,),
            check=True,
        )
        os.close(writer)
        with open(reader, encoding="ascii") as told:
            status, seconds, kilobytes = told.read().split()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "backslashreplace"))
    return Measured(os.waitstatus_to_exitcode(int(status)), *texts, float(seconds), int(kilobytes) / 1024)
