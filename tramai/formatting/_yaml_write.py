"""Data as YAML for people: blocks, short things on one line, text of several lines as it is."""

from __future__ import annotations

import re
from typing import Any

from ..errors import Pointer
from . import _scalars
from ._remarks import BLANK, NONE, Notes, below

WIDTH = 100
"""What stands on one line in braces or brackets is not wider."""
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalars.yaml_key(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return _scalars.yaml(value, flow=True)


def text_block(text: str, indent: int) -> str | None:
    """A text of several lines as a literal block whose lines are indented, None when YAML cannot hold it that way."""
    if "\n" not in text or _HIDDEN.search(text) or not text.strip():
        return None
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    mark = "|" + ("2" if body.lstrip("\n")[0] in " \t" or body[0] == "\n" else "") + ("-", "", "+")[min(ends, 2)]
    lines = [" " * indent + line if line else "" for line in body.split("\n")]
    return "\n".join([mark, *lines]) + "\n" * max(ends - 1, 0)


def document(value: dict[str, Any], notes: Notes) -> str:
    """A whole file."""
    head = notes.get((), NONE)
    lines = list(head.before)
    lines += _Writer(notes).mapping(value, (), 0)
    lines += head.tail
    return "\n".join(lines).strip("\n") + "\n"


def block(value: Any, indent: int) -> list[str]:
    """A value as lines, the first of which stands behind its key: text, or empty when it begins on the next line."""
    return _Writer({}).value(value, (), indent)


def pairs(value: dict[str, Any], indent: int) -> list[str]:
    """Keys and values as lines at an indentation."""
    return _Writer({}).mapping(value, (), indent)


class _Writer:
    """Recursion over the data; the remarks say what else to write."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def mapping(self, value: dict[str, Any], at: Pointer, indent: int) -> list[str]:
        lines: list[str] = []
        for key, item in value.items():
            here = (*at, key)
            remarks = self._notes.get(here, NONE)
            lines += [" " * indent + line if line else BLANK for line in remarks.before]
            lines += self._entry(f"{_scalars.yaml_key(key)}:", item, here, indent)
        return lines

    def _entry(self, head: str, item: Any, here: Pointer, indent: int) -> list[str]:
        remarks = self._notes.get(here, NONE)
        first, *rest = self.value(item, here, indent)
        line = " " * indent + head + (f" {first}" if first else "")
        if remarks.beside:
            line += f" {remarks.beside}"
        tail = [" " * (indent + 2) + one if one else BLANK for one in remarks.tail]
        return [line, *rest, *tail]

    def value(self, value: Any, at: Pointer, indent: int) -> list[str]:
        """Lines of a value whose key stands at an indentation."""
        if isinstance(value, str):
            literal = text_block(value, indent + 2)
            return literal.split("\n") if literal else [_scalars.yaml(value)]
        if not isinstance(value, (dict, list)) or not value:
            return [flow(value)]
        if self._fits(value, at, indent):
            return [flow(value)]
        if isinstance(value, dict):
            return ["", *self.mapping(value, at, indent + 2)]
        return ["", *self._items(value, at, indent + 2)]

    def _items(self, value: list[Any], at: Pointer, indent: int) -> list[str]:
        lines: list[str] = []
        for index, item in enumerate(value):
            here = (*at, index)
            remarks = self._notes.get(here, NONE)
            before = [" " * indent + line if line else BLANK for line in remarks.before]
            if isinstance(item, dict) and item and not self._fits(item, here, indent):
                inner = self.mapping(item, here, indent + 2)
                first = next(number for number, line in enumerate(inner) if line.strip() and line.strip()[0] != "#")
                # What stands above the first key would part it from its dash.
                before += [line[2:] for line in inner[:first]]
                before += [" " * indent + remarks.beside] if remarks.beside else []
                inner = [" " * indent + "- " + inner[first].lstrip(), *inner[first + 1 :]]
                inner += [" " * (indent + 2) + one if one else BLANK for one in remarks.tail]
            elif isinstance(item, list) and item and not self._fits(item, here, indent):
                inner = [" " * indent + "-", *self._items(item, here, indent + 2)]
            else:
                inner = self._entry("-", item, here, indent)
            lines += [*before, *inner]
        return lines

    def _fits(self, value: Any, at: Pointer, indent: int) -> bool:
        if below(self._notes, at) or not _scalars.is_small(value):
            return False
        if _scalars.has_steps(value) or len(at) == 1 or (len(at) > 1 and isinstance(at[-1], int) and "id" in value):
            return False
        return len(flow(value)) + indent + len(str(at[-1]) if at else "") <= WIDTH
