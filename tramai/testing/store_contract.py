"""The contract of a store, as tests: subclass `StoreContract`, say how to make one, and run pytest.

    from tramai.testing.store_contract import StoreContract

    class TestMine(StoreContract):
        def make_store(self, folder):
            return Mine(folder / "runs")

        def opener(self, store):                       # only if other processes can share it
            return functools.partial(open_store, store.url)

        def clock_of(self, store):                     # only if it goes by a clock of its own, as a database does
            return FakeClockThatSetsIt(store)

The suite reads as the specification; its parts are `_store_creating`, `_store_leases`, `_store_journal`,
`_store_groups`, `_store_operators`, `_store_pages`, `_store_races`, `_store_processes`, `_store_walk`,
`_store_whole`, `_store_retention`, `_store_pool`, `_store_lines`, `_store_together` and `_store_timetable`. Those six
are about `tramai.portable.Portable`, `tramai.pool` and `tramai.timetable.Timetable`, and skipped for a store without
them.
"""

# ruff: noqa: E402 (pytest must be told before the parts are imported, or their asserts explain nothing)

from __future__ import annotations

import pytest

_PARTS = (
    *("creating", "leases", "journal", "groups", "operators", "pages", "races", "processes", "walk"),
    *("whole", "retention", "pool", "lines", "together", "timetable"),
)
pytest.register_assert_rewrite(*(f"{__package__}._store_{part}" for part in _PARTS))

from ._store_creating import Creating
from ._store_given import Opener
from ._store_groups import Groups
from ._store_journal import Journal
from ._store_leases import Leases
from ._store_lines import Lines
from ._store_operators import Operators
from ._store_pages import Pages
from ._store_pool import Workers
from ._store_processes import Processes
from ._store_races import Races
from ._store_retention import Retention
from ._store_timetable import Schedules
from ._store_together import Together
from ._store_walk import Walk
from ._store_whole import Whole

__all__ = ["Opener", "StoreContract"]


class StoreContract(
    Creating,
    Leases,
    Journal,
    Groups,
    Operators,
    Pages,
    Races,
    Processes,
    Walk,
    Whole,
    Retention,
    Workers,
    Lines,
    Together,
    Schedules,
):
    """Everything a store promises. Override `make_store`, and `opener` if processes can share the store."""
