"""A JSON Schema as the service behind Codex takes it: it refuses what it cannot enforce."""

from __future__ import annotations

from typing import Any

_KEPT = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$defs", "$ref"),
        *("description", "title", "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum"),
        *("exclusiveMaximum", "minItems", "maxItems"),
    )
)
_NOTES = frozenset(("default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"))
_LOOSE = frozenset(("minLength", "maxLength", "format", "uniqueItems", "minProperties", "maxProperties"))
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def strict(schema: dict[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """A schema that the service takes, None if this one cannot be said so; and whether it still says everything.

    Whatever fits it fits the given one as far as that was kept. An object gets no keys but those that are named, and
    all of them have to be required.
    """
    if schema.get("type") != "object" or "anyOf" in schema:
        return None, False
    reader = _Reader()
    made = reader.read(schema)
    return (made, reader.whole) if made is not None else (None, False)


class _Reader:
    def __init__(self) -> None:
        self.whole = True

    def read(self, schema: Any) -> dict[str, Any] | None:
        """The same schema in the service's words; None if it has words that change what fits."""
        if not isinstance(schema, dict) or set(schema) - _KEPT - _NOTES - _LOOSE:
            return None
        if _LOOSE & set(schema):
            self.whole = False
        made = {word: value for word, value in schema.items() if word in _KEPT}
        for word in ("properties", "$defs"):
            if word in made and not self._each(made, word):
                return None
        if "items" in made and (items := self.read(made["items"])) is not None:
            made["items"] = items
        elif "items" in made or made.get("type") == "array":
            return None
        if "anyOf" in made:
            choices = [self.read(one) for one in made["anyOf"]]
            return {**made, "anyOf": choices} if None not in choices else None
        return made if "$ref" in made else _typed(made)

    def _each(self, made: dict[str, Any], word: str) -> bool:
        found = {name: self.read(one) for name, one in made[word].items()}
        made[word] = found
        return None not in found.values()


def _typed(made: dict[str, Any]) -> dict[str, Any] | None:
    """With a type, and an object closed; None where that cannot be."""
    if "type" not in made:
        kinds = {type(value) for value in made.get("enum", [made["const"]] if "const" in made else [])}
        names = [_TYPES.get(kind) for kind in kinds]
        if len(names) != 1 or names[0] is None:
            return None
        made = {"type": names[0], **made}
    if made["type"] != "object" and "object" not in made["type"]:
        return made
    properties = made.get("properties", {})
    if made.get("additionalProperties", False) is not False or not properties:
        return None
    if set(made.get("required", ())) != set(properties):
        return None
    return {**made, "additionalProperties": False}
