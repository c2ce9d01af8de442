"""From the text of a field to a tree that can be kept: parsed once, remembered by text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from .values import ExpressionError

if TYPE_CHECKING:
    from .scan import Part

Tree = tuple[Any, ...]
"""`(operation, start, end, …)`; only tuples, text, numbers, booleans and None, so that it can be marshalled."""

_BARE = re.compile(r"\s*([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)\s*", re.A)
_WORDS = frozenset({"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"})
_KEPT: dict[str, tuple[Any, ...]] = {}
_MOST_KEPT = 50_000
_LONGEST_PATH = 50


class Record(NamedTuple):
    """What is known of the text of a field.

    `shape` says what `body` is: `plain` a text, `sole` a tree, `mixed` texts and trees in turn, `blocks` statements.
    `expressions` are `(start, end, tree, uses)`, `problems` are `(code, message, start, end, hint)`.
    """

    shape: str
    body: Any
    expressions: tuple[tuple[int, int, Tree, tuple[Any, ...]], ...] = ()
    problems: tuple[tuple[str, str, int, int, str | None], ...] = ()


def record(text: str, *, blocks: bool = False) -> Record:
    """Parse the text of a field, or find it among those already parsed. Never raises for bad syntax."""
    key = ("%" if blocks else "=") + text
    kept = _KEPT.get(key)
    if kept is None:
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        kept = _KEPT[key] = tuple(_parse(text, blocks))
    return Record(*kept)


def remember(trees: dict[str, tuple[Any, ...]]) -> None:
    """Take over what `known()` gave in an earlier process, so that it need not be parsed again."""
    _KEPT.update(trees)


def known() -> dict[str, tuple[Any, ...]]:
    """All that was parsed so far; can be marshalled. The keys are opaque."""
    return dict(_KEPT)


def _parse(text: str, blocks: bool) -> Record:
    if "${{" not in text and not (blocks and ("{%" in text or "{##" in text)):
        return Record("plain", text)
    from .scan import scan

    try:
        parts = list(scan(text, blocks=blocks))
    except ExpressionError as error:
        return Record("plain", text, (), (("TRM201", error.message, error.start, error.end, error.hint),))
    if any(part.sort == "block" for part in parts):
        from .grammar import parse_blocks

        return parse_blocks(text, parts)
    return _without_blocks(text, [part for part in parts if part.sort != "text" or part.inner])


def _without_blocks(text: str, parts: list[Part]) -> Record:
    body: list[str | Tree] = []
    expressions = []
    problems: list[tuple[str, str, int, int, str | None]] = []
    for part in parts:
        if part.sort == "text":
            body.append(part.inner)
        elif part.sort == "expression":
            tree, uses = _bare(part) or _full(text, part, problems)
            body.append(tree)
            expressions.append((part.start, part.end, tree, uses))
    if len(parts) == 1 and expressions:
        return Record("sole", body[0], tuple(expressions), tuple(problems))
    if not expressions:
        return Record("plain", "".join(str(piece) for piece in body), (), tuple(problems))
    return Record("mixed", tuple(body), tuple(expressions), tuple(problems))


def _bare(part: Part) -> tuple[Tree, tuple[Any, ...]] | None:
    """A dotted path needs no grammar."""
    found = _BARE.fullmatch(part.inner)
    if found is None or found[1] in _WORDS or found[2].count(".") > _LONGEST_PATH:
        return None
    start = part.inner_start + found.start(1)
    end = start + len(found[1])
    tree: Tree = ("name", start, end, found[1])
    path = found[2].split(".")[1:]
    for name in path:
        end += 1 + len(name)
        tree = ("get", start, end, tree, name)
    return tree, (((found[1], *path), start, end, False, None),)


def _full(text: str, part: Part, problems: list[tuple[str, str, int, int, str | None]]) -> tuple[Tree, tuple[Any, ...]]:
    from .grammar import parse_expression

    tree, uses, found = parse_expression(text, part)
    problems.extend(found)
    return tree, uses
