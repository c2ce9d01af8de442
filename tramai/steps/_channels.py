"""The pipes of a child and everything else that is waited for with it, in one `poll`."""

from __future__ import annotations

import fcntl
import os
import select
import time
from collections.abc import Callable

from .. import redact
from ._capture import TAIL, Capture, Live, Log

Show = Callable[[str, str], None]
_CHUNK = 1 << 16


class Channels:
    """Reads what a child writes, feeds what it reads, and calls a handler for each other descriptor watched."""

    def __init__(
        self,
        *,
        max_output: int,
        log: Log,
        show: Show | None,
        read: Callable[[bytes], None] | None = None,
        hidden: tuple[bytes, ...] = (),
    ) -> None:
        """What is `hidden` is masked in each stream by itself, in the log and in what is shown: between two pieces of
        one stream may stand a piece of the other."""
        self.log = log
        self.stdout = Capture(max_output, hidden=hidden)
        self.stderr = Capture(max_output, hidden=hidden)
        self._hidden = hidden
        self.last = bytearray()
        """The last bytes of both streams, as they arrived."""
        self.streams: dict[int, int] = {}
        """Streams that somebody can still write to: our end -> the pipe's inode."""
        self._show = show
        self._read = read
        self._live: list[Live] = []
        self._rests: list[Callable[[], None]] = []
        """What has waited for more of a stream, to be told at its end."""
        self._poller = select.poll()
        self._handlers: dict[int, Callable[[], None]] = {}
        self._open: set[int] = set()

    def output(self, name: str) -> int:
        """A pipe for what the child writes to `stdout` or `stderr`; the child's end."""
        ours, theirs = self._pipe()
        take: Callable[[bytes], None] = self.stdout.feed if name == "stdout" else self.stderr.feed
        live = None
        if name == "stdout" and self._read is not None:
            take = self._read
        else:
            live = self._lines(name)
        masker = redact.stream(self._hidden)

        def tell(data: bytes) -> None:
            self.log.feed(data)
            self.last += data
            if len(self.last) > 2 * TAIL:
                del self.last[:-TAIL]
            if live is not None:
                live.feed(data)

        def read() -> None:
            data = os.read(ours, _CHUNK)
            if data:
                take(data)
                tell(masker.feed(data) if masker is not None else data)
                return
            self.streams.pop(ours, None)
            self.give_back(ours)
            rest()

        def rest() -> None:
            if masker is not None and (data := masker.close()):
                tell(data)

        self._rests.append(rest)
        self.streams[ours] = os.fstat(ours).st_ino
        self.watch(ours, read, select.POLLIN)
        return theirs

    def input(self, data: bytes) -> int:
        """A pipe from which the child reads `data`; the child's end. It may close it before it has read all."""
        theirs, ours = self._pipe()
        os.set_blocking(ours, False)
        rest = memoryview(data)

        def write() -> None:
            nonlocal rest
            try:
                rest = rest[os.write(ours, rest[:_CHUNK]) :]
            except BlockingIOError:
                return
            except BrokenPipeError:
                rest = rest[:0]
            if not rest:
                self.give_back(ours)

        self.watch(ours, write, select.POLLOUT)
        return theirs

    def dialogue(self) -> tuple[int, int, int, int]:
        """Pipes for a child that is talked to by somebody else: the child's stdin and stdout, and the ends that read
        and write them. The child's ends are given back here, the others by whoever is handed them."""
        theirs_in, ours_out = self._pipe()
        ours_in, theirs_out = self._pipe()
        return theirs_in, theirs_out, ours_in, ours_out

    def hand_over(self, *numbers: int) -> None:
        """These descriptors are somebody else's now."""
        self._open.difference_update(numbers)

    def watch(self, number: int, handler: Callable[[], None], events: int = 0) -> None:
        """Call the handler when the descriptor has one of the events, or an error."""
        self._handlers[number] = handler
        self._poller.register(number, events)

    def unwatch(self, number: int) -> None:
        """Watch it no more."""
        if self._handlers.pop(number, None) is not None:
            self._poller.unregister(number)

    def own(self, number: int) -> None:
        """Take over a descriptor, to be given back with the rest."""
        self._open.add(number)

    def give_back(self, number: int) -> None:
        """Close a descriptor of ours."""
        self.unwatch(number)
        if number in self._open:
            self._open.discard(number)
            os.close(number)

    def pump(self, until: float | None) -> bool:
        """Handle what is ready, waiting for it until this instant; whether anything was."""
        wait = 3600.0 if until is None else min(max(0.0, until - time.monotonic()), 3600.0)
        ready = self._poller.poll(-int(-wait * 1000 // 1))
        for number, _ in ready:
            if handler := self._handlers.get(number):
                handler()
        return bool(ready)

    def take_rest(self, limit: float) -> None:
        """Read what the pipes hold now. Whoever keeps them open and full is left alone after `limit` seconds."""
        until = time.monotonic() + limit
        while self.streams and time.monotonic() < until:
            if not any(number in self.streams for number, _ in self._poller.poll(0)):
                return
            self.pump(0)

    def close(self) -> None:
        """Give everything back."""
        for rest in self._rests:
            rest()
        for live in self._live:
            live.close()
        self.log.close()
        for number in tuple(self._open):
            self.give_back(number)

    def _lines(self, name: str) -> Live | None:
        show = self._show
        if show is None:
            return None
        live = Live(lambda text: show(name, text))
        self._live.append(live)
        return live

    def _pipe(self) -> tuple[int, int]:
        ends = []
        for end in os.pipe():
            number = end
            if end < 3:  # ours are closed: the child's are put there, and must not overwrite one another
                number = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3)
                os.close(end)
            self._open.add(number)
            ends.append(number)
        return ends[0], ends[1]
