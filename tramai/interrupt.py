"""A request to stop, seen by blocking code as a readable file descriptor and by async code as a callback."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def deaf() -> None:
    """In a thread that starts no process: signals are for the main thread, which waits in a call that they must end.

    The system gives a second signal to any thread while the first one is on its way; its handler would run when the
    main thread wakes up for some other reason.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


class Interrupt:
    """Set once, from any thread or a signal handler; the first reason wins.

    `fileno()` becomes readable when it is set, so that a `poll` over pipes wakes at once.
    """

    __slots__ = ("_callbacks", "_reader", "_writer", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._reader: int | None = None
        self._writer: int | None = None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_set(self) -> bool:
        """Whether somebody asked to stop."""
        return self.reason is not None

    def set(self, reason: str) -> None:
        """Ask to stop: `signal`, `cancelled`, `lease_lost`, `timeout` or `sibling_failed`."""
        if self.reason is not None:
            return
        self.reason = reason
        if self._writer is not None:
            os.write(self._writer, b"x")
        for callback in tuple(self._callbacks):
            callback()

    def fileno(self) -> int:
        """A descriptor that is readable once the interrupt is set."""
        if self._reader is None:
            self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            if self.reason is not None:
                os.write(self._writer, b"x")
        return self._reader

    def on_set(self, callback: Callable[[], None]) -> None:
        """Call `callback` when set (at once if it is); it must be quick and must not raise."""
        self._callbacks.append(callback)
        if self.reason is not None:
            callback()

    def forget(self, callback: Callable[[], None]) -> None:
        """Call `callback` no more."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    def clear_callbacks(self) -> None:
        """Forget who wanted to be called."""
        self._callbacks.clear()

    def close(self) -> None:
        """Give the descriptors back."""
        for end in (self._reader, self._writer):
            if end is not None:
                os.close(end)
        self._reader = self._writer = None
