"""Where each character of a decoded scalar stands in the source: the reverse of unquoting and folding."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PROPERTIES = re.compile(r"(?:[&!][^\s]*[ \t\r\n]+)*")
_BREAK = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|\r\n|.)", re.DOTALL)
_YAML_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip

Piece = tuple[str, int]
"""A decoded character and the offset in the source at which it is written."""


def offsets(source: str, start: int, end: int, text: str, *, toml: bool) -> list[int] | None:
    """An offset for each character of `text`, and one behind the last; None when the way back is not clear."""
    if not text:
        return [start]
    if not toml:
        found = _PROPERTIES.match(source, start, end)
        start = found.end() if found else start
    pieces = list(_toml(source, start, end) if toml else _yaml(source, start, end, text))
    if "".join(char for char, _ in pieces) != text:
        return None
    places = [at for _, at in pieces]
    return [*places, places[-1] + 1]


def _yaml(source: str, start: int, end: int, text: str) -> Iterator[Piece]:
    first = source[start : start + 1]
    if first in ("|", ">"):
        return _block(source, start, end, text, folded=first == ">")
    if first == '"':
        return _folded(source, start + 1, end - 1, _YAML_ESCAPES)
    if first == "'":
        return _single(source, start + 1, end - 1)
    return _folded(source, start, end, None)


def _folded(source: str, at: int, end: int, escapes: dict[str, str] | None) -> Iterator[Piece]:
    """Flow text over one or more lines: a line end is a blank, each empty line a line end."""
    while at < end:
        char = source[at]
        if char == "\\" and escapes is not None:
            found = _ESCAPE.match(source, at, end)
            if found is None:
                return
            escape = found[0][1:]
            if escape[0] in "\r\n":
                at = _skip(source, found.end(), end)
                while at < end and (empty := _BREAK.match(source, at)):
                    yield "\n", at
                    at = _skip(source, empty.end(), end)
                continue
            yield (chr(int(escape[1:], 16)) if len(escape) > 1 else escapes.get(escape, "")), at
            at = found.end()
        elif char in " \t\r\n":
            stop = _skip(source, at, end)
            if stop < end and _BREAK.match(source, stop):
                pieces, at = _fold(source, stop, end)
                yield from pieces
            else:
                yield from ((source[index], index) for index in range(at, stop))
                at = stop
        else:
            yield char, at
            at += 1


def _fold(source: str, at: int, end: int) -> tuple[list[Piece], int]:
    """The characters that a run of line ends stands for, and where the text goes on."""
    breaks: list[int] = []
    while at < end and (found := _BREAK.match(source, at)):
        breaks.append(at)
        at = _skip(source, found.end(), end)
    if len(breaks) == 1:
        return [(" ", breaks[0])], at
    return [("\n", place) for place in breaks[1:]], at


def _skip(source: str, at: int, end: int) -> int:
    while at < end and source[at] in " \t":
        at += 1
    return at


def _single(source: str, at: int, end: int) -> Iterator[Piece]:
    """Text in single quotes, in which `''` is one quote."""
    skip = False
    for char, place in _folded(source, at, end, None):
        if skip:
            skip = False
            continue
        skip = char == "'"
        yield char, place


def _block(source: str, start: int, end: int, text: str, *, folded: bool) -> Iterator[Piece]:
    """A literal or folded block scalar."""
    header = re.compile(r"[|>]\d?([+-]?)[^\r\n]*").match(source, start, end)
    if header is None or not (first := _BREAK.match(source, header.end())):
        return
    lines = _lines(source, first.end(), end)
    indent = _indent(source, lines, text)
    chomp = header[1]
    rows = [(min(at + indent, stop), stop, after) for at, stop, after in lines]
    full = [index for index, (at, stop, _) in enumerate(rows) if at < stop]
    last = full[-1] if full else -1
    if folded:
        yield from _fold_rows(source, rows[: last + 1])
    else:
        for at, stop, _ in rows[: max(last, 0)]:
            yield from ((source[index], index) for index in range(at, stop))
            yield "\n", stop
        if full:
            at, stop, _ = rows[last]
            yield from ((source[index], index) for index in range(at, stop))
    if chomp == "-":
        return
    if last >= 0 and rows[last][2] > rows[last][1]:
        yield "\n", rows[last][1]
    if chomp == "+":
        yield from (("\n", stop) for _, stop, after in rows[last + 1 :] if after > stop)


def _lines(source: str, at: int, end: int) -> list[tuple[int, int, int]]:
    """Start, end and start of the next, for each line."""
    lines = []
    for found in _BREAK.finditer(source, at, end):
        lines.append((at, found.start(), found.end()))
        at = found.end()
    if at < end:
        lines.append((at, end, end))
    return lines


def _indent(source: str, lines: list[tuple[int, int, int]], text: str) -> int:
    """How many blanks of each line are indentation: those that the first line of the decoded text does not have."""
    written = next((count for at, stop, _ in lines if (count := _blanks(source, at, stop)) < stop - at), None)
    decoded = next((line for line in text.split("\n") if line.strip(" ")), None)
    if written is None or decoded is None:
        return len(source)
    return max(0, written - _blanks(decoded, 0, len(decoded)))


def _blanks(source: str, at: int, stop: int) -> int:
    return len(source[at:stop]) - len(source[at:stop].lstrip(" "))


def _fold_rows(source: str, rows: list[tuple[int, int, int]]) -> Iterator[Piece]:
    """The lines of a folded block: a line end between lines of text is a blank, beside an indented line it stays."""
    pending: list[int] = []
    was_text = False
    for number, (at, stop, _) in enumerate(rows):
        if at == stop:
            pending.append(stop)
            continue
        is_text = source[at] not in " \t"
        if number and (was_text or pending or number > len(pending)):
            yield from _between(rows, number, pending, plain=was_text and is_text)
        pending = []
        yield from ((source[index], index) for index in range(at, stop))
        was_text = is_text


def _between(rows: list[tuple[int, int, int]], number: int, empty: list[int], *, plain: bool) -> Iterator[Piece]:
    """What the line ends before row `number` stand for, `empty` being the empty rows in front of it."""
    if len(empty) == number:  # nothing but empty rows so far: each is a line end
        yield from (("\n", place) for place in empty)
        return
    ending = rows[number - len(empty) - 1][1]
    if not plain:
        yield "\n", ending
    elif not empty:
        yield " ", ending
    yield from (("\n", place) for place in empty)


def _toml(source: str, start: int, end: int) -> Iterator[Piece]:
    for quotes in ('"""', "'''", '"', "'"):
        if source.startswith(quotes, start):
            break
    else:
        yield from ((source[index], index) for index in range(start, end))
        return
    at, stop = start + len(quotes), end - len(quotes)
    if len(quotes) == 3 and (first := _BREAK.match(source, at)):
        at = first.end()
    while at < stop:
        found = _ESCAPE.match(source, at, stop) if quotes[0] == '"' else None
        if found is None:
            ending = _BREAK.match(source, at)
            yield ("\n" if ending else source[at]), at
            at = ending.end() if ending else at + 1
        elif found[0][1] in " \t\r\n":
            at = re.compile(r"[ \t\r\n]*").match(source, at + 1, stop).end()  # type: ignore[union-attr]
        else:
            escape = found[0][1:]
            yield (chr(int(escape[1:], 16)) if len(escape) > 1 else _YAML_ESCAPES.get(escape, "")), at
            at = found.end()
