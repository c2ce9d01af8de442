"""The workers of the chaos: real processes, some with a clock that is set wrong, one behind a link that can be cut.

Whoever dies is replaced. Everything that they start carries the name of the folder in its environment, so that whatever
is left of it can be found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..faults.support import ROOT, environment

MARK = "CHAOS_FOLDER"
LEASE, POLL, DRAIN = 4.0, 0.5, 2.0
_CLAIMS = "30"
"""So many deaths in a row are a fault of the run; fewer are the chaos."""
_LIBRARIES = "/usr/lib/*/faketime/libfaketimeMT.so.1"


class Kind:
    """How the workers of one place are started."""

    def __init__(
        self, name: str, *, url: str, front: Sequence[str] = (), more: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.url = url
        self.front = tuple(front)
        self.more = dict(more or {})


def wrong_clock(minutes: int) -> dict[str, str] | None:
    """The variables under which a program sees another time of day; None where libfaketime is missing."""
    found = sorted(Path("/").glob(_LIBRARIES.lstrip("/")))
    if not found:
        return None
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": f"{minutes:+d}m",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": str(Path(__file__).parent / "clock"),
    }


class One:
    """A place in the fleet and the process that fills it now."""

    def __init__(self, kind: Kind, process: subprocess.Popen[bytes]) -> None:
        self.kind = kind
        self.process = process

    def slots(self) -> list[int]:
        """The processes that carry its runs."""
        return [pid for pid in children(self.process.pid) if b"tramai.cli._slot" in words(pid)]

    def watchdogs(self) -> list[int]:
        """The processes that end what its slots have started when these are gone."""
        under = [pid for slot in self.slots() for pid in children(slot)]
        return [pid for pid in under if b"waits for the end of a runner" in words(pid)]


class Fleet:
    """So many workers, as long as it is asked to keep them."""

    def __init__(self, folder: Path, kinds: Sequence[Kind], *, concurrency: int = 2) -> None:
        self._folder = folder
        self._concurrency = concurrency
        self.started = 0
        self.statuses: list[int] = []
        """With what those ended that were asked to."""
        self.asked: set[int] = set()
        self._asleep: dict[int, float] = {}
        """Processes that were stopped, and when they are let go on."""
        self.places = [One(kind, self._start(kind)) for kind in kinds]

    def _start(self, kind: Kind) -> subprocess.Popen[bytes]:
        self.started += 1
        words = [*kind.front, sys.executable, "-P", "-m", "tramai", "worker", "--store", kind.url]
        words += ["--concurrency", str(self._concurrency), "--lease", f"{LEASE:g}s", "--poll", f"{POLL:g}s"]
        words += ["--drain-timeout", f"{DRAIN:g}s", "--max-claims", _CLAIMS]
        own = {MARK: str(self._folder), "PYTHONPATH": str(ROOT)}
        if "PYTHONPATH" in kind.more:
            own["PYTHONPATH"] = f"{kind.more['PYTHONPATH']}:{ROOT}"
        with open(self._folder / "workers.log", "ab") as log:
            return subprocess.Popen(
                words,
                cwd=self._folder,
                env={**environment(), **kind.more, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def tend(self) -> None:
        """Let those go on whose time has come, and replace who is gone."""
        for pid, until in list(self._asleep.items()):
            if time.monotonic() >= until:
                self._wake(pid)
        for one in self.places:
            if one.process.poll() is not None:
                if one.process.pid in self.asked:
                    self.statuses.append(one.process.returncode)
                one.process = self._start(one.kind)

    def stop(self, pids: Sequence[int], seconds: float) -> None:
        """Stop processes for a while, whatever becomes of their worker meanwhile."""
        for pid in pids:
            self._asleep[pid] = time.monotonic() + seconds
            send(pid, signal.SIGSTOP)

    def _wake(self, pid: int) -> None:
        del self._asleep[pid]
        send(pid, signal.SIGCONT)

    def ask(self, one: One) -> None:
        """Tell a worker to end."""
        self.asked.add(one.process.pid)
        send(one.process.pid, signal.SIGTERM)

    def end(self, patience: float) -> list[str]:
        """Tell all to end; what did not go as it should."""
        for pid in list(self._asleep):
            self._wake(pid)
        for one in self.places:
            self.ask(one)
        limit, wrong = time.monotonic() + patience, []
        for one in self.places:
            try:
                status = one.process.wait(max(limit - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                wrong.append(f"worker {one.process.pid} ({one.kind.name}) did not end in {patience:.0f} s")
                self.kill(one)
            else:
                self.statuses.append(status)
        return wrong

    def kill(self, one: One) -> None:
        """Kill a worker; its slots find out by themselves."""
        self.asked.discard(one.process.pid)
        send(one.process.pid, signal.SIGKILL)
        one.process.wait()


def children(pid: int) -> list[int]:
    """The processes that one has started."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        pass
    return found


def words(pid: int) -> bytes:
    """How a process was called; nothing for one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def tidy() -> None:
    """Remove what libfaketime leaves in memory for each program that was killed under it."""
    for path in Path("/dev/shm").glob("*faketime_s*_*"):
        number = path.name.rpartition("_")[2]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            path.unlink(missing_ok=True)


def left_behind(folder: Path, *, within: float = 30.0) -> list[str]:
    """What is still there of all that was started in a folder, a while after its workers have ended."""
    limit = time.monotonic() + within
    while (found := _marked(folder)) and time.monotonic() < limit:
        time.sleep(0.1)
    return found


def _marked(folder: Path) -> list[str]:
    text, found = str(folder).encode(), []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes()
            state = Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()[0]
            if state not in "ZX" and (text in words or text in Path(f"/proc/{name}/environ").read_bytes()):
                found.append(f"{name}: {words.replace(bytes(1), b' ').decode(errors='replace')[:120]}")
        except OSError:
            continue
    return found
