"""Which runs of a group have a place or stand in line, in a store of folders: a small sealed file for each group.

It says only where to look, and the headers of the runs decide. A file that is damaged costs a look at every run.
"""

from __future__ import annotations

import msgspec

from ._files import Folder
from ._sealed import noun_of, seal, text_of, unseal
from ._segments import segment

GROUPS = ".groups"


class Listed(msgspec.Struct, frozen=True):
    """The ids that are listed for a group."""

    group: str
    runs: tuple[str, ...]


def write(top: Folder, group: str, runs: tuple[str, ...]) -> None:
    """Make the list durable, before the run has its place."""
    with within(top) as folder:
        folder.replace(segment(group), seal(text_of(Listed(group, runs)))[0])


def read(top: Folder, group: str) -> tuple[str, ...] | None:
    """The list of a group, empty where none is kept; None when its file is damaged."""
    try:
        with top.child(GROUPS) as folder:
            line = unseal(folder.read(segment(group)))
    except FileNotFoundError:
        return ()
    try:
        found = None if line is None else noun_of(line.payload, Listed)
    except ValueError:
        return None
    return found.runs if found is not None and found.group == group else None


def within(top: Folder) -> Folder:
    """The folder of the lists, made if there is none: a checkout has none."""
    try:
        return top.child(GROUPS)
    except FileNotFoundError:
        made = top.make(GROUPS)
        top.flush()
        return made


def prepare(top: Folder) -> None:
    """What makes format 2 of format 1."""
    within(top).close()
