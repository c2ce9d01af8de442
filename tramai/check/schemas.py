"""Declared shapes: schemas that are schemas, and values in the file that meet them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ..codec import encode
from ..definition import Workflow, declared
from ..errors import Pointer, Problem
from ..schema import schema_problems
from ..shape import Mismatch, Shape, conform
from . import keywords
from .scene import Scene

Place = tuple[Pointer, dict[str, Any]]


def of(workflow: Workflow) -> Iterator[Place]:
    """Every JSON Schema of a workflow, and where it stands."""
    for name, spec in declared(workflow.state).items():
        if isinstance(spec.schema, dict):
            yield ("state", name, "schema"), spec.schema
    for node in workflow.walk():
        if isinstance(node.schema, dict):
            yield (*node.at, "schema"), node.schema
        own = getattr(node.step, "schema", None)
        if isinstance(own, dict):
            yield (*node.at, node.verb, "schema"), own


def valid(scene: Scene) -> Iterator[Problem]:
    """Every JSON Schema in the file is one, and no keyword of it is misspelt."""
    seen: dict[str, list[keywords.Fault]] = {}
    for at, schema in of(scene.workflow):
        text = encode(schema)
        if text not in seen:
            seen[text] = list(keywords.faults(schema))
        for inside, what, hint in seen[text]:
            yield scene.problem("TRM307", f"not a JSON Schema: {what}", (*at, *inside), hint=hint)
        if not seen[text]:
            yield from _misspelt(scene, at, schema)


def _misspelt(scene: Scene, at: Pointer, schema: Any) -> Iterator[Problem]:
    if (
        schema
        and isinstance(schema, dict)
        and not schema.keys() & set(keywords.names())
        and not any(name.startswith("x-") for name in schema)
    ):
        first = next(iter(schema))
        hint = f"write {{type: object, properties: {{{first}: …}}}}"
        message = f"`{first}` is no keyword of JSON Schema: this schema takes anything"
        yield scene.problem("TRM308", message, (*at, first), hint=hint, key=True, severity="warning")
        return
    for inside in keywords.unknown(schema):
        near = None if str(inside[-1]).startswith("x-") else scene.suggest(str(inside[-1]), keywords.names())
        if near is not None:
            message = f"`{inside[-1]}` is no keyword of JSON Schema and has no effect"
            hint = f"did you mean `{near}`?"
            yield scene.problem("TRM308", message, (*at, *inside), hint=hint, key=True, severity="warning")


def initial_values(scene: Scene) -> Iterator[Problem]:
    """A state key starts with a value that its schema allows."""
    for name, spec in declared(scene.workflow.state).items():
        if spec.schema is None or any(keywords.faults(spec.schema)):
            continue
        for inside, what in schema_problems(spec.initial, spec.schema)[:1]:
            yield scene.problem(
                "TRM309",
                f"the initial value of `{name}` does not meet its schema: it {what}",
                ("state", name, "initial", *inside),
                hint="change the value or the schema",
            )


def inputs(scene: Scene) -> Iterator[Problem]:
    """Declared inputs make sense, and their defaults and allowed values fit them."""
    for name, spec in declared(scene.workflow.inputs).items():
        at = ("inputs", name)
        found = list(_shape(scene, spec, at))
        yield from found
        if not found:
            yield from _values(scene, f"input `{name}`", spec, at)
        if spec.optional and spec.default is not msgspec.UNSET:
            message = f"input `{name}` has a default, so it is optional already"
            yield scene.problem("TRM356", message, (*at, "optional"), hint="remove `optional`", key=True)


def forms(scene: Scene) -> Iterator[Problem]:
    """What a gate asks for makes sense, and the defaults of its fields fit them."""
    for entry in scene.entries:
        form = getattr(entry.node.step, "form", None)
        if not isinstance(form, Shape):
            continue
        at = (*entry.node.at, entry.node.verb, "form")
        found = list(_shape(scene, form, at))
        yield from found
        for name, field in {} if found else (form.properties or {}).items():
            yield from _values(scene, f"field `{name}`", field, (*at, "properties", name))


def _shape(scene: Scene, shape: Shape, at: Pointer) -> Iterator[Problem]:
    if shape.pattern is not None:
        try:
            re.compile(shape.pattern)
        except (re.error, RecursionError, OverflowError) as error:
            yield scene.problem("TRM356", f"the pattern cannot be read: {error}", (*at, "pattern"))
    for least, most in (("minimum", "maximum"), ("minLength", "maxLength")):
        low, high = getattr(shape, least), getattr(shape, most)
        if low is not None and high is not None and low > high:
            message = f"`{least}` {low} is above `{most}` {high}: no value fits"
            yield scene.problem("TRM356", message, (*at, least), related=(((*at, most), f"`{most}` is here"),))
    for keyword, kinds in _BELONGS.items():
        if getattr(shape, keyword) is not None and shape.type is not None and shape.type not in kinds:
            message = f"`{keyword}` says nothing about a value of type {shape.type}"
            hint = f"remove it, or declare type: {kinds[0]}"
            yield scene.problem("TRM356", message, (*at, keyword), hint=hint, key=True)
    for key in shape.required or ():
        if shape.properties is not None and key not in shape.properties:
            message = f"required key `{key}` is not among `properties`"
            near = scene.did_you_mean(key, shape.properties)
            yield scene.problem("TRM356", message, (*at, "required"), hint=near)
    if shape.items is not None:
        yield from _shape(scene, shape.items, (*at, "items"))
    for key, inner in (shape.properties or {}).items():
        yield from _shape(scene, inner, (*at, "properties", key))


_BELONGS = {
    "pattern": ("string",),
    "format": ("string",),
    "minLength": ("string",),
    "maxLength": ("string",),
    "minimum": ("integer", "number"),
    "maximum": ("integer", "number"),
    "items": ("array",),
    "properties": ("object",),
    "required": ("object",),
}


def _values(scene: Scene, what: str, spec: Shape, at: Pointer) -> Iterator[Problem]:
    only_type = Shape(type=spec.type)
    for index, value in enumerate(spec.enum or ()):
        try:
            conform(only_type, value)
        except Mismatch as error:
            yield scene.problem("TRM357", f"an allowed value of {what} {error}", (*at, "enum", index))
            return
    if spec.default is msgspec.UNSET:
        return
    try:
        conform(spec, spec.default)
    except Mismatch as error:
        yield scene.problem("TRM357", f"the default of {what} {error}", (*at, "default"), hint=error.hint)
