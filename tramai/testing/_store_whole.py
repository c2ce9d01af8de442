"""Whole runs: taken in as they are, put away as tombstones; and what a store says of itself."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import CheckpointConflict, LeaseHeld, LeaseLost, NotFound, NotInThatState, StoreUnavailable
from ..portable import Bundle, Portable, StartKeyTaken, Unsupported, counted, portable
from ..store import Group, Mark, Note, Run, RunExists, Status, Store
from ._at_once import at_once
from ._store_given import (
    AWKWARD,
    HERE,
    TTL,
    Given,
    begin,
    bundle,
    change,
    claim,
    dead_holder,
    definition,
    done,
    everything,
    expire,
    header,
    new_run,
    record,
)
from .clock import FakeClock

GONE = Note(at=77.0, type="run.removed", by="ops", comment="enough", data='{"to":"x"}')
LONG = '"' + "v" * 200_000 + '"'


class Whole(Given):
    """What `tramai.portable.Portable` promises. Skipped for a store that does not have it."""

    @pytest.fixture
    def whole(self, store: Store) -> Portable:
        """The store, as one that whole runs can be brought to."""
        try:
            return portable(store, "adopt", "bury", "tidy", "info")
        except Unsupported as lacks:
            pytest.skip(str(lacks))

    # Taking in.

    def test_a_run_that_is_taken_in_is_exactly_as_it_was(self, whole: Portable) -> None:
        run = header(
            AWKWARD, generation="g9", status=Status.SLEEPING, inputs=LONG, cwd="/srv/\udcff", file="/a.yaml", fence=9,
            revision=31, wake_at=5.5, outputs=LONG, error='"' + AWKWARD[:5] + "e" * 5000 + '"', step="a[1].b",
            started_by="me", start_key=AWKWARD, labels=("b", "a"), queue="q", priority=-2, cancel_requested=True,
            claims_without_progress=2, step_executions=7, tokens=10**12, cost_usd=0.25, retry_base=2, finished=None,
            rerun_of="r0", group=Group(AWKWARD, 3),
        )  # fmt: skip
        records = (
            record(1, "a", Mark.DECIDED, value='"@x"', fence=1),
            record(2, "a[1].b", Mark.FAILED, error=LONG, usage='{"n":12345678901234567890123}', worker="w", log="/l"),
            done(3, "a[1].b", LONG, saves=LONG, key="k", policy="idempotent", input_sha="s", started=1.25, attempt=2),
        )
        notes = (Note(at=1.0, type="first", data=LONG), Note(at=2.0, type="second", by="me", comment=AWKWARD))
        given = bundle(run, *records, notes=notes)
        assert whole.adopt(given) == run
        assert everything(whole, AWKWARD) == (run, given.records, given.notes)
        assert whole.definition("d1") == given.definition
        assert whole.match(AWKWARD[-4:]) == (AWKWARD,)
        for filters in ({}, {"status": Status.SLEEPING}, {"workflow": "wf"}, {"label": "a"}, {"label": "b"}):
            assert whole.page(limit=5, **filters) == ((run,), None)

    def test_a_run_that_is_taken_in_goes_on(self, whole: Portable, clock: FakeClock) -> None:
        whole.adopt(bundle(header(), done(1, "a"), notes=(GONE,)))
        run, lease = claim(whole, clock)
        assert (run.status, run.fence, run.revision) == (Status.FAILED, 4, 9)
        with pytest.raises(CheckpointConflict):
            whole.commit(lease, change(clock, done(2, "a")))
        whole.commit(lease, change(clock, done(2, "b"), notes=(GONE,), status=Status.COMPLETED))
        assert [line.seq for line in whole.journal("r1")] == [1, 2]
        assert [note.seq for note in whole.notes("r1")] == [1, 2]

    def test_a_header_of_nothing_begins_at_its_first_claim(self, whole: Portable, clock: FakeClock) -> None:
        whole.adopt(bundle(header(status=Status.READY, fence=0, revision=0)))
        run, lease = claim(whole, clock)
        assert (run.fence, run.revision, lease.fence) == (1, 1, 1)

    def test_the_first_source_of_a_digest_stays(self, whole: Portable, clock: FakeClock) -> None:
        begin(whole, clock, "first", definition=definition("d1", text="first"))
        whole.adopt(bundle(header()))
        assert whole.definition("d1").text == "first"

    @pytest.mark.parametrize("status", [Status.FAILED, Status.COMPLETED])
    @pytest.mark.parametrize("generation", ["g1", "g2"])
    def test_a_taken_id_is_not_overwritten(self, whole: Portable, status: Status, generation: str) -> None:
        whole.adopt(bundle(header(status=status), done(1)))
        before = everything(whole)
        with pytest.raises(RunExists, match=r"^run r1 already exists$"):
            whole.adopt(bundle(header(generation=generation, revision=99, inputs="[1]")))
        assert everything(whole) == before

    @pytest.mark.parametrize("status", list(Status))
    def test_a_taken_start_key_is_refused_and_nothing_is_stored(self, whole: Portable, status: Status) -> None:
        whole.adopt(bundle(header("first", start_key="key", status=status)))
        with pytest.raises(StartKeyTaken, match=r"^start key key belongs to run first$"):
            whole.adopt(bundle(header(start_key="key", digest="d2")))
        with pytest.raises(NotFound):
            whole.get("r1")
        with pytest.raises(NotFound):
            whole.definition("d2")

    def test_the_start_key_of_a_run_that_was_taken_in_starts_nothing(self, whole: Portable, clock: FakeClock) -> None:
        whole.adopt(bundle(header(start_key="key")))
        run, lease = whole.create(new_run("x", start_key="key"), owner="a", holder=HERE, ttl=TTL, now=clock.now())
        assert (run, lease) == (header(start_key="key"), None)

    @pytest.mark.parametrize(
        "wrong",
        [
            bundle(None, record(2)),
            bundle(None, record(1), record(3)),
            bundle(None, record(1), record(1)),
            bundle(None, done(1, "a"), done(2, "a")),
            Bundle(run=header(), definition=definition("d1"), notes=(replace(GONE, seq=2),)),
        ],
        ids=["late", "gap", "twice", "completed twice", "events"],
    )
    def test_a_journal_that_cannot_be_is_refused(self, whole: Portable, wrong: Bundle) -> None:
        with pytest.raises(CheckpointConflict):
            whole.adopt(wrong)
        assert whole.page(limit=5) == ((), None)

    def test_a_callers_mistake_is_refused(self, whole: Portable, clock: FakeClock) -> None:
        lease = begin(whole, clock, "other")
        for run in (header(" "), header(start_key=""), header(lease=lease)):
            with pytest.raises(ValueError):
                whole.adopt(bundle(run))
        for wrong in (None, definition("d2")):
            with pytest.raises(ValueError):
                whole.adopt(bundle(header(), definition=wrong))
        assert [run.run_id for run in whole.page(limit=5)[0]] == ["other"]

    def test_of_many_that_bring_one_run_one_wins(self, whole: Portable) -> None:
        answers = at_once([functools.partial(whole.adopt, bundle(header(inputs=str(n)))) for n in range(6)])
        kinds = sorted(type(answer).__name__ for answer in answers)
        assert kinds == ["Run"] + ["RunExists"] * 5
        assert whole.get("r1") in answers

    # A move: arriving, and coming home.

    def test_an_arriving_run_cannot_go_on_until_it_is_opened(self, whole: Portable, clock: FakeClock) -> None:
        whole.adopt(bundle(header(status=Status.ARRIVING), done(1)))
        before = everything(whole)
        with pytest.raises(NotInThatState, match=r"^run r1 is arriving: "):
            claim(whole, clock)
        with pytest.raises(NotInThatState, match=r"^run r1 is arriving: "):
            whole.request_cancel("r1", GONE, now=clock.now())
        with pytest.raises(NotInThatState, match=r"^run r1 is arriving: "):
            whole.post("r1", GONE, after=0, now=clock.now())
        assert everything(whole) == before
        assert [run.run_id for run in whole.page(limit=5)[0]] == ["r1"]
        whole.amend("r1", revision=8, change=change(clock, status=Status.SLEEPING))
        assert claim(whole, clock)[0].status is Status.SLEEPING

    @pytest.mark.parametrize("status", [Status.ARRIVING, Status.MOVED])
    def test_a_later_life_replaces_a_closed_one(self, whole: Portable, clock: FakeClock, status: Status) -> None:
        whole.adopt(
            bundle(header(status=status, start_key="k", labels=("old",)), done(1, "a"), done(2, "b"), notes=(GONE,))
        )
        after = header(status=Status.SLEEPING, revision=9, start_key="k", labels=("new",), digest="d2")
        whole.adopt(bundle(after, done(1, "b"), notes=(GONE, GONE)))
        assert whole.get("r1") == after
        assert [line.path for line in whole.journal("r1")] == ["b"]
        assert len(whole.notes("r1")) == 2
        assert whole.page(limit=5, label="old") == ((), None)
        assert whole.page(limit=5, label="new") == ((after,), None)
        _, lease = claim(whole, clock)
        whole.commit(lease, change(clock, done(2, "a")))

    @pytest.mark.parametrize("fields", [{"revision": 7}, {"generation": "g2", "revision": 9}])
    @pytest.mark.parametrize("status", [Status.ARRIVING, Status.MOVED])
    def test_an_earlier_or_another_life_replaces_nothing(
        self, whole: Portable, status: Status, fields: dict[str, Any]
    ) -> None:
        whole.adopt(bundle(header(status=status), done(1)))
        before = everything(whole)
        with pytest.raises(RunExists):
            whole.adopt(bundle(header(**fields)))
        assert everything(whole) == before

    def test_a_run_that_has_ended_replaces_its_own_tombstone(self, whole: Portable) -> None:
        whole.adopt(bundle(header(status=Status.MOVED)))
        whole.adopt(bundle(header(status=Status.COMPLETED, revision=3), done(1)))
        assert whole.get("r1") == header(status=Status.COMPLETED, revision=3)
        with pytest.raises(RunExists):
            whole.adopt(bundle(header(status=Status.MOVED, revision=99), definition=None))

    def test_the_same_arrival_twice_is_one(self, whole: Portable) -> None:
        first = bundle(header(status=Status.ARRIVING), done(1), notes=(GONE,))
        whole.adopt(first)
        assert (
            whole.adopt(bundle(header(status=Status.ARRIVING), done(1), notes=(replace(GONE, by="you"),))) == first.run
        )
        assert whole.notes("r1") == first.notes

    # Tombstones.

    @pytest.mark.parametrize("status", [Status.MOVED, Status.REMOVED])
    def test_a_tombstone_keeps_the_name_and_nothing_else(
        self, whole: Portable, clock: FakeClock, status: Status
    ) -> None:
        begin(whole, clock, "other")
        lease = begin(whole, clock, labels=("a",), inputs=LONG, started_by="me", start_key="k", created=5.0)
        whole.commit(lease, change(clock, done(1, value=LONG), notes=(GONE,), outputs=LONG, release=True))
        before = whole.get("r1")
        run = whole.bury("r1", GONE, revision=2, status=status, now=clock.now())
        assert everything(whole) == (run, (), (replace(GONE, seq=1),))
        kept = ("run_id", "generation", "workflow", "version", "digest", "created", "start_key")
        assert [getattr(run, name) for name in kept] == [getattr(before, name) for name in kept]
        assert (run.status, run.fence, run.revision) == (status, before.fence + 1, 3)
        assert (run.inputs, run.outputs, run.error, run.labels) == ("{}", None, None, ())
        assert (run.started_by, run.cwd, run.file, run.lease, run.step) == ("", "", None, None, None)
        assert (run.finished, run.updated) == (clock.now(), clock.now())

    def test_a_tombstone_is_shown_only_to_those_who_ask(self, whole: Portable, clock: FakeClock) -> None:
        for number in range(6):
            whole.adopt(bundle(header(f"r{number}", created=float(number), labels=("a",), status=Status.COMPLETED)))
        for number in (1, 3, 4):
            tombstone = Status.MOVED if number == 3 else Status.REMOVED
            whole.bury(f"r{number}", GONE, revision=8, status=tombstone, now=clock.now())
        first, cursor = whole.page(limit=2)
        rest, end = whole.page(limit=2, after=cursor)
        assert ([run.run_id for run in (*first, *rest)], end) == (["r5", "r2", "r0"], None)
        assert [run.run_id for run in whole.page(limit=9, workflow="wf")[0]] == ["r5", "r2", "r0"]
        assert [run.run_id for run in whole.page(limit=9, label="a")[0]] == ["r5", "r2", "r0"]
        assert [run.run_id for run in whole.page(limit=9, status=Status.REMOVED)[0]] == ["r4", "r1"]
        assert [run.run_id for run in whole.page(limit=9, status=Status.MOVED)[0]] == ["r3"]
        assert whole.match("r3") == ("r3",)

    def test_a_tombstone_still_refuses_its_id_and_its_start_key(self, whole: Portable, clock: FakeClock) -> None:
        whole.adopt(bundle(header(start_key="key")))
        tombstone = whole.bury("r1", GONE, revision=8, status=Status.REMOVED, now=clock.now())
        with pytest.raises(RunExists):
            begin(whole, clock)
        with pytest.raises(RunExists):
            whole.adopt(bundle(header(revision=99)))
        run, lease = whole.create(new_run("x", start_key="key"), owner="a", holder=HERE, ttl=TTL, now=clock.now())
        assert (run, lease) == (tombstone, None)
        with pytest.raises(NotFound):
            whole.get("x")

    @pytest.mark.parametrize("status", [Status.MOVED, Status.REMOVED])
    def test_nothing_wakes_a_tombstone(self, whole: Portable, clock: FakeClock, status: Status) -> None:
        lease = begin(whole, clock)
        expire(clock)
        whole.bury("r1", GONE, revision=1, status=status, now=clock.now())
        before = everything(whole)
        clock.jump(-10)  # even with its clock gone back, the former owner is out
        for write in (
            lambda: whole.commit(lease, change(clock, done(1))),
            lambda: whole.renew(lease, ttl=9.0, now=1.0),
        ):
            with pytest.raises(LeaseLost):
                write()
        for ask in (
            lambda: claim(whole, clock),
            lambda: whole.amend("r1", revision=2, change=change(clock, status=Status.READY)),
            lambda: whole.request_cancel("r1", GONE, now=clock.now()),
            lambda: whole.post("r1", GONE, after=1, now=clock.now()),
            lambda: whole.bury("r1", GONE, revision=2, status=Status.REMOVED, now=clock.now()),
        ):
            with pytest.raises(NotInThatState, match=rf"^run r1 is {status.value}: "):
                ask()
        assert everything(whole) == before

    def test_a_run_that_is_held_is_not_buried(self, whole: Portable, clock: FakeClock) -> None:
        begin(whole, clock)
        before = everything(whole)
        with pytest.raises(LeaseHeld):
            whole.bury("r1", GONE, revision=1, status=Status.MOVED, now=clock.now())
        assert everything(whole) == before
        expire(clock)
        claim(whole, clock, holder=dead_holder())
        whole.bury("r1", GONE, revision=2, status=Status.MOVED, now=clock.now())

    @pytest.mark.parametrize("revision", [-1, 0, 7, 9])
    def test_only_the_run_as_it_was_read_is_buried(self, whole: Portable, clock: FakeClock, revision: int) -> None:
        whole.adopt(bundle(header(), done(1)))
        before = everything(whole)
        with pytest.raises(CheckpointConflict):
            whole.bury("r1", GONE, revision=revision, status=Status.MOVED, now=clock.now())
        with pytest.raises(ValueError):
            whole.bury("r1", GONE, revision=8, status=Status.COMPLETED, now=clock.now())
        with pytest.raises(NotFound):
            whole.bury("r2", GONE, revision=8, status=Status.MOVED, now=clock.now())
        assert everything(whole) == before

    def test_of_a_burial_and_a_claim_one_wins(self, whole: Portable, clock: FakeClock) -> None:
        whole.adopt(bundle(header(), done(1)))
        buried, claimed = at_once(
            [
                lambda: whole.bury("r1", GONE, revision=8, status=Status.MOVED, now=clock.now()),
                lambda: claim(whole, clock),
            ]
        )
        run = whole.get("r1")
        if isinstance(buried, Run):
            assert isinstance(claimed, NotInThatState)
            assert run == buried
        else:
            assert isinstance(buried, (LeaseHeld, CheckpointConflict))
            assert run.lease == claimed[1]

    def test_a_tombstone_is_taken_in_like_any_run(self, whole: Portable, clock: FakeClock) -> None:
        tombstone = header(status=Status.REMOVED, start_key="key", inputs="{}")
        whole.adopt(bundle(tombstone, notes=(GONE,), definition=None))
        assert everything(whole) == (tombstone, (), (replace(GONE, seq=1),))
        with pytest.raises(RunExists):
            begin(whole, clock)

    # The store itself.

    def test_tidying_lets_go_of_what_no_run_needs(self, whole: Portable, clock: FakeClock) -> None:
        """Every text that a run has is large and stands in one place only, but for one that all runs have."""

        def large(name: str) -> str:
            return '"' + name + "v" * 100_000 + '"'

        for run_id, digest in (("a", "d1"), ("b", "d2"), ("c", "d2")):
            lease = begin(whole, clock, run_id, definition=definition(digest), inputs=large(f"i{run_id}"))
            records = (
                record(1, "p", Mark.FAILED, error=large(f"e{run_id}"), usage=large(f"u{run_id}")),
                done(2, "p", large(f"v{run_id}"), saves=large(f"s{run_id}")),
                done(3, "q", large("all")),
            )
            notes = (replace(GONE, data=large(f"n{run_id}")),)
            more = change(clock, *records, notes=notes, error=large(f"h{run_id}"), outputs=large(f"o{run_id}"))
            whole.commit(lease, replace(more, status=Status.COMPLETED))
        before = {run_id: everything(whole, run_id) for run_id in "bc"}
        whole.bury("a", GONE, revision=2, status=Status.REMOVED, now=clock.now())
        assert whole.tidy() > 0
        assert whole.tidy() == 0
        with pytest.raises(NotFound):
            whole.definition("d1")
        assert whole.definition("d2") == definition("d2")
        assert {run_id: everything(whole, run_id) for run_id in "bc"} == before
        begin(whole, clock, "d", definition=definition("d1"))
        assert whole.definition("d1") == definition("d1")

    def test_a_store_knows_how_many_runs_it_has(self, whole: Portable, clock: FakeClock) -> None:
        assert whole.info().runs == {}
        begin(whole, clock, "a")
        for run_id in ("b", "c"):
            whole.adopt(bundle(header(run_id)))
        whole.bury("c", GONE, revision=8, status=Status.REMOVED, now=clock.now())
        found = whole.info()
        assert found.runs == {"running": 1, "failed": 1, "removed": 1} == counted(whole)
        assert (found.url, found.kind) == (whole.url, whole.url.partition(":")[0].replace("postgresql", "postgres"))

    def test_a_closed_store_does_none_of_it(self, whole: Portable, clock: FakeClock) -> None:
        whole.close()
        for ask in (
            lambda: whole.adopt(bundle()),
            lambda: whole.bury("r1", GONE, revision=1, status=Status.MOVED, now=clock.now()),
            whole.tidy,
            whole.info,
        ):
            with pytest.raises(StoreUnavailable):
                ask()
