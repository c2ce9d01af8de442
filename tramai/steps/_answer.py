"""The data in an answer that was asked for as JSON, and what is wrong with it."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_FENCE = re.compile(r"^[ \t]*```[ \t]*json[ \t\r]*\n(.*?)^[ \t]*```[ \t\r]*$", re.DOTALL | re.MULTILINE | re.IGNORECASE)


def problems(value: Any, schema: dict[str, Any]) -> list[str]:
    """Where and why a value does not fit, each in a few words."""
    from ..schema import schema_problems

    return [f"{_place(pointer)}: {message}"[:300] for pointer, message in schema_problems(value, schema)]


def _place(pointer: tuple[str | int, ...]) -> str:
    return "/" + "/".join(map(str, pointer)) if pointer else "the answer"


def parse(text: str) -> Any:
    """The data of an answer: the whole text as JSON, else its only ```json fence. ValueError if there is neither."""
    text = text.strip().removeprefix("\ufeff")
    try:
        return _json(text)
    except ValueError as error:
        reason = str(error)
    fences = _FENCE.findall(text + "\n")
    if not fences:
        raise ValueError(f"the answer is not JSON: {reason}")
    if len(fences) > 1:
        raise ValueError(f"the answer has {len(fences)} JSON fences, so it is not clear which one counts")
    if not fences[0].strip():
        raise ValueError("the JSON fence in the answer is empty")
    try:
        return _json(fences[0])
    except ValueError as error:
        raise ValueError(f"the JSON fence in the answer is not JSON: {error}") from None


def _json(text: str) -> Any:
    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(text, parse_constant=constant)
    except RecursionError:
        raise ValueError("nested too deep") from None
