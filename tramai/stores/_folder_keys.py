"""Which run a start key has started, in a store of folders: a small sealed file for each key."""

from __future__ import annotations

import msgspec

from ._files import Folder
from ._sealed import noun_of, seal, text_of, unseal
from ._segments import segment

KEYS = ".keys"


class Started(msgspec.Struct, frozen=True):
    """Which run a start key has started."""

    key: str
    run_id: str


def remember(top: Folder, key: str, run_id: str) -> None:
    """Make it durable, before the run has its name."""
    with within(top) as folder:
        folder.replace(segment(key), seal(text_of(Started(key, run_id)))[0])


def remembered(top: Folder, key: str) -> str | None:
    """The id of the run that a key has started, or was to start; FileNotFoundError where nothing is kept of the key.

    None when its file is damaged.
    """
    with top.child(KEYS) as folder:
        line = unseal(folder.read(segment(key)))
    try:
        found = None if line is None else noun_of(line.payload, Started)
    except ValueError:
        return None
    return found.run_id if found is not None and found.key == key else None


def within(top: Folder) -> Folder:
    """The folder of the keys, made if there is none: a checkout has none."""
    try:
        return top.child(KEYS)
    except FileNotFoundError:
        made = top.make(KEYS)
        top.flush()
        return made
