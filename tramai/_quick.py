"""A fast yes for the common part of JSON Schema: data that fits needs no jsonschema, which is slow to import."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
_SILENT = frozenset(
    ("title", "description", "default", "examples", "format", "$comment", "optional", "secret", "x-also", "x-shown")
)
_SPEAKING = frozenset(("type", "enum", "const", "pattern", "minimum", "maximum", "minLength", "maxLength")) | frozenset(
    ("items", "minItems", "maxItems", "properties", "required", "additionalProperties")
)
_KNOWN = _SILENT | _SPEAKING


def fits(value: Any, schema: Any, depth: int = 0) -> bool:
    """Whether a value surely meets a schema. False may also mean: not sure, ask jsonschema."""
    if schema is True:
        return True
    if not isinstance(schema, dict) or depth > 64 or not schema.keys() <= _KNOWN:
        return False
    try:
        return _typed(value, schema) and _limited(value, schema) and _below(value, schema, depth)
    except (TypeError, ValueError, re.error, KeyError, AttributeError):
        return False  # a broken schema: jsonschema says what is wrong with it


def _typed(value: Any, schema: dict[str, Any]) -> bool:
    wanted = schema.get("type")
    if wanted is not None:
        names = [wanted] if isinstance(wanted, str) else wanted
        if not any(type(value) in _TYPES[name] for name in names):
            return False
    options = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    return options is None or any(
        type(option) is type(value) and option == value for option in options if _flat(option)
    )


def _flat(value: Any) -> bool:
    return not isinstance(value, list | dict)


def _limited(value: Any, schema: dict[str, Any]) -> bool:
    kind = type(value)
    if kind is str:
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)) and (
            "pattern" not in schema or re.search(schema["pattern"], value) is not None
        )
    if kind is int or kind is float:
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if kind is list:
        return bool(schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)))
    return True


def _below(value: Any, schema: dict[str, Any], depth: int) -> bool:
    if type(value) is list:
        items = schema.get("items", True)
        return all(fits(item, items, depth + 1) for item in value)
    if type(value) is not dict:
        return True
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    return all(key in value for key in schema.get("required", ())) and all(
        fits(item, properties.get(key, others), depth + 1) for key, item in value.items()
    )
