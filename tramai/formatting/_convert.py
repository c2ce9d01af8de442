"""The same workflow in the other format: data with its comments, read from one and written in the other."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .. import guests, schema
from .._nodes import Mapping, Node, Scalar
from .._nodes import Sequence as Items
from .._shape import Shape
from ..document import Document, parse
from ..errors import Pointer
from . import _order, _toml_write, _yaml_write
from ._comments import Comments
from ._remarks import BLANK, Remarks
from ._toml_lines import Sections
from ._tree import Branch, tree
from ._yaml import format_yaml

_YAML_LINE = re.compile(r"#\s*yaml-language-server:\s*\$schema=(\S+)\s*$")
_TOML_LINE = re.compile(r"#:schema\s+(\S+)\s*$")


class HasNull(Exception):
    """Data that TOML cannot hold, and where it is."""

    def __init__(self, pointer: Pointer) -> None:
        self.pointer = pointer
        super().__init__("TOML has no null")


def write(source: Document, to: str) -> str:
    """The text in the other format. Line ends are `\\n`."""
    value = data(source)
    notes = remarks(source)
    notes[()] = Remarks([modeline(line, to) for line in notes[()].before], None, notes[()].tail)
    if to == "yaml":
        _space(value, notes)
        made = parse(_yaml_write.document(value, notes), file=source.file, format="yaml")
        return format_yaml(made, reorder=True)
    _refuse_null(value, ())
    return _toml_write.document(value, notes)


def _space(value: dict[str, Any], notes: dict[Pointer, Remarks]) -> None:
    """Blank lines between the parts of a file and between its steps: TOML has them, and they read well."""
    parts: list[Pointer] = [(key,) for key, item in value.items() if isinstance(item, (dict, list)) and item]
    parts += [("steps", number) for number in range(1, len(value["steps"]))]
    for part in parts:
        notes.setdefault(part, Remarks([], None, [])).before.insert(0, BLANK)


def data(source: Document) -> Any:
    """Everything in a file as plain data in canonical order, notes of one's own (`x-…`) included."""
    assert source.root is not None
    resolved = schema.resolve(source, guests.schema_of(source)).data
    return _merged(source, source.root, resolved, _order.root())


def _merged(source: Document, node: Node, value: Any, shape: Shape) -> Any:
    if isinstance(node, Items) and isinstance(value, list):
        return [_merged(source, *pair, shape.item()) for pair in zip(node.items, value, strict=True)]
    if not isinstance(node, Mapping) or not isinstance(value, dict):
        return value
    made = {}
    for key in _order.keys(shape, node.values):
        below = node.values[key]
        own = value[key] if key in value else _unguided(source, key, below)
        made[key] = _merged(source, below, own, shape.at(key))
    return made


def _unguided(source: Document, key: str, node: Node) -> Any:
    """A value that the schema says nothing about."""
    around = Mapping(node.start, node.end, {key: Scalar(key, "", node.start, node.start)}, {"value": node})
    return schema.resolve(msgspec.structs.replace(source, root=around), {}).data["value"]


def remarks(source: Document) -> dict[Pointer, Remarks]:
    """The comments of a file by the pointer of what they are about."""
    if source.format == "toml":
        return Sections(source.text).notes()
    root = tree(source)
    if root is None:
        return {(): Remarks([], None, [])}
    comments = Comments(source.text, root, inside=True)
    if isinstance(root, Branch) and not root.flow:
        return comments.notes(root)
    return {(): Remarks(comments.head, None, [])}


def modeline(line: str, to: str) -> str:
    """The comment that names the schema for editors, as they want it in the other format."""
    if to == "toml" and (found := _YAML_LINE.fullmatch(line)):
        return f"#:schema {found[1]}"
    if to == "yaml" and (found := _TOML_LINE.fullmatch(line)):
        return f"# yaml-language-server: $schema={found[1]}"
    return line


def _refuse_null(value: Any, at: Pointer) -> None:
    if value is None:
        raise HasNull(at)
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        _refuse_null(item, (*at, key))
