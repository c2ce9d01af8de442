"""Texts written in another language's habits, rewritten: the fixes for expressions that cannot be read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .._nodes import Mapping
from .._shape import json_pointer, replace
from ..errors import Pointer
from ..expression import ExpressionError, Template
from ..step import Node

if TYPE_CHECKING:
    from .scene import Scene

Fix = tuple[dict[str, object], ...]
_LONGEST = 2000
_HABITS = frozenset(("write `and`", "write `or`", "write `not`", "to compare, write =="))
_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<and>\s*&&\s*)|(?P<or>\s*\|\|\s*)"""
    r"""|(?P<differs>!==?)|(?P<not>!\s*)|(?P<same>===)""",
    re.DOTALL,
)
_WRITTEN = {"and": " and ", "or": " or ", "differs": "!=", "not": "not ", "same": "=="}
_EXPRESSION = re.compile(r"(?<!\$)\$\{\{.*?\}\}", re.DOTALL)


def fix(thing: Template, error: ExpressionError, pointer: Pointer) -> Fix | None:
    """The patch that mends a text, None unless it surely can be read afterwards."""
    text = thing.text
    if len(text) > _LONGEST or error.pointer:
        return None
    if error.code == "TRM207" and "{{" not in text and text.strip():
        bare = f"${{{{ {text.strip()} }}}}"
        tries = [one for one in (bare, _spelled_here(bare)) if _is_no_mere_word(type(thing)(one))]
    elif (error.code or "TRM201") == "TRM201" and error.hint in _HABITS:
        tries = [_spelled_here(text)]
    else:
        return None
    return next(
        ((replace(pointer, one),) for one in tries if one != text and not list(type(thing)(one).problems())), None
    )


def _spelled_here(text: str) -> str:
    """The text with the operators of other languages written as here, in its expressions only."""
    return _EXPRESSION.sub(lambda found: _TOKEN.sub(_spelled, found[0]), text)


def _is_no_mere_word(thing: Template) -> bool:
    """Whether every name leads somewhere: `when: always` is a word, not an expression without its marks."""
    return all(len(use.path) > 1 for site in thing.sites() for part in site.expressions for use in part.names)


def _spelled(found: re.Match[str]) -> str:
    return _WRITTEN.get(found.lastgroup or "", found[0])


def of_settings(scene: Scene, node: Node, wanted: dict[str, Any]) -> Fix:
    """The patch that gives the settings of a verb these values, whichever form was written."""
    at = (*node.at, node.verb)
    if node.step.scalar in wanted and scene.setting(node, (node.step.scalar,)) == at:
        return (replace(at, wanted),)
    written = scene.document.node(at) if scene.document is not None else None
    there = written.values if isinstance(written, Mapping) else {}
    return tuple(
        operation
        for key, value in wanted.items()
        for operation in (_set((*at, key), value, there[key]) if key in there else [_add((*at, key), value)])
    )


def _set(at: Pointer, value: Any, written: Any) -> list[dict[str, object]]:
    if isinstance(value, dict) and isinstance(written, Mapping):
        return [_add((*at, key), item) for key, item in value.items() if key not in written.values]
    return [replace(at, value)]


def _add(at: Pointer, value: Any) -> dict[str, object]:
    return {"op": "add", "path": json_pointer(at), "value": value}
