"""The published JSON Schema of a workflow file, made from the Structs that read it."""

from __future__ import annotations

from typing import Any

import msgspec

from . import build, schema
from ._illustrations import illustrate
from .definition import Asking, Common, StateSpec, Workflow
from .inputs import InputSpec
from .schema import Schema
from .step import Block, Catch, Step

_ANYTHING = ["string", "integer", "number", "boolean", "array", "object"]
_VERSION = "The version of the language: 1."
_WHERE = {"type": "string", "description": "Where an editor finds this schema; no part of the workflow."}


def generate() -> Schema:
    """The schema of a whole file, as plain JSON data."""
    verbs = {verb: build.verb_class(verb) for verb in sorted(build.verbs())}
    types = [Workflow, Common, Asking, StateSpec, Catch, InputSpec, *verbs.values()]
    references, definitions = schema.components(types)
    top, common, asking, kept, caught, given, *settings = (
        reference["$ref"].rpartition("/")[2] for reference in references
    )
    for name in (given, *settings):
        definitions[name] = schema.free(definitions[name])
    forms = {
        verb: ({"$ref": f"#/definitions/{name}"}, _scalar(verbs[verb], definitions[name]))
        for verb, name in zip(verbs, settings, strict=True)
    }
    kinds: list[type[msgspec.Struct]] = [Common, Asking, StateSpec, Catch, *verbs.values()]
    for kind, name in zip(kinds, [common, asking, kept, caught, *settings], strict=True):
        fill(kind, definitions[name]["properties"])
    definitions["Limits"]["properties"]["max_step_executions"]["x-also"] = ["max_steps", "max_executions"]
    whole, keys = definitions.pop(top), definitions.pop(common)["properties"]
    keys["verify"] = _verify(keys["verify"])
    definitions["step"] = schema.step_schema(forms, keys, definitions=definitions)
    asked = {verb: form for verb, form in forms.items() if verbs[verb].answers}
    beside = definitions.pop(asking)["properties"]
    definitions["verification"] = schema.step_schema(
        asked, beside, required=(), title="verification", definitions=definitions
    )
    made = {**_top(whole), "definitions": dict(sorted(definitions.items()))}
    made["properties"]["defaults"] = _defaults(
        made["properties"]["defaults"], dict(zip(verbs, settings, strict=True)), made["definitions"]
    )
    _point(made)
    illustrate(made)
    return made


def _defaults(key: Schema, verbs: dict[str, str], definitions: dict[str, Schema]) -> Schema:
    """For each verb its settings, none of them needed, without steps; and some of the keys beside it."""
    beside = {name: definitions["step"]["properties"][name] for name in sorted(build.PRESET)}
    presets = {}
    for verb, name in verbs.items():
        own = definitions[name]["properties"]
        kept = {word: schema for word, schema in own.items() if not _holds_steps(schema)}
        kept = {word: schema for word, schema in kept.items() if word not in build.verb_class(verb).own}
        preset = {
            "title": f"defaults of {verb}",
            "description": f"For every `{verb}` step that does not say otherwise.",
        }
        presets[verb] = schema.free(
            {**preset, "type": "object", "properties": {**kept, **beside}, "additionalProperties": False}
        )
    words = {"description": key["description"], "examples": [{"http": {"timeout": "30s"}}]}
    return {"type": "object", **words, "properties": presets, "additionalProperties": False}


def _holds_steps(key: Any) -> bool:
    """Whether a key holds blocks, whose steps cannot be given twice."""
    if isinstance(key, dict):
        return key.get("$ref") == Block.json_schema()["items"]["$ref"] or any(map(_holds_steps, key.values()))
    return isinstance(key, list) and any(map(_holds_steps, key))


def _verify(key: Schema) -> Schema:
    """A condition, or a verb that is asked."""
    condition = {"type": "string", "description": "A condition: one whole `${{ … }}`."}
    forms = [condition, {"$ref": "#/definitions/verification"}]
    return {"anyOf": forms, "description": key["description"], "examples": ["${{ steps.look.output.found }}"]}


def fill(kind: type[msgspec.Struct], properties: dict[str, Schema]) -> None:
    """Keys that may be left out are not null when they are there, and a schema at the top of a key is a mapping."""
    for field in msgspec.structs.fields(kind):
        found = properties[field.encode_name]
        if found.get("allOf") == [{"$ref": "#/definitions/JsonSchema"}]:
            properties[field.encode_name] = {"type": "object", **found}
        elif field.default is None and not {"type", "anyOf", "allOf", "$ref", "enum"} & found.keys():
            properties[field.encode_name] = {"type": _ANYTHING, **found}


def _top(whole: Schema) -> Schema:
    properties = whole["properties"]
    del properties["document"]
    # In words that say nothing of a text: one mistake is said once.
    properties["tramai"] = {"type": "integer", "minimum": 1, "maximum": 1, "description": _VERSION, "examples": [1]}
    steps = {**properties["steps"], "minItems": 1}
    return {
        "$schema": schema.DIALECT,
        "title": "tramai workflow",
        "description": "A workflow file, version 1 of the language.",
        "type": "object",
        "properties": {"$schema": _WHERE, **properties, "steps": steps},
        "patternProperties": {"^x-": {}},
        "required": ["tramai", "name", "steps"],
        "additionalProperties": False,
    }


def _scalar(kind: type[Step], settings: Schema) -> Schema | None:
    """What the scalar form of a verb may be."""
    if kind.scalar is None:
        return None
    short: Schema = settings["properties"][kind.scalar]
    return short if "type" in short else {**short, "type": ["string", "number", "boolean"]}


def _point(made: Any) -> None:
    """Send references to steps to where the steps are defined."""
    steps = Block.json_schema()["items"]["$ref"]
    if isinstance(made, dict):
        if made.get("$ref") == steps:
            made["$ref"] = "#/definitions/step"
        for value in made.values():
            _point(value)
    elif isinstance(made, list):
        for item in made:
            _point(item)
