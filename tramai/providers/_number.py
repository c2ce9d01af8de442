"""Numbers that keep the bounds and steps of a JSON Schema, exact however large."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any


def numbers(schema: dict[str, Any], *, whole: bool) -> Iterator[int | float]:
    """Numbers within the bounds, exact: the nearest to 1 first, then upwards and downwards."""
    step = Fraction(str(schema["multipleOf"])) if "multipleOf" in schema else Fraction(1 if whole else "0.5")
    if whole and step.denominator != 1:
        step = Fraction(step.numerator)  # the whole multiples of a/b in lowest terms are those of a
    low = [Fraction(str(schema[name])) for name in ("minimum", "exclusiveMinimum") if _is_number(schema.get(name))]
    high = [Fraction(str(schema[name])) for name in ("maximum", "exclusiveMaximum") if _is_number(schema.get(name))]
    if low and high and "multipleOf" not in schema and not whole:
        yield _json(max(low))
        yield _json((max(low) + min(high)) / 2)
        yield _json(min(high))
    start = Fraction(1)
    if low:
        start = max(start, max(low))
    if high:
        start = min(start, min(high))
    first = math.ceil(start / step)
    for distance in range(300):
        yield _json((first + distance) * step)
        yield _json((first - 1 - distance) * step)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _json(number: Fraction) -> int | float:
    return number.numerator if number.denominator == 1 else float(number)
