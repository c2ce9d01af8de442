"""What is kept of a child's output: a bounded value per stream, a log file of everything, lines for those who watch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import msgspec

from .. import redact

LOG_LIMIT = 64 << 20
"""Bytes of a log file; what comes after them is left out of it."""
TAIL = 16 << 10
"""Bytes of both streams together, as they arrived, from which an error shows the last lines."""
SHOWN = 8 << 10
"""Most bytes of one piece that is shown live; what stands before them is not shown."""


class Captured(msgspec.Struct, frozen=True):
    """A stream as text: whole, or its head and tail with a mark between them."""

    text: str
    size: int
    """Bytes written by the child."""
    truncated: bool


class Capture:
    """Keeps at most `limit` bytes of a stream: the first half and the last, in constant memory."""

    def __init__(self, limit: int, *, hidden: tuple[bytes, ...] = ()) -> None:
        """Where what is `hidden` would be cut in two, none of it is kept."""
        self.size = 0
        self._hidden = hidden
        self._context = len(hidden[0]) - 1 if hidden else 0
        self._head = bytearray()
        self._tail = bytearray()
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2

    def feed(self, data: bytes) -> None:
        """Add what the child wrote."""
        self.size += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            # Cut only now and then, so that many small writes do not move the whole tail each time.
            if len(self._tail) > 2 * self._tail_limit + self._context:
                del self._tail[: len(self._tail) - self._tail_limit - self._context]

    def captured(self) -> Captured:
        """The stream as text; bytes that are not UTF-8 are replaced, a character is never cut in two."""
        tail = self._tail[self._cut() :]
        left_out = self.size - len(self._head) - len(tail)
        if left_out == 0:
            return Captured((self._head + tail).decode("utf-8", "replace"), self.size, False)
        head = self._head[: redact.unfinished(self._hidden, bytes(self._head))]
        head = head[: len(head) - _unfinished(head)]
        tail = tail[_continued(tail) :]
        left_out = self.size - len(head) - len(tail)
        mark = f"\n… [{left_out} bytes left out] …\n"
        return Captured(head.decode("utf-8", "replace") + mark + tail.decode("utf-8", "replace"), self.size, True)

    def _cut(self) -> int:
        """Where the kept tail begins: behind a value that would begin before it."""
        at = max(0, len(self._tail) - self._tail_limit)
        if not (at and self._hidden):
            return at
        before = self._head[max(0, len(self._head) - self._context) :]
        return redact.behind(self._hidden, bytes(before + self._tail), len(before) + at) - len(before)


def _unfinished(data: bytearray) -> int:
    """How many bytes at the end begin a UTF-8 character that goes on after them."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if length > back else 0
        if byte < 0x80:
            return 0
    return 0


def _continued(data: bytearray) -> int:
    """How many bytes at the beginning continue a UTF-8 character that started before them."""
    for at in range(min(3, len(data))):
        if data[at] & 0xC0 != 0x80:
            return at
    return min(3, len(data))


class Log:
    """A file of everything that a child writes, both streams as they arrive, readable by its owner only.

    It is made at the first byte. A file that cannot be written does not stop the child: `failure` says why. The
    `hidden` values are masked, also where they come in pieces, unless that has been done before.
    """

    def __init__(self, path: str | None, *, limit: int = LOG_LIMIT, hidden: tuple[bytes, ...] = ()) -> None:
        self.size = 0
        self.failure: str | None = None
        self._path = path
        self._limit = limit
        self._file = -1
        self._open = path is not None
        self._masker = redact.stream(hidden)

    def feed(self, data: bytes) -> None:
        """Append, up to the limit."""
        self._append(self._masker.feed(data) if self._masker is not None else data)

    def _append(self, data: bytes) -> None:
        if not self._open or not data:
            return
        room = self._limit - self.size
        try:
            if self._file < 0:
                self._file = _open(self._path or "")
            self._write(data[:room])
            if len(data) > room:
                self._write(f"\n… [the log ends here: its limit is {self._limit} bytes] …\n".encode())
                self._shut()
        except OSError as error:
            self.failure = error.strerror or type(error).__name__
            self._shut()

    def close(self) -> None:
        """Write what had to wait, and give the file back."""
        if self._masker is not None:
            self._append(self._masker.close())
        self._shut()

    def _shut(self) -> None:
        self._open = False
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            done = os.write(self._file, rest)
            self.size += done
            rest = rest[done:]


def _open(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        _make_private(os.path.dirname(path))
        return os.open(path, flags, 0o600)


def _make_private(folder: str) -> None:
    """Make a folder and those above it; `os.makedirs` would let anybody look into the ones above."""
    if folder and not os.path.isdir(folder):
        _make_private(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)


class Live:
    """Turns a stream into whole lines for those who watch; a carriage return starts the line again.

    It is lossy on purpose: of a flood only the last piece is shown.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Show the lines that are complete now."""
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        # A carriage return at the very end may belong to a line end that is yet to come.
        start = rest.rfind(b"\r", 0, len(rest) - 1) + 1
        self._rest = rest[start:][-SHOWN:]
        if end:
            self._emit(data[max(0, end - SHOWN) : end])

    def close(self) -> None:
        """Show what stands in a last line without an end."""
        if self._rest:
            self._emit(self._rest + b"\n")
            self._rest = b""

    def _emit(self, data: bytes) -> None:
        lines = data.decode("utf-8", "replace").split("\n")[:-1]
        self._show("".join(line.rstrip("\r").rpartition("\r")[2] + "\n" for line in lines))
