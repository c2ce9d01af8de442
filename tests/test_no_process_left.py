"""However a run ends, no process of any of its steps is left: not the deaf ones, nor those that left their session.

Every verb that starts programs starts the same tree here. In the quick form all of them are one run; each by itself is
`slow`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .processes import alive, eventually, with_variable

ROOT = Path(__file__).resolve().parent.parent
# Children that ignore SIGTERM: one in the background, one in a session of its own with a child, one without a parent
# and without a file that leads back. Then the parent itself, which ignores what it is sent.
TREE = """\
trap '' TERM INT HUP
sleep "$1" &
setsid sh -c 'trap "" TERM HUP; sleep "$0" & exec sleep "$0"' "$1" > /dev/null 2>&1 < /dev/null &
( setsid -f sh -c 'trap "" TERM HUP; exec sleep "$0"' "$1" > /dev/null 2>&1 < /dev/null )
: > "$2"
while :; do sleep "$1"; done
"""
TREE_SIZE = 5
"""The least number of processes with the seconds among their arguments."""
# What has to be waited for with those who are deaf, shortened.
LAUNCH = """
import sys
from tramai.steps import _agent_run, _mcp_stdio
_agent_run.KILL_AFTER = _mcp_stdio.KILL_AFTER = 0.3
from tramai.cli.entry import main
sys.exit(main())
"""
AGENTS = ("codex", "claude", "hermes")
VERBS = {
    "shell": "shell: {run: 'exec sh \"$TREE\" NAP READY', kill_after: 300ms}",
    "argv": "shell: {argv: [sh, TREE, 'NAP', READY], kill_after: 300ms}",
    "sandbox": "shell: {run: 'exec sh \"$TREE\" NAP READY', kill_after: 300ms, sandbox: true}",
    **{verb: f"{verb}: {{prompt: work}}" for verb in AGENTS},
    "mcp": "mcp: {server: {command: [server], env: {PATH: 'PATHS'}}, tool: sleep}",
}
if shutil.which("bwrap") is None:
    del VERBS["sandbox"]
ENDS = ("timeout", "cancel", "ctrl-c", "ctrl-c twice", "term", "kill")


class Run:
    """A run of some verbs side by side, in a folder of its own."""

    def __init__(self, folder: Path, nap: str, verbs: list[str]) -> None:
        self.folder, self.nap, self.verbs = folder, nap, verbs
        self.paths = f"{folder / 'bin'}:{os.environ['PATH']}"
        (folder / "tree.sh").write_text(TREE)
        (folder / "bin").mkdir()
        tree = f"sh {folder / 'tree.sh'} {nap} {folder / 'ready'}"
        for verb in AGENTS:
            self.program(verb, f"exec {tree}-{verb}")
        server = f"{sys.executable} {ROOT / 'tests' / 'mcp_server.py'} stubborn {nap}"
        self.program("server", f"{tree}-mcp > /dev/null 2>&1 < /dev/null &\nexec {server}")

    def program(self, name: str, body: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def start(self, timeout: str | None) -> subprocess.Popen[str]:
        """Start it, and come back when every tree stands."""
        end = f", timeout: {timeout}" if timeout else ""
        lines = ["tramai: 1", "name: trees", f"env: {{PATH: '{self.paths}', TREE: {self.folder}/tree.sh}}"]
        lines += ["steps:", "  - id: all", "    parallel:", "      branches:"]
        for verb in self.verbs:
            text = VERBS[verb].replace("NAP", self.nap).replace("READY", f"{self.folder}/ready-{verb}")
            text = text.replace("PATHS", self.paths).replace("[sh, TREE", f"[sh, {self.folder}/tree.sh")
            lines.append(f"        {verb}: [{{id: it_{verb}, {text}{end}}}]")
        lines.append(f"  - {{id: after, shell: 'touch {self.folder}/after'}}")
        (self.folder / "flow.yaml").write_text("\n".join(lines))
        runner = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, "run", "flow.yaml", "--no-input"],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if not eventually(lambda: self.stands() or runner.poll() is not None, within=30) or runner.poll() is not None:
            runner.kill()
            pytest.fail(f"not all of it has begun: {os.listdir(self.folder)}\n{runner.communicate()[0]}")
        return runner

    @property
    def env(self) -> dict[str, str]:
        cache = str(self.folder / "cache")
        return {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(self.folder / "bin"), "XDG_CACHE_HOME": cache}

    def stands(self) -> bool:
        return all((self.folder / f"ready-{verb}").exists() for verb in self.verbs)

    def left(self) -> set[int]:
        """Processes of any of its steps."""
        return {*alive(self.nap), *with_variable("TREE", f"{self.folder}/tree.sh")}


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    nap = f"5{random.randrange(10**9):09d}"
    yield lambda verbs: Run(tmp_path, nap, verbs)
    for pid in alive(nap):
        os.kill(pid, signal.SIGKILL)


def end(run: Run, how: str) -> None:
    """Bring a run to its end in one of the ways, and see that it was that way."""
    runner = run.start("6s" if how == "timeout" else None)
    assert len(run.left()) >= TREE_SIZE * len(run.verbs)
    status = {"timeout": 1, "cancel": 12, "ctrl-c": 130, "ctrl-c twice": 130, "term": 143, "kill": -9}[how]
    if how == "cancel":
        command = [sys.executable, "-m", "tramai", "cancel", "@last"]
        subprocess.run(command, cwd=run.folder, env=run.env, check=True, capture_output=True, timeout=30)
    elif how != "timeout":
        numbers = {"term": signal.SIGTERM, "kill": signal.SIGKILL}
        runner.send_signal(numbers.get(how, signal.SIGINT))
        if how == "ctrl-c twice":
            time.sleep(0.05)
            runner.send_signal(signal.SIGINT)
    said = runner.communicate(timeout=30)[0]
    assert runner.returncode == status, said
    assert not (run.folder / "after").exists()
    # Whoever ends by itself has seen to the end of everything before; a killed one leaves it to others.
    within = 5.0 if how == "kill" else 0.5
    assert eventually(lambda: not run.left(), within=within), [
        Path(f"/proc/{pid}/cmdline").read_bytes() for pid in run.left()
    ]


@pytest.mark.parametrize("how", ENDS)
def test_no_process_of_any_step_is_left(begin: Callable[..., Run], how: str) -> None:
    end(begin(list(VERBS)), how)


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("verb", VERBS)
def test_no_process_of_a_step_by_itself_is_left(begin: Callable[..., Run], verb: str, how: str) -> None:
    end(begin([verb]), how)
