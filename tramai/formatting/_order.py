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


@cache
def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    if "tramai" in names:
        return tuple(dict.fromkeys((*TOP, *names)))
    if "system" in names and "prompt" in names:
        names = ("model", "system", *names)
        return tuple(dict.fromkeys(names))
    if "$ref" in names:  # a JSON Schema, whose author has an order of their own
        return ()
    verbs = build.verbs()
    if verbs <= set(names) or ("replay" in names and "shell" in names):
        own = [name for name in names if name in verbs]
        return tuple(dict.fromkeys((*FIRST, *own, *LAST, *names)))
    return names
