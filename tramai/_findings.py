"""The raw errors of jsonschema as findings: unions reduced to the form that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from ._shape import Schema
from .errors import Pointer


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One broken keyword: where, by what value, and the schema that asked for it."""

    keyword: str
    pointer: Pointer
    value: Any
    wanted: Any
    schema: Schema


def validator(schema: Schema) -> Any:
    """A validator for which `1.0` is no integer, as for the readers of the file."""
    return _strict()(schema)


@cache
def _strict() -> Any:
    """The class: to make one costs more than to use it."""
    import jsonschema

    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(base, type_checker=checker)


def findings(instance: Any, schema: Schema) -> list[Finding]:
    """Every broken keyword, unions reduced to the form that was meant."""
    found: list[Finding] = []
    for error in validator(schema).iter_errors(instance):
        found += _flatten(error)
    return found


def _flatten(error: Any) -> Iterator[Finding]:
    if error.validator in ("anyOf", "oneOf") and error.context:
        branch = _meant(error)
        if branch is not None:
            for inner in branch:
                yield from _flatten(inner)
            return
        yield from _no_form(error)
        return
    wanted = error.validator_value
    if error.validator == "type":
        wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    yield Finding(
        keyword=error.validator,
        pointer=tuple(error.absolute_path),
        value=error.instance,
        wanted=wanted,
        schema=error.schema if isinstance(error.schema, dict) else {},
    )


def _no_form(error: Any) -> Iterator[Finding]:
    """No form of a union has the type of the value."""
    pointer = tuple(error.absolute_path)
    if all(inner.validator == "required" and inner.schema.keys() == {"required"} for inner in error.context):
        verbs = [inner.validator_value[0] for inner in error.context]
        yield Finding(keyword="verb", pointer=pointer, value=error.instance, wanted=verbs, schema=error.schema)
        return
    wanted: list[str] = []
    for inner in error.context:
        if inner.validator == "type" and not inner.relative_path:
            wanted += [inner.validator_value] if isinstance(inner.validator_value, str) else inner.validator_value
        elif inner.validator in ("enum", "const"):
            wanted.append("string")
    duration = any(part.schema.get("title") == "duration" for part in error.context)
    schema = {**error.schema, **({"title": "duration"} if duration else {})}
    yield Finding(keyword="type", pointer=pointer, value=error.instance, wanted=wanted, schema=schema)


def _meant(error: Any) -> list[Any] | None:
    """The errors of the form that was meant: one of the value's own type, with the fewest and deepest errors."""
    branches: dict[Any, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    if error.validator == "oneOf" and all(
        len(errors) == 1 and errors[0].validator == "required" and errors[0].schema.keys() == {"required"}
        for errors in branches.values()
    ):
        return None
    usable = [
        errors
        for errors in branches.values()
        if not any(inner.validator == "type" and not inner.relative_path for inner in errors)
        and not (
            type(error.instance) is not str
            and any(inner.validator in ("enum", "const") and not inner.relative_path for inner in errors)
        )
    ]
    return min(usable, key=lambda errors: (len(errors), -max(len(e.relative_path) for e in errors)), default=None)
