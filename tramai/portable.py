"""What a store offers beyond the life of one run: taking whole runs in, putting runs away, saying how it is itself.

Built-in stores have all of it. A store that lacks a part still runs workflows; `portable` says what it cannot do.
"""

from __future__ import annotations

from typing import Protocol, cast

import msgspec

from .errors import TramaiError
from .store import Definition, Note, Record, Run, Status, Store

_PAGE = 500


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run as one value. `run` has no lease; only a tombstone has no definition."""

    run: Run
    definition: Definition | None
    records: tuple[Record, ...] = ()
    notes: tuple[Note, ...] = ()


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """How a store is: what `store info` shows.

    `place` is where it lies, as an absolute path or a host and a database; None when it lies nowhere. `format` is the
    number of its format, None when there is none; `size` its bytes, None when that cannot be told. `runs` counts the
    runs of each status. `locks` and `hints` are short lines for people: what is locked, what an operator should know.
    """

    kind: str
    url: str
    place: str | None = None
    format: int | None = None
    size: int | None = None
    runs: dict[str, int] = {}
    locks: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


class StartKeyTaken(TramaiError):
    """start key {key} belongs to run {run_id}"""

    code = "TRM521"
    exit_status = 5


class Unsupported(TramaiError):
    """the store {url} cannot {what}"""

    code = "TRM520"
    exit_status = 2


class Portable(Store, Protocol):
    """A store that whole runs can be taken from and brought to.

    Two more methods are optional and looked up by name: `verify() -> Iterable[str]`, what is wrong with the store
    itself, beside its runs; and, on the class, `ddl(where) -> str`, the SQL that makes an empty store at this place,
    without connecting to it. So is, on the class, `peek(where) -> int | None`: the format of what lies there, without
    changing or migrating it; and `newest() -> int`, the format that it would be migrated to.
    """

    def adopt(self, bundle: Bundle) -> Run:
        """Take a whole run in, in one write: header, journal, events and definition exactly as given.

        RunExists when the id is taken, and StartKeyTaken when another run has the start key. But a run that is
        `moved` or `arriving` is replaced when it has the same generation and an earlier revision (a `moved` one by the
        end of its life, whatever the revision); an `arriving` one of the same revision is left as it is, for it is this
        very bundle. CheckpointConflict unless records and events are numbered from 1 without a gap, and no path is
        completed twice. The run as it then stands.
        """
        ...

    def bury(self, run_id: str, note: Note, *, revision: int, status: Status, now: float) -> Run:
        """Leave a tombstone in the place of a run, in one write: `moved` or `removed`.

        What stays is what refuses its id and its start key: the header without inputs, results, labels and place,
        and `note` as the only event. Revision+1, fence+1. NotFound; LeaseHeld while a lease is active; NotInThatState
        for a tombstone; CheckpointConflict unless the revision is exactly this.
        """
        ...

    def tidy(self) -> int:
        """Let go of what no run refers to any more: definitions, large values. About how many bytes that frees."""
        ...

    def info(self) -> Info:
        """How the store is now."""
        ...


_ABILITIES = {
    "adopt": "take whole runs in",
    "bury": "leave a tombstone in the place of a run",
    "tidy": "let go of what no run needs",
    "info": "say how it is",
    "enter": "keep the places of a group of runs (`concurrency`)",
}


def portable(store: Store, *wanted: str) -> Portable:
    """The store as one that has these methods; Unsupported, naming the first that it lacks."""
    for name in wanted:
        if not callable(getattr(store, name, None)):
            raise Unsupported(url=store.url, what=_ABILITIES[name])
    return cast(Portable, store)


def counted(store: Store) -> dict[str, int]:
    """The runs of each status, counted page by page: for stores that have no better way."""
    found: dict[str, int] = {}
    for status in Status:
        cursor: str | None = None
        while True:
            runs, cursor = store.page(limit=_PAGE, after=cursor, status=status)
            if runs:
                found[status.value] = found.get(status.value, 0) + len(runs)
            if cursor is None:
                break
    return found
