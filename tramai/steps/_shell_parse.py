"""Turns what a child wrote to stdout into a value: text, JSON, JSON lines or lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .. import size
from ..codec import Json, NotJson, check
from ..step import StepError
from ._capture import Captured

_BEGINNING = 200


def parse(how: str, stdout: Captured, details: Mapping[str, Json], limit: int | str) -> Json:
    """The value; StepError `invalid_output` if there is none, `truncated` if a part of it is missing."""
    if how == "text":
        return stdout.text.rstrip("\r\n")
    if stdout.truncated:
        kept = size.spell(size.parse(limit))
        text = f"stdout has {stdout.size:,} bytes, more than max_output ({kept}) keeps to be parsed"
        raise StepError("truncated", text, hint="raise `max_output`, or write to a file", details=details)
    text = stdout.text.removeprefix("\ufeff")
    if how == "lines":
        return _lines(text)
    if how == "json":
        return _json(text, "stdout", details)  # type: ignore[no-any-return]
    return [_json(line, f"line {at}", details) for at, line in enumerate(_lines(text), 1) if line.strip()]


def _lines(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if not lines[-1] else lines


def _json(text: str, what: str, details: Mapping[str, Json]) -> Any:
    if not text.strip():
        raise StepError("invalid_output", f"{what} is empty, not JSON", details=details)
    try:
        value = json.loads(text)
        check(value)
    except NotJson as error:
        reason = str(error)
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at line {error.lineno} column {error.colno}"
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    else:
        return value
    beginning = text.strip()[:_BEGINNING]
    more = "…" if len(text.strip()) > _BEGINNING else ""
    message = f"{what} is not JSON: {reason}; it begins with: {beginning}{more}"
    raise StepError("invalid_output", message, details=details)
