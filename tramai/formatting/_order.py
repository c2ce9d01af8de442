"""The canonical order of keys: what a thing is called, when it happens, what it does, what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from .. import build
from .._shape import Shape, compile_shape
from ..schema import workflow_schema

TOP = (
    "$schema", "tramai", "name", "version", "description", "inputs", "secrets", "env", "limits", "defaults", "permits",
    "concurrency", "schedules", "state", "steps", "catch", "finally", "outputs",
)  # fmt: skip
FIRST = ("id", "description", "when")
"""The keys of a step before its verb."""
LAST = ("retry", "timeout", "deadline", "catch", "output", "schema", "save", "replay", "verify")
"""The keys of a step after its verb."""


def root() -> Shape:
    """The shape of a whole file."""
    schema = workflow_schema()
    return compile_shape(schema, schema)


def keys(shape: Shape, given: Iterable[str]) -> list[str]:
    """The keys in canonical order; those that the language does not name keep theirs, behind the others."""
    given = list(given)
    place = {key: number for number, key in enumerate(_known(shape.names()))}
    return sorted(given, key=lambda key: place.get(key, len(place)))


INPUT = ("type", "format", "enum", "items", "properties", "required", "default", "optional")
"""The keys of an input before its bounds."""
BLOCKS = ("branches", "cases", "default", "then", "else", "do")
"""Keys that hold steps: what governs them is read first."""


@cache
def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    if "tramai" in names:
        return tuple(dict.fromkeys((*TOP, *names)))
    if "$ref" in names:  # a JSON Schema, whose author has an order of their own
        return ()
    verbs = build.verbs()
    if "shell" in names and "replay" in names:
        own = [name for name in names if name in verbs]
        return tuple(dict.fromkeys((*FIRST, *own, *LAST, *names)))
    if "system" in names and "prompt" in names:
        return tuple(dict.fromkeys(("model", "system", *names)))
    if "minLength" in names:  # an input
        return (*dict.fromkeys((*INPUT, *(name for name in names if name != "description"))), "description")
    if "do" in names or "cases" in names:
        return (*(name for name in names if name not in BLOCKS), *(name for name in BLOCKS if name in names))
    return names
