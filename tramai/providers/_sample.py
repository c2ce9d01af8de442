"""Make up a value that fits a JSON Schema, always the same one for the same words.

Every candidate is judged by a real validator, so what comes out is valid or nothing comes out. Out of reach are
patterns with look-around or back-references, `not` and `if` that exclude every plain candidate, and references to
other documents.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

from ._merge import merge, same
from ._number import numbers
from ._pattern import matching

FUEL = 5000
"""Values that may be tried before giving up."""
_DEEP = 5
_WORDS = 12

_FORMATS = {
    "date": "2026-01-31",
    "time": "08:00:00Z",
    "date-time": "2026-01-31T08:00:00Z",
    "duration": "PT5M",
    "email": "demo@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/demo",
    "uri-reference": "https://example.com/demo",
    "url": "https://example.com/demo",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_TYPES = ("string", "integer", "object", "array", "boolean", "null", "number")


class NoSample(ValueError):
    """No value was found for the schema; `where` is the part that could not be made."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(f"no value found for {where}")


def sample(schema: dict[str, Any], text: str) -> Any:
    """A value that fits, its texts made of words of `text`; NoSample when there is none within reach."""
    import jsonschema
    import referencing

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
        # An empty registry: a schema never makes anybody fetch something.
        return _Maker(schema, kind(schema, registry=referencing.Registry()), text).make(schema, "the answer", 0)
    except jsonschema.SchemaError as error:
        raise NoSample(f"a schema that is none: {error.message}") from None
    except (re.error, RecursionError, referencing.exceptions.Unresolvable) as error:
        raise NoSample(f"the schema: {error}"[:300]) from None


class _Maker:
    def __init__(self, root: dict[str, Any], validator: Any, text: str) -> None:
        self._root = root
        self._validator = validator
        self._words = re.findall(r"[^\W_][\w'./-]*", text) or ["demo"]
        self._next = 0
        self._fuel = FUEL

    def make(self, schema: Any, where: str, depth: int) -> Any:
        """The first candidate that fits."""
        for value in self._fitting(schema, where, depth):
            return value
        raise NoSample(where)

    def _fitting(self, schema: Any, where: str, depth: int) -> Iterator[Any]:
        validator = self._validator.evolve(schema=schema)
        for value in self._candidates(schema, where, depth):
            self._fuel -= 1
            if self._fuel < 0:
                raise NoSample(where)
            if validator.is_valid(value):
                yield value

    def _candidates(self, schema: Any, where: str, depth: int) -> Iterator[Any]:
        if schema is False or depth > 40:
            return
        plain = self._plain({} if schema is True else schema)
        if "const" in plain:
            yield plain["const"]
            return
        if "enum" in plain:
            yield from plain["enum"]
            return
        if "default" in plain:
            yield plain["default"]
        yield from plain.get("examples", ())
        choices = _choices(plain)
        for choice in choices:
            yield from self._candidates(choice, where, depth + 1)
        if not choices:
            for kind in _kinds(plain):
                yield from self._of(kind, plain, where, depth)

    def _plain(self, schema: dict[str, Any], seen: tuple[str, ...] = ()) -> dict[str, Any]:
        """The schema with its local references and `allOf` merged in."""
        merged = {name: part for name, part in schema.items() if name not in ("$ref", "allOf")}
        reference = schema.get("$ref")
        if reference is not None and reference not in seen:
            merged = merge(self._plain(self._at(reference), (*seen, reference)), merged)
        for part in schema.get("allOf", ()):
            if isinstance(part, dict):
                merged = merge(merged, self._plain(part, seen))
        return merged

    def _at(self, reference: str) -> dict[str, Any]:
        """What a `#/…` reference points to; nothing known for any other."""
        if not reference.startswith("#"):
            return {}
        found: Any = self._root
        for part in reference[1:].split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            found = found[int(part)] if isinstance(found, list) else found.get(part, {})
        return found if isinstance(found, dict) else {}

    def _of(self, kind: str, schema: dict[str, Any], where: str, depth: int) -> Iterator[Any]:
        if kind == "object":
            yield from self._objects(schema, where, depth)
        elif kind == "array":
            yield from self._arrays(schema, where, depth)
        elif kind == "string":
            yield from self._strings(schema)
        elif kind == "boolean":
            yield from (True, False)
        elif kind == "null":
            yield None
        else:
            yield from numbers(schema, whole=kind == "integer")

    # Texts.

    def _strings(self, schema: dict[str, Any]) -> Iterator[str]:
        if schema.get("format") in _FORMATS:
            yield _FORMATS[schema["format"]]
        shortest, longest = schema.get("minLength", 0), schema.get("maxLength")
        yield self._phrase(shortest, longest)
        if "pattern" in schema:
            yield from self._words[:20]
            yield from matching(schema["pattern"])
        for number in range(1, 50):
            yield self._phrase(shortest, longest, f"{number}")

    def _phrase(self, shortest: int, longest: int | None, end: str = "") -> str:
        """The next words of the prompt, as many as there is room for."""
        start = self._next % len(self._words)
        taken = (self._words[start:] + self._words[:start])[:_WORDS]
        self._next += len(taken)
        text = " ".join([*taken, *([end] if end else [])])
        while len(text) < shortest:
            text += " " + text
        if longest is None or len(text) <= longest:
            return text
        cut = text[: longest + 1].rpartition(" ")[0]
        if end:
            return text[-longest:] if longest else ""
        return cut if len(cut) >= max(shortest, 1) else text[:longest]

    # Lists.

    def _arrays(self, schema: dict[str, Any], where: str, depth: int) -> Iterator[list[Any]]:
        first, items = _split_items(schema)
        fewest, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        wanted = max(fewest, 1 if items is not None and depth <= _DEEP else 0, len(first) if depth <= _DEEP else 0)
        for count in dict.fromkeys((int(min(wanted, most)), fewest)):
            row = self._row(schema, first, True if items is None else items, count, where, depth)
            if row is not None:
                yield row

    def _row(
        self, schema: dict[str, Any], first: list[Any], items: Any, count: int, where: str, depth: int
    ) -> list[Any] | None:
        row: list[Any] = []
        needed = schema.get("minContains", 1) if "contains" in schema else 0
        for index in range(max(count, needed if not first else count)):
            part = first[index] if index < len(first) else items
            if index < needed and isinstance(part, bool | dict):
                part = {"allOf": [part, schema["contains"]]}
            found = (
                value
                for value in self._fitting(part, f"{where}[{index}]", depth + 1)
                if not schema.get("uniqueItems") or not any(same(value, other) for other in row)
            )
            for value in itertools.islice(found, 1):
                row.append(value)
            if len(row) <= index:
                return None
        return row

    # Maps.

    def _objects(self, schema: dict[str, Any], where: str, depth: int) -> Iterator[dict[str, Any]]:
        properties = schema.get("properties", {})
        required = list(schema.get("required", ()))
        optional = [name for name in properties if name not in required]
        room = int(min(schema.get("maxProperties", math.inf), 1e6)) - len(required)
        if depth <= _DEEP:
            ordered = [name for name in properties if name in required or name in optional[: max(room, 0)]]
            yield from self._object(
                schema, [*ordered, *(name for name in required if name not in ordered)], where, depth
            )
        yield from self._object(schema, required, where, depth)

    def _object(self, schema: dict[str, Any], names: list[str], where: str, depth: int) -> Iterator[dict[str, Any]]:
        made: dict[str, Any] = {}
        queue = list(dict.fromkeys(names))
        for name in queue:
            try:
                made[name] = self.make(_property(schema, name), f"{where}.{name}", depth + 1)
            except NoSample:
                if name in schema.get("required", ()):
                    return  # without it nothing fits
                continue
            queue += [more for more in _dependent(schema, name) if more not in queue]
        for name in self._spare_names(schema):
            if len(made) >= schema.get("minProperties", 0):
                break
            if name not in made:
                made[name] = self.make(_property(schema, name), f"{where}.{name}", depth + 1)
        yield made

    def _spare_names(self, schema: dict[str, Any]) -> Iterator[str]:
        yield from schema.get("properties", {})
        if "propertyNames" in schema:
            yield from self._fitting({"type": "string", "allOf": [schema["propertyNames"]]}, "a property name", 1)
        for pattern in schema.get("patternProperties", {}):
            yield from matching(pattern)
        yield from (f"key{number}" for number in range(1, 200))


def _choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema with each way through `anyOf`, `oneOf` and `if`, and last without any; empty when there are none."""
    base = {name: part for name, part in schema.items() if name not in ("anyOf", "oneOf", "if", "then", "else")}
    groups = [schema[name] for name in ("anyOf", "oneOf") if name in schema]
    if "if" in schema:
        groups.append([{"allOf": [schema["if"], schema.get("then", True)]}, schema.get("else", True)])
    if not groups:
        return []
    ways = itertools.islice(itertools.product(*groups), 200)
    return [*({**base, "allOf": [part for part in way if part is not True]} for way in ways if False not in way), base]


def _kinds(schema: dict[str, Any]) -> Iterator[str]:
    given = schema.get("type")
    if isinstance(given, str):
        yield given
        return
    if isinstance(given, list):
        yield from sorted(given, key=lambda kind: kind == "null")
        return
    hinted = [kind for kind, words in _HINTS.items() if any(word in schema for word in words)]
    yield from dict.fromkeys((*hinted, *_TYPES))


def _split_items(schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and the one of the others (None: nothing is said)."""
    if isinstance(schema.get("items"), list):  # before 2020-12
        return schema["items"], schema.get("additionalItems")
    return schema.get("prefixItems", []), schema.get("items")


def _property(schema: dict[str, Any], name: str) -> Any:
    parts = [part for pattern, part in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
    if name in schema.get("properties", {}):
        parts.insert(0, schema["properties"][name])
    if not parts:
        return schema.get("additionalProperties", True)
    return parts[0] if len(parts) == 1 else {"allOf": parts}


def _dependent(schema: dict[str, Any], name: str) -> list[str]:
    old = schema.get("dependencies", {}).get(name, [])
    return [*schema.get("dependentRequired", {}).get(name, []), *(old if isinstance(old, list) else [])]
