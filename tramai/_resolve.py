"""From the nodes of a document to plain JSON data, with the schema as the guide to what a plain scalar means."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from . import _plain
from ._nodes import Mapping, Node, Scalar
from ._shape import SCALARS, Schema, Shape, compile_shape, replace, type_of
from .document import Document
from .errors import Pointer, Position, Problem


class Resolved(msgspec.Struct, frozen=True):
    """Plain data of a document, and what is doubtful in it."""

    data: Any
    problems: tuple[Problem, ...]


def resolve(document: Document, schema: Schema) -> Resolved:
    """The plain JSON data of a document.

    A plain YAML scalar is the text as written where the schema wants text and would not take what the scalar looks
    like; elsewhere it is what it looks like, or a problem when readers disagree about it. Keys that are free
    (`x-…`) are left out, and so is `$schema` at the top.
    """
    if document.root is None:
        return Resolved(None, ())
    walk = _Walk(document)
    data = walk.mapping(document.root, compile_shape(schema, schema))
    data.pop("$schema", None)
    return Resolved(data, tuple(walk.problems))


class _Walk:
    """One pass over the nodes. Depth is bounded by the reader, so recursion is safe."""

    def __init__(self, document: Document) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._path: list[str | int] = []

    def mapping(self, node: Mapping, shape: Shape) -> dict[str, Any]:
        """The data of a mapping."""
        data: dict[str, Any] = {}
        path = self._path
        path.append("")
        more = shape.choose(node) if shape.choices else []
        for key, below in node.values.items():
            if shape.free and key.startswith("x-"):
                continue
            wanted = shape.at(key)
            for extra in more:
                if extra.schemas(key):
                    wanted = extra.at(key)
            # The commonest case first: text where text is wanted.
            if type(below) is Scalar and wanted.text and below.style != "toml" and below.text not in _plain.NULLS:
                data[key] = below.text
                continue
            path[-1] = key
            data[key] = self._any(below, wanted)
        path.pop()
        return data

    def _any(self, node: Node, shape: Shape) -> Any:
        if isinstance(node, Mapping):
            return self.mapping(node, shape)
        if isinstance(node, Scalar):
            return self._toml(node) if node.style == "toml" else self._scalar(node, shape)
        items, wanted = [], shape.item()
        self._path.append(0)
        for index, item in enumerate(node.items):
            self._path[-1] = index
            items.append(self._any(item, wanted))
        self._path.pop()
        return items

    def _scalar(self, node: Scalar, shape: Shape) -> Any:
        text = node.text
        if node.style:
            return text
        takes_text = "string" in shape.types
        try:
            value = _plain.resolve(text)
        except _plain.Doubtful as doubt:
            if not takes_text or shape.types & SCALARS:
                self._report(
                    "TRM119",
                    f"`{_short(text)}` means different things to different readers",
                    node,
                    str(doubt),
                    better=_clear(text, shape, str(doubt)),
                )
            return text
        if type(value) is str or not takes_text or value is None:
            return value
        kind = type_of(value)
        if kind not in shape.types and not (kind == "integer" and "number" in shape.types):
            return text
        if type(value) is float and not _plain.keeps_its_text(text, value):
            message, hint = f"`{text}` is read as the number {value!r}", f'quote it if it is text: "{text}"'
            self._report("TRM121", message, node, hint, severity="warning", better=[text])
        return value

    def _toml(self, node: Scalar) -> Any:
        value = node.value
        if isinstance(value, datetime.datetime):
            message = "a date and time with an offset is no value here"
            self._report("TRM119", message, node, f'quote it: "{node.text}"')
            return node.text
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            self._report("TRM119", f"`{node.text}` is no value here", node, f'quote it if it is text: "{node.text}"')
            return node.text
        if isinstance(value, int) and value.bit_length() > 3 * _plain.LONGEST_NUMBER:
            self._report("TRM119", "a number of about a thousand digits", node, "quote it")
            return node.text
        return value

    def _report(
        self,
        code: str,
        message: str,
        node: Scalar,
        hint: str,
        *,
        severity: str = "error",
        better: list[object] | None = None,
    ) -> None:
        pointer: Pointer = tuple(self._path)
        at: Position = self._document.place(node)
        meant = [node.text] if better is None else better
        fix = (replace(pointer, meant[0]),) if meant else None
        problem = Problem(
            code=code, message=message, hint=hint, severity=severity, position=at, pointer=pointer, fix=fix
        )
        self.problems.append(problem)


def _clear(text: str, shape: Shape, hint: str) -> list[object]:
    """The value that is meant beyond doubt, in a list of at most one."""
    if "string" in shape.types:
        return [text] if hint.startswith("quote it") else []
    return [text.lower() == "true"] if "boolean" in shape.types and text.lower() in ("true", "false") else []


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"
