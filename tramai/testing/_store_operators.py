"""Writes without a lease: an operator's amendments, requests to cancel, and what others have to say."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ..errors import CheckpointConflict, LeaseHeld, LeaseLost, NotInThatState
from ..store import Mark, Note, Status, Store
from ._store_given import Given, begin, change, claim, dead_holder, done, everything, expire, record
from .clock import FakeClock

CANCEL = Note(at=3.5, type="cancel", by="ops", comment="enough")
WORD = Note(at=4.5, type="word", by="ann", comment="yes\n漢", data='{"a":1}')


class Operators(Given):
    """An operator may write only where nobody holds the run and nothing happened since it was read."""

    def test_an_amendment_fences_off_every_earlier_owner(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        expire(clock)
        written = change(clock, record(1, mark=Mark.UNKNOWN), status=Status.BLOCKED, notes=(CANCEL,), error='"why"')
        assert store.amend("r1", revision=1, change=written) == 2
        run = store.get("r1")
        assert (run.revision, run.fence, run.lease, run.status, run.error) == (2, 2, None, Status.BLOCKED, '"why"')
        assert run.updated == clock.now()
        assert [line.mark for line in store.journal("r1")] == [Mark.UNKNOWN]
        assert store.notes("r1") == (replace(CANCEL, seq=1),)
        clock.jump(-10)  # even with its clock gone back, the former owner is out
        with pytest.raises(LeaseLost):
            store.commit(lease, change(clock, record(2)))
        with pytest.raises(LeaseLost):
            store.renew(lease, ttl=30.0, now=clock.now())

    def test_an_amendment_is_refused_while_somebody_holds_the_run(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        before = everything(store)
        for revision in (1, 7):
            with pytest.raises(LeaseHeld, match=r"^run r1 is owned by alice until "):
                store.amend("r1", revision=revision, change=change(clock, status=Status.FAILED))
        assert everything(store) == before

    def test_a_holder_known_dead_does_not_stop_an_operator(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        expire(clock)
        claim(store, clock, holder=dead_holder())
        store.amend("r1", revision=2, change=change(clock, status=Status.BLOCKED))
        assert (store.get("r1").fence, store.get("r1").lease) == (3, None)

    @pytest.mark.parametrize("revision", [-1, 0, 1, 3, 4])
    def test_an_amendment_needs_exactly_the_revision(self, store: Store, clock: FakeClock, revision: int) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, record(1), release=True))
        before = everything(store)
        with pytest.raises(CheckpointConflict, match=r"^Workflow checkpoint conflict$"):
            store.amend("r1", revision=revision, change=change(clock, record(2)))
        assert everything(store) == before
        assert store.amend("r1", revision=2, change=change(clock, record(2))) == 3

    def test_the_journals_rules_hold_for_operators_too(self, store: Store, clock: FakeClock) -> None:
        store.commit(begin(store, clock), change(clock, done(1), release=True))
        before = everything(store)
        for lines in ((done(2),), (record(3),), (record(1),)):
            with pytest.raises(CheckpointConflict):
                store.amend("r1", revision=2, change=change(clock, *lines))
        assert everything(store) == before

    @pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED, Status.DEAD])
    def test_a_run_that_is_over_stays_as_it_is(self, store: Store, clock: FakeClock, status: Status) -> None:
        store.commit(begin(store, clock), change(clock, status=status))
        before = everything(store)
        with pytest.raises(NotInThatState, match=rf"^run r1 is {status.value}: it cannot be changed$"):
            store.amend("r1", revision=2, change=change(clock, status=Status.READY))
        with pytest.raises(NotInThatState, match=rf"^run r1 is {status.value}: it cannot be cancelled$"):
            store.request_cancel("r1", CANCEL, now=clock.now())
        assert everything(store) == before

    def test_a_failed_run_can_be_amended_and_cancelled(self, store: Store, clock: FakeClock) -> None:
        store.commit(begin(store, clock), change(clock, status=Status.FAILED, release=True))
        store.amend("r1", revision=2, change=change(clock, retry_base=4))
        assert store.request_cancel("r1", CANCEL, now=clock.now()).status is Status.CANCELLED

    def test_a_run_that_nobody_holds_is_cancelled_at_once(self, store: Store, clock: FakeClock) -> None:
        store.commit(begin(store, clock), change(clock, status=Status.SLEEPING, wake_at=9e9, release=True))
        clock.advance(1)
        run = store.request_cancel("r1", CANCEL, now=clock.now())
        assert store.get("r1") == run
        assert (run.status, run.revision, run.fence, run.lease) == (Status.CANCELLED, 3, 2, None)
        assert (run.finished, run.updated, run.wake_at, run.cancel_requested) == (clock.now(), clock.now(), None, True)
        assert store.notes("r1") == (replace(CANCEL, seq=1),)
        assert store.cancel_requested("r1")
        with pytest.raises(NotInThatState):
            claim(store, clock)

    @pytest.mark.parametrize("how", ["expired", "dead"])
    def test_a_holder_that_is_gone_cannot_delay_a_cancel(self, store: Store, clock: FakeClock, how: str) -> None:
        lease = begin(store, clock)
        expire(clock)
        if how == "dead":
            _, lease = claim(store, clock, holder=dead_holder())
        fence = store.get("r1").fence
        assert store.request_cancel("r1", CANCEL, now=clock.now()).status is Status.CANCELLED
        assert store.get("r1").fence == fence + 1
        clock.jump(-5)
        with pytest.raises(LeaseLost):
            store.commit(lease, change(clock, record(1)))

    def test_a_run_that_is_held_is_told_and_its_owner_ends_it(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        assert not store.cancel_requested("r1")
        run = store.request_cancel("r1", CANCEL, now=clock.now())
        assert (run.status, run.revision, run.fence, run.lease) == (Status.RUNNING, 2, 1, lease)
        assert run.cancel_requested
        assert store.cancel_requested("r1")
        assert run.finished is None
        store.commit(lease, change(clock, record(1, mark=Mark.CANCELLED)))
        store.commit(lease, change(clock, status=Status.CANCELLED, finished=clock.now(), release=True))
        assert (store.get("r1").status, store.get("r1").revision) == (Status.CANCELLED, 4)

    @pytest.mark.parametrize("status", [Status.SLEEPING, Status.WAITING])
    @pytest.mark.parametrize("until", [None, 9e9])
    def test_a_wish_that_the_holder_did_not_hear_of_does_not_wait_for_the_run_to_wake(
        self, store: Store, clock: FakeClock, status: Status, until: float | None
    ) -> None:
        lease = begin(store, clock)
        store.request_cancel("r1", CANCEL, now=clock.now())
        clock.advance(1)
        store.commit(lease, change(clock, status=status, wake_at=until, release=True))
        run = store.get("r1")
        assert (run.status, run.wake_at, run.lease) == (status, clock.now(), None)

    def test_a_wish_may_come_twice_and_both_are_noted(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        for _ in range(2):
            store.request_cancel("r1", CANCEL, now=clock.now())
        assert [note.seq for note in store.notes("r1")] == [1, 2]
        assert store.get("r1").revision == 3

    def test_the_wish_outlives_the_owner(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        store.request_cancel("r1", CANCEL, now=clock.now())
        expire(clock)
        run, lease = claim(store, clock)
        assert run.cancel_requested
        store.commit(lease, change(clock, record(1)))
        assert store.cancel_requested("r1")

    def test_an_owner_who_knows_an_old_header_still_keeps_the_wish(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, record(1)))
        store.request_cancel("r1", CANCEL, now=clock.now())
        assert store.commit(lease, change(clock, record(2), notes=(Note(at=1.0, type="mine"),))) == 4
        assert store.get("r1").cancel_requested
        assert [note.type for note in store.notes("r1")] == ["cancel", "mine"]

    def test_a_word_is_noted_beside_the_holder_who_goes_on(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, record(1), notes=(CANCEL,)))
        clock.advance(1)
        run = store.post("r1", WORD, after=1, now=clock.now())
        assert store.get("r1") == run
        assert (run.status, run.revision, run.fence, run.lease, run.updated) == (
            Status.RUNNING, 3, 1, lease, clock.now(),
        )  # fmt: skip
        assert store.commit(lease, change(clock, record(2), notes=(CANCEL,))) == 4
        assert store.notes("r1") == tuple(replace(note, seq=seq) for seq, note in enumerate((CANCEL, WORD, CANCEL), 1))
        assert store.renew(lease, ttl=30.0, now=clock.now()).fence == 1

    @pytest.mark.parametrize("after", [-1, 0, 2, 9])
    def test_a_word_is_heard_only_after_exactly_what_was_read(self, store: Store, clock: FakeClock, after: int) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, notes=(CANCEL,), release=True))
        before = everything(store)
        with pytest.raises(CheckpointConflict, match=r"^Workflow checkpoint conflict$"):
            store.post("r1", WORD, after=after, now=clock.now())
        assert everything(store) == before
        assert store.post("r1", WORD, after=1, now=clock.now()).revision == 3

    @pytest.mark.parametrize("status", [Status.WAITING, Status.SLEEPING, Status.FAILED, Status.READY])
    def test_a_word_can_make_a_waiting_run_due_and_no_other(
        self, store: Store, clock: FakeClock, status: Status
    ) -> None:
        store.commit(begin(store, clock), change(clock, status=status, wake_at=9e9, release=True))
        clock.advance(1)
        run = store.post("r1", WORD, after=0, now=clock.now())
        assert (run.status, run.wake_at) == (status, 9e9)
        run = store.post("r1", WORD, after=1, due=True, now=clock.now())
        assert store.get("r1") == run
        assert (run.status, run.fence, run.wake_at) == (status, 1, clock.now() if status is Status.WAITING else 9e9)

    @pytest.mark.parametrize("later", [None, 9e9])
    def test_a_run_that_is_made_due_while_it_is_carried_is_due_when_it_comes_to_wait(
        self, store: Store, clock: FakeClock, later: float | None
    ) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, record(1)))
        at = store.post("r1", WORD, after=0, due=True, now=clock.now()).updated
        clock.advance(1)
        store.commit(lease, change(clock, record(2, path="b")))
        store.commit(lease, change(clock, status=Status.WAITING, wake_at=later, release=True))
        run = store.get("r1")
        assert (run.status, run.wake_at) == (Status.WAITING, at)

    @pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED, Status.DEAD])
    def test_nothing_is_noted_of_a_run_that_is_over(self, store: Store, clock: FakeClock, status: Status) -> None:
        store.commit(begin(store, clock), change(clock, status=status))
        before = everything(store)
        with pytest.raises(NotInThatState, match=rf"^run r1 is {status.value}: nothing more is noted of it$"):
            store.post("r1", WORD, after=0, now=clock.now())
        assert everything(store) == before

    def test_a_word_does_not_open_the_way_for_a_former_owner(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        expire(clock)
        store.post("r1", WORD, after=0, now=clock.now())
        with pytest.raises(LeaseLost):
            store.commit(lease, change(clock, record(1)))
        assert claim(store, clock)[1].fence == 2
