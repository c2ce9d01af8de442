"""Signals during a run: the first asks it to stop and save, the second kills the children, the third ends all."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..interrupt import Interrupt

STOPPING = "stopping: the step is ended and the run saved; once more kills it at once"
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """A context in which SIGINT, SIGTERM and SIGHUP set `interrupt`, then `hurry`. `number` is the first that came."""

    def __init__(self, said: str = STOPPING) -> None:
        """`said`: what a person is told at the first Ctrl-C."""
        self._said = said
        self.interrupt = Interrupt()
        self.hurry = Interrupt()
        self.number: int | None = None
        self.announce: Callable[[str], bool] | None = None
        """Prints a line where a view draws on the terminal, and says whether it will; called in the handler."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        for number in _STOPS:
            # Ignored by whoever started us (nohup, a shell's background job): stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self.interrupt.close()
        self.hurry.close()

    @property
    def exit_status(self) -> int:
        """128 and the number of the first signal."""
        return 128 + (self.number or signal.SIGINT)

    def _arrived(self, number: int, _: FrameType | None) -> None:
        if self.number is None:
            self.number = number
            if number == signal.SIGINT and (self.announce is None or not self.announce(self._said)):
                _tell(f"\n{self._said}\n".encode("ascii"))
            self.interrupt.set("signal")
        elif not self.hurry.is_set:
            self.hurry.set("signal")
        else:
            os._exit(self.exit_status)


def _tell(text: bytes) -> None:
    """Write past Python's buffers: the signal may have arrived in the middle of a write to them."""
    if not os.isatty(2):
        return
    try:
        os.write(2, text)
    except OSError:
        pass
