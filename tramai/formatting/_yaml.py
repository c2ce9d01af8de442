"""A YAML text in canonical form: the order of keys, the indentation, as few quotes as leave no doubt."""

from __future__ import annotations

import re

from .._shape import Shape
from ..document import Document
from . import _order, _scalars
from ._comments import Comments
from ._remarks import BLANK, settle
from ._tree import Branch, Entry, Leaf, Tree, tree

EMPTY = "\1"
"""An empty line that is part of a text, and stays."""
KEPT = "\0"
"""Stands behind a block whose empty lines at the end are part of it: none may follow."""
_STEP = 2
_MARKS = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_END = re.compile(r"^\.\.\.(?=\s|$)", re.MULTILINE)


class CannotFormat(Exception):
    """The text uses what cannot be written anew without a doubt; the words say what."""


def format_yaml(source: Document, *, reorder: bool) -> str:
    """The text in canonical form. Line ends are `\\n`."""
    root = tree(source)
    if not isinstance(root, Branch) or root.flow:
        return _tidy(source.text)
    comments = Comments(source.text, root)
    printer = _Printer(source.text, comments, reorder=reorder)
    lines = [*settle(comments.head), *printer.marks(root)]
    if comments.head and printer.gap(root):
        lines.append(BLANK)
    lines += printer.block(root, 0, _order.root())
    lines += comments.tail(root)
    return _joined(lines)


def _tidy(text: str) -> str:
    """A text that is one flow collection, as in a JSON file: only white space at its ends of lines is taken away."""
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n") + "\n"


def _joined(lines: list[str]) -> str:
    """The lines as a text, no two blank ones in a row but for those that are part of a value."""
    made: list[str] = []
    blank, kept = True, False
    for line in lines:
        if line == KEPT:
            kept = True
        elif line != BLANK:
            made.append("" if line == EMPTY else line)
            blank = kept = False
        elif not blank and not kept:
            made.append("")
            blank = True
    if not kept:
        while made and not made[-1]:
            made.pop()
    return "\n".join(made) + "\n"


class _Printer:
    """Recursion over the tree; every method gives lines."""

    def __init__(self, text: str, comments: Comments, *, reorder: bool) -> None:
        self._text = text
        self._comments = comments
        self._reorder = reorder

    def marks(self, root: Branch) -> list[str]:
        """What stands before the first key besides comments: the start of the document."""
        before = self._text[: root.entries[0].start]
        if re.search(r"^%", before, re.MULTILINE) or _END.search(self._text):
            raise CannotFormat("directives and `...` are not written anew")
        return ["---"] if _MARKS.search(before) else []

    def gap(self, root: Branch) -> bool:
        """Whether a blank line stood before the first key."""
        before = self._text[: root.entries[0].start]
        return before.endswith("\n\n") or bool(re.search(r"\n[ \t]+\n$", before))

    def block(self, branch: Branch, indent: int, shape: Shape) -> list[str]:
        """The entries of a block collection."""
        lines: list[str] = []
        for number, entry in enumerate(self._ordered(branch, shape)):
            remarks = self._comments.of(entry)
            before = list(remarks.before)
            while number == 0 and before[:1] == [BLANK]:
                before.pop(0)
            lines += _indented(before, indent)
            if entry.key is None:
                lines += self._item(entry, indent, shape.item())
            else:
                lines += self._pair(entry, entry.key, indent, shape.at(entry.key.value))
        return lines

    def _ordered(self, branch: Branch, shape: Shape) -> list[Entry]:
        if not branch.mapping or not self._reorder:
            return branch.entries
        by_key = {entry.key.value: entry for entry in branch.entries if entry.key is not None}
        return [by_key[key] for key in _order.keys(shape, by_key)]

    def _pair(self, entry: Entry, key: Leaf, indent: int, shape: Shape) -> list[str]:
        return self._entry(f"{self._key(key)}:", entry, indent, shape)

    def _entry(self, head: str, entry: Entry, indent: int, shape: Shape) -> list[str]:
        """A key or a dash, and the value behind or below it."""
        beside = self._comments.of(entry).beside
        behind = f" {beside}" if beside else ""
        value = entry.value
        lead = " " * indent + head
        if isinstance(value, Branch) and not value.flow:
            inner = self.block(value, indent + _STEP, shape)
            tail = _indented(self._comments.tail(value), indent + _STEP)
            return [lead + (f" {value.props}" if value.props else "") + behind, *inner, *tail]
        if isinstance(value, Leaf) and value.block:
            first, *rest = self._literal(value, self._comments.column_of(entry), indent + _STEP)
            return [f"{lead} {first}{behind}", *rest]
        first, *rest = self._inline(value, indent + _STEP, shape)
        lines = [lead + (f" {first}" if first else ""), *rest]
        lines[-1] += behind
        return lines

    def _item(self, entry: Entry, indent: int, shape: Shape) -> list[str]:
        value = entry.value
        if not isinstance(value, Branch) or value.flow or value.props:
            return self._entry("-", entry, indent, shape)
        inner = self.block(value, indent + _STEP, shape)
        first = next(number for number, line in enumerate(inner) if line.strip() and line.lstrip()[0] != "#")
        # What stands above the first key would part it from its dash.
        lines = [line[_STEP:] for line in inner[:first]]
        if beside := self._comments.of(entry).beside:
            lines.append(" " * indent + beside)
        lines.append(" " * indent + "- " + inner[first].lstrip(" "))
        return [*lines, *inner[first + 1 :], *_indented(self._comments.tail(value), indent + _STEP)]

    def _key(self, key: Leaf) -> str:
        written = self._text[key.start : key.end]
        if "\n" in written or key.block:
            raise CannotFormat("a key of several lines is not written anew")
        if key.style in ("'", '"') and not key.props and _scalars.yaml_key(key.value) == key.value:
            return key.value
        return written

    def _inline(self, value: Tree, indent: int, shape: Shape) -> list[str]:
        """A scalar or a flow collection."""
        written = self._text[value.start : value.end]
        if "\n" in written:
            first, *rest = written.split("\n")
            return [first, *(" " * indent + line.lstrip(" \t") if line.strip(" \t") else EMPTY for line in rest)]
        return [self._flow(value, shape, flow=False)]

    def _flow(self, value: Tree, shape: Shape, *, flow: bool) -> str:
        """A value that is written on one line."""
        if isinstance(value, Leaf):
            written = self._text[value.start : value.end]
            plain = value.style in ("'", '"') and not value.props and _scalars.is_plain(value.value, flow=flow)
            return value.value if plain else written
        lead = f"{value.props} " if value.props else ""
        if not value.mapping:
            items = (self._flow(entry.value, shape.item(), flow=True) for entry in value.entries)
            return f"{lead}[{', '.join(items)}]"
        parts = []
        for entry in self._ordered(value, shape):
            if entry.key is None:
                continue
            shown = self._flow(entry.value, shape.at(entry.key.value), flow=True)
            parts.append(f"{self._key(entry.key)}:{f' {shown}' if shown else ''}")
        return f"{lead}{{{', '.join(parts)}}}"

    def _literal(self, value: Leaf, column: int, indent: int) -> list[str]:
        """A block scalar with its lines at another indentation."""
        written = self._text[value.start : value.end]
        found = re.search(r"[|>]([-+1-9]*)", written[len(value.props) :])
        marks = found[1] if found else ""
        digit = "".join(re.findall(r"[1-9]", marks))
        chomp = marks.replace(digit, "") if digit else marks
        body = written.split("\n")[1:]
        body = body[:-1] if body and not body[-1] else body
        full = next((line for line in body if line.strip(" ")), "")
        old = column + int(digit) if digit else len(full) - len(full.lstrip(" "))
        inner = [line[old:] for line in body]
        lines = [" " * indent + line if line else EMPTY for line in inner]
        new = str(_STEP) if next((line for line in inner if line), "").startswith((" ", "\t")) else ""
        if chomp == "+":
            ends = len(value.value) - len(value.value.rstrip("\n"))
            lines += [EMPTY] * (ends - (1 if value.value.strip("\n") else 0))
            lines.append(KEPT)
        head = f"{value.props} " if value.props else ""
        return [f"{head}{value.style}{new}{chomp}", *lines]


def _indented(lines: list[str], indent: int) -> list[str]:
    return [" " * indent + line if line else BLANK for line in lines]


def comments(source: Document) -> list[str]:
    """The text of every comment that stands outside of values in brackets over several lines."""
    root = tree(source)
    return [comment.text for comment in Comments(source.text, root).all] if root is not None else []
