"""YAML text to nodes: the events of libyaml, refused where the language refuses them."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ._nodes import DEEPEST, LARGEST_FILE, MOST_EXPANSIONS, Lines, Mapping, Node, Scalar, Sequence, Stop
from ._yaml_events import OldRules, events
from .errors import Pointer, Problem

NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TAG = "tag:yaml.org,2002:"
_MATCHING: dict[str, type] = {"str": Scalar, "map": Mapping, "seq": Sequence}
# Characters that YAML 1.1, and so libyaml, takes for line ends although YAML 1.2 does not.
_FORMER_BREAKS = re.compile("[\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PRIVATE = range(0xE000, 0xF8FF)


def read(text: str, lines: Lines) -> tuple[Mapping | None, list[Problem]]:
    """The tree of a YAML text and what is wrong with it. No tree when nothing sensible can be said about it."""
    try:
        return _read(text, lines, pure=False)
    except OldRules as refused:
        root, problems = _read(text, lines, pure=True)
        if root is not None or _innocent(text, refused.problem, problems[-1]):
            return root, problems
        # When both parsers refuse the same place, libyaml's word is the one that its advice was written for.
        return None, [*problems[:-1], refused.problem]


def _innocent(text: str, refused: Problem, found: Problem) -> bool:
    """Whether what libyaml refused is fine, and the mistake stands further on, where the pure parser found it."""
    old, new = refused.position, found.position
    if old is None or new is None or (new.line, new.column) <= (old.line, old.column):
        return False
    line = text.splitlines()[old.line - 1] if new.line == old.line else ""
    return new.line > old.line or line[old.column - 1 : old.column] == "?"


def _read(text: str, lines: Lines, *, pure: bool) -> tuple[Mapping | None, list[Problem]]:
    stand_in, back = _hide_former_breaks(text)
    builder = _Builder(lines, text, back)
    collecting = gc.isenabled()
    gc.disable()  # tens of thousands of nodes and no rubbish: a collection here only costs time
    try:
        builder.build(events(stand_in, lines, text, pure=pure))
    except OldRules:
        raise
    except Stop as stop:
        builder.problems.append(stop.problem)
        return None, builder.problems
    finally:
        if collecting:
            gc.enable()
    return builder.root(), builder.problems


def _hide_former_breaks(text: str) -> tuple[str, dict[int, str]]:
    """The text with those characters replaced by private ones, and the way back."""
    found = sorted(set(_FORMER_BREAKS.findall(text)))
    if not found:
        return text, {}
    free = (code for code in _PRIVATE if chr(code) not in text)
    there = {ord(char): next(free, 0xF8FF) for char in found}
    return text.translate(there), {code: chr(char) for char, code in there.items()}


class _Anchor(msgspec.Struct, frozen=True):
    node: Node
    expansions: int
    weight: int


class _Open(msgspec.Struct):
    """A collection that is being filled, and what was counted when it began."""

    node: Mapping | Sequence
    key: Scalar | None
    last: str
    anchor: str | None
    expansions: int
    weight: int


_DROPPED = Scalar("", "dropped", 0, 0)
"""Stands for a refused key, so that its value is read and thrown away."""


class _Builder:
    """Puts nodes in their places. A loop and a stack: no depth of nesting can exhaust Python's own stack."""

    def __init__(self, lines: Lines, text: str, back: dict[int, str]) -> None:
        self.problems: list[Problem] = []
        self._lines = lines
        self._text = text
        self._back = back
        self._stack: list[_Open] = []
        self._root: Node | None = None
        self._anchors: dict[str, _Anchor] = {}
        self._expansions = 0
        self._weight = 0
        self._document: int | None = None

    def build(self, stream: Iterator[Any]) -> None:
        """Read every event of the first document."""
        from ruamel.yaml import events as kinds

        scalar, ends = kinds.ScalarEvent, (kinds.MappingEndEvent, kinds.SequenceEndEvent)
        for event in stream:
            kind = type(event)
            if kind is scalar:
                self._scalar(event)
            elif kind is kinds.MappingStartEvent:
                self._begin(event, Mapping(event.start_mark.index, 0, {}, {}))
            elif kind is kinds.SequenceStartEvent:
                self._begin(event, Sequence(event.start_mark.index, 0, []))
            elif kind in ends:
                self._end(event.end_mark.index)
            elif kind is kinds.AliasEvent:
                self._alias(event)
            elif kind is kinds.DocumentStartEvent and not self._start_document(event):
                return

    def root(self) -> Mapping | None:
        """The mapping at the top, or a problem that says what stands there instead."""
        node = self._root
        if isinstance(node, Mapping):
            return node
        if node is None or (isinstance(node, Scalar) and node.style == "" and node.text in NULLS):
            self._refuse("TRM118", "the file is empty", 0, 0, "write at least `tramai: 1`, `name` and `steps`")
        else:
            what = "a list" if isinstance(node, Sequence) else "text"
            hint = "start with `tramai: 1` and put the list under `steps:`" if what == "a list" else None
            self._refuse("TRM118", f"the top level is {what}, not a mapping", node.start, node.start + 1, hint)
        return None

    def _start_document(self, event: Any) -> bool:
        start, end = event.start_mark.index, event.end_mark.index
        if self._document is not None:
            other = (self._document, self._document, "the first document starts here")
            message, hint = (
                "a second document starts here",
                "one file is one workflow: remove this `---` or split the file",
            )
            self.problems.append(self._lines.problem("TRM111", message, start, end, hint=hint, other=other))
            return False
        self._document = start
        if event.version not in (None, (1, 2)):
            raise Stop(self._problem("TRM101", "only YAML 1.2 is read", start, end, "remove the %YAML line"))
        return True

    def _scalar(self, event: Any) -> None:
        text, style = event.value, event.style or ""
        if self._back:
            text = text.translate(self._back)
        node = Scalar(text, style, event.start_mark.index, event.end_mark.index)
        self._weight += len(text) + 1
        if not text.isascii() and (half := _SURROGATE.search(text)):
            what = f"half of a surrogate pair, U+{ord(half[0]):04X}"
            hint = "write the character itself, or \\U and its eight digits"
            raise Stop(self._problem("TRM101", what, node.start, node.end, hint))
        if event.tag is not None:
            self._check_tag(event.tag, node)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(node, 0, len(text) + 1)
        self._put(node)

    def _begin(self, event: Any, node: Mapping | Sequence) -> None:
        if len(self._stack) >= DEEPEST:
            message = f"nested deeper than {DEEPEST} levels"
            raise Stop(
                self._problem("TRM115", message, node.start, node.start + 1, "split the file, or flatten the data")
            )
        if event.tag is not None:
            self._check_tag(event.tag, node)
        self._weight += 2
        self._put(node)
        self._stack.append(_Open(node, None, "", event.anchor, self._expansions, self._weight))
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)

    def _end(self, end: int) -> None:
        frame = self._stack.pop()
        frame.node.end = end
        if frame.anchor is not None:
            grown = self._expansions - frame.expansions, self._weight - frame.weight + 2
            self._anchors[frame.anchor] = _Anchor(frame.node, *grown)

    def _alias(self, event: Any) -> None:
        name, start, end = event.anchor, event.start_mark.index, event.end_mark.index
        anchor = self._anchors.get(name)
        if anchor is None:
            if any(frame.anchor == name for frame in self._stack):
                raise Stop(self._problem("TRM114", f"the alias `*{name}` stands inside what it names", start, end))
            hint = f'an alias names an earlier `&{name}`; for text write "*{name}"'
            raise Stop(self._problem("TRM114", f"no anchor `&{name}` comes before this alias", start, end, hint))
        self._expansions += 1 + anchor.expansions
        self._weight += anchor.weight
        if self._expansions > MOST_EXPANSIONS:
            message = f"more than {MOST_EXPANSIONS:,} aliases are expanded here"
            raise Stop(self._problem("TRM114", message, start, end, "write the data out, or compute it in a step"))
        if self._weight > 2 * LARGEST_FILE:
            raise Stop(self._problem("TRM114", "the aliases expand to more than 1 MiB", start, end))
        self._put(anchor.node)

    def _put(self, node: Node) -> None:
        if not self._stack:
            self._root = node
            return
        frame = self._stack[-1]
        into = frame.node
        if isinstance(into, Sequence):
            into.items.append(node)
        elif frame.key is None:
            frame.key = self._key(into, node)
            frame.last = frame.key.text
        else:
            if frame.key is not _DROPPED:
                into.values[frame.key.text] = node
            frame.key = None

    def _key(self, into: Mapping, node: Node) -> Scalar:
        """The node as a key, recorded, or the stand-in for a key that is refused."""
        if not isinstance(node, Scalar):
            self._refuse_collection_as_key(node)
            return _DROPPED
        key, plain = node.text, node.style == ""
        if plain and key == "<<":
            hint = "repeat the keys, or put shared settings under `defaults`"
            self._refuse("TRM113", "merge keys `<<` are not part of YAML 1.2", node.start, node.end, hint)
            return _DROPPED
        if plain and key in NULLS:
            what = f"`{key}` as a key is null" if key else "a key is missing before this `:`"
            self._refuse("TRM117", what, node.start, node.end, f'for text write "{key}"' if key else None)
            return _DROPPED
        first = into.keys.get(key)
        if first is not None:
            self._refuse_duplicate(key, first, node)
            return _DROPPED
        into.keys[key] = node
        return node

    def _refuse_duplicate(self, key: str, first: Scalar, node: Scalar) -> None:
        other = (first.start, first.end, f"`{key}` is first written here")
        message = f"duplicate key `{key}`"
        hint = "keep one of the two"
        pointer = (*self._pointer(), key)
        self.problems.append(
            self._lines.problem("TRM103", message, node.start, node.end, hint=hint, pointer=pointer, other=other)
        )

    def _refuse_collection_as_key(self, node: Mapping | Sequence) -> None:
        before = self._text[node.start - 1 : node.start + 1]
        if before == "{{":
            found = re.compile(r"\{\{(.*?)\}\}").match(self._text, node.start - 1)
            inner = found[1].strip() if found else "…"
            end = found.end() if found else node.start + 1
            hint = f'quote the expression: "${{{{ {inner} }}}}"'
            self._refuse("TRM120", "an expression without quotes starts a mapping here", node.start - 1, end, hint)
        else:
            what = "a list" if isinstance(node, Sequence) else "a mapping"
            self._refuse("TRM117", f"{what} cannot be a key", node.start, node.start + 1, "keys are text")

    def _check_tag(self, tag: str, node: Node) -> None:
        """Only tags that say what stands there anyway, and `!!str`."""
        short = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
        if _MATCHING.get(short) is type(node):
            if isinstance(node, Scalar) and node.style == "":
                node.style = "!"
            return
        shown = f"!!{short}" if short else tag
        end = _end_of_word(self._text, node.start)
        self._refuse("TRM112", f"the tag `{shown}` is not known here", node.start, end, "write the value without a tag")

    def _pointer(self) -> Pointer:
        parts: list[str | int] = []
        for frame in self._stack:
            inner = frame is self._stack[-1]
            if isinstance(frame.node, Sequence):
                # The innermost list is about to get its next item; those around it hold theirs already.
                parts.append(len(frame.node.items) - (not inner))
            elif not inner or frame.key is not None:
                parts.append(frame.last)
        return tuple(parts)

    def _problem(self, code: str, message: str, start: int, end: int, hint: str | None = None) -> Problem:
        return self._lines.problem(code, message, start, end, hint=hint, pointer=self._pointer())

    def _refuse(self, code: str, message: str, start: int, end: int, hint: str | None = None) -> None:
        self.problems.append(self._problem(code, message, start, end, hint))


def _end_of_word(text: str, start: int) -> int:
    found = re.compile(r"\S*").match(text, start)
    return found.end() if found else start
