"""What a plain YAML scalar means where the schema does not say: YAML 1.2 core, without its surprises."""

from __future__ import annotations

import re

NULLS = frozenset(("", "~", "null"))
_OTHERS = {"Null": "null", "NULL": "null", "True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
# Numbers to one reader and text, or another number, to the next.
_DOUBTFUL = re.compile(
    r"[-+]?0[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\+(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?0x[0-9a-fA-F]+|[-+]?0o[0-7]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
LONGEST_NUMBER = 1000
_INITIALS = frozenset("-+.0123456789tTfFnN~")


class Doubtful(ValueError):
    """A plain scalar that readers disagree about; the text says what to write instead of it."""


def resolve(text: str) -> str | int | float | bool | None:
    """The value of a plain scalar: null, `true`, `false`, a decimal number, or the text itself.

    Raises Doubtful for `010`, `0x1f`, `+12`, `.inf`, `1e400`, `True` and the like.
    """
    if text == "":
        return None
    if text[0] not in _INITIALS:
        return text
    if text == "true":
        return True
    if text == "false":
        return False
    if text in NULLS:
        return None
    if text in _OTHERS:
        raise Doubtful(f'write {_OTHERS[text]}, or quote it: "{text}"')
    if len(text) > LONGEST_NUMBER:
        if text.isdigit():
            raise Doubtful("quote it: it is longer than any number here can be")
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return _float(text)
    if _DOUBTFUL.fullmatch(text):
        raise Doubtful(f'quote it: "{text}"{_or_number(text)}')
    return text


def _float(text: str) -> float:
    value = float(text)
    mantissa = re.split("[eE]", text)[0]
    if value in (float("inf"), float("-inf")) or (value == 0 and mantissa.strip("-0.")):
        raise Doubtful(f'quote it: "{text}"; as a number it is beyond what a computer holds')
    return value


def _or_number(text: str) -> str:
    """The plain number the writer may have meant."""
    body = text.lstrip("+-").lower()
    sign = "-" if text.startswith("-") else ""
    if body.startswith(("0x", "0o")):
        return f", or write {sign}{int(body, 0)}"
    if body.startswith("."):
        return ""
    digits = body.lstrip("0")
    digits = digits if digits[:1].isdigit() else f"0{digits}"
    return f", or write {sign}{digits}"


def keeps_its_text(text: str, value: float) -> bool:
    """Whether a float, written back, is the text it was read from: `1.10` comes back as `1.1`."""
    shown = f"0{text}" if text.startswith(".") else text.replace("-.", "-0.", 1)
    return repr(value) == shown
