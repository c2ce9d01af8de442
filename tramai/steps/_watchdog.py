"""One small process per runner that ends the runner's children when the runner is gone, however it went.

It is a shell that waits on a pipe which only the runner holds. The runner notes its living process groups in a file
without a name, which costs the watchdog nothing; at the end of the pipe the watchdog kills the groups it finds noted,
and then Python looks for survivors that carry the runner's mark (`_survivors`). With nothing noted it just ends. A
folder of files that were handed to children goes last.

It has a session of its own, no file of the runner's, no working folder, and nothing in its arguments that
`pkill -f tramai` would find.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterable

from . import _survivors

_SCRIPT = """\
# waits for the end of a runner, then ends the children it left
trap '' HUP INT TERM
cd /
read -r _
left=
while read -r group; do
    case $group in
        0*) ;;
        1*) left=1; group=${group#1}; group=${group#"${group%%[!0]*}"}
            [ -z "$group" ] || kill -s KILL -- "-$group" ;;
    esac
done <&3
[ -z "$left" ] || "$PYTHON" -I -S "$SWEEP" "$MARK"
[ ! -d "$FILES" ] || rm -rf -- "$FILES"
"""
# A slot of the note: 1 or 0 for used or free, ten digits of the group (none yet: zeros), a line end.
_SLOT = 12
_FREE = b"00000000000\n"


class Watchdog:
    """The watchdog of this process. `mark` stands in the environment of every child; `folder` is for files that are
    handed to children, and is made by who needs it."""

    def __init__(self) -> None:
        self.mark = os.urandom(8).hex()
        self.folder = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"tramai-files-{self.mark}")  # noqa: S108
        self._lock = threading.Lock()
        self._used: set[int] = set()
        self._note = _nameless()
        self._pid = 0
        self._pipe = -1
        self._start()

    def fileno(self) -> int:
        """A descriptor on which `poll` tells an error as soon as the watchdog is gone."""
        return self._pipe

    def reserve(self) -> int:
        """A slot for a child that is about to be started; it counts as alive from now on."""
        with self._lock:
            self._revive()
            slot = 0
            while slot in self._used:
                slot += 1
            self._used.add(slot)
        os.pwrite(self._note, b"10000000000\n", slot * _SLOT)
        return slot

    def enter(self, slot: int, group: int) -> None:
        """The child of the slot has started and leads this group."""
        os.pwrite(self._note, b"1%010d\n" % group, slot * _SLOT)

    def leave(self, slot: int) -> None:
        """The child of the slot is gone with all that it started."""
        with self._lock:
            os.pwrite(self._note, _FREE, slot * _SLOT)
            self._used.discard(slot)

    def revive(self) -> None:
        """Start the watchdog again if somebody ended it."""
        with self._lock:
            self._revive()

    def stop(self, patience: float = 0.05) -> None:
        """Let it go, and wait for its end so that it leaves no zombie."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        until = time.monotonic() + patience
        while self._alive() and time.monotonic() < until:
            time.sleep(0.0005)

    def abandon(self) -> None:
        """In a forked child of the runner: it must not hold the pipe of its parent's watchdog."""
        for end in (self._pipe, self._note):
            if end >= 0:
                os.close(end)
        self._pipe = self._note = -1

    def _alive(self) -> bool:
        if self._pid:
            try:
                if os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                    return True
            except ChildProcessError:
                pass
            self._pid = 0
        return False

    def _revive(self) -> None:
        if self._alive() and not self._leaving():
            return
        if self._pipe >= 0:
            os.close(self._pipe)
        self._start()

    def _leaving(self) -> bool:
        """Whether it has let go of its end of the pipe, which the kernel does a moment before there is an end to wait
        for. That end is waited for, briefly, so that the pid is not forgotten."""
        ends = select.poll()
        ends.register(self._pipe, 0)
        if not ends.poll(0):
            return False
        until = time.monotonic() + 1.0
        while self._alive() and time.monotonic() < until:
            time.sleep(0.0005)
        return True

    def _start(self) -> None:
        reader, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        # Duplicates above everything that is overwritten below them.
        high = max(reader, null, self._note, 3) + 1
        moves = [(reader, 0, high), (null, 1, high + 1), (null, 2, high + 2), (self._note, 3, high + 3)]
        actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_DUP2, source, parking) for source, _, parking in moves]
        actions += [(os.POSIX_SPAWN_DUP2, parking, target) for _, target, parking in moves]
        actions += [(os.POSIX_SPAWN_CLOSE, parking) for *_, parking in moves]
        actions += [(os.POSIX_SPAWN_CLOSE, number) for number in open_to_children() if number > 3]
        environment = {
            "PATH": os.defpath,
            "PYTHON": sys.executable,
            "SWEEP": os.path.abspath(_survivors.__file__),
            "MARK": self.mark,
            "FILES": self.folder,
        }
        if outer := os.environ.get(_survivors.VARIABLE):
            environment[_survivors.VARIABLE] = outer
        try:
            self._pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT],
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE],
            )
        finally:
            os.close(reader)
            os.close(null)


def open_to_children() -> list[int]:
    """Our descriptors that a child would inherit, beyond the first three: whoever started us left them open."""
    found = []
    limit = os.sysconf("SC_OPEN_MAX")
    for number in _open_numbers():
        try:
            if number >= limit:
                os.set_inheritable(number, False)  # opened under a higher limit: no child can be told to close it
            elif number > 2 and os.get_inheritable(number):
                found.append(number)
        except OSError:
            pass  # the descriptor of the listing itself, or one that is not open
    return found


def _open_numbers() -> Iterable[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd" if _survivors.PROC else "/dev/fd")]
    except OSError:  # Linux without /proc has no /dev/fd either
        return range(min(os.sysconf("SC_OPEN_MAX"), 4096))


def _nameless() -> int:
    """A file that nobody can open by name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("children", os.MFD_CLOEXEC)
    path = os.path.join(os.environ.get("TMPDIR") or "/tmp", f".children-{os.urandom(8).hex()}")  # noqa: S108
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return number


_ours: Watchdog | None = None
_starting = threading.Lock()


def ensure_watchdog() -> Watchdog:
    """The watchdog of this process, started at the first call. It may be called from any thread."""
    global _ours
    with _starting:
        if _ours is None:
            import atexit

            _ours = Watchdog()
            atexit.register(_stop)
        return _ours


def _stop() -> None:
    if _ours is not None:
        _ours.stop()


def _forked() -> None:
    global _ours, _starting
    _starting = threading.Lock()
    if _ours is not None:
        _ours.abandon()
        _ours = None


os.register_at_fork(after_in_child=_forked)
