"""What msgspec accepts and the published schema does not: refused here, so that both always agree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from . import _quick, schema
from .errors import Pointer


class Unbuildable(ValueError):
    """Plain data that is no workflow: `pointer` is the place, the text says why."""

    def __init__(self, pointer: Pointer, what: str) -> None:
        self.pointer = pointer
        super().__init__(what)


def agree(made: Any, raw: Any, at: Pointer) -> None:
    """Refuse what msgspec is lenient about and the published schema is not: null for no value, 2.0 for 2.

    An empty value is not the same as no value: `when:` with nothing behind it is a mistake.
    """
    if type(made) is int and type(raw) is float:
        raise Unbuildable(at, "is no integer")
    if type(made) is tuple and isinstance(raw, list):
        for index, (item, given) in enumerate(zip(made, raw, strict=True)):
            agree(item, given, (*at, index))
    elif isinstance(made, dict) and isinstance(raw, dict):
        for key, item in made.items():
            if isinstance(item, msgspec.Struct):
                agree(item, raw.get(key), (*at, key))
    elif isinstance(made, msgspec.Struct) and isinstance(raw, dict):
        _agree_struct(made, raw, at)


def _agree_struct(made: msgspec.Struct, raw: dict[str, Any], at: Pointer) -> None:
    optional, narrow = _leniencies(type(made))
    for field, name in zip(made.__struct_fields__, made.__struct_encode_fields__, strict=True):
        value = raw.get(name)
        if value is None:
            if name in raw and field in optional:
                raise Unbuildable((*at, name), "is empty")
        elif field in narrow:
            _narrow(type(made), name, value, (*at, name))
        elif type(value) is not str:
            agree(getattr(made, field), value, (*at, name))


@cache
def _leniencies(kind: type[msgspec.Struct]) -> tuple[frozenset[str], frozenset[str]]:
    """Fields in which null would mean that the key is not there, and those that say more than their type does."""
    fields = msgspec.structs.fields(kind)
    return (
        frozenset(field.name for field in fields if field.default is None),
        frozenset(field.name for field in fields if "extra_json_schema" in repr(field.type)),
    )


_GUESTS: dict[type, tuple[str, dict[str, schema.Schema]]] = {}


def receive(structs: Mapping[type, str], definitions: dict[str, schema.Schema]) -> None:
    """Take in the Structs of another package: the name of the definition of each, and those definitions."""
    _GUESTS.update((kind, (name, definitions)) for kind, name in structs.items() if not _is_ours(kind))


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "tramai" and kind.__name__ in schema.workflow_schema()["definitions"]


def _narrow(kind: type[msgspec.Struct], name: str, value: Any, at: Pointer) -> None:
    """Check a value against what the published schema says of its field."""
    title, definitions = _GUESTS.get(kind) or (kind.__name__, schema.workflow_schema()["definitions"])
    wanted = definitions[title]["properties"][name]
    if _quick.fits(value, wanted):
        return
    found = schema.schema_problems(value, {**wanted, "definitions": definitions})
    if found:
        raise Unbuildable((*at, *found[0][0]), found[0][1])


def meet_schema(value: Any, key: str) -> None:
    """Check a whole key of the workflow against the published schema."""
    whole = schema.workflow_schema()
    wanted = whole["properties"][key]
    if not value or _quick.fits(value, wanted):  # most files have nothing there: the library is slow to load
        return
    found = schema.schema_problems(value, {**wanted, "definitions": whole["definitions"]})
    if found:
        raise Unbuildable((key, *found[0][0]), found[0][1])


def whole(data: Any) -> Any:
    """Data in which `1.0` is 1, as the canonical form writes it: a run and its resume then work on the same values."""
    kind = type(data)
    if kind is float and data.is_integer():
        return int(data)
    if kind is dict:
        return {key: value if type(value) is str else whole(value) for key, value in data.items()}
    if kind is list:
        return [item if type(item) is str else whole(item) for item in data]
    return data


def below(where: str) -> Pointer:
    """The pointer of msgspec's `.retry.delay`, as far as it names keys."""
    found = re.match(r"(?:\.\w+)*", where)
    return tuple(found[0].split(".")[1:]) if found else ()
