"""RFC 8785 JSON: the one text of a value, of which digests are taken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .codec import Json, NotJson

_FAST = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False
)
# Numbers that Python writes in another way than ECMAScript; a text that only looks like one costs time, nothing else.
_DOUBTFUL = re.compile(r"[0-9]e[-+]?[0-9]|\.0(?![0-9])")


def rfc8785(value: Json) -> str:
    """Canonical JSON after RFC 8785: keys by UTF-16 code units, ECMAScript numbers; integers exact at any size."""
    try:
        # Below U+D800 the order of code points is that of UTF-16 code units.
        text = _FAST.encode(value)
        if max(text) < "\ud800" and not _DOUBTFUL.search(text):
            return text
    except (ValueError, TypeError):
        pass  # said properly below
    return exactly(value)


def exactly(value: Json) -> str:
    """The same, written piece by piece."""
    parts: list[str] = []
    _write(value, parts.append)
    return "".join(parts)


_text = json.encoder.encode_basestring
_LARGEST = 14_000
"""Bits of an integer that Python reads and writes as text without complaint (about 4,200 digits)."""


def _write(value: Any, put: Callable[[str], object]) -> None:
    kind = type(value)
    if kind is str:
        put(_text(value))
    elif kind is dict:
        comma = "{"
        for key in sorted(value) if _plain_keys(value) else sorted(value, key=_utf16):
            put(comma + _text(key) + ":")
            _write(value[key], put)
            comma = ","
        put("}" if value else "{}")
    elif kind is list:
        comma = "["
        for item in value:
            put(comma)
            _write(item, put)
            comma = ","
        put("]" if value else "[]")
    elif value is None or kind is bool:
        put("null" if value is None else "true" if value else "false")
    elif kind is int:
        put(str(value) if value.bit_length() < _LARGEST else _big(value))
    else:
        put(number(value))


def _plain_keys(value: dict[str, Any]) -> bool:
    return all(key.isascii() for key in value)


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _big(value: int) -> str:
    raise NotJson("", f"is an integer of {value.bit_length()} bits, more than JSON text may hold here")


def number(value: float) -> str:
    """A float as ECMAScript writes it (RFC 8785 §3.2.2.3)."""
    if value != value or value in (float("inf"), float("-inf")):
        raise NotJson("", f"is {value}, which JSON cannot say")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, point = _digits(abs(value))
    if 0 < point <= 21:
        whole = digits[:point].ljust(point, "0")
        return sign + whole + ("." + digits[point:] if len(digits) > point else "")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exponent = point - 1
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


_FLOAT = re.compile(r"(\d+)(?:\.(\d+))?(?:e([+-]\d+))?")


def _digits(value: float) -> tuple[str, int]:
    """The shortest digits that read back as the value, and where the decimal point stands among them."""
    found = _FLOAT.fullmatch(repr(value))
    assert found is not None
    whole, part, exponent = found[1], found[2] or "", int(found[3] or 0)
    digits = (whole + part).lstrip("0")
    point = len(whole) + exponent - (len(whole + part) - len(digits))
    return digits.rstrip("0") or "0", point
