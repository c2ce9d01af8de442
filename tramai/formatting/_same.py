"""Whether two texts say the same: the same tree, whatever its order, quotes and comments."""

from __future__ import annotations

import msgspec

from .._nodes import Mapping, Node, Sequence
from . import _scalars


class Plain(msgspec.Struct, frozen=True):
    """A scalar as it was written, so far as that has a meaning."""

    text: str
    kind: str


def plain(node: Node) -> object:
    """A tree that compares equal to that of every other spelling, and to no other."""
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node.values.items()}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    if node.style == "toml":
        return of(node.value)
    bare = node.style == "" and not _scalars.is_plain(node.text)
    return Plain(node.text, "plain" if bare else "text")


def of(value: object) -> object:
    """What `plain` gives for a value once it is written."""
    if isinstance(value, dict):
        return {key: of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [of(item) for item in value]
    if isinstance(value, str):
        return Plain(value, "text")
    if value is None or isinstance(value, bool):
        return Plain("null" if value is None else str(value).lower(), "plain")
    return Plain(str(value), "plain")
