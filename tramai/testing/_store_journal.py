"""The journal and the one fenced write: what a commit does whole or not at all, and what comes back of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import CheckpointConflict, LeaseLost
from ..store import Change, Mark, Note, Record, Status, Store
from ._store_given import AWKWARD, TTL, Given, begin, change, claim, definition, done, everything, expire, record
from .clock import FakeClock

TEXTS = [
    "null",
    '""',
    json.dumps(AWKWARD),
    json.dumps(AWKWARD, ensure_ascii=False),
    '"the six letters \\\\u0000"',
    "738529527931269425",
    "-12345678901234567890123456789",
    "[" + ",".join(["9" * 400] * 3) + "]",
    "0.1",
    "1e-320",
    '"@0123456789abcdef"',
    "@" + "0" * 64,
    '"' + "x" * 1022 + '"',
    '"' + "x" * 1023 + '"',
    '"' + "y" * (65536 - 2) + '"',
    '"' + "y" * (65536 - 1) + '"',
    '"' + "\\u00e9z'\\\"" * 100_000 + '"',
]
FULL = Record(
    seq=1,
    path="triage[42].classify",
    mark=Mark.COMPLETED,
    attempt=3,
    verb="shell",
    at=1234.000001,
    fence=1,
    started=1233.9999999,
    worker=AWKWARD,
    policy="idempotent",
    key="k" * 64,
    input_sha="a" * 64,
    value='{"a":[1,2,{"b":null}]}',
    error='{"type":"x"}',
    saves='{"s":"' + "s" * 5000 + '"}',
    usage='{"tokens":12}',
    log="logs/r1/1.log",
)


class Journal(Given):
    """A commit is accepted only under the current, unexpired lease, and is written whole or not at all."""

    def test_a_commit_adds_one_to_the_revision_and_appends(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        clock.advance(1)
        assert store.commit(lease, change(clock, record(1, "a"), record(2, "b"))) == 2
        assert store.commit(lease, change(clock, done(3, "a"))) == 3
        assert [(line.seq, line.path, line.mark) for line in store.journal("r1")] == [
            (1, "a", Mark.STARTED),
            (2, "b", Mark.STARTED),
            (3, "a", Mark.COMPLETED),
        ]
        run = store.get("r1")
        assert (run.revision, run.updated, run.fence, run.lease) == (3, clock.now(), 1, lease)

    def test_every_field_of_a_record_comes_back(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        bare = record(2, AWKWARD, Mark.SKIPPED)
        store.commit(lease, change(clock, FULL, bare))
        assert store.journal("r1") == (FULL, bare)

    def test_every_mark_can_be_kept(self, store: Store, clock: FakeClock) -> None:
        lines = tuple(record(seq, mark=mark) for seq, mark in enumerate(Mark, 1))
        store.commit(begin(store, clock), change(clock, *lines))
        assert store.journal("r1") == lines

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text[:20]!a}-{len(text)}")
    def test_texts_come_back_exactly(self, store: Store, clock: FakeClock, text: str) -> None:
        lease = begin(store, clock, inputs=text)
        line = done(1, value=text, error=text, saves=text, usage=text)
        note = Note(at=1.5, type="t", by=AWKWARD, comment=AWKWARD, data=text)
        store.commit(lease, change(clock, line, notes=(note,), outputs=text, error=text, step=AWKWARD))
        assert store.journal("r1") == (line,)
        assert store.notes("r1") == (replace(note, seq=1),)
        run = store.get("r1")
        assert (run.inputs, run.outputs, run.error, run.step) == (text, text, text, AWKWARD)

    def test_a_megabyte_comes_back_from_several_records(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        value = json.dumps(["é" * 10] * 20_000)
        lines = tuple(done(seq, f"p{seq}", value=value) for seq in range(1, 4))
        store.commit(lease, change(clock, *lines))
        assert store.journal("r1") == lines

    def test_a_thousand_records_in_one_commit_keep_their_order(self, store: Store, clock: FakeClock) -> None:
        lines = tuple(done(seq, f"item[{1000 - seq}]", value=str(seq)) for seq in range(1, 1001))
        assert store.commit(begin(store, clock), change(clock, *lines)) == 2
        assert store.journal("r1") == lines

    def test_only_what_a_change_names_is_set(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        fields: dict[str, Any] = {
            "step": "s",
            "outputs": "[1]",
            "error": '"bad"',
            "wake_at": 9.5,
            "finished": 8.5,
            "step_executions": 3,
            "tokens": 5,
            "cost_usd": 0.25,
            "retry_base": 2,
        }
        store.commit(lease, change(clock, status=Status.FAILED, **fields))
        before = store.get("r1")
        assert {name: getattr(before, name) for name in fields} == fields
        assert before.status is Status.FAILED
        clock.advance(1)
        store.commit(lease, change(clock))
        assert store.get("r1") == replace(before, revision=3, updated=clock.now())
        store.commit(lease, change(clock, error=None, wake_at=None))
        assert store.get("r1") == replace(before, revision=4, updated=clock.now(), error=None, wake_at=None)

    def test_a_change_can_bring_a_new_definition(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        new = definition("d2", version="2", text="new", file="/new.yaml")
        store.commit(lease, change(clock, definition=new))
        run = store.get("r1")
        assert (run.digest, run.version, run.file) == ("d2", "2", "/new.yaml")
        assert store.definition("d2") == new
        assert store.definition("d1").text == definition().text

    @pytest.mark.parametrize(
        "wrong", [{"token": "other"}, {"owner": "other"}, {"fence": 2}, {"fence": 0}, {"run_id": "nobody"}], ids=str
    )
    @pytest.mark.parametrize("kind", ["progress", "turn"])
    def test_a_commit_under_a_wrong_lease_changes_nothing(
        self, store: Store, clock: FakeClock, wrong: dict[str, Any], kind: str
    ) -> None:
        lease = begin(store, clock)
        before = everything(store)
        with pytest.raises(LeaseLost, match=r"^Workflow lease is no longer active$") as caught:
            store.commit(replace(lease, **wrong), _write(clock, kind))
        assert caught.value.__cause__ is None
        assert everything(store) == before

    @pytest.mark.parametrize("kind", ["progress", "turn"])
    def test_a_commit_at_the_end_of_the_lease_is_too_late(self, store: Store, clock: FakeClock, kind: str) -> None:
        lease = begin(store, clock)
        clock.advance(TTL - 0.001)
        store.commit(lease, change(clock, record(1)))
        clock.advance(0.001)
        before = everything(store)
        with pytest.raises(LeaseLost):
            store.commit(lease, replace(_write(clock, kind), records=(record(2),)))
        assert everything(store) == before

    def test_a_commit_does_not_extend_the_lease(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        clock.advance(5)
        store.commit(lease, change(clock, record(1)))
        assert store.get("r1").lease == lease

    def test_a_commit_after_giving_back_is_refused(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, record(1), status=Status.SLEEPING, wake_at=2000.0, release=True))
        run = store.get("r1")
        assert (run.lease, run.status, run.wake_at, run.fence) == (None, Status.SLEEPING, 2000.0, 1)
        with pytest.raises(LeaseLost):
            store.commit(lease, change(clock, record(2)))
        claim(store, clock)

    @pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED, Status.DEAD])
    def test_the_write_that_ends_a_run_is_the_last(self, store: Store, clock: FakeClock, status: Status) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, status=status, finished=clock.now()))
        before = everything(store)
        assert store.get("r1").lease is None
        with pytest.raises(LeaseLost):
            store.commit(lease, change(clock, status=Status.FAILED))
        with pytest.raises(LeaseLost):
            store.renew(lease, ttl=TTL, now=clock.now())
        store.release(lease, now=clock.now())
        assert everything(store) == before

    def test_a_path_is_completed_once(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, record(1), done(2)))
        before = everything(store)
        with pytest.raises(CheckpointConflict, match=r"^Workflow checkpoint conflict$") as caught:
            store.commit(lease, change(clock, done(3), step="never", notes=(Note(at=1.0, type="never"),)))
        assert caught.value.__cause__ is None
        with pytest.raises(CheckpointConflict):
            store.commit(lease, change(clock, done(3, "other"), done(4, "other")))
        with pytest.raises(CheckpointConflict):
            store.commit(lease, change(clock, done(3), status=Status.COMPLETED, release=True))
        assert everything(store) == before
        store.commit(lease, change(clock, done(3, "other")))

    def test_other_marks_may_come_again(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        marks = (Mark.STARTED, Mark.FAILED, Mark.STARTED, Mark.UNKNOWN, Mark.UNKNOWN, Mark.COMPLETED, Mark.STARTED)
        for seq, mark in enumerate(marks, 1):
            store.commit(lease, change(clock, record(seq, mark=mark, attempt=seq)))
        assert [line.mark for line in store.journal("r1")] == list(marks)

    def test_the_same_path_in_another_run_is_another_step(self, store: Store, clock: FakeClock) -> None:
        for run_id in ("a", "b"):
            store.commit(begin(store, clock, run_id), change(clock, done(1, value=f'"{run_id}"')))
        assert [store.journal(run_id)[0].value for run_id in "ab"] == ['"a"', '"b"']

    @pytest.mark.parametrize("seqs", [(2,), (0,), (-1,), (1, 1), (1, 3), (2, 1), (1, 2, 4)], ids=str)
    def test_the_journal_has_no_gap_and_no_twin(self, store: Store, clock: FakeClock, seqs: tuple[int, ...]) -> None:
        lease = begin(store, clock)
        before = everything(store)
        lines = [record(seq, f"p{place}") for place, seq in enumerate(seqs)]
        for write in (change(clock, *lines), change(clock, *lines, status=Status.FAILED)):
            with pytest.raises(CheckpointConflict):
                store.commit(lease, write)
        assert everything(store) == before
        store.commit(lease, change(clock, record(1)))
        with pytest.raises(CheckpointConflict):
            store.commit(lease, change(clock, record(1, "again")))

    def test_whether_the_lease_is_lost_is_said_first(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, done(1)))
        expire(clock)
        with pytest.raises(LeaseLost):
            store.commit(lease, change(clock, done(7)))

    def test_the_journal_goes_on_under_the_next_lease(self, store: Store, clock: FakeClock) -> None:
        store.commit(begin(store, clock), change(clock, record(1, value="1"), notes=(Note(at=1.0, type="a"),)))
        expire(clock)
        _, lease = claim(store, clock)
        store.commit(lease, change(clock, done(2, value="2", fence=2), notes=(Note(at=2.0, type="b"),)))
        assert [(line.seq, line.fence) for line in store.journal("r1")] == [(1, 1), (2, 2)]
        assert [(note.seq, note.type) for note in store.notes("r1")] == [(1, "a"), (2, "b")]

    def test_events_are_numbered_by_the_store(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, notes=tuple(Note(seq=9, at=float(n), type=f"t{n}") for n in range(3))))
        store.commit(lease, change(clock, notes=(Note(at=9.0, type="last", by="me", comment=AWKWARD, data="[1]"),)))
        assert [(note.seq, note.at, note.type) for note in store.notes("r1")] == [
            (1, 0.0, "t0"),
            (2, 1.0, "t1"),
            (3, 2.0, "t2"),
            (4, 9.0, "last"),
        ]

    def test_whole_numbers_are_good_times(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock, created=5)
        line = record(1, at=7, started=6)
        store.commit(lease, Change(now=int(clock.now()), records=(line,), wake_at=12, cost_usd=1, finished=3))
        assert store.journal("r1") == (line,)
        run = store.get("r1")
        assert (run.created, run.wake_at, run.cost_usd, run.finished) == (5.0, 12.0, 1.0, 3.0)


def _write(clock: FakeClock, kind: str) -> Change:
    """A change of each kind: one that only goes on, and one that changes what runs are looked up by."""
    return change(clock, record(1)) if kind == "progress" else change(clock, record(1), status=Status.FAILED)
