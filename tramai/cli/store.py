"""`tramai store`: look after the place where runs are kept."""

from __future__ import annotations

from ._group import noun
from ._store_carry import copy, move
from ._store_look import check, info, migrate
from ._store_prune import prune

TEXT = """Look after a store: the place where runs are kept.

Without --store, the one that the other commands use.

Exit status: that of the verb; 2 for none.
"""

command = noun(
    "store",
    TEXT,
    (info, check, migrate, prune, copy, move),
    "tramai store info",
    "tramai store prune --older-than 30d",
    "tramai store move --all --to sqlite:new.db",
)
