"""What the parts of the store contract start from: a store, a clock, runs, records and leases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ..portable import Bundle
from ..store import Change, Definition, Holder, Lease, Mark, NewRun, Note, Record, Run, Status, Store
from .clock import FakeClock

Opener = Callable[[], Store]
"""Opens the same store once more; pickled into other processes."""

TTL = 30.0
HERE = Holder.here()

AWKWARD = "multi\nline\ttab é ü 漢字 🙂 \x00 nul \ud800 lone surrogate \u2028 'quote\" \\u0000 ``` --- %s ; DROP"
"""A text that many stores damage."""


class Given:
    """What a test may ask for: `store`, `clock`; and what the author of a store says."""

    def make_store(self, folder: Path) -> Store:
        """A new, empty store; `folder` is empty and the test's own."""
        raise NotImplementedError("say how to make the store under test")

    def opener(self, store: Store) -> Opener | None:
        """What opens this very store from another process (it must pickle); None when it cannot be shared."""
        return None

    def clock_of(self, store: Store) -> FakeClock:
        """The clock of the tests. A store that goes by a clock of its own gives one here that moves that clock."""
        return FakeClock()

    @pytest.fixture
    def clock(self, store: Store) -> FakeClock:
        """The time that a test hands to the store."""
        return self.clock_of(store)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """The store under test, closed afterwards."""
        store = self.make_store(tmp_path)
        yield store
        store.close()


def definition(digest: str = "d1", **fields: Any) -> Definition:
    """A small definition."""
    given: dict[str, Any] = {"name": "wf", "version": "1", "canonical": "{}", "text": "name: wf\n", "format": "yaml"}
    return Definition(digest=digest, **(given | fields))


def new_run(run_id: str = "r1", **fields: Any) -> NewRun:
    """A run to make."""
    given: dict[str, Any] = {"definition": definition(), "inputs": "{}", "cwd": "/home/me", "created": 1000.0}
    return NewRun(run_id=run_id, **(given | fields))


def begin(store: Store, clock: FakeClock, run_id: str = "r1", *, owner: str = "alice", **fields: Any) -> Lease:
    """Make a run; its lease."""
    _, lease = store.create(new_run(run_id, **fields), owner=owner, holder=HERE, ttl=TTL, now=clock.now())
    assert lease is not None
    return lease


def claim(
    store: Store, clock: FakeClock, run_id: str = "r1", *, owner: str = "bob", holder: Holder = HERE
) -> tuple[Run, Lease]:
    """Claim a run."""
    return store.claim(run_id, owner=owner, holder=holder, ttl=TTL, now=clock.now())


def record(seq: int, path: str = "step", mark: Mark = Mark.STARTED, **fields: Any) -> Record:
    """A journal record."""
    given: dict[str, Any] = {"attempt": 1, "verb": "shell", "at": 1000.5, "fence": 1}
    return Record(seq=seq, path=path, mark=mark, **(given | fields))


def done(seq: int, path: str = "step", value: str = "null", **fields: Any) -> Record:
    """The record of a completed step."""
    return record(seq, path, Mark.COMPLETED, value=value, **fields)


def header(run_id: str = "r1", **fields: Any) -> Run:
    """The header of a run as another store gave it."""
    given: dict[str, Any] = {
        "generation": "g1", "workflow": "wf", "version": "1", "digest": "d1", "status": Status.FAILED, "inputs": "{}",
        "cwd": "/home/me", "file": None, "fence": 3, "revision": 8, "created": 1000.0, "updated": 1200.0,
    }  # fmt: skip
    return Run(run_id=run_id, **(given | fields))


def bundle(run: Run | None = None, *records: Record, notes: tuple[Note, ...] = (), **fields: Any) -> Bundle:
    """A whole run."""
    run = header() if run is None else run
    numbered = tuple(replace(note, seq=seq) for seq, note in enumerate(notes, 1))
    given: dict[str, Any] = {"definition": definition(run.digest), "records": records, "notes": numbered}
    return Bundle(run=run, **(given | fields))


def change(clock: FakeClock, *records: Record, **fields: Any) -> Change:
    """A change at the clock's time."""
    return Change(now=clock.now(), records=records, **fields)


def everything(store: Store, run_id: str = "r1") -> tuple[object, ...]:
    """All that a store says of a run, to see that nothing changed."""
    return store.get(run_id), store.journal(run_id), store.notes(run_id)


def dead_holder() -> Holder:
    """A process of this host that is certainly gone: its id now belongs to one started at another time."""
    return replace(HERE, start="1")


def expire(clock: FakeClock) -> None:
    """Let exactly the time of a lease pass: at equality it is expired."""
    clock.advance(TTL)
