"""How an expression that cannot work is mended, by the kinds of what stands in it."""

from __future__ import annotations

from . import algebra
from .algebra import Schema

NUMBERS = frozenset(("number",))
TEXTS = frozenset(("string",))


def joined(one: frozenset[str], other: frozenset[str]) -> str | None:
    """What to do about a `+` of these kinds."""
    if TEXTS in (one, other):
        return "to join values as text, write ~"
    return calculable(one, other)


def calculable(one: frozenset[str], other: frozenset[str]) -> str | None:
    """What to do about a calculation or an order with text in it."""
    return "make a number of text with `| int` or `| float`" if TEXTS in (one, other) else None


def as_written(left: Schema, right: Schema) -> str | None:
    """What was meant where a text stands for a boolean or a number."""
    for given in (left, right):
        text = given.get("const")
        if isinstance(text, str):
            other = algebra.kinds(right if given is left else left)
            if text.lower() in ("true", "false") and other == {"boolean"}:
                return f"write {text.lower()}, without quotes; or leave the comparison out"
            if other == NUMBERS and text.lstrip("-").replace(".", "", 1).isdigit():
                return f"write {text}, without quotes"
        elif "const" in given and algebra.kinds(right if given is left else left) == TEXTS:
            return f'quote it: "{text}"' if not isinstance(text, bool) else f'quote it: "{str(text).lower()}"'
    return None


def compared(found: frozenset[str]) -> str:
    """How a value of these kinds is made a condition."""
    if found == {"array"} or found == {"object"}:
        return "ask how many there are: `… | length > 0`"
    if found == TEXTS:
        return 'compare it, as in `… == "yes"`, or ask `… | length > 0`'
    return "compare it, as in `… > 0`" if found == NUMBERS else "compare it with something"


def indexed(found: frozenset[str]) -> str | None:
    """How items of such a value are named."""
    return "items of a list have numbers, from 0" if found == {"array"} else None


def mended(found: frozenset[str], wanted: frozenset[str], name: str) -> str | None:
    """What to put before a filter."""
    if wanted == TEXTS and found == NUMBERS:
        return "write `| string` before it"
    if wanted == TEXTS and found == {"array"}:
        return "put the items together with `| join(…)`, or use `| map(…)` on each"
    if found == TEXTS and "array" in wanted:
        return "split the text first, with `| split(…)` or `| lines`"
    if wanted == NUMBERS and found == TEXTS:
        return "make a number of it with `| int` or `| float`"
    return "take the filter away" if name in ("length", "count") else None
