"""Whether a JSON Schema in a file is one (draft 2020-12), told by the keyword that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from .._habits import value as value_of
from ..errors import Pointer
from ..shape import kind_of

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")

NAMING = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose keys are names, each with a schema."""

Fault = tuple[Pointer, str, str | None]
"""Where, what and a hint."""


def faults(schema: Any) -> Iterator[Fault]:
    """What is wrong with a schema, in order of the file."""
    yield from _schema(schema, (), schema)


def unknown(schema: Any, at: Pointer = ()) -> Iterator[Pointer]:
    """Keywords that mean nothing: a validator passes over them in silence."""
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key not in _KEYWORDS:
            yield (*at, key)
        elif _KEYWORDS[key] is _one:
            yield from unknown(value, (*at, key))
        elif _KEYWORDS[key] is _many and isinstance(value, list):
            for index, item in enumerate(value):
                yield from unknown(item, (*at, key, index))
        elif _KEYWORDS[key] is _named and isinstance(value, dict):
            for name, item in value.items():
                yield from unknown(item, (*at, key, name))


def names() -> tuple[str, ...]:
    """Every keyword there is."""
    return tuple(_KEYWORDS)


def _schema(schema: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield at, f"a schema is a mapping, not {kind_of(schema)}", None
        return
    for key, value in schema.items():
        rule = _KEYWORDS.get(key)
        if rule is not None:
            yield from rule(value, (*at, key), root)


def _one(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    yield from _schema(value, at, root)


def _many(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if not isinstance(value, list) or not value:
        yield at, f"`{at[-1]}` is a list of schemas", None
        return
    for index, item in enumerate(value):
        yield from _schema(item, (*at, index), root)


def _named(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield at, f"`{at[-1]}` is a mapping of names to schemas", None
        return
    for name, item in value.items():
        if at[-1] == "patternProperties":
            yield from _pattern(name, (*at, name), root)
        yield from _schema(item, (*at, name), root)


def _type(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    for item in value if isinstance(value, list) and value else [value]:
        if item not in TYPES:
            near = value_of([*TYPES], item)
            yield at, f"`{item}` is no type", f"did you mean `{near}`?" if near else "types: " + ", ".join(TYPES)


def _list_of_names(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        hint = "write required: [name]" if at[-1] == "required" else None
        if isinstance(value, bool) and hint:
            hint = "write required: [name] beside `properties`"
        yield at, f"`{at[-1]}` is a list of names", hint


def _dependent(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield at, "`dependentRequired` is a mapping of names to lists of names", None
        return
    for name, item in value.items():
        yield from _list_of_names(item, (*at, name), root)


def _values(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield at, f"`{at[-1]}` is a list of values", None


def _anything(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    return iter(())


def _text(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield at, f"`{at[-1]}` is text, not {kind_of(value)}", None


def _flag(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield at, f"`{at[-1]}` is true or false, not {kind_of(value)}", None


def _number(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        yield at, f"`{at[-1]}` is a number, not {kind_of(value)}", None
    elif at[-1] == "multipleOf" and value <= 0:
        yield at, "`multipleOf` is above 0", None


def _count(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        yield at, f"`{at[-1]}` is a whole number, 0 or more", None


def _pattern(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    try:
        re.compile(value)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        yield at, f"the pattern cannot be read: {error}", None


def _reference(value: Any, at: Pointer, root: Any) -> Iterator[Fault]:
    if not isinstance(value, str) or not value.startswith("#"):
        yield at, "a reference leads to a place in the same schema, or to a file", "write it as #/$defs/name"
        return
    target = root
    for part in value[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and name.isdigit() and int(name) < len(target):
            target = target[int(name)]
        elif isinstance(target, dict) and name in target:
            target = target[name]
        else:
            yield at, f"`{value}` leads nowhere", None
            return


_KEYWORDS: dict[str, Callable[[Any, Pointer, Any], Iterator[Fault]]] = {
    "type": _type,
    "required": _list_of_names,
    "dependentRequired": _dependent,
    "pattern": _pattern,
    "$ref": _reference,
    **dict.fromkeys(NAMING, _named),
    **dict.fromkeys(("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"), _one),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), _one),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _many),
    **dict.fromkeys(("enum", "examples"), _values),
    **dict.fromkeys(("const", "default"), _anything),
    **dict.fromkeys(("title", "description", "format", "$comment", "$id", "$schema", "$anchor"), _text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _text),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), _flag),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    **dict.fromkeys(("minContains", "maxContains"), _count),
}
