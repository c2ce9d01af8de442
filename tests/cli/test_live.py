"""The live region, on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading

from tests.cli.conftest import ROOT, write

SEVERAL = """\
tramai: 1
name: several
steps:
  - id: prepare
    shell: echo preparing
  - id: fan
    parallel:
      items: ${{ [1, 2, 3] }}
      as: n
      do:
        - id: work
          shell: {run: 'echo "[bold]item[/bold] $N"; sleep 0.4', env: {N: "${{ n }}"}}
  - id: build
    shell: 'echo before the end; sleep 0.3; exit 3'
"""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*arguments: str, columns: int = 80, **env: str) -> tuple[int, str, str]:
    """Exit status, standard output, and all that standard error wrote to a terminal."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    seen: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:
                return
            if not data:
                return
            seen.append(data)

    process = subprocess.Popen(
        [sys.executable, "-m", "tramai", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    out, _ = process.communicate(timeout=60)
    reader.join(timeout=10)
    os.close(ours)
    return process.returncode, out, b"".join(seen).decode("utf-8", "replace")


def test_one_line_stays_for_each_step_and_the_failure_comes_after_it() -> None:
    write("several.yaml", SEVERAL)
    status, _, err = on_terminal("run", "several.yaml")
    assert status == 1
    text = ESCAPES.sub("", err)
    assert "✓ prepare" in text
    assert "✓ fan" in text
    assert text.count("✓ fan[") == 0, "items are summed up by their container"
    assert text.index("✗ build") < text.index("error[TRM401]") < text.index("tramai resume")
    assert "before the end" in text
    assert "\x1b[?" not in err, "the cursor is never hidden, and no mode changed"


def test_running_steps_are_shown_while_they_run() -> None:
    write("several.yaml", SEVERAL)
    _, _, err = on_terminal("run", "several.yaml")
    text = ESCAPES.sub("", err)
    assert re.search(r"▸ fan\[[0-2]\]\.work", text)
    assert "[bold]item[/bold]" in text, "text of children is never markup"


def test_no_color_is_live_without_colour() -> None:
    write("several.yaml", SEVERAL)
    _, _, err = on_terminal("run", "several.yaml", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*m", err.replace("\x1b[0m", ""))
    assert "\x1b[J" in err


def test_a_dumb_terminal_and_a_ci_get_plain_lines() -> None:
    write("several.yaml", SEVERAL)
    for arguments in ((), ("--progress", "live")):
        _, _, err = on_terminal("run", "several.yaml", *arguments, TERM="dumb")
        assert "\x1b" not in err
    _, _, err = on_terminal("run", "several.yaml", CI="true")
    assert "\x1b[J" not in err
    assert "fan[0].work" in err


def test_plain_on_a_terminal_writes_no_escape_byte() -> None:
    write("several.yaml", SEVERAL)
    _, _, err = on_terminal("run", "several.yaml", "--progress", "plain")
    assert "\x1b" not in err


def test_forty_columns_cut_words_but_never_paths() -> None:
    path = "a_long_name_for_a_step_indeed"
    write("long.yaml", f"tramai: 1\nname: long\nsteps:\n  - {{id: {path}, shell: 'echo {'x' * 200}; exit 3'}}\n")
    _, _, err = on_terminal("run", "long.yaml", "--progress", "plain", columns=40)
    assert path in err
    assert "exit status 3" in err


def test_quiet_shows_results_and_errors_only() -> None:
    write("several.yaml", SEVERAL)
    _, out, err = on_terminal("run", "several.yaml", "-q", "--color", "never")
    assert out == ""
    assert err.startswith("error[TRM401]: step 'build' failed")
    assert "prepare" not in err


CHILD = """\
tramai: 1
name: child
steps:
  - {id: wait, shell: 'echo so far; sleep 0.5'}
  - {id: end, shell: exit 3}
"""


def test_a_called_run_is_the_last_word_of_its_caller_and_its_failure_stays() -> None:
    write("child.yaml", CHILD)
    outer = write("outer.yaml", "tramai: 1\nname: outer\nsteps:\n  - {id: ask, call: ./child.yaml}\n")
    status, _, seen = on_terminal("run", outer, "--store", "memory:", "--progress", "live")
    lines = [ESCAPES.sub("", line) for line in re.split(r"[\r\n]+", seen)]
    assert status == 1
    assert any("ask" in line and "wait: so far" in line for line in lines)
    assert any("ask › end" in line and "failed: exit status 3" in line for line in lines)
    assert not any("✓ ask › wait" in line for line in lines)
