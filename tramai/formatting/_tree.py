"""The tree of a YAML text as it is written: anchors, aliases, styles, and where each piece begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from .._yaml_events import OldRules, events
from ..document import Document

_HEADER = re.compile(r"[|>](?:[-+]?[1-9]?|[1-9][-+])(?=[ \t\r\n]|$)")
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*|[&!][^\s]*)*")
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]+)*")


class Leaf(msgspec.Struct):
    """A scalar or an alias: `text` is how it is written, from its anchor or tag to its end."""

    start: int
    end: int
    style: str
    """`*` for an alias, otherwise as in `_nodes.Scalar`."""
    value: str
    props: str = ""

    @property
    def block(self) -> bool:
        """Whether it is a block scalar."""
        return self.style in ("|", ">")


class Entry(msgspec.Struct):
    """A key and its value, or an item of a list, whose `key` is None. `start` is where the key or the dash stands."""

    start: int
    key: Leaf | None
    value: Tree


class Branch(msgspec.Struct):
    """A mapping or a list; `flow` for one in braces or brackets."""

    start: int
    end: int
    mapping: bool
    flow: bool
    props: str
    entries: list[Entry]


Tree = Leaf | Branch


def tree(source: Document) -> Tree | None:
    """The root of a text that was read without problems, None when it is empty."""
    assert source.lines is not None
    try:
        found = list(events(source.text, source.lines, source.text, pure=False))
    except OldRules:  # the reader has gone this way too: what it has accepted is read by YAML 1.2
        found = list(events(source.text, source.lines, source.text, pure=True))
    stream = iter(found)
    builder = _Builder(source.text)
    for event in stream:
        kind = type(event).__name__
        if kind not in ("StreamStartEvent", "DocumentStartEvent", "DocumentEndEvent", "StreamEndEvent"):
            return builder.node(event, stream)
    return None


def end_of(node: Tree) -> int:
    """Where what is written of a node ends; marks of blocks stand behind the comments that follow them."""
    while isinstance(node, Branch) and not node.flow:
        node = node.entries[-1].value
    return node.end


class _Builder:
    """Recursion is safe: the text was read before, and so is not nested deeper than allowed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def node(self, event: Any, stream: Iterator[Any]) -> Tree:
        kind = type(event).__name__
        start, end = event.start_mark.index, event.end_mark.index
        if kind == "AliasEvent":
            return Leaf(start, end, "*", event.anchor)
        if kind == "ScalarEvent":
            style = event.style or ""
            props = _properties(event)
            return Leaf(start, self._end(start, end, style), style, event.value, props)
        mapping = kind == "MappingStartEvent"
        made = Branch(start, end, mapping, bool(event.flow_style), _properties(event), [])
        while (inner := next(stream)) is not None:
            kind = type(inner).__name__
            if kind in ("MappingEndEvent", "SequenceEndEvent"):
                made.end = inner.end_mark.index
                return made
            first = self.node(inner, stream)
            if mapping:
                assert isinstance(first, Leaf)
                made.entries.append(Entry(first.start, first, self.node(next(stream), stream)))
            else:
                made.entries.append(Entry(first.start if made.flow else self._dash(made), None, first))
        return made

    def _dash(self, above: Branch) -> int:
        """Where the dash of the next item of a list stands."""
        at = end_of(above.entries[-1].value) if above.entries else above.start
        found = _GAP.match(self._text, at)
        return found.end() if found else at

    def _end(self, start: int, end: int, style: str) -> int:
        """The end of a scalar without what follows it: parsers count comments and blank lines behind a block to it."""
        text = self._text
        if style not in ("|", ">"):
            return end
        properties = _PROPERTIES.match(text, start)
        at = properties.end() if properties else start
        lines = text[at:end].splitlines(keepends=True)
        return at + sum(map(len, lines[: _length(lines)]))


def _length(lines: list[str]) -> int:
    """How many lines a block scalar has: the header, and all that follow down to the last that is indented enough."""
    body = [line.rstrip("\r\n") for line in lines[1:]]
    first = next((line for line in body if line.strip(" ")), "")
    digit = re.search(r"[1-9]", lines[0].split("#")[0])
    least = 1 if digit else len(first) - len(first.lstrip(" "))
    last = 0
    for number, line in enumerate(body, 1):
        if line.strip(" "):
            if len(line) - len(line.lstrip(" ")) < least:
                break
            last = number
        elif not digit and len(line) > least:  # blanks that stand further in are text
            last = number
    return last + 1


def _properties(event: Any) -> str:
    """The anchor and the tag before a value, as they are written again."""
    parts = [f"&{event.anchor}"] if event.anchor else []
    tag = event.tag
    if tag and tag.startswith("tag:yaml.org,2002:"):
        parts.append("!!" + tag.rpartition(":")[2])
    elif tag:
        parts.append(tag)
    return " ".join(parts)
