"""Gates at a terminal: asked in place, once nothing else is left to do."""

from __future__ import annotations

import getpass
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import Result

from tests.cli.conftest import ROOT, document, write
from tests.cli.test_people import SIMPLE, TWO

Call = Callable[..., Result]
PATIENCE = 30.0
FORM = """\
tramai: 1
name: form
steps:
  - id: ok
    gate:
      ask: Release it?
      show: {text: "\\e[31mred [bold]"}
      form:
        properties:
          ticket: {type: string, pattern: "^OPS-"}
          percent: {type: integer, default: 10}
          note: {type: string}
        required: [ticket]
outputs: {it: "${{ steps.ok.output }}"}
"""


class Seat:
    """Somebody at a terminal, who reads and types."""

    def __init__(self, process: subprocess.Popen[str], handle: int) -> None:
        self.process = process
        self._handle = handle
        self._seen = ""

    def reads(self, text: str) -> str:
        """Wait until this was written; all up to it that was not read yet."""
        ends = time.monotonic() + PATIENCE
        while text not in self._seen:
            assert self._more(ends - time.monotonic()), f"{text!r} was not written: {self._seen!r}"
        place = self._seen.index(text) + len(text)
        seen, self._seen = self._seen[:place], self._seen[place:]
        return seen

    def _more(self, seconds: float) -> bool:
        """Read what is written next; False when nothing comes any more."""
        ready, _, _ = select.select([self._handle], [], [], max(seconds, 0.0))
        try:
            data = os.read(self._handle, 65536) if ready else b""
        except OSError:
            data = b""
        self._seen += data.decode("utf-8", "replace")
        return bool(data)

    def types(self, text: str) -> None:
        os.write(self._handle, text.encode())

    def ends(self) -> tuple[int, str]:
        """Exit status and standard output."""
        out, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out


@contextmanager
def sitting(*arguments: str, **env: str) -> Iterator[Seat]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tramai", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    try:
        yield Seat(process, ours)
    finally:
        process.kill()
        process.communicate()
        os.close(ours)


def test_somebody_approves_in_place() -> None:
    write("w.yaml", SIMPLE)
    with sitting("run", "w.yaml") as seat:
        seat.reads("approve? [y]es, [n]o, Enter: later ")
        seat.types("y\n")
        seat.reads("comment (Enter: none): ")
        seat.types("\n")
        assert seat.ends() == (0, f"by: {getpass.getuser()}\n")


def test_somebody_rejects_in_place_and_says_why() -> None:
    write("w.yaml", SIMPLE)
    with sitting("run", "w.yaml") as seat:
        seat.reads("later ")
        seat.types("perhaps\nno\n")
        seat.reads("comment (Enter: none): ")
        seat.types("not today\n")
        assert "rejected it: not today" in seat.reads("TRM403") + seat.reads("tramai resume")
        assert seat.ends()[0] == 10


def test_a_form_is_filled_in_field_by_field_and_what_does_not_fit_is_asked_again(tramai: Call) -> None:
    write("w.yaml", FORM)
    with sitting("run", "w.yaml") as seat:
        shown = seat.reads("later ")
        assert "\x1b[31mred" not in shown, "data never steer the terminal"
        assert "[bold]" in shown
        seat.types("yes\n")
        seat.reads("ticket (required): ")
        seat.types("\n")
        assert "must match" in seat.reads("ticket (required): ")
        seat.types("OPS-7\n")
        seat.reads("note: ")
        seat.types("\n")
        seat.reads("percent [10]: ")
        seat.types("many\n")
        assert "must be an integer" in seat.reads("percent [10]: ")
        seat.types("\n")
        seat.reads("comment (Enter: none): ")
        seat.types("fine\n")
        status, out = seat.ends()
    assert status == 0
    assert "ticket: OPS-7" in out
    assert "percent: 10" in out
    assert "comment: fine" in out


@pytest.mark.parametrize("typed", ["\n", "\x04"], ids=["enter", "end of input"])
def test_whoever_does_not_want_to_decide_leaves_the_run_waiting(tramai: Call, typed: str) -> None:
    write("w.yaml", SIMPLE)
    with sitting("run", "w.yaml") as seat:
        seat.reads("later ")
        seat.types(typed)
        seat.reads("tramai approve ")
        assert seat.ends()[0] == 11
    assert tramai("approve", "@last", "--resume").exit_code == 0


def test_a_run_that_waits_is_asked_again_by_resume(tramai: Call) -> None:
    write("w.yaml", SIMPLE)
    assert tramai("run", "w.yaml").exit_code == 11
    with sitting("resume", "@last") as seat:
        seat.reads("later ")
        seat.types("y\n\n")
        assert seat.ends()[0] == 0


def test_one_question_is_asked_after_the_other(tramai: Call) -> None:
    write("w.yaml", TWO)
    with sitting("run", "w.yaml") as seat:
        assert "Release in eu?" in seat.reads("later ")
        seat.types("y\n\n")
        assert "Release in us?" in seat.reads("later ")
        seat.types("y\n\n")
        assert seat.ends()[0] == 0


def test_somebody_else_may_decide_meanwhile(tramai: Call) -> None:
    write("w.yaml", SIMPLE)
    with sitting("run", "w.yaml") as seat:
        seat.reads("later ")
        result = tramai("approve", "@last", "--as", "ann")
        assert (result.exit_code, "its runner goes on" in result.stderr) == (0, True)
        seat.reads("decided meanwhile")
        assert seat.ends() == (0, "by: ann\n")


def test_ctrl_c_at_a_question_interrupts_the_run_and_the_question_stays(tramai: Call) -> None:
    write("w.yaml", SIMPLE)
    with sitting("run", "w.yaml") as seat:
        seat.reads("later ")
        seat.process.send_signal(signal.SIGINT)
        seat.reads("tramai resume")
        assert seat.ends()[0] == 130
    found = document(tramai("show", "@last", "--json"))["run"]
    assert (found["status"], [one["path"] for one in found["questions"]]) == ("ready", ["ok"])
    assert tramai("approve", "@last", "--resume").exit_code == 0


def test_whoever_is_no_approver_is_told_who_may(tramai: Call) -> None:
    write("w.yaml", SIMPLE.replace("{ask: Go on?}", "{ask: Go on?, approvers: [ann, bob]}"))
    with sitting("run", "w.yaml") as seat:
        shown = seat.reads("may not decide here")
        assert "who may decide: ann, bob" in shown
        assert seat.ends()[0] == 11


def test_the_end_of_the_time_is_noticed_at_the_question() -> None:
    write("w.yaml", SIMPLE.replace("{ask: Go on?}", "{ask: Go on?, timeout: 1500ms, on_timeout: approve}"))
    with sitting("run", "w.yaml") as seat:
        seat.reads("later ")
        assert seat.ends() == (0, "by: timeout\n")


@pytest.mark.parametrize(("arguments", "env"), [(("--no-input",), {}), (("--json",), {}), ((), {"CI": "true"})])
def test_nobody_is_asked_where_nobody_sits(arguments: tuple[str, ...], env: dict[str, Any]) -> None:
    write("w.yaml", SIMPLE)
    with sitting("run", "w.yaml", *arguments, **env) as seat:
        assert seat.ends()[0] == 11
