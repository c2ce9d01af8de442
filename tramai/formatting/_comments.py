"""The comments of a YAML text, each given to the key, the item or the collection that it was written for."""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

from ..errors import Pointer
from ._remarks import BLANK, Remarks
from ._tree import Branch, Entry, Leaf, Tree

_COMMENT = re.compile(r"(?:^|(?<=[ \t\r\n]))#[^\r\n]*")


class Comment(msgspec.Struct, frozen=True):
    """One comment: `own` when nothing else stands on its line."""

    offset: int
    line: int
    column: int
    text: str
    own: bool


class Place(msgspec.Struct):
    """An entry of a block among the others: `above` are the collections it stands in, from the outside."""

    entry: Entry
    line: int
    column: int
    last: int
    above: tuple[Branch, ...]


class Comments:
    """Who has which comments; `head` are those before everything.

    `inside`: those between brackets count too, and belong to what is in brackets. Otherwise they are part of it.
    """

    def __init__(self, text: str, root: Tree, *, inside: bool = False) -> None:
        self._inside = inside
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._text = text
        self._of: dict[int, Remarks] = {}
        self._tails: dict[int, list[str]] = {}
        self.head: list[str] = []
        self._kept: set[int] = set()
        self._solid: list[tuple[int, int]] = []
        self._places: list[Place] = []
        if isinstance(root, Branch) and not root.flow:
            self._visit(root, ())
        else:
            self._cover(root)
        self.all = self._find()
        self._give()

    def of(self, entry: Entry) -> Remarks:
        """The remarks around an entry."""
        return self._of.setdefault(id(entry), Remarks([], None, []))

    def tail(self, branch: Tree) -> list[str]:
        """The comments at the end of a collection."""
        return self._tails.get(id(branch), [])

    def notes(self, root: Branch) -> dict[Pointer, Remarks]:
        """The remarks by pointer; those of the root are the head and the tail of the file."""
        found: dict[Pointer, Remarks] = {(): Remarks(self.head, None, self.tail(root))}

        def walk(branch: Branch, at: Pointer) -> None:
            for number, entry in enumerate(branch.entries):
                here = (*at, entry.key.value if entry.key is not None else number)
                remarks = self.of(entry)
                if isinstance(entry.value, Branch) and not entry.value.flow:
                    remarks.tail = self.tail(entry.value)
                    walk(entry.value, here)
                found[here] = remarks

        walk(root, ())
        return found

    def column(self, branch: Branch) -> int:
        """Where the entries of a block begin."""
        return self._at(branch.entries[0].start)[1]

    def column_of(self, entry: Entry) -> int:
        """Where an entry begins on its line."""
        return self._at(entry.start)[1]

    def _at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset) - 1
        return line, offset - self._starts[line]

    def _visit(self, branch: Branch, above: tuple[Branch, ...]) -> None:
        above = (*above, branch)
        for entry in branch.entries:
            line, column = self._at(entry.start)
            value = entry.value
            block = isinstance(value, Branch) and not value.flow
            ends = entry.key.end if entry.key is not None and block else entry.start + 1 if block else value.end
            last = self._at(max(ends - 1, entry.start))[0]
            self._places.append(Place(entry, line, column, last, above))
            if entry.key is not None:
                self._solid.append((entry.key.start, entry.key.end))
            if isinstance(value, Branch) and not value.flow:
                self._visit(value, above)
            else:
                self._cover(value)

    def _cover(self, value: Tree) -> None:
        """Note where no comment can be, because a value is there."""
        if isinstance(value, Branch) and self._inside:
            for entry in value.entries:
                if entry.key is not None:
                    self._solid.append((entry.key.start, entry.key.end))
                self._cover(entry.value)
        elif isinstance(value, Leaf) and value.block:
            header = self._text.find("\n", value.start)
            mark = _COMMENT.search(self._text, value.start, header if header >= 0 else len(self._text))
            self._solid.append((value.start, mark.start() if mark else max(header, value.start)))
            self._solid.append((header if header >= 0 else value.end, value.end))
            if "+" in self._text[value.start : mark.start() if mark else max(header, value.start)]:
                self._keep(self._at(value.end)[0])
        else:
            self._solid.append((value.start, value.end))

    def _keep(self, line: int) -> None:
        """Note the blank lines behind a block that keeps them: they are part of its text."""
        while line < len(self._lines) and not self._lines[line].strip():
            self._kept.add(line)
            line += 1

    def _find(self) -> list[Comment]:
        """Every comment between the pieces that are none."""
        found, at = [], 0
        for start, end in [*sorted(self._solid), (len(self._text), len(self._text))]:
            for mark in _COMMENT.finditer(self._text, at, max(start, at)):
                line, column = self._at(mark.start())
                own = not self._lines[line][:column].strip()
                found.append(Comment(mark.start(), line, column, mark[0].rstrip(), own))
            at = max(at, end)
        return found

    def _give(self) -> None:
        starts = [place.entry.start for place in self._places]
        for comment in self.all:
            index = bisect_right(starts, comment.offset)
            if index == 0:
                self._append(self.head, comment)
                continue
            before, after = self._places[index - 1], self._places[index] if index < len(starts) else None
            if not comment.own:
                remarks = self.of(before.entry)
                if remarks.beside is not None:
                    remarks.before.append(remarks.beside)
                remarks.beside = comment.text
            elif comment.line < before.last:
                self._append(self.of(before.entry).before, comment)
            elif after is not None and (comment.column <= after.column or self._inner(before, comment) in after.above):
                self._append(self.of(after.entry).before, comment)
            else:
                self._append(self._tails.setdefault(id(self._inner(before, comment)), []), comment)
        for index, place in enumerate(self._places):
            if index and place.line and self._is_blank(place.line - 1) and place.line > self._places[index - 1].line:
                self.of(place.entry).before.append(BLANK)

    def _inner(self, place: Place, comment: Comment) -> Branch:
        """The innermost collection around a place to which a comment belongs by its column."""
        fitting = [branch for branch in place.above if self.column(branch) <= comment.column]
        return fitting[-1] if fitting else place.above[0]

    def _append(self, lines: list[str], comment: Comment) -> None:
        if comment.own and comment.line and self._is_blank(comment.line - 1):
            lines.append(BLANK)
        lines.append(comment.text)

    def _is_blank(self, line: int) -> bool:
        return not self._lines[line].strip() and line not in self._kept
