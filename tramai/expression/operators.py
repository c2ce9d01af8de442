"""The operators on JSON values, strict and bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from .values import BIGGEST, LONGEST_TEXT, Refused, Run, is_number, kind, plain, same

_BITS = BIGGEST.bit_length()
_JOIN_HINT = "use ~ to join values as text"


def add(run: Run, left: Any, right: Any) -> Any:
    """Two numbers, two texts or two lists."""
    if is_number(left) and is_number(right):
        return number(lambda: left + right)
    if isinstance(left, str) and isinstance(right, str):
        run.wrote(len(left) + len(right))
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        run.spend(len(left) + len(right))
        return [*left, *right]
    hint = _JOIN_HINT if isinstance(left, str) or isinstance(right, str) else None
    raise Refused(f"+ needs two numbers, two texts or two lists, not {kind(left)} and {kind(right)}", hint)


def subtract(run: Run, left: Any, right: Any) -> Any:
    """Two numbers."""
    _numbers("-", left, right)
    return number(lambda: left - right)


def multiply(run: Run, left: Any, right: Any) -> Any:
    """Two numbers; a text or a list is not repeated."""
    _numbers("*", left, right)
    return number(lambda: left * right)


def divide(run: Run, left: Any, right: Any) -> Any:
    """Two numbers; the result is a float."""
    _numbers("/", left, right)
    return number(lambda: left / right)


def floor_divide(run: Run, left: Any, right: Any) -> Any:
    """Two numbers, rounded down."""
    _numbers("//", left, right)
    return number(lambda: left // right)


def modulo(run: Run, left: Any, right: Any) -> Any:
    """The remainder, with the sign of the right side."""
    if isinstance(left, str):
        raise Refused("% needs numbers, not text", 'to fill in a text write `"…%s…" | format(value)`, or use ~')
    _numbers("%", left, right)
    return number(lambda: left % right)


def power(run: Run, left: Any, right: Any) -> Any:
    """Two numbers, as long as the result is not huge."""
    _numbers("**", left, right)
    whole = isinstance(left, int) and isinstance(right, int)
    if whole and abs(left) > 1 and (right > _BITS or left.bit_length() * right > _BITS + 64):
        raise Refused("the number is too large")
    return number(lambda: left**right)


def number(calculate: Callable[[], Any]) -> Any:
    """The result of a calculation if it is a number that JSON can say and that is not huge."""
    try:
        result = calculate()
    except ZeroDivisionError:
        raise Refused("division by zero") from None
    except (OverflowError, ValueError):
        raise Refused("the number is too large") from None
    if isinstance(result, complex):
        raise Refused("the result is no real number")
    if isinstance(result, float) and not math.isfinite(result):
        raise Refused("the number is too large")
    if isinstance(result, int) and not -BIGGEST < result < BIGGEST:
        raise Refused("the number is too large", "an integer may have 4,300 digits")
    return result


def equal(run: Run, left: Any, right: Any) -> bool:
    """Values of different types are never equal; 1 equals 1.0, and true does not equal 1."""
    if isinstance(left, str) and isinstance(right, str):
        run.spend(len(left) >> 8)
    return same(left, right, run)


def unequal(run: Run, left: Any, right: Any) -> bool:
    """The opposite of `equal`."""
    return not equal(run, left, right)


def less(run: Run, left: Any, right: Any) -> bool:
    """Two numbers or two texts."""
    _comparable(run, left, right)
    return bool(left < right)


def less_or_equal(run: Run, left: Any, right: Any) -> bool:
    """Two numbers or two texts."""
    _comparable(run, left, right)
    return bool(left <= right)


def greater(run: Run, left: Any, right: Any) -> bool:
    """Two numbers or two texts."""
    return less(run, right, left)


def greater_or_equal(run: Run, left: Any, right: Any) -> bool:
    """Two numbers or two texts."""
    return less_or_equal(run, right, left)


def inside(run: Run, item: Any, container: Any) -> bool:
    """Whether a list has an item, a text a part, a mapping a key."""
    if isinstance(container, str):
        if not isinstance(item, str):
            raise Refused(f"text can only hold text, not {kind(item)}", "write `value | string`")
        run.spend((len(container) + len(item)) >> 6)
        return item in container
    if isinstance(container, Mapping):
        return isinstance(item, str) and item in container
    if not isinstance(container, list | tuple):
        raise Refused(f"`in` needs a list, text or a mapping on its right, not {kind(container)}")
    run.spend(len(container) >> 2)
    if isinstance(item, str) or item is None:
        return item in container
    return any(same(item, other, run) for other in container)


def outside(run: Run, item: Any, container: Any) -> bool:
    """The opposite of `inside`."""
    return not inside(run, item, container)


def cut(run: Run, value: Any, start: Any, stop: Any, step: Any) -> Any:
    """A slice of a list or a text."""
    if not isinstance(value, list | tuple | str):
        raise Refused(f"only a list or text can be sliced, not {kind(value)}")
    for bound in (start, stop, step):
        if bound is not None and type(bound) is not int:
            raise Refused(f"a slice needs whole numbers, not {kind(bound)}")
    if step == 0:
        raise Refused("the step of a slice cannot be 0")
    piece = plain(value)[start:stop:step]
    run.spend(len(piece) >> 8 if isinstance(piece, str) else len(piece))
    return piece


def _numbers(sign: str, left: Any, right: Any) -> None:
    if not (is_number(left) and is_number(right)):
        raise Refused(f"{sign} needs two numbers, not {kind(left)} and {kind(right)}")
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 4 * _BITS:
        raise Refused("the number is too large")


def _comparable(run: Run, left: Any, right: Any) -> None:
    texts = isinstance(left, str) and isinstance(right, str)
    if not texts and not (is_number(left) and is_number(right)):
        raise Refused(f"{kind(left)} and {kind(right)} have no order", "compare two numbers or two texts")
    if texts:
        run.spend(min(len(left), len(right), LONGEST_TEXT) >> 8)


ARITHMETIC: dict[str, Callable[[Run, Any, Any], Any]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "div": divide,
    "floordiv": floor_divide,
    "mod": modulo,
    "pow": power,
}
COMPARISONS: dict[str, Callable[[Run, Any, Any], bool]] = {
    "eq": equal,
    "ne": unequal,
    "lt": less,
    "lteq": less_or_equal,
    "gt": greater,
    "gteq": greater_or_equal,
    "in": inside,
    "notin": outside,
}
