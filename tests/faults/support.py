"""What the fault suites share: the stores that can be reached from several processes, and programs that print JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLAIN = ("sqlite", "file", "markdown")
SHARED = (*PLAIN, "postgres")


def url_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """A store of a kind, new and the test's own; a server is started for the first that needs one."""
    if kind == "postgres":
        return str(request.getfixturevalue("database").url())
    return f"{kind}:{folder / ('runs.db' if kind == 'sqlite' else 'runs')}"


def program(module: str, *, under: tuple[str, ...] = (), timeout: float = 600.0, **given: Any) -> Any:
    """What `python -m module JSON` prints, as data."""
    ended = subprocess.run(
        [*under, sys.executable, "-m", module, json.dumps(given)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout)


def environment() -> dict[str, str]:
    """The environment without what a user of these tests may have set."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TRAMAI_")}


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Return when it is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def running(pid: int) -> bool:
    """Whether a process is there and no mere remainder."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
