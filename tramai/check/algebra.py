"""What a schema says of a value before there is one: its kinds, its possible values, its keys and items."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Schema = dict[str, Any]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
LIST: Schema = {"type": "array"}
MAP: Schema = {"type": "object"}

ALL = frozenset(("string", "number", "boolean", "null", "array", "object"))
_ONE = {name: frozenset((name,)) for name in ALL} | {"integer": frozenset(("number",))}
_NONE: frozenset[str] = frozenset()
_NAMES = {
    "string": "text",
    "number": "a number",
    "boolean": "a boolean",
    "null": "null",
    "array": "a list",
    "object": "a mapping",
}
_OPEN = frozenset(("$ref", "allOf", "if", "not", "patternProperties", "$dynamicRef", "dependentSchemas"))


def kinds(schema: Any) -> frozenset[str]:
    """The JSON kinds a value can have; integers are numbers."""
    if not isinstance(schema, dict) or not schema:
        return ALL
    wanted = schema.get("type")
    if isinstance(wanted, str):
        return _ONE.get(wanted, _NONE)
    if isinstance(wanted, list):
        return frozenset("number" if name == "integer" else name for name in wanted if isinstance(name, str)) & ALL
    if "const" in schema:
        return frozenset((kind(schema["const"]),))
    if isinstance(values := schema.get("enum"), list):
        return frozenset(map(kind, values))
    for word in ("anyOf", "oneOf"):
        if isinstance(parts := schema.get(word), list) and parts:
            return frozenset().union(*map(kinds, parts))
    return ALL


def kind(value: object) -> str:
    """The JSON kind of a value."""
    if isinstance(value, bool):
        return "boolean"
    found = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return found.get(type(value), "null")


def spell(found: Iterable[str]) -> str:
    """Kinds in words: `text or a list`."""
    *before, last = [name for key, name in _NAMES.items() if key in set(found)] or ["nothing"]
    return f"{', '.join(before)} or {last}" if before else last


def values(schema: Any) -> list[Any] | None:
    """Every value there can be, None when they are not few."""
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return [schema["const"]]
    if isinstance(listed := schema.get("enum"), list):
        return listed
    if schema.get("type") == "boolean":
        return [True, False]
    if schema.get("type") == "null":
        return [None]
    parts = [values(part) for part in schema["anyOf"]] if isinstance(schema.get("anyOf"), list) else [None]
    return None if None in parts else [value for part in parts for value in part or ()]


def shown(value: object) -> str:
    """A value as it is written in an expression."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def union(*schemas: Schema) -> Schema:
    """What is one of these."""
    parts: list[Schema] = []
    for schema in schemas:
        if kinds(schema) == ALL:
            return ANY
        parts.extend(part for part in [schema] if part not in parts)
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def is_open(schema: Any) -> bool:
    """Whether more may be true of the value than its plain keywords say."""
    return not isinstance(schema, dict) or not _OPEN.isdisjoint(schema)


def keys(schema: Any) -> tuple[str, ...] | None:
    """The only keys that a mapping may be asked for; None when it may have others."""
    if is_open(schema) or "object" not in kinds(schema):
        return None
    if isinstance(parts := schema.get("anyOf") or schema.get("oneOf"), list):
        if isinstance(schema.get("properties"), dict):
            return None
        found = [keys(part) for part in parts if "object" in kinds(part)]
        return None if None in found else tuple(dict.fromkeys(key for part in found for key in part or ()))
    declared = schema.get("properties")
    if not isinstance(declared, dict) or schema.get("additionalProperties", False) is not False:
        return None
    return tuple(declared)


def member(schema: Any, key: str | int) -> Schema:
    """What is known of the value under a key, or at an index."""
    if is_open(schema):
        return ANY
    if isinstance(parts := schema.get("anyOf") or schema.get("oneOf"), list):
        if "properties" in schema or "items" in schema:
            return ANY
        wanted = "object" if isinstance(key, str) else "array"
        below = [member(part, key) for part in parts if wanted in kinds(part)]
        return union(*below) if below else ANY
    if isinstance(key, int):
        if kinds(schema) == {"string"}:
            return TEXT
        return item(schema)
    declared = schema.get("properties")
    found = declared.get(key) if isinstance(declared, dict) else None
    return found if isinstance(found, dict) else ANY


def item(schema: Any) -> Schema:
    """What is known of each item of a list."""
    if is_open(schema) or "prefixItems" in schema:
        return ANY
    if isinstance(parts := schema.get("anyOf") or schema.get("oneOf"), list):
        found = [part for part in parts if "array" in kinds(part)]
        return union(*map(item, found)) if found and "items" not in schema else ANY
    found = schema.get("items")
    return found if isinstance(found, dict) else ANY


def of_data(data: Any) -> Schema:
    """The shape of plain data; its values may be changed, its shape is meant."""
    if isinstance(data, dict):
        return {"type": "object", "properties": {key: of_data(value) for key, value in data.items()}}
    if isinstance(data, list):
        return {"type": "array", "items": union(*map(of_data, data))} if data else LIST
    return WHOLE if type(data) is int else {"type": kind(data)}


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def wide(schema: Schema) -> Schema:
    """A shape without the one value: a list of literals may be asked for others."""
    return of_data(schema["const"]) if "const" in schema else schema
