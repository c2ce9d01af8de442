"""Filters that turn one kind of value into another."""

from __future__ import annotations

import json
import math
from typing import Any

from ..operators import number as _number
from ..values import Missing, Refused, Run, dump, is_number, kind, measure, text_of
from . import arguments as _arguments


def default(run: Run, value: Any, default_value: Any = "", boolean: Any = False) -> Any:
    """Another value for what is missing; with `true` also for null, false, 0 and what is empty."""
    if isinstance(value, Missing):
        return default_value
    if isinstance(boolean, Missing):
        raise boolean.refuse()
    return default_value if _arguments.flag(boolean, "the second argument of default") and not value else value


def string(run: Run, value: Any) -> str:
    """The text of a value, as it would stand inside text."""
    return text_of(value, run)


def int_(run: Run, value: Any, default: int | None = None, base: int = 10) -> int:
    """A whole number from text or a number, cut towards zero; an error for other text unless there is a default."""
    _arguments.whole(base, "the base", least=2, most=36)
    try:
        if isinstance(value, str):
            run.spend(len(value) >> 4)
            return _from_text(value, base)
        return int(_arguments.number(value, "int"))
    except (ValueError, OverflowError, Refused) as error:
        if default is None:
            raise _unreadable(error, value, "a whole number") from None
        return default


def float_(run: Run, value: Any, default: float | None = None) -> float:
    """A number with a fraction from text or a number; an error for other text unless there is a default."""
    try:
        if not isinstance(value, str):
            return float(_arguments.number(value, "float"))
        found = float(value)
        if math.isfinite(found):
            return found
        raise ValueError
    except (ValueError, OverflowError, Refused) as error:
        if default is None:
            raise _unreadable(error, value, "a number") from None
        return default


def bool_(run: Run, value: Any) -> bool:
    """A boolean from the texts `true` and `false`; an error for anything else."""
    if isinstance(value, bool):
        return value
    if value in ("true", "false") and isinstance(value, str):
        return value == "true"
    raise Refused(f"{kind(value)} is no boolean", 'only true, false and the texts "true" and "false" are')


def abs_(run: Run, value: Any) -> int | float:
    """A number without its sign."""
    return -value if _arguments.number(value, "abs") < 0 else value  # type: ignore[no-any-return]


def round_(run: Run, value: Any, precision: int = 0, method: str = "common") -> int | float:
    """A number rounded to `precision` digits after the point: `common` (half to even), `ceil` or `floor`."""
    _arguments.number(value, "round")
    _arguments.whole(precision, "the precision of round", least=-300, most=300)
    if method not in ("common", "ceil", "floor"):
        raise Refused("the method of round is 'common', 'ceil' or 'floor'")
    if method == "common":
        return _number(lambda: round(value, precision))  # type: ignore[no-any-return]
    towards = math.ceil if method == "ceil" else math.floor
    return _number(lambda: towards(value * (10**precision)) / (10**precision))  # type: ignore[no-any-return]


def list_(run: Run, value: Any) -> list[Any]:
    """A list of the items of a list, the keys of a mapping or the characters of a text."""
    return _arguments.items(value, run, text_too=True)


def tojson(run: Run, value: Any, indent: int | None = None) -> str:
    """A value as JSON text with sorted keys."""
    if indent is not None:
        _arguments.whole(indent, "the indent of tojson", most=16)
    return dump(value, run, indent)


def fromjson(run: Run, value: Any) -> Any:
    """The value of a JSON text."""
    _arguments.text(value, "fromjson")
    run.spend(len(value) >> 5)
    try:
        found = json.loads(value, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise Refused(f"the text is no JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise Refused("the text holds a number or a depth that is out of bounds") from None
    measure(found, run)
    return found


def date(run: Run, value: Any, format: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    """A time in UTC (seconds since 1970, or ISO 8601 text) as text; `%Y %m %d %H %M %S %j` and `%%` are known."""
    import re
    from datetime import UTC, datetime

    run.spend(len(_arguments.text(value, "date")) if isinstance(value, str) else 1)
    try:
        moment = datetime.fromtimestamp(value, UTC) if is_number(value) else datetime.fromisoformat(value)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        raise Refused("the value is no time", "give seconds since 1970 or text such as 2026-01-31T12:00:00Z") from None
    run.wrote(2 * len(_arguments.text(format, "the format of date")))
    known = {"Y": f"{moment.year:04}", "m": f"{moment.month:02}", "d": f"{moment.day:02}", "H": f"{moment.hour:02}"}
    known |= {"M": f"{moment.minute:02}", "S": f"{moment.second:02}", "j": f"{moment.timetuple().tm_yday:03}", "%": "%"}

    def directive(found: re.Match[str]) -> str:
        if found[1] not in known:
            raise Refused(f"the format of date has no %{found[1]}", "it has %Y %m %d %H %M %S %j and %%")
        return known[found[1]]

    return re.sub(r"%(.?)", directive, format, flags=re.S)


def _from_text(value: str, base: int) -> int:
    try:
        return int(value, base)
    except ValueError:
        return int(float(value))


def _unreadable(error: Exception, value: Any, wanted: str) -> Refused:
    if isinstance(error, Refused):
        return error
    return Refused(f"this {kind(value)} is not {wanted}", "give a default: `| int(0)`, `| float(0.0)`")


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(text)
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
