"""A range of a source file as people see it: the line, its neighbour above, and carets below."""

from __future__ import annotations

import re

from .errors import Position

_TAB = 4
_WIDEST = 120
# Controls would move the cursor or colour the terminal; bidirectional marks would show another text than there is.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def excerpt(text: str, position: Position, *, note: str = "") -> str:
    """The place, the line above, the line itself and carets under the range, with an optional note behind them.

    Ranges over several lines are marked up to the end of their first. Tabs become four columns, wide characters
    count two, and characters that would disturb a terminal show as `�`. No line is wider than 120 columns or so.
    """
    pad = gutter(position)
    shown = [f"{pad}--> {position.file}:{position.line}:{position.column}", f"{pad} |"]
    lines = re.split(r"\r\n|\n|\r", text)
    number = position.line
    if 2 <= number <= len(lines) + 1 and lines[number - 2].strip():
        shown.append(_numbered(number - 1, pad, _crop(lines[number - 2], 0)[0]))
    line = lines[number - 1] if 1 <= number <= len(lines) else ""
    start = min(position.column - 1, len(line))
    end = position.end_column - 1 if position.end_line == position.line else len(line)
    end = max(start, min(end, len(line)))
    cropped, dropped = _crop(line, start)
    shown.append(_numbered(number, pad, cropped))
    before = cropped[: start - dropped]
    marked = cropped[start - dropped : max(start, end) - dropped]
    carets = "^" * max(1, _width(marked))
    shown.append(f"{pad} | {' ' * _width(before)}{carets}{' ' + note if note else ''}".rstrip())
    return "\n".join(shown)


def gutter(position: Position) -> str:
    """Blanks as wide as the line numbers of the excerpt, for lines that follow it."""
    return " " * max(2, len(str(position.line)))


def _numbered(number: int, pad: str, line: str) -> str:
    return f"{number:>{len(pad)}} | {_visible(line)}".rstrip()


def _crop(line: str, focus: int) -> tuple[str, int]:
    """At most 120 characters around a column, and how many were cut off in front."""
    if len(line) <= _WIDEST:
        return line, 0
    start = max(0, min(focus - _WIDEST // 3, len(line) - _WIDEST))
    cut = line[start : start + _WIDEST]
    if start + _WIDEST < len(line):
        cut = cut[:-1] + "…"
    if start:
        cut = "…" + cut[1:]
    return cut, start


def _visible(line: str) -> str:
    return _UNSHOWN.sub("�", line.replace("\t", " " * _TAB))


def _width(part: str) -> int:
    """Columns a text takes on a terminal."""
    import unicodedata

    total = 0
    for char in part:
        if char == "\t":
            total += _TAB
        elif _UNSHOWN.match(char):
            total += 1
        elif unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
            continue
        else:
            total += 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
    return total
