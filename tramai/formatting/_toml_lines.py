"""A TOML text as sections of pairs, each with the comments that were written for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from .._nodes import Lines
from .._toml import _STRING, _Scanner
from ..errors import Pointer
from ._remarks import BLANK, Remarks


class Statement(NamedTuple):
    """A header or a pair of a TOML text: where it stands, the parts of its key, and where the key and value stand."""

    start: int
    end: int
    names: tuple[str, ...]
    header: str
    """`[` for a table, `[[` for an element of a list, empty for a pair."""
    key_end: int
    value: int


def statements(text: str) -> Iterator[Statement]:
    """The statements of a text that was read without problems, in order."""
    scanner = _Scanner(text, Lines("", text))
    while scanner._blank() < len(text):
        start = scanner.at
        header = "[[" if text.startswith("[[", start) else "[" if text.startswith("[", start) else ""
        scanner.at += len(header)
        parts = scanner._parts()
        key_end = parts[-1].end
        value = 0
        if header:
            scanner._expect("]" * len(header))
        else:
            scanner._expect("=")
            scanner._space()
            value = scanner.at
            scanner._value((), 0)
        yield Statement(start, scanner.at, tuple(part.text for part in parts), header, key_end, value)


class Pair(msgspec.Struct):
    """A key and its value, as they are written."""

    names: tuple[str, ...]
    key: str
    value: str
    remarks: Remarks


class Section(msgspec.Struct):
    """A header, empty for the top of the file, with the pairs under it. `at` is the pointer of its table."""

    header: str
    at: Pointer
    remarks: Remarks
    pairs: list[Pair]


_INSIDE = re.compile(_STRING.pattern + r"|(?P<comment>#[^\n]*)", re.DOTALL)


def stripped(lines: list[str]) -> list[str]:
    """The lines without blank ones at either end."""
    lines = list(lines)
    while lines and lines[0] == BLANK:
        lines.pop(0)
    while lines and lines[-1] == BLANK:
        lines.pop()
    return lines


def inside(value: str) -> list[str]:
    """The comments between the items of a list over several lines."""
    if "\n" not in value or "#" not in value:
        return []
    return [found["comment"].rstrip() for found in _INSIDE.finditer(value) if found["comment"]]


class Sections:
    """The sections of a text, and the comments at the head of the file."""

    def __init__(self, text: str) -> None:
        self.head: list[str] = []
        self.sections = [Section("", (), Remarks([], None, []), [])]
        self._text = text
        self._counts: dict[Pointer, int] = {}
        at = 0
        last: Remarks | None = None
        for statement in statements(text):
            beside, lines = self._gap(at, statement.start)
            if last is None:
                self.head, lines = lines, []
            else:
                last.beside = beside
            last = self._take(statement, lines)
            at = statement.end
        beside, lines = self._gap(at, len(text))
        if last is not None:
            last.beside = beside
        self.end = lines if self.sections[-1].pairs or len(self.sections) > 1 else []

    def notes(self) -> dict[Pointer, Remarks]:
        """The remarks by pointer; those of the root are the head and the tail of the file."""
        found: dict[Pointer, Remarks] = {(): Remarks(self.head, None, self.end)}
        for section in self.sections:
            if section.header:
                about = section.remarks
                found[section.at] = Remarks(about.before, about.beside, stripped(about.tail))
            for pair in section.pairs:
                remarks = Remarks([*pair.remarks.before, *inside(pair.value)], pair.remarks.beside, [])
                found[(*section.at, *pair.names)] = remarks
        return found

    def _gap(self, start: int, end: int) -> tuple[str | None, list[str]]:
        """The comment on the line that ends at `start`, and the lines down to `end`."""
        first, *rest = self._text[start:end].split("\n")
        lines = [line.strip() for line in rest]
        if start == 0:
            return None, [first.strip(), *lines][: len(lines)]
        return first.strip() or None, lines[:-1] if end < len(self._text) else lines

    def _take(self, statement: Statement, lines: list[str]) -> Remarks:
        current = self.sections[-1]
        written = self._text[statement.start : statement.end]
        if not statement.header:
            key = self._text[statement.start : statement.key_end]
            pair = Pair(statement.names, key, self._text[statement.value : statement.end], Remarks(lines, None, []))
            current.pairs.append(pair)
            return pair.remarks
        # What stands apart from the header, with a blank line between, belongs to what was before it.
        own = len(lines)
        while own and lines[own - 1] != BLANK:
            own -= 1
        if not current.header:  # the top of a file has no end that could be seen
            own = 0
        current.remarks.tail += lines[:own]
        remarks = Remarks(lines[own:], None, [])
        self.sections.append(Section(written, self._pointer(statement), remarks, []))
        return remarks

    def _pointer(self, statement: Statement) -> Pointer:
        at: Pointer = ()
        for name in statement.names[:-1]:
            at = self._inside((*at, name))
        at = (*at, statement.names[-1])
        if statement.header == "[[":
            self._counts[at] = self._counts.get(at, -1) + 1
            return self._inside(at)
        return at

    def _inside(self, at: Pointer) -> Pointer:
        """The pointer, led on to the last element where a list of tables stands."""
        return (*at, self._counts[at]) if at in self._counts else at
