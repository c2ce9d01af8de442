"""The end of a log file, read from its end, and what is appended to it."""

from __future__ import annotations

import os

BLOCK = 64 * 1024
MOST = 4 * 1024 * 1024
"""Bytes at the end of a file that are looked at for its last lines."""


def last_lines(path: str, count: int | None) -> list[str] | None:
    """The last `count` lines (None: all), decoded with replacement; None when the file cannot be read any more."""
    try:
        with open(path, "rb") as file:
            content = file.read() if count is None else _end(file, count)
    except OSError:
        return None
    found = content.split(b"\n")
    if not found[-1]:
        found.pop()
    lines = [_line(line) for line in found]
    return lines if count is None else lines[-count:] if count else []


def _line(content: bytes) -> str:
    """A line as a terminal leaves it: a carriage return begins it again, so a progress bar is one line."""
    return content.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")


def _end(file: object, count: int) -> bytes:
    from io import BufferedReader

    assert isinstance(file, BufferedReader)
    at = file.seek(0, os.SEEK_END)
    stop, content = max(at - MOST, 0), b""
    while at > stop and content.count(b"\n") <= count:
        step = min(BLOCK, at - stop)
        at -= step
        file.seek(at)
        content = file.read(step) + content
    return content


class Follower:
    """Reads what is added to a file, whole lines at a time."""

    def __init__(self, path: str, tail: int | None) -> None:
        self._path = path
        self._tail = tail
        self._at: int | None = None
        self._rest = b""

    def lines(self, *, last: bool) -> list[str]:
        """The lines since the call before; with `last`, also one that has no end yet."""
        first = self._at is None
        try:
            with open(self._path, "rb") as file:
                found = file.read() if first else file.read() if file.seek(self._at or 0) else b""
                self._at = file.tell()
        except OSError:
            return []
        *whole, self._rest = (self._rest + found).split(b"\n")
        if last and self._rest:
            whole.append(self._rest)
        lines = [_line(line) for line in whole]
        return lines[-self._tail :] if first and self._tail else [] if first and self._tail == 0 else lines
