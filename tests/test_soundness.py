"""What the check of a store finds in runs that can be read and yet cannot be right."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import make
from tests.engine.support import run_r as run
from tramai import soundness
from tramai.errors import CheckpointCorrupt, StoreUnavailable
from tramai.store import Definition, Note, Run, Status
from tramai.stores.memory import Memory


@pytest.fixture
def store() -> Memory:
    store = Memory()
    run(store, make([{"id": "a", "local": 1}, {"id": "b", "local": {"value": [2]}}]))
    return store


def said(store: Memory) -> list[str]:
    return [flaw.what for flaw in soundness.check(store).faults]


def alter(store: Memory, **fields: Any) -> None:
    kept = store._runs["r"]
    kept.run = replace(kept.run, **fields)


def test_a_run_of_the_engine_is_sound_and_everything_is_counted(store: Memory) -> None:
    found = soundness.check(store)
    assert (found.runs, found.records, found.events, found.definitions, found.faults) == (1, 2, 1, 1, [])


def test_tombstones_are_read_too_and_need_no_definition(store: Memory) -> None:
    store.bury("r", Note(at=1.0, type="x"), revision=store.get("r").revision, status=Status.REMOVED, now=1.0)
    store.tidy()
    found = soundness.check(store)
    assert (found.runs, found.faults) == (1, [])


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"inputs": "{"}, "its inputs are not JSON"),
        ({"outputs": "nope"}, "its outputs are not JSON"),
        ({"error": "["}, "its error is not JSON"),
        ({"fence": 0}, "record 1 has fence 1, the run only 0"),
        ({"digest": "d9"}, "its definition d9 is missing"),
    ],
)
def test_a_header_that_cannot_be(store: Memory, fields: dict[str, Any], what: str) -> None:
    alter(store, **fields)
    assert what in said(store)


def test_a_lease_that_is_not_the_runs_own(store: Memory) -> None:
    from tramai.testing._store_given import begin
    from tramai.testing.clock import FakeClock

    lease = begin(store, FakeClock(), "other")
    alter(store, lease=lease)
    assert said(store) == [
        f"its lease has fence {lease.fence}, the run {store.get('r').fence}",
        "it is completed, and leased",
        f"its definition {store.get('other').digest} has another digest",
    ]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda records: records[1:], "record 1 is missing"),
        (lambda records: [records[0], replace(records[0], seq=2)], "record 2: a is completed twice"),
        (lambda records: [replace(records[0], value="{"), records[1]], "record 1: its value is not JSON"),
        (lambda records: [replace(records[0], saves="{"), records[1]], "record 1: its saves is not JSON"),
    ],
    ids=["missing", "twice", "value", "saves"],
)
def test_a_journal_that_cannot_be(store: Memory, change: Any, what: str) -> None:
    store._runs["r"].records = change(store._runs["r"].records)
    assert said(store) == [what]


def test_an_event_whose_data_is_not_json(store: Memory) -> None:
    store._runs["r"].notes = [replace(note, data="{") for note in store._runs["r"].notes]
    assert said(store) == ["event 1: its data is not JSON"]


def test_a_definition_that_is_another_than_its_digest_says(store: Memory) -> None:
    digest = store.get("r").digest
    kept: Definition = store._definitions[digest]
    store._definitions[digest] = replace(kept, canonical=kept.canonical + " ")
    assert said(store) == [f"its definition {digest} has another digest"]


def test_one_bad_run_stops_nothing_and_a_store_that_fails_stops_the_check(
    store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = store.journal

    def bad(run_id: str) -> Any:
        raise CheckpointCorrupt(what="record 1 is damaged", run_id=run_id)

    def away(run_id: str) -> Any:
        raise StoreUnavailable(what="the disk failed")

    monkeypatch.setattr(store, "journal", bad)
    assert said(store) == ["corrupt checkpoint: record 1 is damaged"]
    monkeypatch.setattr(store, "journal", away)
    with pytest.raises(StoreUnavailable):
        soundness.check(store)
    monkeypatch.setattr(store, "journal", journal)
    assert said(store) == []


def test_what_a_page_could_not_read_is_a_fault_of_that_run(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "faults", lambda: ({"run_id": "x", "what": "its header is damaged"},))
    found = soundness.check(store)
    assert found.faults == [soundness.Flaw("x", "its header is damaged")]
    assert found.runs == 2


def test_what_the_store_says_of_itself_comes_first(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "verify", lambda self: ("page 3 is torn",), raising=False)
    assert soundness.check(store).faults == [soundness.Flaw(None, "page 3 is torn")]


def test_a_run_whose_runner_is_gone_is_stale(store: Memory) -> None:
    from tramai.testing._store_given import begin, claim, dead_holder
    from tramai.testing.clock import FakeClock

    clock = FakeClock()
    begin(store, clock, "other")
    held: Run = store.get("other")
    assert not held.stale(clock.now())
    assert held.stale(clock.now() + 30)
    assert replace(held, lease=None).stale(clock.now())
    assert not replace(held, status=Status.READY).stale(clock.now() + 30)
    clock.advance(30)
    claim(store, clock, "other", holder=dead_holder())
    assert store.get("other").stale(clock.now())
