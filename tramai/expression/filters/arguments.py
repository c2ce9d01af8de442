"""What filters ask of their value and arguments, with an error that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..values import Refused, Run, is_number, kind, plain


def text(value: Any, what: str = "this filter") -> str:
    """A text, or an error."""
    if not isinstance(value, str):
        raise Refused(
            f"{what} needs text, not {kind(value)}", "write `| string` before it" if is_number(value) else None
        )
    return value


def number(value: Any, what: str = "this filter") -> Any:
    """A number, or an error."""
    if not is_number(value):
        raise Refused(f"{what} needs a number, not {kind(value)}", "write `| int` or `| float` before it")
    return value


def whole(value: Any, what: str, *, least: int = 0, most: int = 1_000_000) -> int:
    """A whole number between two bounds, or an error."""
    if type(value) is not int:
        raise Refused(f"{what} must be a whole number, not {kind(value)}")
    if not least <= value <= most:
        raise Refused(f"{what} must be between {least:,} and {most:,}")
    return value


def flag(value: Any, what: str) -> bool:
    """A boolean, or an error."""
    if not isinstance(value, bool):
        raise Refused(f"{what} must be true or false, not {kind(value)}")
    return value


def items(value: Any, run: Run, *, text_too: bool = False) -> list[Any]:
    """The items of a list or the keys of a mapping (or the characters of a text), paid for."""
    if isinstance(value, list | tuple | Mapping) or (text_too and isinstance(value, str)):
        run.spend(len(value) + 1)
        return list(value)
    raise Refused(
        f"this filter needs a list, not {kind(value)}", "split a text first" if isinstance(value, str) else None
    )


def mapping(value: Any, run: Run) -> dict[str, Any]:
    """A mapping, paid for, or an error."""
    if not isinstance(value, Mapping):
        raise Refused(f"this filter needs a mapping, not {kind(value)}")
    run.spend(len(value) + 1)
    found: dict[str, Any] = plain(value)
    return found


def path(value: Any) -> str | int:
    """What `attribute=` may be."""
    if isinstance(value, str) or type(value) is int:
        return value
    raise Refused(f'an attribute must be text such as "author.name", not {kind(value)}')
