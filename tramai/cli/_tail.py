"""The end of a log file, read from its end, and what is appended to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

BLOCK = 64 * 1024
MOST = 4 * 1024 * 1024
"""Bytes at the end of a file that are looked at for its last lines."""


def last_lines(path: str, count: int | None) -> list[str]:
    """The last `count` lines (None: all), decoded with replacement; none when the file is gone."""
    try:
        with open(path, "rb") as file:
            content = file.read() if count is None else _end(file, count)
    except OSError:
        return []
    lines = content.decode("utf-8", "replace").splitlines()
    return lines if count is None else lines[-count:] if count else []


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


def follow(path: str, at: int, wait: Callable[[], bool]) -> Iterator[str]:
    """Lines that are written to a file after offset `at`, until `wait` says that no more will come."""
    rest, more = b"", True
    while True:
        try:
            with open(path, "rb") as file:
                file.seek(at)
                found = file.read()
        except OSError:
            found = b""
        at += len(found)
        *whole, rest = (rest + found).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
        if not more:
            break
        more = wait()
    if rest:
        yield rest.decode("utf-8", "replace")
