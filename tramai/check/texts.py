"""Expressions that can be read, and texts that must not hold any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..errors import Pointer, Problem
from ..expression import ExpressionError, Template, Value
from ..step import Block, Step
from . import _rewrites
from .scene import Field, Scene, fields_of


def syntax(scene: Scene) -> Iterator[Problem]:
    """Every expression parses, uses filters that exist, and fits its field."""
    for field in scene.fields:
        for error in field.thing.problems():
            scene.blame((*field.pointer, *error.pointer), error.start)
            yield scene.problem(
                error.code or "TRM201",
                error.message,
                (*field.pointer, *error.pointer),
                hint=_hint(field, error),
                range=(error.start, error.end),
                fix=_rewrites.fix(field.thing, error, field.pointer) if isinstance(field.thing, Template) else None,
            )


def _hint(field: Field, error: ExpressionError) -> str | None:
    """The advice, or for a gate that asks in the place of its condition what is meant there."""
    if error.code == "TRM207" and field.area == "gate" and "${{" not in error.text and not error.text.endswith(")"):
        return "a question to people is gate: {ask: …}; a condition is one whole ${{ … }}"
    return error.hint


def never_templated(scene: Scene) -> Iterator[Problem]:
    """`${{` in a text that is taken as it is would never be replaced."""
    for name, spec in scene.workflow.state.items():
        if spec is not None and (found := _first(spec.initial, ("state", name, "initial"))) is not None:
            yield _refused(scene, found, "an initial value is data")
    for name, given in scene.workflow.inputs.items():
        if given is not None and (found := _first(given.default, ("inputs", name, "default"))) is not None:
            yield _refused(scene, found, "a default is data")
    for name, source in scene.workflow.secrets.items():
        if source is not None and (found := _first(source, ("secrets", name))) is not None:
            yield _refused(scene, found, "the source of a secret is fixed")
    for index, schedule in enumerate(scene.workflow.schedules):
        if (found := _first(schedule, ("schedules", index))) is not None:
            yield _refused(scene, found, "a schedule is fixed")
    told = {(node.id, finding.pointer[:1]) for node, finding in scene.findings}
    for entry in scene.running:
        node = entry.node
        for shown, value in _plain(node.step):
            if type(value) in _NO_TEXT or (node.id, (shown,)) in told:
                continue
            if (found := _first(value, (shown,))) is not None:
                name = str(found[1]) if isinstance(value, Step) else shown
                yield _refused(scene, scene.setting(node, found), f"`{name}` is taken as it is")


def _plain(step: Step) -> Iterator[tuple[str, Any]]:
    """The settings in which a text may stand that is no template, those of another package's step among them."""
    for name, shown in fields_of(type(step), "str"):
        yield shown, getattr(step, name)
    for name, shown in zip(step.__struct_fields__, step.__struct_encode_fields__, strict=True):
        if isinstance(value := getattr(step, name), Step):
            yield shown, value


def _templates(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _templates(below)


def _refused(scene: Scene, pointer: Pointer, why: str) -> Problem:
    return scene.problem(
        "TRM305", f"{why}: an expression in it would never be evaluated", pointer, hint="write the value itself"
    )


_NO_TEXT = frozenset((type(None), bool, int, float, Block, msgspec.UnsetType, *_templates(Template), Value))


def _own(step: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for name, shown in zip(step.__struct_fields__, step.__struct_encode_fields__, strict=True):
        yield shown, getattr(step, name)


def _first(value: Any, at: Pointer) -> Pointer | None:
    """The first text with `${{` in it that is no template."""
    if isinstance(value, str):
        return at if "${{" in value else None
    if type(value) in _NO_TEXT:
        return None
    if isinstance(value, dict):
        pairs: Any = value.items()
    elif isinstance(value, (list, tuple)):
        pairs = enumerate(value)
    elif isinstance(value, msgspec.Struct):
        pairs = _own(value)
    else:
        return None
    for key, item in pairs:
        found = _first(item, (*at, key))
        if found is not None:
            return found
    return None
