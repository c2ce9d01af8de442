"""What expressions work on: JSON values, the lack of one, and a bounded amount of work."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import Pointer

FUEL = 1_000_000
"""Units of work one evaluation may do: about one for each element touched and for each 256 characters written."""
LONGEST_TEXT = 16 * 1024 * 1024
"""Characters a text may have."""
BIGGEST = 10**4300
"""Integers stay below this; the same bound as Python's own for reading and writing them."""
DEEPEST = 200
"""Levels of lists and mappings a value may have when it is compared or written as text."""


class ExpressionError(Exception):
    """An expression cannot be read or cannot be evaluated.

    `start` and `end` are offsets in `text`, the whole text of the field. `code` is set for problems found before a
    run; `pointer` leads to the field inside a larger value.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        start: int = 0,
        end: int = 0,
        hint: str | None = None,
        code: str | None = None,
        pointer: Pointer = (),
    ) -> None:
        self.message = message
        self.text = text
        self.start = start
        self.end = end
        self.hint = hint
        self.code = code
        self.pointer = pointer
        super().__init__(message)


class Refused(Exception):
    """A value cannot be used in this way; whoever knows the place turns it into an ExpressionError."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


class Missing:
    """The lack of a value: chainable, an error on use, legal in `default(…)` and `is defined`.

    A Mapping in the scope may return one as a value, to say why there is none: `Missing("step 'one' was skipped")`.
    """

    __slots__ = ("_explain", "_why", "hint")

    def __init__(
        self, why: str, hint: str | None = None, *, explain: Callable[[], tuple[str, str | None]] | None = None
    ) -> None:
        self._why = why
        self.hint = hint
        self._explain = explain

    @property
    def why(self) -> str:
        """What a person is told when the value is used all the same."""
        if self._explain is not None:
            self._why, self.hint = self._explain()
            self._explain = None
        return self._why

    def refuse(self) -> Refused:
        """The error to raise on use."""
        why = self.why
        return Refused(why, self.hint)

    def __repr__(self) -> str:
        return f"Missing({self.why!r})"


_NO_NAMES: dict[str, Any] = {}
# Shared by all runs: names are bound by putting a new dict in its place.


class Run:
    """One evaluation: the names in scope, the names bound by the template itself, and the fuel that is left."""

    __slots__ = ("clean", "fuel", "local", "scope")

    def __init__(self, scope: Mapping[str, Any], clean: Callable[[str], str] | None = None) -> None:
        """`clean` is put between every computed piece of a text and the text around it."""
        self.scope = scope
        self.clean = clean
        self.local = _NO_NAMES
        self.fuel = FUEL

    def spend(self, amount: int) -> None:
        """Use up fuel; Refused when there is none left."""
        self.fuel -= amount
        if self.fuel < 0:
            raise Refused("this takes too long", f"an evaluation may take about {FUEL:,} steps of work")

    def wrote(self, size: int) -> None:
        """Account for a text of this many characters, before it is made where that is possible."""
        if size > LONGEST_TEXT:
            raise Refused("the text is too large", f"a text may have {LONGEST_TEXT:,} characters")
        self.spend(size >> 8)


def kind(value: object) -> str:
    """What a value is, for people."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, Mapping):
        return "a mapping"
    return "undefined" if isinstance(value, Missing) else type(value).__name__


def is_number(value: object) -> bool:
    """Whether a value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def plain(value: Any, depth: int = 0) -> Any:
    """The value as plain JSON data: lazy mappings become dicts, without what is missing in them."""
    of = type(value)
    if of is str or of is dict or of is list or value is None or of is bool or of is int or of is float:
        return value
    if isinstance(value, Missing):
        raise value.refuse()
    if depth > DEEPEST:
        raise Refused(f"the value is nested deeper than {DEEPEST} levels")
    if isinstance(value, Mapping):
        pairs = ((str(name), value[name]) for name in value)
        return {name: plain(item, depth + 1) for name, item in pairs if not isinstance(item, Missing)}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    for base in (str, int, float):
        if isinstance(value, base):
            return base.__str__(value) if base is str else base(value)
    raise Refused(f"a value of type {type(value).__name__} is no data")


def present_only(value: Any, levels: int) -> Any:
    """A mapping as plain data without what is missing in its first levels, also if it is a dict; else the value."""
    if not isinstance(value, Mapping) or not levels:
        return value if isinstance(value, Missing) else plain(value)
    pairs = ((name, value[name]) for name in value)
    return {name: present_only(item, levels - 1) for name, item in pairs if not isinstance(item, Missing)}


def same(left: Any, right: Any, run: Run, depth: int = 0) -> bool:
    """Equality of JSON values: a boolean is no number, 1 equals 1.0, mappings compare without order."""
    if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
        return bool(left == right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if is_number(left) or is_number(right):
        return is_number(left) and is_number(right) and bool(left == right)
    if depth > DEEPEST:
        raise Refused(f"the value is nested deeper than {DEEPEST} levels")
    left, right = plain(left), plain(right)
    if type(left) is not type(right) or len(left) != len(right):
        return False
    run.spend(len(left) + 1)
    if isinstance(left, list):
        return all(same(one, other, run, depth + 1) for one, other in zip(left, right, strict=True))
    return all(name in right and same(item, right[name], run, depth + 1) for name, item in left.items())


def measure(value: Any, run: Run, depth: int = 0) -> int:
    """A lower bound of the characters of a value as JSON; spends fuel for each element, refuses deep nesting."""
    if isinstance(value, str):
        return len(value) + 2
    if not isinstance(value, list | dict):
        return 1
    if depth > DEEPEST:
        raise Refused(f"the value is nested deeper than {DEEPEST} levels")
    run.spend(len(value) + 1)
    items: Iterable[Any] = value
    size = 2
    if isinstance(value, dict):
        size += sum(map(len, value))
        items = value.values()
    for item in items:
        size += measure(item, run, depth + 1) + 2
        if size > LONGEST_TEXT:
            raise Refused("the text is too large", f"a text may have {LONGEST_TEXT:,} characters")
    return size


def dump(value: Any, run: Run, indent: int | None = None) -> str:
    """A value as JSON text with sorted keys, so that a run that is resumed writes the same text."""
    value = plain(value)
    measure(value, run)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=indent, default=plain)
    except (ValueError, TypeError, RecursionError):
        raise Refused("the value cannot be written as JSON") from None
    run.wrote(len(text))
    return text


def text_of(value: Any, run: Run) -> str:
    """A value as it stands inside text; null and what is missing have no text."""
    if type(value) is str:
        return value
    if value is None:
        raise Refused("null has no text", 'give another value with default("…", true)')
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Missing):
        raise value.refuse()
    value = plain(value)
    if type(value) is str:
        return value
    if type(value) is int and -BIGGEST < value < BIGGEST:
        return str(value)
    return dump(value, run)


def suggest(name: str, names: Iterable[object]) -> str | None:
    """The nearest of some names, if one is near enough to be meant."""
    known = [other for other in names if isinstance(other, str)]
    lowered = {other.lower(): other for other in known}
    if name.lower() in lowered:
        return lowered[name.lower()]
    if len(known) > 2000 or len(name) > 100:
        return None
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return close[0] if close else None
