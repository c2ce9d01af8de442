"""Data as TOML for people: pairs first, then tables; short things inline, text of several lines as it is."""

from __future__ import annotations

from typing import Any

from ..errors import Pointer
from . import _scalars
from ._remarks import BLANK, NONE, Notes, below

WIDTH = 110
"""What stands on one line in braces or brackets is not wider."""


def inline(value: Any) -> str:
    """A value behind its `=`, on one line but for text of several lines."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_scalars.toml_key(key)} = {inline(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, str) and "\n" in value:
        return _scalars.toml_block(value)
    return _scalars.toml(value)


def document(value: dict[str, Any], notes: Notes) -> str:
    """A whole file."""
    head = notes.get((), NONE)
    lines = [*head.before, *_Writer(notes).table(value, ()), *head.tail]
    return "\n".join(lines).strip("\n") + "\n"


class _Writer:
    """Recursion over the data; the remarks say what else to write."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def table(self, value: dict[str, Any], at: Pointer) -> list[str]:
        """The pairs of a table, then the tables in it."""
        inside = {key for key, item in value.items() if self._is_pair(item, (*at, key))}
        lines: list[str] = []
        for key in (key for key in value if key in inside):
            lines += self._pair(key, value[key], (*at, key))
        while lines and lines[0] == BLANK:
            lines.pop(0)
        for key, item in value.items():
            if key not in inside:
                lines += self._tables(item, (*at, key))
        return lines

    def _pair(self, key: str, item: Any, at: Pointer) -> list[str]:
        remarks = self._notes.get(at, NONE)
        head = f"{_scalars.toml_key(key)} = "
        text = inline(item)
        if isinstance(item, list) and (below(self._notes, at) or len(head) + len(text) > WIDTH):
            text = self._spread(item, at)
        text += f" {remarks.beside}" if remarks.beside else ""
        return [*remarks.before, *(head + text).split("\n")]

    def _spread(self, items: list[Any], at: Pointer) -> str:
        """A list with an item a line, where comments have a place too."""
        lines = ["["]
        for index, item in enumerate(items):
            remarks = self._notes.get((*at, index), NONE)
            lines += [f"    {line}" for line in remarks.before if line]
            lines.append(f"    {inline(item)},{f' {remarks.beside}' if remarks.beside else ''}")
        lines += [f"    {line}" for line in self._notes.get(at, NONE).tail if line]
        return "\n".join([*lines, "]"])

    def _tables(self, item: Any, at: Pointer) -> list[str]:
        remarks = self._notes.get(at, NONE)
        before = [BLANK, *(line for line in remarks.before if line)]
        behind = f" {remarks.beside}" if remarks.beside else ""
        name = ".".join(_scalars.toml_key(str(part)) for part in at if isinstance(part, str))
        tail = remarks.tail
        if isinstance(item, dict):
            inner = self.table(item, at)
            pairs = any(self._is_pair(one, (*at, key)) for key, one in item.items())
            bare = item and not pairs and not any(before) and not behind and not tail
            return [*tail, *inner] if bare else [*before, f"[{name}]{behind}", *inner, *tail]
        lines: list[str] = []
        for index, one in enumerate(item):
            about = self._notes.get((*at, index), NONE)
            lead = before if index == 0 else [BLANK]
            beside = f" {about.beside}" if about.beside else behind if index == 0 else ""
            lines += [*lead, *(line for line in about.before if line), f"[[{name}]]{beside}"]
            lines += [*self.table(one, (*at, index)), *about.tail]
        return [*lines, *tail]

    def _is_pair(self, item: Any, at: Pointer) -> bool:
        if _scalars.has_steps(item):
            return False
        if isinstance(item, dict):
            if at in (("inputs",), ("env",), ("outputs",), ("secrets",), ("state",)) and item:
                return False
            return not below(self._notes, at) and _scalars.is_small(item) and len(inline(item)) <= WIDTH - 20
        if not isinstance(item, list) or not item or not all(isinstance(one, dict) for one in item):
            return True
        return not below(self._notes, at) and _scalars.is_small(item) and len(inline(item)) <= WIDTH - 20
