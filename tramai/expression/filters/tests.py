"""Tests: what may stand after `is`, and in `select`, `reject`, `selectattr` and `rejectattr`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import operators as _operators
from ..values import Missing, Run, is_number
from . import arguments as _arguments

SIGNS = {"==": "eq", "equalto": "eq", "!=": "ne", "<": "lt", "lessthan": "lt", "<=": "le", ">": "gt"}
SIGNS |= {"greaterthan": "gt", ">=": "ge"}
"""Other spellings of tests."""


def defined(run: Run, value: Any) -> bool:
    """There is a value; null is one."""
    return not isinstance(value, Missing)


def undefined(run: Run, value: Any) -> bool:
    """There is no value."""
    return isinstance(value, Missing)


def none(run: Run, value: Any) -> bool:
    """The value is null."""
    return value is None


def boolean(run: Run, value: Any) -> bool:
    """The value is true or false."""
    return isinstance(value, bool)


def true(run: Run, value: Any) -> bool:
    """The value is true."""
    return value is True


def false(run: Run, value: Any) -> bool:
    """The value is false."""
    return value is False


def number(run: Run, value: Any) -> bool:
    """The value is a number; a boolean is none."""
    return is_number(value)


def integer(run: Run, value: Any) -> bool:
    """The value is a number written without a fraction."""
    return isinstance(value, int) and not isinstance(value, bool)


def float_(run: Run, value: Any) -> bool:
    """The value is a number written with a fraction."""
    return isinstance(value, float)


def string(run: Run, value: Any) -> bool:
    """The value is text."""
    return isinstance(value, str)


def mapping(run: Run, value: Any) -> bool:
    """The value is a mapping."""
    return isinstance(value, Mapping)


def list_(run: Run, value: Any) -> bool:
    """The value is a list."""
    return isinstance(value, list | tuple)


def sequence(run: Run, value: Any) -> bool:
    """The value has items: a list, text or a mapping."""
    return isinstance(value, list | tuple | str | Mapping)


def iterable(run: Run, value: Any) -> bool:
    """The same as `sequence`."""
    return sequence(run, value)


def odd(run: Run, value: Any) -> bool:
    """The number is odd."""
    return bool(_arguments.number(value, "odd") % 2 == 1)


def even(run: Run, value: Any) -> bool:
    """The number is even."""
    return bool(_arguments.number(value, "even") % 2 == 0)


def divisibleby(run: Run, value: Any, num: Any) -> bool:
    """The number is a multiple of another."""
    return bool(_operators.modulo(run, _arguments.number(value, "divisibleby"), num) == 0)


def upper(run: Run, value: Any) -> bool:
    """The text has capital letters and no small ones."""
    run.spend(len(_arguments.text(value, "the test upper")) >> 8)
    return bool(value.isupper())


def lower(run: Run, value: Any) -> bool:
    """The text has small letters and no capital ones."""
    run.spend(len(_arguments.text(value, "the test lower")) >> 8)
    return bool(value.islower())


def startswith(run: Run, value: Any, start: str) -> bool:
    """The text starts with another."""
    return _arguments.text(value, "startswith").startswith(_arguments.text(start, "the start"))


def endswith(run: Run, value: Any, end: str) -> bool:
    """The text ends with another."""
    return _arguments.text(value, "endswith").endswith(_arguments.text(end, "the end"))


def like(run: Run, value: Any, pattern: str) -> bool:
    """The whole text matches a pattern: `*` is any text, `?` is one character; there are no regular expressions."""
    _arguments.text(value, "like")
    _arguments.text(pattern, "the pattern of like")
    at = place = 0
    star, mark = -1, 0
    while at < len(value):
        run.spend(2)
        if place < len(pattern) and pattern[place] == "*":
            star, mark = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", value[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    return all(sign == "*" for sign in pattern[place:])


def in_(run: Run, value: Any, container: Any) -> bool:
    """The value is in a list, a text or the keys of a mapping."""
    return _operators.inside(run, value, container)


def eq(run: Run, value: Any, other: Any) -> bool:
    """The values are equal."""
    return _operators.equal(run, value, other)


def ne(run: Run, value: Any, other: Any) -> bool:
    """The values are not equal."""
    return not _operators.equal(run, value, other)


def lt(run: Run, value: Any, other: Any) -> bool:
    """The value is less than another."""
    return _operators.less(run, value, other)


def le(run: Run, value: Any, other: Any) -> bool:
    """The value is less than another or equal to it."""
    return _operators.less_or_equal(run, value, other)


def gt(run: Run, value: Any, other: Any) -> bool:
    """The value is greater than another."""
    return _operators.greater(run, value, other)


def ge(run: Run, value: Any, other: Any) -> bool:
    """The value is greater than another or equal to it."""
    return _operators.greater_or_equal(run, value, other)
