"""What the readers of YAML and TOML build: a tree whose every key and value knows its place in the text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from .errors import Pointer, Position, Problem, Related

LARGEST_FILE = 1024 * 1024
"""Bytes in one file, and characters after its aliases are expanded."""
DEEPEST = 64
"""Levels of lists and mappings inside each other."""
MOST_EXPANSIONS = 1000
"""Aliases that one file may expand, counting those inside what an alias stands for."""


class Scalar(msgspec.Struct, gc=False):
    """A leaf. Offsets count characters of the document's text; the end is exclusive.

    `style` is `""` for plain YAML, the opening character for quoted and block scalars, `"!"` for plain YAML
    marked as text, and `"toml"`; only the last has a `value`, because TOML says itself what a value is.
    """

    text: str
    style: str
    start: int
    end: int
    value: object = None


class Mapping(msgspec.Struct):
    """Keys in the order of the file, each with the place where it is written, and their values."""

    start: int
    end: int
    keys: dict[str, Scalar] = {}
    values: dict[str, Node] = {}


class Sequence(msgspec.Struct):
    """A list."""

    start: int
    end: int
    items: list[Node] = []


Node = Scalar | Mapping | Sequence


class Stop(Exception):
    """Reading cannot go on; the problem says why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.message)


class Lines:
    """Line and column, counted from 1, of an offset in a text."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._text = text
        self._starts: list[int] | None = None

    def starts(self) -> list[int]:
        """Offsets at which lines start. Only `\\n`, `\\r\\n` and `\\r` end a line."""
        if self._starts is None:
            self._starts = list(_starts(self._text))
        return self._starts

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        starts = self.starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def position(self, start: int, end: int) -> Position:
        """The range between two offsets, cut to the text, never ending before it starts."""
        start = max(0, min(start, len(self._text)))
        end = max(start, min(end, len(self._text)))
        line, column = self.place(start)
        end_line, end_column = self.place(end)
        return Position(self.file, line, column, end_line, end_column)

    def problem(
        self,
        code: str,
        message: str,
        start: int,
        end: int,
        *,
        hint: str | None = None,
        pointer: Pointer = (),
        other: tuple[int, int, str] | None = None,
    ) -> Problem:
        """A problem at a range; `other` is a second range and what it shows."""
        related = (Related(self.position(other[0], other[1]), other[2]),) if other else ()
        at = self.position(start, end)
        return Problem(code=code, message=message, hint=hint, position=at, pointer=pointer, related=related)


def _starts(text: str) -> Iterator[int]:
    yield 0
    if "\r" not in text:
        found = text.find("\n")
        while found >= 0:
            yield found + 1
            found = text.find("\n", found + 1)
        return
    import re

    for ending in re.finditer(r"\r\n|\n|\r", text):
        yield ending.end()
