"""Which names a tree reads, where, and whether what is missing would be an error there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
Found = tuple[Path, int, int, bool, str | None]
_PARTS: dict[str, tuple[int, ...]] = {"neg": (3,), "pos": (3,)}
_PARTS |= dict.fromkeys(("add", "sub", "mul", "div", "floordiv", "mod", "pow"), (3, 4))


def uses_of(
    tree: tuple[Any, ...], text: str, bound: frozenset[str] = frozenset(), facts: frozenset[Path] = frozenset()
) -> tuple[Found, ...]:
    """The names a tree reads as `(path, start, end, guarded, hint)`, in order; names in `bound` are left out.

    `facts` are paths known to be there, because of a test that stands before.
    """
    found = [use for use in _walk(tree, False, facts) if use[0][0] not in bound]
    found.sort(key=lambda use: use[1:3])
    return tuple(_dashed(found, text))


def true_facts(tree: tuple[Any, ...]) -> frozenset[Path]:
    """The paths that are there if the tree is true."""
    operation = tree[0]
    if operation == "and":
        return true_facts(tree[3]) | true_facts(tree[4])
    if operation == "not":
        return false_facts(tree[3])
    if operation == "test" and tree[4] == "defined":
        return _fact(tree[3])
    return _succeeded(tree, "eq")


def false_facts(tree: tuple[Any, ...]) -> frozenset[Path]:
    """The paths that are there if the tree is false."""
    operation = tree[0]
    if operation == "or":
        return false_facts(tree[3]) | false_facts(tree[4])
    if operation == "not":
        return true_facts(tree[3])
    if operation == "test" and tree[4] == "undefined":
        return _fact(tree[3])
    return _succeeded(tree, "ne")


def _succeeded(tree: tuple[Any, ...], operation: str) -> frozenset[Path]:
    """`steps.x.status == "succeeded"` says that `steps.x.output` is there."""
    if tree[0] != "compare" or len(tree[4]) != 1 or tree[4][0][0] != operation:
        return frozenset()
    for one, other in ((tree[3], tree[4][0][1]), (tree[4][0][1], tree[3])):
        path, _, whole, _ = _path(one)
        if (
            other[0] == "const"
            and other[3] == "succeeded"
            and whole
            and path[:1] == ("steps",)
            and path[2:] == ("status",)
        ):
            return frozenset({(*path[:2], "output")})
    return frozenset()


def _fact(tree: tuple[Any, ...]) -> frozenset[Path]:
    path, _, whole, _ = _path(tree)
    return frozenset({path}) if whole else frozenset()


def _path(tree: tuple[Any, ...]) -> tuple[Path, int, bool, list[tuple[Any, ...]]]:
    """The constant path a tree starts with, its end, whether that is the whole tree, and the dynamic parts."""
    if tree[0] == "name":
        return (tree[3],), tree[2], True, []
    if tree[0] not in {"get", "index", "slice"}:
        return (), 0, False, []
    path, end, whole, dynamic = _path(tree[3])
    if tree[0] == "get" and whole:
        return (*path, tree[4]), tree[2], True, dynamic
    if tree[0] != "get":
        dynamic = dynamic + [part for part in tree[4:] if part is not None]
    return path, end, False, dynamic


def _walk(tree: tuple[Any, ...], guarded: bool, facts: frozenset[Path]) -> Iterator[Found]:
    operation = tree[0]
    if operation == "const":
        return
    if operation in {"name", "get", "index", "slice"}:
        yield from _walk_path(tree, guarded, facts)
    elif operation in {"and", "or"}:
        yield from _walk(tree[3], False, facts)
        yield from _walk(tree[4], False, facts | (true_facts if operation == "and" else false_facts)(tree[3]))
    elif operation == "if":
        yield from _walk(tree[3], False, facts)
        yield from _walk(tree[4], guarded, facts | true_facts(tree[3]))
        if tree[5]:
            yield from _walk(tree[5], guarded, facts | false_facts(tree[3]))
    elif operation in {"filter", "test"}:
        default = tree[4] in {"default", "d"} and operation == "filter"
        lenient = default or (operation == "test" and tree[4] in {"defined", "undefined"})
        yield from _walk(tree[3], lenient, facts)
        for argument in (*tree[5], *(part for _, part in tree[6])):
            yield from _walk(argument, guarded and default, facts)
    else:
        for part in _parts(tree):
            yield from _walk(part, False, facts)


def _walk_path(tree: tuple[Any, ...], guarded: bool, facts: frozenset[Path]) -> Iterator[Found]:
    path, end, _, dynamic = _path(tree)
    if path:
        start = tree[1]
        known = any(path[: len(fact)] == fact for fact in facts)
        yield path, start, end, guarded or known, None
    else:
        inner = tree
        while inner[0] in {"get", "index", "slice"}:
            dynamic = dynamic or [part for part in inner[4:] if isinstance(part, tuple)]
            inner = inner[3]
        yield from _walk(inner, guarded, facts)
    for part in dynamic:
        yield from _walk(part, False, facts)


def _parts(tree: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    operation = tree[0]
    if operation in {"list", "join"}:
        yield from tree[3]
    elif operation == "map":
        for pair in tree[3]:
            yield from pair
    elif operation == "compare":
        yield tree[3]
        yield from (operand for _, operand in tree[4])
    elif operation == "not":
        yield tree[3]
    else:
        yield from (tree[at] for at in _PARTS[operation])


def _dashed(found: list[Found], text: str) -> Iterator[Found]:
    """`steps.fetch-data` is a subtraction; say what may be meant."""
    for number, use in enumerate(found):
        hint = None
        if number and text[found[number - 1][2] : use[1]] == "-":
            before = found[number - 1]
            *head, last = before[0]
            parent = ".".join(str(part) for part in head)
            hint = f'this subtracts; for the key with a dash write {parent}["{last}-{use[0][0]}"]' if head else None
        yield (*use[:4], hint)
