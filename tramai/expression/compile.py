"""From a tree to Python closures: the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import Pointer
from .parse import Record, Tree
from .values import ExpressionError, Missing, Refused, Run, plain, text_of

Program = Callable[[Run], Any]


def program(text: str, found: Record, pointer: Pointer = ()) -> Program:
    """The program of a whole field."""
    if found.shape == "plain":
        return lambda run: found.body
    if found.shape == "sole":
        node = build(text, found.body)

        def sole(run: Run) -> Any:
            value = node(run)
            try:
                return plain(value)
            except Refused as error:
                raise ExpressionError(
                    error.message, text=text, start=found.body[1], end=found.body[2], hint=error.hint
                ) from None

        return sole
    pieces = [piece if isinstance(piece, str) else build(text, piece) for piece in found.body]
    return lambda run: "".join(piece if isinstance(piece, str) else text_of(piece(run), run) for piece in pieces)


def build(text: str, tree: Tree) -> Program:
    """The closure of one node (paths only, for now)."""
    if tree[0] == "name":
        name = tree[3]
        return lambda run: run.scope[name] if name in run.scope else Missing(f"unknown name '{name}'")
    if tree[0] == "get":
        inner, key = build(text, tree[3]), tree[4]

        def get(run: Run) -> Any:
            value = inner(run)
            if isinstance(value, Mapping) and key in value:
                return value[key]
            return (
                value if isinstance(value, Missing) else Missing(f"no key '{key}' in {text[tree[3][1] : tree[3][2]]}")
            )

        return get
    raise NotImplementedError(tree[0])
