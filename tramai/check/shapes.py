"""What is known of values before the run, from the schemas that a file declares."""

from __future__ import annotations

from typing import Any

import msgspec

from ..expression import Use
from ..step import Node
from .scene import Scene

_OPEN = ("$ref", "anyOf", "oneOf", "allOf", "if", "not", "patternProperties", "$dynamicRef")
_NO_FIELDS = {"string": "text", "integer": "a number", "number": "a number", "boolean": "a boolean", "null": "null"}

Schema = dict[str, Any]


class Shapes:
    """Schemas of what names stand for."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._inputs: dict[str, Schema] = {}

    def undeclared(self, use: Use) -> tuple[str, str | None] | None:
        """Message and hint when a use reads what its schema does not have."""
        root, name = use.path[0], str(use.path[1])
        if root == "steps" and use.path[2] == "output":
            entry = self.scene.steps.get(name)
            schema, rest, subject = (
                (of(entry.node) if entry is not None else None),
                use.path[3:],
                f"the output of step `{name}`",
            )
        elif root == "inputs":
            schema, rest, subject = self._input(name), use.path[2:], f"input `{name}`"
        elif root == "state":
            spec = self.scene.workflow.state.get(name)
            schema, rest, subject = (spec.schema if spec is not None else None), use.path[2:], f"state `{name}`"
        else:
            return None
        return self._walk(schema, rest, subject) if schema is not None else None

    def _input(self, name: str) -> Schema | None:
        spec = self.scene.workflow.inputs.get(name)
        if spec is None:
            return None
        if name not in self._inputs:
            self._inputs[name] = msgspec.to_builtins(spec)
        return self._inputs[name]

    def _walk(self, schema: Any, rest: tuple[str | int, ...], subject: str) -> tuple[str, str | None] | None:
        for part in rest:
            if not isinstance(schema, dict) or any(key in schema for key in _OPEN):
                return None
            kind = schema.get("type")
            if isinstance(kind, str) and kind in _NO_FIELDS:
                return f"{subject} is {_NO_FIELDS[kind]} here: it has no `{part}`", None
            if isinstance(part, int):
                schema = schema.get("items") if kind == "array" else None
                continue
            if kind == "array":
                return f"{subject} is a list here: it has no `{part}`", "take one item, such as [0], or use map(…)"
            properties = schema.get("properties")
            if not isinstance(properties, dict):
                return None
            if part not in properties:
                if schema.get("additionalProperties", False) is not False:
                    return None
                hint = self.scene.did_you_mean(part, properties) or f"declared: {', '.join(properties) or 'nothing'}"
                return f"{subject} declares no `{part}`", hint
            schema = properties[part]
        return None


def of(node: Node) -> Schema | None:
    """The schema of a step's output, None when nothing is known of it."""
    if node.schema is not None:
        return node.schema
    if node.output is not None:
        return None
    return node.step.shape()
