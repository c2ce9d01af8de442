"""What a value must look like: the part of JSON Schema that inputs use, and the check of a value against it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

from .expression import suggest

Meta = msgspec.Meta


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a value must look like: the part of JSON Schema that an input may use."""

    type: Annotated[
        Literal["string", "integer", "number", "boolean", "array", "object"] | None,
        Meta(description="The type; text from the command line is converted to it."),
    ] = None
    enum: Annotated[Annotated[list[Any], Meta(min_length=1)] | None, Meta(description="The only values allowed.")] = (
        None
    )
    pattern: Annotated[str | None, Meta(description="A regular expression found in the text.")] = None
    minimum: Annotated[int | float | None, Meta(description="The least number.")] = None
    maximum: Annotated[int | float | None, Meta(description="The greatest number.")] = None
    minLength: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="The fewest characters.")] = None
    maxLength: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="The most characters.")] = None
    items: Annotated[Shape | None, Meta(description="What each item of a list must look like.")] = None
    properties: Annotated[dict[str, Shape] | None, Meta(description="What an object's keys must look like.")] = None
    required: Annotated[list[str] | None, Meta(description="Keys that an object must have.")] = None
    format: Annotated[
        Literal["date", "date-time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname"] | None,
        Meta(description="A known form of text."),
    ] = None
    default: Annotated[Any, Meta(description="The value when none is given.")] = msgspec.UNSET
    description: Annotated[str | None, Meta(description="For people.")] = None


class Mismatch(ValueError):
    """A value that does not have its declared shape: `where` is the path inside it, `what` says why."""

    def __init__(self, where: str, what: str, hint: str | None = None) -> None:
        self.where = where
        self.what = what
        self.hint = hint
        super().__init__(f"{where} {what}" if where else what)


def kind_of(value: object) -> str:
    """The JSON name of a value's type, with an article."""
    if isinstance(value, bool):
        return "a boolean"
    names = {str: "text", int: "an integer", float: "a number", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def conform(shape: Shape, value: Any, where: str = "") -> Any:
    """The value if it has the shape, defaults of object keys filled in, `3.0` as an integer made 3.

    Raises Mismatch with the path of the first thing that does not fit.
    """
    value = _typed(shape, value, where)
    if shape.enum is not None and not any(_same(value, allowed) for allowed in shape.enum):
        allowed = ", ".join(_show(item) for item in shape.enum)
        near = (
            suggest(value, [item for item in shape.enum if isinstance(item, str)]) if isinstance(value, str) else None
        )
        hint = f"did you mean '{near}'?" if near else None
        raise Mismatch(where, f"must be one of {allowed}, not {_show(value)}", hint)
    if isinstance(value, str):
        _check_text(shape, value, where)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if shape.minimum is not None and value < shape.minimum:
            raise Mismatch(where, f"must be at least {shape.minimum}, not {value}")
        if shape.maximum is not None and value > shape.maximum:
            raise Mismatch(where, f"must be at most {shape.maximum}, not {value}")
    elif isinstance(value, list) and shape.items is not None:
        return [conform(shape.items, item, f"{where}[{index}]") for index, item in enumerate(value)]
    elif isinstance(value, dict):
        return _object(shape, value, where)
    return value


def _typed(shape: Shape, value: Any, where: str) -> Any:
    if shape.type is None:
        return value
    if shape.type == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not _IS[shape.type](value):
        shown = f"{kind_of(value)}" + (f" '{short(value)}'" if isinstance(value, str) else "")
        raise Mismatch(where, f"must be {_ARTICLE[shape.type]}, not {shown}")
    return value


def _object(shape: Shape, value: dict[str, Any], where: str) -> dict[str, Any]:
    for key in shape.required or ():
        if key not in value:
            raise Mismatch(where, f"lacks the key '{key}'")
    made = dict(value)
    for key, inner in (shape.properties or {}).items():
        if key in value:
            made[key] = conform(inner, value[key], f"{where}.{key}" if where else key)
        elif inner.default is not msgspec.UNSET:
            made[key] = inner.default
    return made


def _check_text(shape: Shape, value: str, where: str) -> None:
    if shape.minLength is not None and len(value) < shape.minLength:
        raise Mismatch(where, f"must have at least {shape.minLength} characters, not {len(value)}")
    if shape.maxLength is not None and len(value) > shape.maxLength:
        raise Mismatch(where, f"must have at most {shape.maxLength} characters, not {len(value)}")
    if shape.pattern is not None and not re.search(shape.pattern, value):
        raise Mismatch(where, f"must match {shape.pattern}, and '{short(value)}' does not")
    if shape.format is not None and not _FORMAT[shape.format](value):
        raise Mismatch(where, f"must be a valid {shape.format}, and '{short(value)}' is not")


_IS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_ARTICLE = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _date(text: str) -> None:
    from datetime import date

    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError
    date.fromisoformat(text)


def _moment(text: str) -> None:
    from datetime import datetime

    if not re.fullmatch(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text, re.ASCII):
        raise ValueError
    datetime.fromisoformat(text.upper())


def _uuid(text: str) -> None:
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text, re.ASCII):
        raise ValueError


def _ip(version: int) -> Callable[[str], object]:
    def parse(text: str) -> object:
        import ipaddress

        return ipaddress.IPv4Address(text) if version == 4 else ipaddress.IPv6Address(text)

    return parse


_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_FORMAT: dict[str, Callable[[str], bool]] = {
    "date": _parses(_date),
    "date-time": _parses(_moment),
    "email": lambda text: re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None,
    "uri": lambda text: re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", text) is not None,
    "uuid": _parses(_uuid),
    "ipv4": _parses(_ip(4)),
    "ipv6": _parses(_ip(6)),
    "hostname": lambda text: len(text) < 254 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", text) is not None,
}


def _same(left: Any, right: Any) -> bool:
    # JSON equality: true is not 1, but 1.0 is 1.
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _show(value: Any) -> str:
    return f"'{short(value)}'" if isinstance(value, str) else json.dumps(value)


def short(text: str) -> str:
    """A text cut to what fits in a message."""
    return text if len(text) <= 60 else text[:57] + "…"
