"""TOML text to nodes: values from tomllib, places from a scanner that knows just enough of the grammar."""

from __future__ import annotations

import datetime
import re
from typing import Any

from . import _lines_at_fault
from ._nodes import DEEPEST, Lines, Mapping, Node, Scalar, Sequence, Stop
from .errors import Pointer, Problem

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Possessive (`*+`): one pass over the text, however long, and no way back.
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}+(?!"))*+"{3,5}'
    r"|'''(?:[^']|'{1,2}+(?!'))*+'{3,5}"
    r'|"(?!"")(?:[^"\\\n]|\\[^\n])*+"'
    r"|'(?!'')[^'\n]*+'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^\s,\]}#'\"]+(?: \d\d:[^\s,\]}#'\"]+)?")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TWICE = re.compile(r"overwrite|declare .* twice|mutate|[Dd]uplicate|already|redefine", re.DOTALL)


def read(text: str, lines: Lines) -> tuple[Mapping | None, list[Problem]]:
    """The tree of a TOML text and what is wrong with it."""
    import tomllib

    scanner = _Scanner(text, lines)
    try:
        scanner.scan()
    except Stop as stop:
        return None, [stop.problem]
    except _Lost:
        pass  # tomllib says what is wrong, and better
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        words = str(error)
        if scanner.problems and _TWICE.search(words):
            return None, scanner.problems
        return None, [*scanner.problems, _explain(words, lines, text, scanner.at)]
    root = scanner.root
    if not data:
        hint = "write at least `tramai = 1`, `name` and `steps`"
        return None, [lines.problem("TRM118", "the file is empty", 0, 0, hint=hint)]
    filled = _fill(root, data, root)
    return (filled if isinstance(filled, Mapping) else None), []


def _explain(message: str, lines: Lines, text: str, lost: int) -> Problem:
    found = _AT.search(message)
    offset = len(text)
    if found and found[1]:
        starts = lines.starts()
        line = min(int(found[1]), len(starts))
        offset = min(starts[line - 1] + int(found[2]) - 1, len(text))
    elif not found:
        digits = max(re.finditer(r"\d[\d_]*", text), key=lambda part: len(part[0]), default=None)
        offset = digits.start() if digits else 0
    words = _AT.sub("", message)
    if _TWICE.search(words):
        return lines.problem("TRM103", f"defined twice: {words}", offset, offset + 1, hint="keep one of the two")
    hint = None
    if "integer string conversion" in words:
        return lines.problem("TRM119", "a number of thousands of digits", offset, offset + 1, hint="quote it")
    if "Invalid value" in words:
        hint = 'text needs quotes: key = "text"'
    elif "Illegal character '\\n'" in words:
        hint = 'close the string, or use """ for several lines'
    elif words.startswith(("Unterminated", "Expected \"'")):
        offset, words = lost, "this string is never closed"
        hint = 'close the string, or use """ for several lines'
    hint = _lines_at_fault.toml(text, offset) or hint
    return lines.problem("TRM102", f"not valid TOML: {words[:1].lower()}{words[1:]}", offset, offset + 1, hint=hint)


def _fill(node: Node | None, value: Any, near: Node) -> Node:
    """The scanned tree with tomllib's values in it. Where the two disagree, values win and places are near ones."""
    start, end = (node.start, node.end) if node is not None else (near.start, near.start)
    if isinstance(value, dict):
        made = Mapping(start, end, {}, {})
        known = node if isinstance(node, Mapping) else Mapping(start, end, {}, {})
        for key, item in value.items():
            made.keys[key] = known.keys.get(key) or Scalar(key, "toml", start, end)
            made.values[key] = _fill(known.values.get(key), item, made.keys[key])
        return made
    if isinstance(value, list):
        items = node.items if isinstance(node, Sequence) else []
        places: list[Node | None] = [*items, *([None] * len(value))]
        return Sequence(start, end, [_fill(place, item, near) for place, item in zip(places, value, strict=False)])
    written = node.text if isinstance(node, Scalar) else str(value)
    local = isinstance(value, datetime.date | datetime.time) and getattr(value, "tzinfo", None) is None
    return Scalar(written, "toml", start, end, written if local else value)


class _Lost(Exception):
    """The scanner met something that is no TOML."""


class _Scanner:
    """Walks a TOML text once and records where every key and value stands."""

    def __init__(self, text: str, lines: Lines) -> None:
        self.root = Mapping(0, len(text), {}, {})
        self.problems: list[Problem] = []
        self._text = text
        self._lines = lines
        self.at = 0
        self._explicit: set[int] = set()

    def scan(self) -> None:
        """Read to the end. Raises Stop for what the language refuses, _Lost for what is no TOML."""
        text, table = self._text, self.root
        path: Pointer = ()
        while self._blank() < len(text):
            if text.startswith("[", self.at):
                table, path = self._header()
            else:
                self._pair(table, path)

    def _blank(self) -> int:
        found = _BLANK.match(self._text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _space(self) -> None:
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at

    def _take(self, word: str) -> bool:
        if not self._text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise _Lost

    def _parts(self) -> list[Scalar]:
        """A dotted key, part by part."""
        parts: list[Scalar] = []
        while True:
            self._space()
            start = self.at
            if found := _BARE.match(self._text, start):
                key = found[0]
            elif (found := _STRING.match(self._text, start)) and "\n" not in found[0]:
                key = _unquote(found[0])
            else:
                raise _Lost
            self.at = found.end()
            parts.append(Scalar(key, "toml", start, self.at))
            if len(parts) > DEEPEST:
                raise self._deep(start)
            self._space()
            if not self._take("."):
                return parts

    def _deep(self, at: int) -> Stop:
        message = f"nested deeper than {DEEPEST} levels"
        return Stop(self._lines.problem("TRM115", message, at, at + 1, hint="split the file, or flatten the data"))

    def _header(self) -> tuple[Mapping, Pointer]:
        start = self.at
        many = self._take("[[")
        if not many:
            self._expect("[")
        *before, last = self._parts()
        self._expect("]]" if many else "]")
        table, path = self._descend(self.root, (), before, start)
        if many:
            return self._another(table, path, last, start)
        known = table.values.get(last.text)
        if known is None:
            made = Mapping(start, self.at, {}, {})
            table.keys[last.text], table.values[last.text] = last, made
        elif isinstance(known, Mapping) and id(known) not in self._explicit:
            made = known
        else:
            self._twice((*path, last.text), table.keys[last.text], last)
            made = Mapping(start, self.at, {}, {})
        self._explicit.add(id(made))
        return made, (*path, last.text)

    def _another(self, table: Mapping, path: Pointer, last: Scalar, start: int) -> tuple[Mapping, Pointer]:
        """One more element of an array of tables."""
        array = table.values.get(last.text)
        if array is None:
            array = Sequence(start, self.at, [])
            table.keys[last.text], table.values[last.text] = last, array
        elif not isinstance(array, Sequence):
            self._twice((*path, last.text), table.keys[last.text], last)
            array = Sequence(start, self.at, [])
        made = Mapping(start, self.at, {}, {})
        array.items.append(made)
        return made, (*path, last.text, len(array.items) - 1)

    def _descend(
        self, table: Mapping, path: Pointer, parts: list[Scalar], start: int, *, dotted: bool = False
    ) -> tuple[Mapping, Pointer]:
        for part in parts:
            node = table.values.get(part.text)
            path = (*path, part.text)
            if isinstance(node, Sequence) and node.items:
                path = (*path, len(node.items) - 1)
                node = node.items[-1]
            if node is None:
                node = Mapping(start, part.end, {}, {})
                table.keys[part.text], table.values[part.text] = part, node
                if dotted:
                    self._explicit.add(id(node))
            if not isinstance(node, Mapping):
                self._twice(path, table.keys[part.text], part)
                node = Mapping(start, part.end, {}, {})
            table = node
        return table, path

    def _twice(self, pointer: Pointer, first: Scalar, again: Scalar) -> None:
        key = again.text
        other = (first.start, first.end, f"`{key}` is first written here")
        message, hint = f"duplicate key `{key}`", "keep one of the two"
        if key == "steps":
            hint = "every step has a header [[steps]]; there is no [steps]"
        found = self._lines.problem("TRM103", message, again.start, again.end, hint=hint, pointer=pointer, other=other)
        self.problems.append(found)

    def _pair(self, table: Mapping, path: Pointer, depth: int = 0) -> None:
        start = self.at
        *before, last = self._parts()
        self._expect("=")
        table, path = self._descend(table, path, before, start, dotted=True)
        if last.text in table.values:
            self._twice((*path, last.text), table.keys[last.text], last)
            table = Mapping(start, start, {}, {})
        self._space()
        value = self._value((*path, last.text), depth)
        table.keys[last.text], table.values[last.text] = last, value
        table.end = max(table.end, value.end)

    def _value(self, path: Pointer, depth: int) -> Node:
        start, text = self.at, self._text
        if depth > DEEPEST:
            raise self._deep(start)
        if text.startswith("[", start):
            return self._array(path, depth)
        if text.startswith("{", start):
            return self._inline(path, depth)
        found = _STRING.match(text, start) or _PLAIN.match(text, start)
        if found is None:
            raise _Lost
        self.at = found.end()
        return Scalar(found[0], "toml", start, self.at)

    def _array(self, path: Pointer, depth: int) -> Sequence:
        made = Sequence(self.at, 0, [])
        self._expect("[")
        self._blank()
        while not self._take("]"):
            made.items.append(self._value((*path, len(made.items)), depth + 1))
            self._blank()
            if not self._take(",") and not self._text.startswith("]", self.at):
                raise _Lost
            self._blank()
        made.end = self.at
        return made

    def _inline(self, path: Pointer, depth: int) -> Mapping:
        made = Mapping(self.at, 0, {}, {})
        self._expect("{")
        self._blank()
        while not self._take("}"):
            self._pair(made, path, depth + 1)
            self._blank()
            if not self._take(",") and not self._text.startswith("}", self.at):
                raise _Lost
            self._blank()
        made.end = self.at
        return made


def _unquote(quoted: str) -> str:
    if quoted.startswith("'") or "\\" not in quoted:
        return quoted[1:-1]
    import tomllib

    try:
        return next(iter(tomllib.loads(f"{quoted} = 0")))
    except ValueError:
        return quoted[1:-1]
