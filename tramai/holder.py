"""The process behind a lease, told from every other one: a dead one is known dead at once, where that is certain.

Names are not: containers of one image, or machines made of one picture, go by the same host name and count their
processes from 1. Whoever cannot tell takes the holder to be alive, and waits for its lease to end.
"""

from __future__ import annotations

import os

import msgspec

_FIRST_SPACE = "pid:[4026531836]"
"""The PID namespace of the system itself, by the number that the kernel gives it on every machine."""


class Holder(msgspec.Struct, frozen=True):
    """The process behind a lease, so that a dead one is known dead at once on its own host."""

    host: str
    boot: str
    pid: int
    start: str
    """The process's start time as the kernel counts it; empty where that cannot be known."""
    space: str = ""
    """The PID namespace in which `pid` counts, for a container has its own; empty where there is none to know."""
    machine: str = ""
    """The id of the machine; empty where it has none, and in containers, which may have one from their image."""

    @staticmethod
    def here() -> Holder:
        """This process."""
        pid = os.getpid()
        _, start = _stat(pid) or ("", "")
        return Holder(os.uname().nodename, _boot_id(), pid, start, _space(), _machine())

    def known_dead(self) -> bool:
        """True only if this very process is certainly gone: before another boot of this machine, or from this one."""
        if self.host != os.uname().nodename:
            return False
        boot = _boot_id()
        if self.boot != boot:
            return bool(self.boot and boot and self.machine) and self.machine == _machine()
        return bool(self.start) and self.space == _space() and self._is_gone()

    def _is_gone(self) -> bool:
        """Whether no process of this namespace has its id, or one that was started at another time."""
        if self.pid < 1:
            return True
        found = _stat(self.pid)
        if found is not None:
            return found[0] in ("Z", "X") or found[1] != self.start
        # Others' processes may be hidden from this user (`hidepid`); the kernel still says whether there is one.
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False
        return False


def _stat(pid: int) -> tuple[str, str] | None:
    """The state of a process and its start time; None where they cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None


def _boot_id() -> str:
    return _line("/proc/sys/kernel/random/boot_id")


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _machine() -> str:
    return _line("/etc/machine-id") if _space() == _FIRST_SPACE else ""


def _line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
