"""The worker's end of a slot process: starting it, giving it runs, hearing from it, ending it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ..pool import Taken
from ..worker import Report
from ._slot import Order, Setup, Withdraw

if TYPE_CHECKING:
    import subprocess


class Process:
    """One slot, in a session of its own, so that a Ctrl-C meant for the worker does not reach it."""

    def __init__(self, setup: Setup) -> None:
        import subprocess

        there_in, self._inward = os.pipe2(os.O_CLOEXEC)
        self._outward, there_out = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._outward, False)
        os.set_blocking(self._inward, False)
        words = [sys.executable, "-P", "-m", "tramai.cli._slot", str(there_in), str(there_out)]
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=2, pass_fds=(there_in, there_out), start_new_session=True
        )
        os.close(there_in)
        os.close(there_out)
        self._unread = b""
        self._unsent = bytearray()
        self._over = False
        self._asked = False
        self._add(setup)
        self.flush()

    def fileno(self) -> int:
        """Readable when it has reported something, or has ended."""
        return self._outward

    def give(self, taken: Taken, sent: float) -> None:
        """Carry this run out, after those that it was given before."""
        self._asked = False
        assert taken.run is not None
        assert taken.lease is not None
        self._add(Order(taken.run, taken.lease, sent, taken.memo))

    def flush(self) -> None:
        """Send as much as it takes in: one that was stopped by somebody stops neither its worker nor others."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._inward, self._unsent)]
        except BlockingIOError:
            pass  # the rest when it is looked at again
        except BrokenPipeError:
            self._unsent.clear()  # it has ended, and will be found so

    def withdraw(self) -> None:
        """Have it return what it has not begun."""
        self._add(Withdraw())
        self.flush()

    def read(self) -> Sequence[Report]:
        """What it has reported."""
        self.flush()
        try:
            data = os.read(self._outward, 1 << 16)
        except BlockingIOError:
            return ()
        if not data:
            if self._over:
                return ()
            self._over = True
            status = self._process.wait()
            return (Report(kind="gone", status=_spelled(status)),)
        *lines, self._unread = (self._unread + data).split(b"\n")
        return tuple(msgspec.json.decode(line, type=Report) for line in lines)

    def stop(self, reason: str) -> None:
        """Interrupt its run, as a signal interrupts `tramai run`; to `hurry` is a second signal, of another number."""
        if not self._asked:
            self._asked = True
            self._process.send_signal(signal.SIGTERM)
        if reason == "hurry":
            self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End it: it holds no run any more, or it is to be ended all the same."""
        for end in (self._inward, self._outward):
            if end >= 0:
                os.close(end)
        self._inward = self._outward = -1
        try:
            self._process.wait(5)
        except Exception:  # noqa: BLE001 - it hangs
            self._process.kill()
            self._process.wait()

    def _add(self, message: Setup | Order | Withdraw) -> None:
        self._unsent += msgspec.json.encode(message) + b"\n"


def _spelled(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit {status}"
