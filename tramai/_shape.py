"""A JSON Schema as the readers of a file need it: what is wanted where, compiled a piece at a time."""

from __future__ import annotations

import re
from typing import Any

from ._nodes import Mapping, Scalar
from .errors import Pointer

Schema = dict[str, Any]
ALL = frozenset(("string", "integer", "number", "boolean", "null", "array", "object"))
SCALARS = frozenset(("integer", "number", "boolean"))
FREE = "^x-"
"""The pattern of keys that are free for anybody's notes, and no part of the data."""


_ANYTHING: Schema = {}


class Shape:
    """One position: the JSON types it takes, and the schemas below it."""

    __slots__ = (
        "_below",
        "_item",
        "_other",
        "_patterns",
        "_properties",
        "_rest",
        "_root",
        "choices",
        "free",
        "items",
        "text",
        "types",
    )

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._properties: dict[str, list[Any]] = {}
        self._patterns: list[tuple[str, Any]] = []
        self._other: list[Any] = []
        self._below: dict[str, Shape] = {}
        self._rest: Shape | None = None
        self._item: Shape | None = None
        self.types = ALL
        self.text = False
        self.free = False
        self.items: list[Any] = []
        self.choices: list[tuple[str, Any, Any]] = []

    def names(self) -> tuple[str, ...]:
        """The keys that are known by name."""
        return tuple(self._properties)

    def schemas(self, key: str) -> list[Any]:
        """What the schema says of one named key."""
        return self._properties.get(key, [])

    def at(self, key: str) -> Shape:
        """The shape of the value of a key."""
        below = self._below.get(key)
        if below is not None:
            return below
        found = self._properties.get(key, ())
        matching = [schema for pattern, schema in self._patterns if re.search(pattern, key)]
        if found:
            below = self._below[key] = self._shape([*found, *matching])
        elif matching:
            below = self._shape(matching)
        else:  # a key of the file: one shape for all of these, lest shapes pile up with files
            below = self._rest = self._rest or self._shape(self._other)
        return below

    def item(self) -> Shape:
        """The shape of the items of a list."""
        self._item = self._item or self._shape(self.items)
        return self._item

    def choose(self, node: Mapping) -> list[Shape]:
        """Shapes that add to this one because of a sibling's value (`if` and `then` on a constant)."""
        chosen = []
        for key, wanted, schema in self.choices:
            given = node.values.get(key)
            if isinstance(given, Scalar) and (given.text if given.value is None else given.value) == wanted:
                chosen.append(compile_shape(schema, self._root))
        return chosen

    def narrow(self, schema: Any, depth: int = 0) -> None:
        """Add what a schema demands of this very position."""
        if not isinstance(schema, dict) or depth > 32:
            return
        if isinstance(reference := schema.get("$ref"), str):
            self.narrow(lookup(self._root, reference), depth + 1)
        self.types &= _types(schema)
        for key, below in schema.get("properties", {}).items():
            self._properties.setdefault(key, []).append(below)
        for pattern, below in schema.get("patternProperties", {}).items():
            self._patterns.append((pattern, below))
            self.free = self.free or pattern == FREE
        if isinstance(other := schema.get("additionalProperties"), dict):
            self._other.append(other)
        if isinstance(items := schema.get("items"), dict):
            self.items.append(items)
        for part in schema.get("allOf", ()):
            self.narrow(part, depth + 1)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                self._either(schema[word], depth)
        self._choice(schema)
        self.text = "string" in self.types and len(self.types) == 1

    def _either(self, schemas: list[Any], depth: int) -> None:
        """One of several: what any of them takes is taken, and below all of them count."""
        types: frozenset[str] = frozenset()
        for schema in schemas:
            part = Shape(self._root)
            part.narrow(schema, depth + 1)
            types |= part.types
            for key, below in part._properties.items():
                self._properties.setdefault(key, []).append({"anyOf": below})
            self._patterns += part._patterns
            self._other += part._other
            self.items += part.items
            self.choices += part.choices
            self.free = self.free or part.free
        self.types &= types

    def _choice(self, schema: Schema) -> None:
        condition = schema.get("if")
        if not isinstance(condition, dict) or "then" not in schema:
            return
        for key, wanted in condition.get("properties", {}).items():
            if isinstance(wanted, dict) and "const" in wanted:
                self.choices.append((key, wanted["const"], schema["then"]))

    def _shape(self, schemas: list[Any]) -> Shape:
        if len(schemas) == 1:
            return compile_shape(schemas[0], self._root)
        return compile_shape({"anyOf": schemas} if schemas else _ANYTHING, self._root)


def lookup(root: Schema, reference: str) -> Any:
    """What a local `$ref` names; an empty schema when there is nothing."""
    found: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            found = found.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, dict) else {}
    return found


def _types(schema: Schema) -> frozenset[str]:
    """The JSON types that a schema's own keywords allow; every integer is also a number."""
    types = ALL
    if isinstance(kind := schema.get("type"), str | list):
        types = frozenset((kind,) if isinstance(kind, str) else kind)
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    if isinstance(values, list) and "type" not in schema:
        types = frozenset(type_of(value) for value in values)
    return types | {"integer"} if "number" in types else types


def type_of(value: Any) -> str:
    """The JSON type of a value; an integral number is an `integer` only when it is written as one."""
    kind = type(value)
    for python, name in _NAMES:
        if kind is python:
            return name
    return "null"


_NAMES = ((str, "string"), (bool, "boolean"), (int, "integer"), (float, "number"), (dict, "object"), (list, "array"))
_compiled: dict[tuple[int, int], tuple[Shape, Any, Any]] = {}


def compile_shape(schema: Any, root: Schema) -> Shape:
    """The shape of a schema. Compiled once for each schema and root, which are kept."""
    key = (id(schema), id(root))
    found = _compiled.get(key)
    if found is None:
        if len(_compiled) > 20_000:
            _compiled.clear()
        shape = Shape(root)
        shape.narrow(schema)
        found = _compiled[key] = (shape, schema, root)
    return found[0]


def replace(pointer: Pointer, value: object) -> dict[str, object]:
    """A JSON Patch operation that sets a value."""
    return {"op": "replace", "path": json_pointer(pointer), "value": value}


def json_pointer(pointer: Pointer) -> str:
    """RFC 6901 text."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in pointer)
