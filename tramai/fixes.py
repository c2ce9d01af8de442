"""Mechanical mistakes mended in the text of a file: each fix is a JSON Patch, and none is taken that does harm."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from . import workflow
from ._edits import CannotEdit, Edit, applied, overlapping, resolved, ways
from .document import Document, parse
from .errors import Pointer, Problem
from .formatting import _same

__all__ = ["Edit", "Mended", "edits", "mend"]
_MOST_ROUNDS = 10
"""A fix may uncover the next mistake: `whne: yes`."""
_AHEAD = 1
"""How far is looked when a fix uncovers a mistake in its own place."""
_MOST_SINGLE = 100
"""Fixes that are tried one by one, when all of them together do not go well."""


Found = tuple[Problem, ...]


class Mended(msgspec.Struct, frozen=True):
    """A text after its fixes: those that were made, and what is left to be said about it."""

    document: Document
    done: tuple[Problem, ...]
    left: tuple[Problem, ...]


def mend(source: Document, *, warnings: bool = False) -> Mended:
    """Make every fix that can be made without a doubt; with `warnings` also those of warnings.

    A fix counts when the text then says what the patch says and nothing else has changed, the problem is gone, and
    its place has no new one, or only such as are mended too. The text is only looked at: nothing is written.
    """
    return _mend(source, workflow.examine(source)[1], warnings=warnings, ahead=_AHEAD)


def _mend(source: Document, found: Found, *, warnings: bool, ahead: int) -> Mended:
    done: list[Problem] = []
    for _ in range(_MOST_ROUNDS):
        wanted = [one for one in found if one.fix and (warnings or one.severity == "error")]
        step = _round(source, wanted, found, ahead)
        if step is None:
            break
        source, found, made = step
        done += made
    return Mended(source, tuple(done), found)


def edits(source: Document, problem: Problem) -> list[Edit] | None:
    """The edits that mend one problem, None when there are none that surely do."""
    mended = _one(source, problem, workflow.examine(source)[1])
    return mended[0] if mended else None


def _round(
    source: Document, wanted: list[Problem], known: Found, ahead: int
) -> tuple[Document, Found, list[Problem]] | None:
    """As many fixes as go together, in one pass where possible."""
    if not wanted:
        return None
    together = _together(source, wanted, known)
    if together is not None:
        return together
    made: list[Problem] = []
    found = known
    for problem in wanted[:_MOST_SINGLE]:
        current = next((one for one in found if _is(one, problem)), None)
        mended = _one(source, current, found) if current else None
        if mended is not None:
            _, source, found = mended
            made.append(problem)
        elif current is not None and ahead and (deeper := _ahead(source, current, found, ahead - 1)):
            source, found = deeper.document, deeper.left
            made += [current, *deeper.done]
    return (source, found, made) if made else None


def _ahead(source: Document, problem: Problem, known: Found, ahead: int) -> Mended | None:
    """A fix whose place has a new mistake, if that can be mended as well: `whne: inputs.a`."""
    errors = sum(one.severity == "error" for one in known)
    for way in ways(source, problem.fix or ()):
        result = parse(applied(source.text, way), file=source.file, format=source.format)
        if _says(source, result, problem.fix or ()):
            deeper = _mend(result, workflow.examine(result)[1], warnings=False, ahead=ahead)
            if sum(one.severity == "error" for one in deeper.left) < errors and _is_better(problem, known, deeper.left):
                return deeper
    return None


def _is(one: Problem, other: Problem) -> bool:
    return (one.code, one.pointer, one.message) == (other.code, other.pointer, other.message)


def _together(source: Document, wanted: list[Problem], known: Found) -> tuple[Document, Found, list[Problem]] | None:
    made: list[Edit] = []
    for problem in wanted:
        first = next(ways(source, problem.fix or ()), None)
        if first is None:
            return None
        made += first
    if overlapping(made):
        return None
    result = parse(applied(source.text, made), file=source.file, format=source.format)
    if not _says(source, result, [operation for one in wanted for operation in one.fix or ()]):
        return None
    found = workflow.examine(result)[1]
    if not all(_is_better(problem, known, found) for problem in wanted):
        return None
    return result, found, wanted


def _one(source: Document, problem: Problem, known: Found) -> tuple[list[Edit], Document, Found] | None:
    for way in ways(source, problem.fix or ()):
        result = parse(applied(source.text, way), file=source.file, format=source.format)
        if _says(source, result, problem.fix or ()):
            found = workflow.examine(result)[1]
            if _is_better(problem, known, found):
                return way, result, found
    return None


def _is_better(problem: Problem, known: Found, found: Found) -> bool:
    """The problem is gone, and neither its place nor what stood there before is worse off."""
    places = {problem.pointer}
    for operation in problem.fix or ():
        places.add(tuple(_number(part) for part in str(operation["path"]).split("/")[1:]))
    before = {(one.code, one.pointer) for one in known}
    new = [one for one in found if one.severity == "error" and (one.code, one.pointer) not in before]
    if any(_is(one, problem) for one in found):
        return False
    return not any(one.pointer in places for one in new)


def _number(part: str) -> str | int:
    return int(part) if part.isdigit() else part.replace("~1", "/").replace("~0", "~")


def _says(source: Document, result: Document, patch: Sequence[dict[str, object]]) -> bool:
    """Whether the new text is the old one with the patch applied, and with nothing else changed."""
    if source.root is None or result.root is None or len(result.problems) > len(source.problems):
        return False
    try:
        wanted = _patched(source, patch)
    except CannotEdit:
        return False
    return wanted == _same.plain(result.root)


def _patched(source: Document, patch: Sequence[dict[str, object]]) -> object:
    assert source.root is not None
    tree = _same.plain(source.root)
    for operation in patch:
        at = resolved(source, str(operation["path"]))
        if operation["op"] == "move":
            old = resolved(source, str(operation["from"]))
            above = _at(tree, old[:-1])
            above[at[-1]] = above.pop(old[-1])
        else:
            _at(tree, at[:-1])[at[-1]] = _same.of(operation["value"])
    return tree


def _at(tree: object, pointer: Pointer) -> dict[str | int, object]:
    for part in pointer:
        try:
            tree = tree[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            raise CannotEdit from None
    return tree  # type: ignore[return-value]
