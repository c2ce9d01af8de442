"""The JSON documents of `tramai store`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Text = str | None


class StoreInfo(Struct, frozen=True, kw_only=True):
    """`store info`. `runs` counts the runs of each status; `held` of them are being worked on; `size` is in bytes."""

    schema: Literal["tramai.store_info/1"] = "tramai.store_info/1"
    kind: str
    url: str
    place: Text
    format: int | None
    size: int | None
    runs: dict[str, int]
    held: int
    schedules: Annotated[int | None, Meta(description="null where the store keeps none")] = None
    locks: list[str]
    hints: list[str]


class StoreFault(Struct, frozen=True, kw_only=True):
    """One thing that is wrong; `run_id` is null when it is about the store itself."""

    run_id: Text
    problem: str


class StoreCheck(Struct, frozen=True, kw_only=True):
    """`store check`: how much was read, and what is wrong with it."""

    schema: Literal["tramai.store_check/1"] = "tramai.store_check/1"
    url: str
    runs: int
    records: int
    events: int
    definitions: int
    faults: list[StoreFault]


class StoreMigration(Struct, frozen=True, kw_only=True):
    """`store migrate`: the format that was found (null: none, or not known) and the one it has now."""

    schema: Literal["tramai.store_migration/1"] = "tramai.store_migration/1"
    url: str
    found: int | None
    format: int | None
    migrated: bool


class StoreSql(Struct, frozen=True, kw_only=True):
    """`store migrate --print-sql`: the statements that make an empty store."""

    schema: Literal["tramai.store_sql/1"] = "tramai.store_sql/1"
    sql: str


class Pruned(Struct, frozen=True, kw_only=True):
    """A run that was removed, or would be. `ended` is in epoch seconds."""

    run_id: str
    workflow: str
    status: str
    ended: float


class StorePruning(Struct, frozen=True, kw_only=True):
    """`store prune`: the runs that ended before `before`; `freed` bytes of what only they needed."""

    schema: Literal["tramai.store_pruning/1"] = "tramai.store_pruning/1"
    url: str
    before: float
    dry_run: bool
    removed: list[Pruned]
    freed: int
    ticks: Annotated[int, Meta(description="entries of the history of schedules that were removed")] = 0


class Carried(Struct, frozen=True, kw_only=True):
    """What became of one run; `code` and `message` say why it was left where it is."""

    run_id: str
    outcome: Annotated[str, Meta(description="copied, moved, there (it was there already) or left")]
    code: Text = None
    message: Text = None


class StoreCopy(Struct, frozen=True, kw_only=True):
    """`store copy`."""

    schema: Literal["tramai.store_copy/1"] = "tramai.store_copy/1"
    url: str
    to: str
    runs: list[Carried]


class StoreMove(Struct, frozen=True, kw_only=True):
    """`store move`."""

    schema: Literal["tramai.store_move/1"] = "tramai.store_move/1"
    url: str
    to: str
    runs: list[Carried]


DOCUMENTS = (StoreInfo, StoreCheck, StoreMigration, StoreSql, StorePruning, StoreCopy, StoreMove)
