"""JSON Schema of msgspec Structs, in the words that draft-07 and 2020-12 share.

msgspec's own generator stops at defaults of custom types and writes `prefixItems` and siblings of `$ref`, which
editors of draft-07 schemas misread. Hence this one, over `msgspec.inspect`.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import inspect

Schema = dict[str, Any]

JSON_SCHEMA = "JsonSchema"
"""Name of the definition for fields that hold a JSON Schema."""
_HOLD_SCHEMAS = frozenset(("schema", "form"))
_LIMITS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_PLAIN: tuple[tuple[type, str], ...] = (
    (inspect.StrType, "string"),
    (inspect.BoolType, "boolean"),
    (inspect.IntType, "integer"),
    (inspect.FloatType, "number"),
    (inspect.NoneType, "null"),
)
_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)


class Generator:
    """Collects definitions while it writes schemas. `hook` says what a class outside of msgspec's knowledge takes."""

    def __init__(self, hook: Callable[[type], Schema] | None = None) -> None:
        self.definitions: dict[str, Schema] = {}
        self._hook = hook
        self._names: dict[Any, str] = {}

    @property
    def structs(self) -> dict[Any, str]:
        """Every Struct that was met, with the name of its definition."""
        return dict(self._names)

    def schema(self, type: Any) -> Schema:
        """The schema of a type; Structs become references to definitions."""
        return self._of(inspect.type_info(type))

    def _of(self, info: inspect.Type) -> Schema:
        if isinstance(info, inspect.Metadata):
            return _with(self._of(info.type), dict(info.extra_json_schema or {}))
        for kind, name in _PLAIN:
            if isinstance(info, kind):
                return {"type": name, **_limits(info, "Length")}
        if isinstance(info, inspect.AnyType | inspect.RawType):
            return {}
        if isinstance(info, _LISTS):
            made = _without_empty({"type": "array", "items": self._of(info.item_type), **_limits(info, "Items")})
            return {**made, "uniqueItems": True} if isinstance(info, inspect.SetType | inspect.FrozenSetType) else made
        if isinstance(info, inspect.TupleType):
            count = len(info.item_types)
            items = _either([self._of(item) for item in info.item_types])
            return _without_empty({"type": "array", "items": items, "minItems": count, "maxItems": count})
        if isinstance(info, inspect.DictType):
            return self._mapping(info)
        if isinstance(info, inspect.UnionType):
            return _either([self._of(part) for part in info.types])
        if isinstance(info, inspect.LiteralType):
            return {"enum": list(info.values)}
        if isinstance(info, inspect.EnumType):
            return {"enum": [member.value for member in info.cls]}
        if isinstance(info, inspect.StructType):
            return self._reference(info)
        return self._custom(info)

    def _custom(self, info: inspect.Type) -> Schema:
        cls = getattr(info, "cls", None)
        own = getattr(cls, "json_schema", None)
        if own is not None:
            return dict(own())
        if self._hook is not None and cls is not None:
            return dict(self._hook(cls))
        raise TypeError(f"no JSON Schema is known for {cls or info}; give the class a `json_schema()`")

    def _mapping(self, info: inspect.DictType) -> Schema:
        made: Schema = {"type": "object", "additionalProperties": self._of(info.value_type)}
        keys = self._of(info.key_type)
        keys.pop("type", None)
        if keys:
            made["propertyNames"] = keys
        return _without_empty(made | _limits(info, "Properties"))

    def _reference(self, info: inspect.StructType) -> Schema:
        cls = info.cls
        name = self._names.get(cls)
        if name is None:
            name = cls.__name__.lstrip("_")
            if name in self.definitions:
                raise TypeError(f"two Structs are called {name}")
            self._names[cls] = name
            self.definitions[name] = {}  # holds the name while fields that refer back are written
            self.definitions[name] = self._struct(info)
        return {"$ref": f"#/definitions/{name}"}

    def _struct(self, info: inspect.StructType) -> Schema:
        cls = info.cls
        made: Schema = {"title": cls.__name__.lstrip("_").lower()}
        if text := _description(cls):
            made["description"] = text
        made["type"] = "object"
        properties = made["properties"] = {field.encode_name: self._field(field) for field in info.fields}
        made["additionalProperties"] = not info.forbid_unknown_fields
        if required := [field.encode_name for field in info.fields if field.required]:
            made["required"] = required
        if "type" in properties and ("default" in properties or "enum" in properties):
            made |= _text_when_string(properties)
        return made

    def _field(self, field: inspect.Field) -> Schema:
        info: inspect.Type = field.type
        extra: Schema = {}
        while isinstance(info, inspect.Metadata):
            extra = {**(info.extra_json_schema or {}), **extra}
            info = info.type
        optional = not field.required and field.default in (None, msgspec.UNSET)
        if optional and isinstance(info, inspect.UnionType):
            # Such a key may be left out; written and empty it is a mistake.
            kept = [part for part in info.types if not isinstance(part, inspect.NoneType)]
            made = _either([self._of(part) for part in kept if not _is_unset(part)])
        else:
            made = self._of(info)
        if field.name in _HOLD_SCHEMAS and made == {"type": "object"}:
            self.definitions.setdefault(JSON_SCHEMA, json_schema_definition())
            made = {"$ref": f"#/definitions/{JSON_SCHEMA}"}
        made = _with(made, extra)
        default = _default(field)
        return made if default is None else _with(made, {"default": default})


def _is_unset(info: inspect.Type) -> bool:
    return getattr(info, "cls", None) is msgspec.UnsetType


def _default(field: inspect.Field) -> Any:
    value = field.default
    if value is msgspec.NODEFAULT or value is msgspec.UNSET or value is None:
        return None
    if hasattr(value, "json_default"):
        return value.json_default()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, list | tuple | frozenset | set | dict) and not value:
        return None
    try:
        return json.loads(json.dumps(value)) if type(value) in (str, int, float, bool, list, tuple, dict) else None
    except (TypeError, ValueError):
        return None


def _limits(info: Any, size: str) -> Schema:
    made = {word: value for name, word in _LIMITS.items() if (value := getattr(info, name, None)) is not None}
    for name, word in (("min_length", "min"), ("max_length", "max")):
        if (value := getattr(info, name, None)) is not None:
            made[word + size] = value
    return made


def _with(schema: Schema, extra: Schema) -> Schema:
    """A schema with more words; a reference is wrapped, because draft-07 ignores what stands beside it."""
    extra = {key: value for key, value in extra.items() if value is not None}
    if not extra:
        return schema
    if "$ref" in schema:
        return {"allOf": [schema], **extra}
    if "type" in extra and "anyOf" not in extra:
        schema = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**schema, **extra}


def _either(schemas: list[Schema]) -> Schema:
    """One of several schemas, in as few words as possible."""
    different: list[Schema] = []
    for schema in schemas:
        if not schema:
            return {}
        if schema not in different:
            different.append(schema)
    if len(different) == 1:
        return different[0]
    if all(schema.keys() == {"type"} for schema in different):
        types: list[str] = []
        for schema in different:
            types += [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        # Any scalar, any list, any mapping: msgspec's way to spell "any JSON".
        return {} if len(set(types)) >= 7 else {"type": types}
    return {"anyOf": different}


def _without_empty(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if value != {} or key == "default"}


def _description(cls: type) -> str | None:
    text = cls.__dict__.get("__doc__")
    return " ".join(text.split("\n\n")[0].split()) if text else None


def _text_when_string(properties: Schema) -> Schema:
    """Under `type: string`, `default` and the items of `enum` are text, and so as written."""
    then: Schema = {}
    if "default" in properties:
        then["default"] = {"type": "string"}
    if "enum" in properties:
        then["enum"] = {"items": {"type": "string"}}
    condition = {"properties": {"type": {"const": "string"}}, "required": ["type"]}
    return {"if": condition, "then": {"properties": then}}


def json_schema_definition() -> Schema:
    """The definition for a JSON Schema inside a file: enough to read it rightly; `check_schema` judges it."""
    here: Schema = {"$ref": f"#/definitions/{JSON_SCHEMA}"}
    texts: Schema = {"type": "array", "items": {"type": "string"}}
    named = {"type": "object", "additionalProperties": here}
    several = {"type": "array", "items": here}
    words = ("$ref", "$schema", "$id", "$comment", "title", "description", "format", "pattern")
    properties: Schema = {
        "type": {"description": "string, integer, number, boolean, array, object or null.", "type": ["string", "array"],
                 "items": {"type": "string"}},
        **{word: {"type": "string"} for word in words},
        "enum": {"description": "The only values allowed.", "type": "array"},
        "const": {},
        "default": {},
        "required": {"description": "Keys that an object must have.", **texts},
        "properties": {"description": "What an object's keys must look like.", **named},
        **dict.fromkeys(("patternProperties", "$defs", "definitions"), named),
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), several),
        **dict.fromkeys(("items", "additionalProperties", "not", "if", "then", "else", "contains"), here),
        "propertyNames": here,
    }  # fmt: skip
    made = {
        "title": "JSON Schema",
        "description": "A JSON Schema.",
        "type": ["object", "boolean"],
        "properties": properties,
    }
    return made | _text_when_string(properties)


def step(
    verbs: dict[str, tuple[Schema, Schema | None]],
    common: dict[str, Schema],
    *,
    required: Iterable[str],
    title: str,
    definitions: dict[str, Schema],
) -> Schema:
    """One object with the common keys and every verb as properties, exactly one verb among them."""
    properties = dict(common)
    for verb, (settings, scalar) in verbs.items():
        properties[verb] = settings if scalar is None else {"anyOf": [scalar, settings]}
        name = settings.get("$ref", "").rpartition("/")[2]
        if text := definitions.get(name, {}).get("description"):
            properties[verb] = _with(properties[verb], {"description": text})
    made: Schema = {
        "title": title,
        "type": "object",
        "properties": properties,
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "oneOf": [{"required": [verb]} for verb in verbs],
    }
    if needed := list(required):
        made["required"] = needed
    return made


def free(schema: Schema) -> Schema:
    """The schema of a mapping in which `x-…` keys are free."""
    return {**schema, "patternProperties": {**schema.get("patternProperties", {}), "^x-": {}}}
