"""Runs one child process to its end, and to the end of everything it started.

One blocking runner for every step that has a child. It is used in place or on a thread; while it waits it watches the
child, its pipes, the interrupt and the deadline in one `poll`. A child that is over is over with its background
processes; a child that must stop is asked (SIGTERM), given time, and killed.
"""

from __future__ import annotations

import itertools
import os
import re
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from ..interrupt import Interrupt
from ..step import StepError
from . import _survivors
from ._capture import Captured, Log
from ._channels import Channels, Show
from ._spawn import arguments, encode, environment, find_program, search, spawn
from ._survivors import end_survivors
from ._watchdog import Watchdog, ensure_watchdog

__all__ = [
    "Captured",
    "Finished",
    "cookie",
    "encode",
    "end_survivors",
    "ensure_watchdog",
    "find_program",
    "run",
    "search",
]

SETTLE = 0.2
"""Seconds in which background processes may end by themselves when the child has ended, before they are asked to."""
PARTING = 0.5
"""Most seconds between SIGTERM and SIGKILL for what a child that ended by itself left behind."""
PATIENCE = 5.0
"""Seconds after SIGKILL until processes that the system cannot end (stuck in a device) are given up."""
LAST_LINES = 20
_UNKNOWN = -1
_serial = itertools.count(1)


class Fence(Protocol):
    """What a child is started in."""

    front: Sequence[str]
    """The words before the program's: another program, and what it is told."""
    guarded: bool
    """Whether that program stays, and takes everything behind it with it when it ends."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended. `exit_code` is 128 + n when signal n ended it, as shells say it."""

    exit_code: int
    signal: str | None = None
    stdout: Captured
    stderr: Captured
    tail: str = ""
    """The last lines of both streams together, as they arrived."""
    reason: str | None = None
    """None: by itself. `timeout`, or the reason of the interrupt: it was stopped."""
    survivors: int = 0
    """Processes that it left behind and that had to be ended."""
    stuck: int = 0
    """Processes that could not be ended."""
    log_size: int = 0
    log_failure: str | None = None


def cookie(run_id: str, path: str, attempt: int) -> str:
    """The mark of one attempt's processes: printable ASCII without white space."""
    text = f"{run_id}:{path}:{attempt}"
    return re.sub(r"[^!-$&-~]", lambda found: "%" + found[0].encode("utf-8", "replace").hex(), text)


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    cookie: str,
    interrupt: Interrupt,
    hurry: Interrupt | None = None,
    stdin: bytes | None = None,
    deadline: float | None = None,
    kill_after: float = 10.0,
    max_output: int = 1 << 20,
    log_path: str | None = None,
    hidden: tuple[bytes, ...] = (),
    on_output: Show | None = None,
    names: Mapping[int, str] | None = None,
    talk: Callable[[int, int], None] | None = None,
    read: Callable[[bytes], None] | None = None,
    fence: Fence | None = None,
) -> Finished:
    """Run a child to its end and to the end of all that it started.

    `env` is the whole environment, to which the mark is added. `deadline` is a `time.monotonic()` instant.
    `interrupt` stops the child, with `kill_after` seconds between SIGTERM and SIGKILL unless `hurry` is set. `hidden`
    values are masked in the log and in what is shown. `on_output(stream, text)` gets whole lines for people, called
    from this thread. `names` says what to call an argument in an error. `talk` is handed the ends of pipes that read
    the child's stdout and write its stdin, as soon as it has started, and has to close them; of stdout nothing is kept
    then. `read` gets each piece of stdout as it comes, and nothing of it is kept or shown. `fence` is what the child is
    started in. Raises StepError if the child cannot be started.
    """
    if not hasattr(os, "posix_spawn"):
        raise StepError("refused", "child processes need a POSIX system; on Windows, run tramai inside WSL")
    if not os.path.isdir(cwd):
        raise StepError("refused", f"the folder {cwd} does not exist", hint="mend `cwd`, or make the folder first")
    program = find_program(argv[0] if argv else "", env=env, cwd=cwd)
    watchdog = ensure_watchdog()
    own = f"{watchdog.mark}.{next(_serial)}"  # unlike the cookie it can belong to no other child, whoever runs it
    marks = " ".join(filter(None, (os.environ.get(_survivors.VARIABLE), watchdog.mark, own, cookie)))
    line, variables = arguments(argv, names=names), environment({**env, _survivors.VARIABLE: marks})
    channels = Channels(max_output=max_output, log=Log(log_path), show=on_output, read=read, hidden=hidden)
    child = _Child(own, interrupt, hurry or Interrupt(), channels, fence)
    slot = watchdog.reserve()
    try:
        child.start(program, line, variables, cwd, stdin, talk)
        watchdog.enter(slot, child.pid)
        _guard(channels, watchdog)
        return child.run(deadline, kill_after)
    except OSError as error:  # no descriptors or no memory left; what `spawn` is refused has been said there
        raise StepError("limit", f"the system cannot run {program} now: {error.strerror}") from error
    finally:
        child.close()
        if not child.stuck:
            watchdog.leave(slot)


def _guard(channels: Channels, watchdog: Watchdog, lives: int = 3) -> None:
    """Have the watchdog started again if somebody ends it, some times."""
    number = watchdog.fileno()

    def lost() -> None:
        channels.unwatch(number)
        watchdog.revive()
        if lives:
            _guard(channels, watchdog, lives - 1)

    channels.watch(number, lost)


class _Child:
    """A child process, from its start to the end of the last process that it started."""

    def __init__(
        self, mark: str, interrupt: Interrupt, hurry: Interrupt, channels: Channels, fence: Fence | None
    ) -> None:
        self.pid = 0
        self.stuck = False
        self._mark = mark
        self._interrupt = interrupt
        self._hurry = hurry
        self._channels = channels
        self._front = tuple(map(os.fsencode, fence.front)) if fence is not None else ()
        self._guarded = fence is not None and fence.guarded
        self._status: int | None = None
        self._pidfd = -1
        self._began = time.monotonic()
        self._known: _survivors.Table = {}
        self._asked: set[int] = set()

    def start(
        self,
        program: str,
        argv: Sequence[bytes],
        env: Mapping[bytes, bytes],
        cwd: str,
        stdin: bytes | None,
        talk: Callable[[int, int], None] | None,
    ) -> None:
        """Make the pipes and the process."""
        channels = self._channels
        if talk is None:
            out, feed = channels.output("stdout"), channels.input(stdin) if stdin else -1
        else:
            feed, out, reader, writer = channels.dialogue()
        err = channels.output("stderr")
        self.pid = spawn(program, argv, env=env, cwd=cwd, stdin=feed, stdout=out, stderr=err, front=self._front)
        for theirs in (out, err, feed):
            channels.give_back(theirs)
        if talk is not None:
            channels.hand_over(reader, writer)
            talk(reader, writer)
        stop = self._interrupt.fileno()
        channels.watch(stop, lambda: channels.unwatch(stop), select.POLLIN)
        if (number := _pidfd(self.pid)) >= 0:
            self._pidfd = number
            channels.own(number)
            channels.watch(number, self._reap, select.POLLIN)

    def run(self, deadline: float | None, kill_after: float) -> Finished:
        """Wait for the end, or bring it about."""
        reason = self._wait(deadline)
        if reason is None:
            survivors = 0 if self._settled() else self._end(min(kill_after, PARTING))
        else:
            # A lost lease leaves no time: somebody else may begin the same step now.
            survivors = self._end(0.0 if reason == "lease_lost" else kill_after)
        self._channels.take_rest(PATIENCE)
        code, name = self._exit()
        return Finished(
            exit_code=code,
            signal=name,
            stdout=self._channels.stdout.captured(),
            stderr=self._channels.stderr.captured(),
            tail=_last_lines(self._channels.last),
            reason=reason,
            survivors=survivors,
            stuck=len(self._known) if self.stuck else 0,
            log_size=self._channels.log.size,
            log_failure=self._channels.log.failure,
        )

    def close(self) -> None:
        """Give everything back; a child that still runs, because of an error of ours, is killed."""
        if self.pid and self._status is None and not self.stuck:
            self._end(0.0)
        self._channels.close()

    def _wait(self, deadline: float | None) -> str | None:
        while self._status is None:
            if self._interrupt.reason is not None:
                return self._interrupt.reason
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
            self._pump(deadline)
        return None

    def _pump(self, until: float | None) -> bool:
        if self._pidfd >= 0:
            return self._channels.pump(until)
        soon = time.monotonic() + 0.02  # without a descriptor of its end the child is asked after
        busy = self._channels.pump(soon if until is None else min(until, soon))
        if self._status is None:
            self._reap()
        return busy

    def _pump_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._pump(until)

    def _reap(self) -> None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self.pid, _UNKNOWN
        if pid:
            self._status = status
            self._channels.give_back(self._pidfd)

    def _settled(self) -> bool:
        """Whether everything that the child started has ended like it, or does so within a moment."""
        self._channels.take_rest(SETTLE)
        # Pids are given out anew after a while; then every process has to be looked at.
        full = time.monotonic() - self._began > 1.0
        left = self._channels.streams or _survivors.group_lives(self.pid)
        if not left and not _survivors.young(self._mark, since=self.pid, full=full):
            return True
        return self._gone_within(SETTLE)

    def _gone_within(self, seconds: float, *, ask: bool = False) -> bool:
        until, tick = time.monotonic() + seconds, 0.005
        while (left := until - time.monotonic()) > 0 and not self._hurry.is_set:
            self._pump_for(min(tick, left))
            # Looking is dear. While the child itself lives there is no need to.
            if self._status is not None:
                if not self._alive():
                    return True
                if ask:
                    self._signal(signal.SIGTERM)
            tick = min(tick * 2, 0.1)
        return False

    def _alive(self) -> _survivors.Table:
        inodes = self._channels.streams.values()
        self._known = _survivors.find(self.pid, self._mark, known=self._known, pipes=inodes)
        return self._known

    def _signal(self, number: int) -> None:
        """SIGTERM for each process that is known to be alive and has not had it yet, or SIGKILL for all of them.

        The group is told as one, since a process that it forks meanwhile would be missed otherwise.
        """
        new = [pid for pid in self._known if pid not in self._asked or number == signal.SIGKILL]
        if self._guarded and number == signal.SIGTERM:
            # The end of what keeps the sandbox would be the end of all in it, at once.
            _survivors.send([pid for pid in new if pid != self.pid], number)
            self._asked.update(new)
            return
        if any(self._known[pid][1] == self.pid for pid in new):
            _survivors.send([-self.pid], number)
        others = [pid for pid in new if self._known[pid][1] != self.pid]
        _survivors.send(others, number)
        if number == signal.SIGTERM:  # who is stopped hears nothing until it goes on
            _survivors.send([-self.pid, *others], signal.SIGCONT)
        self._asked.update(new)

    def _end(self, grace: float) -> int:
        """Ask everything to end, wait, kill what is left; how many processes besides the child there were."""
        self._alive()
        if grace > 0:
            self._signal(signal.SIGTERM)
            if self._gone_within(grace, ask=True):
                return len(self._asked - {self.pid})
        until = time.monotonic() + PATIENCE
        while self._alive():
            if time.monotonic() > until:
                self.stuck = True
                break
            self._signal(signal.SIGKILL)
            self._pump_for(0.01)
        while self._status is None and not self.stuck:
            self._pump(time.monotonic() + 0.02)
        return len(self._asked - {self.pid})

    def _exit(self) -> tuple[int, str | None]:
        if self._status is None:
            return 128 + signal.SIGKILL, "SIGKILL"
        if self._status == _UNKNOWN:
            hint = "SIGCHLD is ignored here, or another part of this program waits for all children"
            raise StepError("unknown_outcome", "the exit status of the child was taken by somebody else", hint=hint)
        code = os.waitstatus_to_exitcode(self._status)
        return (code, None) if code >= 0 else (128 - code, _signal_name(-code))


def _pidfd(pid: int) -> int:
    """A descriptor that is readable once the process has ended; -1 where the system has none."""
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
    except OSError:
        return -1


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_lines(data: bytearray) -> str:
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    lines = [line.rpartition("\r")[2] for line in text.rstrip("\n").split("\n")]
    return "\n".join(line if len(line) <= 400 else line[:400] + "…" for line in lines[-LAST_LINES:])
