"""The lines at the bottom of a terminal: never more than there is room for, and nothing of them left."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, write
from tests.cli.test_signals import alive, wait_for
from tests.screen import Screen
from tramai.cli import _live
from tramai.cli._live import Live
from tramai.cli._region import Region
from tramai.cli._terminal import Terminal, cells
from tramai.event import GateAsked, RunStarted, StepFinished, StepOutput, StepProgress, StepStarted

RUN = RunStarted(
    run_id="0193a000-0000-7000-8000-0000k3f9q2mz", workflow="w", version="1", digest="9" * 64, resumed=False
)
WORST = "\x1b[2J\r\n::error::x 日本語🚀 ☺\ufe0f nai\u0308ve " + "x" * 300


class Sized(io.StringIO):
    """A terminal of a size."""

    encoding = "utf-8"

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.size = os.terminal_size((columns, rows))

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 99

    def screen(self) -> Screen:
        return Screen(*self.size).feed(self.getvalue().replace("\n", "\r\n"))


@pytest.fixture
def sized(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], Sized]:
    """Make a terminal of a size that we are told by the system."""

    def make(columns: int, rows: int) -> Sized:
        stream = Sized(columns, rows)
        monkeypatch.setattr(os, "get_terminal_size", lambda _: stream.size)
        return stream

    return make


def quiet(stream: io.StringIO, names: tuple[str, ...] = ()) -> Live:
    """A view that draws only when it is told: with an event that leaves a line, or at its end."""
    live = Live(Terminal(stream, env={"TERM": "xterm"}, colour="never"), names)
    live._beat = lambda: None  # type: ignore[method-assign]
    return live


def began(path: str, seconds: float = 3.0) -> StepStarted:
    return StepStarted(path=path, id=path, verb="shell", attempt=1, at=time.time() - seconds)


def ended(path: str, status: str = "succeeded") -> StepFinished:
    return StepFinished(path=path, id=path, verb="shell", attempt=1, status=status, duration=3.0)


@pytest.mark.parametrize("columns", [1, 7, 16, 20, 40, 80, 200])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 24, 100])
def test_it_fits_into_any_terminal_and_leaves_only_the_lines_that_stay(
    sized: Callable[[int, int], Sized], columns: int, rows: int
) -> None:
    stream = sized(columns, rows)
    live = quiet(stream)
    live(RUN)
    live(StepStarted(path="fan", id="fan", verb="parallel", attempt=1, at=time.time() - 61))
    live(StepProgress(path="fan", id="fan", verb="parallel", done=3, total=30, failed=1))
    for number in range(20):
        path = f"fan[{number}].{'a_long_name_' * (number % 4)}work"
        live(began(path))
        live(StepOutput(path=path, stream="stdout", text=WORST))
    live(ended("fan[0].work", "failed"))
    drawn = stream.screen()
    assert drawn.highest <= 12
    region = [line for line in drawn.shown() if "▸" in line or "more" in line]
    assert len(region) <= min(12, max(rows - 2, 0))
    assert all(cells(line) < columns for line in region)
    if columns >= 80 and rows > 20:
        assert "3 of 30 items" in region[0]
        assert re.fullmatch(r"    and \d+ more", region[-1])
    live(ended("fan"))
    live.close()
    screen = stream.screen()
    assert not [line for line in screen.shown() if "▸" in line or "more" in line]
    assert screen.modes == []
    whole = "".join(screen.shown()).replace(" ", "")
    assert "k3f9q2mz" in whole
    assert "✗fan[0].work" in whole


def test_a_terminal_that_becomes_narrower_is_wiped_by_its_new_lines(sized: Callable[[int, int], Sized]) -> None:
    stream = sized(80, 24)
    region = Region(Terminal(stream, env={}))
    region.draw(["x" * 70, "y" * 10])
    stream.size = os.terminal_size((30, 24))
    region.draw([])
    assert stream.getvalue().endswith("\x1b[4A\r\x1b[J"), "seventy columns are three lines of thirty"


def test_a_line_that_stays_and_the_region_are_one_write(sized: Callable[[int, int], Sized]) -> None:
    stream = sized(80, 24)
    writes: list[str] = []
    stream.write = writes.append  # type: ignore[method-assign, assignment]
    live = quiet(stream)
    live(began("a"))
    live(began("b"))
    live(ended("a"))
    live(ended("b"))
    assert [len(re.findall("\n", text)) for text in writes] == [2, 1]
    assert writes[1].startswith("\x1b[1A\r\x1b[J  ✓ b")


def test_what_does_not_change_is_not_drawn_again(sized: Callable[[int, int], Sized]) -> None:
    stream = sized(80, 24)
    region = Region(Terminal(stream, env={}))
    region.draw(["one"])
    before = stream.getvalue()
    region.draw(["one"])
    assert stream.getvalue() == before


def test_a_quick_step_is_one_line_and_nothing_else(sized: Callable[[int, int], Sized]) -> None:
    stream = sized(80, 24)
    live = quiet(stream)
    live(RUN)
    live(began("a"))
    live(ended("a"))
    live.close()
    assert "\x1b[" not in stream.getvalue()


def test_a_process_that_was_stopped_draws_below_what_others_wrote(
    sized: Callable[[int, int], Sized], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live, "ASLEEP", -1.0)
    monkeypatch.setattr(_live, "TICK", 0.001)
    stream = sized(80, 24)
    live = Live(Terminal(stream, env={}), ())
    live(began("a"))
    while "a " not in stream.getvalue():
        time.sleep(0.001)
    with live._lock:
        stream.write("$ fg\n")
    seen = len(stream.getvalue())
    while len(stream.getvalue()) == seen:
        time.sleep(0.001)
    live.close()
    assert "$ fg" in stream.screen().shown()


def test_a_gate_that_waits_beside_others_is_shown_as_waiting(sized: Callable[[int, int], Sized]) -> None:
    stream = sized(80, 24)
    live = quiet(stream)
    live(began("ask"))
    live(began("other"))
    live(GateAsked(path="ask", id="ask", asking=1, ask="go?"))
    assert "⏸ ask" in stream.screen().shown()[-2]
    assert "▸ other" in stream.screen().shown()[-1]


def test_the_sum_of_a_fan_out_stays(sized: Callable[[int, int], Sized]) -> None:
    stream = sized(80, 24)
    live = quiet(stream)
    live(began("fan"))
    live(StepProgress(path="fan", id="fan", verb="foreach", done=7, total=7, failed=2))
    live(ended("fan"))
    live.close()
    assert stream.screen().shown()[-1].endswith("7 items, 2 failed")


# On a real terminal, with a session of its own.


class Terminals:
    """Programs that each have a terminal of their own, and are led by it."""

    def __init__(self) -> None:
        self.begun: list[tuple[subprocess.Popen[bytes], int]] = []

    def start(self, *arguments: str, columns: int = 80, rows: int = 24, **env: str) -> Program:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

        def lead() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        process = subprocess.Popen(
            [sys.executable, "-m", "tramai", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=lead,
        )
        os.close(theirs)
        self.begun.append((process, ours))
        return Program(process, ours, Screen(columns, rows))


class Program:
    """One of them, and its screen."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int, screen: Screen) -> None:
        self.process = process
        self.terminal = terminal
        self.screen = screen
        self.text = ""

    def read(self, until: str | None = None, seconds: float = 10.0) -> str:
        """Read until a text has come, or the terminal is left by everybody."""
        limit = time.monotonic() + seconds
        while until is None or until not in self.text:
            assert time.monotonic() < limit, self.text
            if not select.select([self.terminal], [], [], 0.5)[0]:
                continue
            try:
                data = os.read(self.terminal, 65536)
            except OSError:
                data = b""
            if not data:
                assert until is None, self.text
                break
            self.text += data.decode("utf-8", "replace")
            self.screen.feed(data.decode("utf-8", "replace"))
        return self.text

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)


@pytest.fixture
def terminals() -> Iterator[Terminals]:
    """Make terminals; whatever is still alive at the end is killed."""
    found = Terminals()
    yield found
    for process, terminal in found.begun:
        if process.poll() is None:
            process.kill()
        process.wait()
        try:
            os.close(terminal)
        except OSError:
            pass


SLOW = """\
tramai: 1
name: slow
steps:
  - {id: first, local: 1}
  - {id: second, shell: 'echo $$ > started; echo working; sleep 60'}
"""
STUBBORN = """\
tramai: 1
name: stubborn
steps:
  - id: first
    local: 1
  - id: second
    shell: |
      trap "" INT TERM
      echo $$ > started
      while true; do sleep 0.1; done
"""


def saved() -> Any:
    import json

    shown = subprocess.run(
        [sys.executable, "-m", "tramai", "show", "@last", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    return json.loads(shown.stdout)["run"]


def test_ctrl_c_is_told_once_and_leaves_a_clean_screen(terminals: Terminals) -> None:
    program = terminals.start("run", write("slow.yaml", SLOW))
    program.read("▸ second")
    child = int(wait_for("started"))
    program.type(b"\x03")
    program.read()
    assert program.process.wait(20) == 130
    lines = program.screen.shown()
    assert [line for line in lines if "stopping:" in line] == [
        "stopping: the step is ended and the run saved; once more kills it at once"
    ]
    assert not [line for line in lines if "▸" in line or "^C" in line]
    assert program.screen.modes == []
    assert lines[-1].strip().startswith("resume:")
    assert not alive(child)
    assert saved()["status"] == "ready"


def test_ctrl_c_twice_kills_what_runs(terminals: Terminals) -> None:
    program = terminals.start("run", write("stubborn.yaml", STUBBORN))
    program.read("▸ second")
    child = int(wait_for("started"))
    program.type(b"\x03")
    program.read("stopping:")
    program.type(b"\x03")
    program.read()
    assert program.process.wait(20) == 130
    assert not alive(child)
    assert not [line for line in program.screen.shown() if "▸" in line]


def test_a_terminal_that_goes_away_stops_the_run_after_saving(terminals: Terminals) -> None:
    program = terminals.start("run", write("slow.yaml", SLOW))
    program.read("▸ second")
    child = int(wait_for("started"))
    os.close(program.terminal)
    assert program.process.wait(20) == 129
    assert not alive(child)
    run = saved()
    assert (run["status"], [step["status"] for step in run["steps"]]) == ("ready", ["succeeded", "cancelled"])


def test_a_kill_leaves_a_terminal_that_works(terminals: Terminals) -> None:
    program = terminals.start("run", write("slow.yaml", SLOW))
    program.read("▸ second")
    child = int(wait_for("started"))
    program.process.send_signal(signal.SIGKILL)
    program.process.wait(20)
    limit = time.monotonic() + 20
    while alive(child) and time.monotonic() < limit:
        time.sleep(0.02)
    program.read()
    assert program.screen.modes == []
    assert program.screen.column == 0, "a prompt begins on a line of its own"


def test_a_terminal_that_is_resized_meanwhile_is_followed(terminals: Terminals) -> None:
    program = terminals.start("run", write("slow.yaml", SLOW), columns=200)
    program.read("▸ second")
    fcntl.ioctl(program.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    program.text = ""
    program.read("s\r\n")
    rows = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", program.text).splitlines()
    assert all(cells(row) < 30 for row in rows)
    program.type(b"\x03")
    program.read()


@pytest.mark.parametrize("columns", [20, 80])
def test_a_fan_out_counts_what_is_over(terminals: Terminals, columns: int) -> None:
    write(
        "fan.yaml",
        "tramai: 1\nname: fan\nsteps:\n  - id: fan\n    parallel:\n      items: [1, 2, 3, 4, 5, 6]\n      as: n\n"
        "      max: 3\n      do: [{id: work, shell: 'sleep 0.4'}]\n",
    )
    program = terminals.start("run", "fan.yaml", columns=columns)
    program.read()
    assert program.process.wait(20) == 0
    lines = program.screen.shown()
    assert not [line for line in lines if "▸" in line]
    if columns == 80:
        assert "of 6 it" in program.text
    assert "6 items" in "".join(lines)
    assert Path(".tramai").exists()
