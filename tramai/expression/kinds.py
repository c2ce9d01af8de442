"""What a tree is bound to yield, as far as that can be told before a run."""

from __future__ import annotations

from typing import Any

from .values import kind

_ALWAYS = {"list": "a list", "map": "a mapping", "join": "text", "neg": "a number", "pos": "a number"}
_ALWAYS |= dict.fromkeys(("sub", "mul", "div", "floordiv", "mod", "pow"), "a number")
_ALWAYS |= {"add": "a number, text or a list", "slice": "a list or text"}


def never_boolean(tree: tuple[Any, ...]) -> str | None:
    """What a tree always yields if that is no boolean; None when it may be one."""
    operation = tree[0]
    if operation == "const":
        return None if isinstance(tree[3], bool) else kind(tree[3])
    if operation == "filter":
        from .filters import result_kind

        return result_kind(tree[4])
    if operation == "if":
        then = never_boolean(tree[4])
        otherwise = never_boolean(tree[5]) if tree[5] else then
        return f"{then} or {otherwise}" if then and otherwise and then != otherwise else then and otherwise
    return _ALWAYS.get(operation)
