"""Comments and blank lines, and what they belong to, apart from the format they were written in."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..errors import Pointer

BLANK = ""
"""Stands for a blank line among the lines above an entry."""


class Remarks(msgspec.Struct):
    """What a person wrote around one entry: a key with its value, or an item of a list.

    `before`: the lines above it, `beside`: the comment behind it on its line, `tail`: what stands at the end of the
    collection that it holds. Every comment begins with `#`.
    """

    before: list[str] = []
    beside: str | None = None
    tail: list[str] = []

    def any(self) -> bool:
        """Whether there is a comment at all."""
        return any(self.before) or self.beside is not None or any(self.tail)


Notes = Mapping[Pointer, Remarks]
"""Remarks by the pointer of the entry; those of the root, `()`, hold the head and the tail of the file."""
NONE = Remarks()
"""Nothing was written around it."""


def settle(lines: list[str]) -> list[str]:
    """The lines with no two blank ones in a row."""
    kept: list[str] = []
    for line in lines:
        if line != BLANK or (kept and kept[-1] != BLANK):
            kept.append(line)
    if lines and lines[0] == BLANK and (not kept or kept[0] != BLANK):
        kept.insert(0, BLANK)
    return kept


def below(notes: Notes, pointer: Pointer) -> bool:
    """Whether a comment stands inside what is at a pointer."""
    depth = len(pointer)
    return any(len(at) > depth and at[:depth] == pointer and remarks.any() for at, remarks in notes.items()) or any(
        notes.get(pointer, NONE).tail
    )
