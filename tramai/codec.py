"""Canonical JSON: one text for one value, exact integers, and a refusal that names what cannot be kept."""

from __future__ import annotations

import json
from typing import Any

from . import hashing

Json = None | bool | int | float | str | list[Any] | dict[str, Any]
"""A value that JSON can say. Sharper types would need recursion that mypy and msgspec do not both follow."""

_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
_LARGEST = 10**4300
"""Python reads and writes no number of more than 4,300 digits."""
_BITS = _LARGEST.bit_length()


class NotJson(ValueError):
    """A value that is no JSON: `where` is the path inside the value, `what` says why."""

    def __init__(self, where: str, what: str) -> None:
        self.where = where
        self.what = what
        super().__init__(f"{where or 'the value'} {what}")


def encode(value: Json) -> str:
    """Canonical JSON text: keys sorted, ASCII only, no NaN or infinity, no key but text.

    Raises NotJson, naming the place and the type, for anything else: bytes, dates, sets, tuples, NaN.
    """
    check(value)
    return _ENCODER.encode(value)


def decode(text: str) -> Any:
    """The value of a text that `encode` wrote."""
    return json.loads(text)


def sha256(text: str) -> str:
    """Lower-case hex SHA-256 of the UTF-8 bytes."""
    return hashing.sha256(text.encode("utf-8", "surrogatepass"))


def check(value: object, where: str = "", depth: int = 0) -> None:
    """Raise NotJson unless the value is JSON all the way down."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return
    if kind is int:
        if value.bit_length() >= _BITS and abs(value) >= _LARGEST:  # type: ignore[attr-defined, arg-type]
            raise NotJson(where, "is a number of more than 4,300 digits")
        return
    if kind is float:
        if value != value or value in (float("inf"), float("-inf")):
            raise NotJson(where, f"is {value}, which JSON cannot say")
        return
    if depth > 200:
        raise NotJson(where, "is nested deeper than 200 levels")
    if kind is dict:
        for key, item in value.items():  # type: ignore[attr-defined]
            if type(key) is not str:
                raise NotJson(where, f"has a key {key!r} of type {type(key).__name__}; keys must be text")
            if type(item) is not str:
                check(item, f"{where}.{key}" if where else key, depth + 1)
    elif kind is list:
        for index, item in enumerate(value):  # type: ignore[arg-type]
            if type(item) is not str:
                check(item, f"{where}[{index}]", depth + 1)
    else:
        raise NotJson(where, f"has the type {kind.__name__}, which JSON cannot say")
