"""What tests ask of processes that were started by what they test."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def alive(text: str) -> list[int]:
    """Processes with the text in their arguments, this one and zombies not counted."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if text.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                pass
    return found


def eventually(holds: Callable[[], Any], *, within: float = 5.0) -> bool:
    """Whether something comes to hold in that many seconds."""
    until = time.monotonic() + within
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def with_variable(name: str, value: str) -> list[int]:
    """Processes with a variable of that value in their environment, this one not counted."""
    found, wanted = [], f"\0{name}={value}\0".encode()
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            try:
                if wanted in b"\0" + Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(int(pid))
            except OSError:
                pass
    return found
