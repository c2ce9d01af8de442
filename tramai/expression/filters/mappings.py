"""Filters on mappings."""

from __future__ import annotations

from typing import Any

from ..values import Refused, Run, kind
from . import arguments as _arguments
from .lists import _sortable


def items(run: Run, value: Any) -> list[Any]:
    """The `[key, value]` pairs of a mapping."""
    return [[name, item] for name, item in _arguments.mapping(value, run).items()]


def keys(run: Run, value: Any) -> list[Any]:
    """The keys of a mapping."""
    return list(_arguments.mapping(value, run))


def values(run: Run, value: Any) -> list[Any]:
    """The values of a mapping."""
    return list(_arguments.mapping(value, run).values())


def dictsort(run: Run, value: Any, case_sensitive: bool = False, by: str = "key", reverse: bool = False) -> list[Any]:
    """The `[key, value]` pairs of a mapping in order of `key` or `value`."""
    pairs = items(run, value)
    if by not in ("key", "value"):
        raise Refused("dictsort is by 'key' or by 'value'")
    column = [pair[0 if by == "key" else 1] for pair in pairs]
    keys = _sortable(run, column, _arguments.flag(case_sensitive, "case_sensitive"))
    order = sorted(range(len(pairs)), key=lambda at: keys[at], reverse=_arguments.flag(reverse, "reverse"))
    return [pairs[at] for at in order]


def combine(run: Run, value: Any, *others: Any) -> dict[str, Any]:
    """Mappings put together; a later one wins."""
    merged = dict(_arguments.mapping(value, run))
    for other in others:
        merged |= _arguments.mapping(other, run)
    return merged


def fromitems(run: Run, value: Any) -> dict[str, Any]:
    """A mapping from `[key, value]` pairs."""
    made: dict[str, Any] = {}
    for pair in _arguments.items(value, run):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise Refused(f"fromitems needs pairs of a text and a value, not {kind(pair)}")
        made[pair[0]] = pair[1]
    return made
