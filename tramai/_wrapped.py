"""Base64 and hex that a program has broken into lines, as if they were whole: `base64` does it after 76 characters."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

LINE = 32
"""Characters of the shortest line that may be one of several."""
_LONGEST_LINE = 256
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_ENDS = (("\n", "\r"), ("\\n", "\\r"))
"""The end of a line and what may stand before it; also as JSON writes them."""


class Run:
    """Lines that may belong together."""

    def __init__(self, first: str, at: int) -> None:
        self.text = first
        """The lines without their ends."""
        self.count = 1
        self._begins = [0]
        self._shifts = [at]

    def add(self, line: str, at: int) -> None:
        """One more, which stands there in the text that they come from."""
        self.count += 1
        self._begins.append(len(self.text))
        self._shifts.append(at - len(self.text))
        self.text += line

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of the lines stands in the text that they come from."""
        return self._moved(start), self._moved(end - 1) + 1

    def _moved(self, at: int) -> int:
        return at + self._shifts[bisect_right(self._begins, at) - 1]


def runs(text: str) -> Iterator[Run]:
    """All lines that may belong together: letters alone up to an end of a line, and from there on."""
    for end, before in _ENDS:
        if end in text:
            yield from _runs(text, end, before)


def _runs(text: str, end: str, before: str) -> Iterator[Run]:
    run: Run | None = None
    at = 0
    for line in text.split(end):
        body = line.removesuffix(before)
        if run is not None:
            lead = body[: len(body) - len(body.lstrip(_LETTERS))]
            if lead:
                run.add(lead, at)
            if lead != body or len(body) < LINE:
                if run.count > 1:
                    yield run
                run = None
        if run is None and len(body) >= LINE and not body[-LINE:].strip(_LETTERS):
            begin = len(body.rstrip(_LETTERS))
            run = Run(body[begin:], at + begin)
        at += len(line) + len(end)
    if run is not None and run.count > 1:
        yield run


def tail(text: str, longest: int) -> int:
    """Where the lines begin with which a text ends and which may go on: about so many characters before its end."""
    least = max(0, len(text) - longest)
    least = max(least and text.rfind("\n", max(0, least - _LONGEST_LINE), least) + 1, max(0, least - _LONGEST_LINE))
    window = text[least:]
    rest = window.rstrip(_LETTERS)
    while rest.endswith(("\n", "\r")):
        before = rest[:-1].removesuffix("\r")
        shorter = before.rstrip(_LETTERS)
        if len(before) - len(shorter) < LINE:
            break
        rest = shorter
    return least + len(rest)
