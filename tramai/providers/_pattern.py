"""Texts that match a regular expression: the shortest first, then longer ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TRY = "a1 bA-_.:/@Z0z,;\n€"
"""Characters that are tried where a set is given by what it is not."""
_CATEGORY = {"CATEGORY_DIGIT": "1", "CATEGORY_WORD": "a", "CATEGORY_SPACE": " "}


class _Beyond(Exception):
    """The pattern holds something that is not made up here."""


def matching(pattern: str) -> Iterator[str]:
    """Texts for a pattern as JSON Schema means it (found anywhere); nothing for what is out of reach."""
    try:
        from re import _parser  # type: ignore[attr-defined]

        tree = list(_parser.parse(pattern))
    except (ImportError, re.error, RecursionError, OverflowError):
        return
    seen: set[str] = set()
    for extra in (0, 1, 2, 3, 5, 8, 13, 21, 40, 80):
        try:
            text = "".join(_parts(tree, extra, {}))
        except (_Beyond, RecursionError):
            return
        if text not in seen:
            seen.add(text)
            yield text


def _parts(tree: Any, extra: int, groups: dict[int, str]) -> Iterator[str]:
    """One text per element; repetitions happen `extra` times more than they must, where they may."""
    for code, argument in tree:
        name = str(code)
        if name == "LITERAL":
            yield chr(argument)
        elif name == "NOT_LITERAL":
            yield next(character for character in _TRY if ord(character) != argument)
        elif name == "ANY":
            yield "a"
        elif name == "IN":
            yield _one_of(argument)
        elif name == "BRANCH":
            yield from _parts(argument[1][extra % len(argument[1])], extra, groups)
        elif name == "SUBPATTERN":
            text = "".join(_parts(argument[3], extra, groups))
            groups[argument[0]] = text
            yield text
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            fewest, most, inner = argument
            for _ in range(min(int(most), int(fewest) + extra, 2000)):
                yield from _parts(inner, 0, groups)
        elif name == "GROUPREF" and argument in groups:
            yield groups[argument]
        elif name != "AT":
            raise _Beyond(name)


def _one_of(items: Any) -> str:
    if str(items[0][0]) == "NEGATE":
        return next((character for character in _TRY if not any(_holds(item, character) for item in items[1:])), "")
    name, argument = str(items[0][0]), items[0][1]
    if name == "LITERAL":
        return chr(argument)
    if name == "RANGE":
        return chr(argument[0])
    return _CATEGORY.get(str(argument)) or next(character for character in _TRY if _holds(items[0], character))


def _holds(item: Any, character: str) -> bool:
    name, argument = str(item[0]), item[1]
    if name == "LITERAL":
        return bool(ord(character) == argument)
    if name == "RANGE":
        return bool(argument[0] <= ord(character) <= argument[1])
    known = {
        "DIGIT": character.isdigit(),
        "WORD": character.isalnum() or character == "_",
        "SPACE": character.isspace(),
    }
    kind = str(argument).removeprefix("CATEGORY_")
    return not known[kind.removeprefix("NOT_")] if kind.startswith("NOT_") else known[kind]
