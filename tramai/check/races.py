"""State that is read in one branch while another one writes it."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Pointer, Problem
from .scene import Entry, Link, Scene

_Written = dict[tuple[Pointer, str], dict[Pointer, Pointer]]
"""By parallel step and state key: which blocks save it, and where."""


def reads(scene: Scene) -> Iterator[Problem]:
    """What a read of state finds does not depend on which branch was faster."""
    written = _written(scene)
    if not written:
        return
    for read in scene.reads:
        entry, path = read.field.entry, read.use.path
        if path[0] != "state" or len(path) < 2 or entry is None:
            continue
        for link in _apart(entry):
            saved = written.get((link.container.at, str(path[1])), {})
            other = _other(link, saved)
            if other is not None:
                what = (
                    f"`state.{path[1]}` may be read before or after it is saved beside this, in `{link.container.id}`"
                )
                yield scene.problem(
                    "TRM245",
                    what,
                    read.at,
                    hint=f"read it before `{link.container.id}`, or save what the steps give after it",
                    range=(read.use.start, read.use.end),
                    related=((other, "saved here, at the same time"),),
                    severity="warning",
                )
                break


def _apart(entry: Entry) -> Iterator[Link]:
    yield from (link for link in entry.chain if link.container.verb == "parallel")


def _written(scene: Scene) -> _Written:
    found: _Written = {}
    for entry in scene.entries:
        for name in entry.node.save:
            for link in _apart(entry):
                blocks = found.setdefault((link.container.at, name), {})
                blocks.setdefault(link.block, (*entry.node.at, "save", name))
    return found


def _other(link: Link, saved: dict[Pointer, Pointer]) -> Pointer | None:
    """Where another branch, or the same block for another item, saves."""
    for block, at in saved.items():
        if block != link.block or block == ("do",):
            return at
    return None
