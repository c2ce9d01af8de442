"""Commits that go together: of runs that take turns, each is accepted or refused for itself, whatever the others do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ..errors import CheckpointConflict, LeaseLost, TramaiError
from ..store import Lease, Note, Status, Store
from ._at_once import PATIENCE
from ._store_given import HERE, TTL, Given, begin, change, done, expire, record
from .clock import FakeClock

COUNT = 6

Call = Callable[[], Any]


class Turns:
    """Calls that rest where they park something, until all of them have parked or are over; then it is sent."""

    def __init__(self, store: Any) -> None:
        self._news = threading.Condition()
        self._parked: list[tuple[Any, threading.Event]] = []
        self._over = 0
        self._send: Callable[[Sequence[Any]], None] = store.gather(self._park)
        self.sent: list[int] = []
        """How many went together each time."""

    def _park(self, item: Any) -> bool:
        if threading.current_thread().name != "turns":
            return False
        mine = threading.Event()
        with self._news:
            self._parked.append((item, mine))
            self._news.notify()
        return mine.wait(PATIENCE)

    def all(self, calls: Sequence[Call]) -> list[Any]:
        """What each gave or raised."""
        answers: list[Any] = [None] * len(calls)
        self._over = 0

        def body(place: int) -> None:
            try:
                answers[place] = calls[place]()
            except TramaiError as error:
                answers[place] = error
            with self._news:
                self._over += 1
                self._news.notify()

        threads = [threading.Thread(target=body, args=(place,), name="turns") for place in range(len(calls))]
        for thread in threads:
            thread.start()
        while parked := self._resting(len(calls)):
            self.sent.append(len(parked))
            self._send([item for item, _ in parked])
            for _, rest in parked:
                rest.set()
        for thread in threads:
            thread.join(PATIENCE)
        return answers

    def _resting(self, count: int) -> list[tuple[Any, threading.Event]]:
        with self._news:
            assert self._news.wait_for(lambda: self._over + len(self._parked) == count, PATIENCE)
            parked, self._parked = self._parked, []
            return parked


class Together(Given):
    """`gather` changes how commits are written, and nothing else of what is promised of them."""

    @pytest.fixture
    def turns(self, store: Store) -> Turns:
        """The store, where it gathers commits."""
        if not callable(getattr(store, "gather", None)):
            pytest.skip("this store writes each commit by itself")
        return Turns(store)

    def test_all_are_there_and_each_knows_its_revision(self, store: Store, clock: FakeClock, turns: Turns) -> None:
        leases = several(store, clock)

        def carry(lease: Lease) -> list[int]:
            found = [store.commit(lease, change(clock, done(seq, f"s{seq}", value=str(seq)))) for seq in (1, 2)]
            last = change(
                clock, notes=(Note(at=5.0, type="over"),), status=Status.COMPLETED, outputs="{}", release=True
            )
            return [*found, store.commit(lease, last)]

        begun = [store.get(lease.run_id).revision for lease in leases]
        assert turns.all([lambda lease=lease: carry(lease) for lease in leases]) == [  # type: ignore[misc]
            [revision + 1, revision + 2, revision + 3] for revision in begun
        ]
        assert max(turns.sent) == COUNT
        for lease, revision in zip(leases, begun, strict=True):
            run = store.get(lease.run_id)
            assert (run.status, run.lease, run.outputs, run.revision) == (Status.COMPLETED, None, "{}", revision + 3)
            assert [(one.seq, one.value) for one in store.journal(lease.run_id)] == [(1, "1"), (2, "2")]
            assert [note.type for note in store.notes(lease.run_id)][-1] == "over"

    def test_one_that_is_refused_takes_nothing_from_the_others(
        self, store: Store, clock: FakeClock, turns: Turns
    ) -> None:
        leases = several(store, clock)
        store.release(leases[1], now=clock.now())
        store.commit(leases[3], change(clock, done(1, "there")))
        late = {3: done(9, "late")}  # its place in the journal is not the next one

        def commit(place: int) -> int:
            return store.commit(leases[place], change(clock, late.get(place, done(1, "mine"))))

        answers = turns.all([lambda place=place: commit(place) for place in range(COUNT)])  # type: ignore[misc]
        assert isinstance(answers[1], LeaseLost)
        assert isinstance(answers[3], CheckpointConflict)
        paths = [[one.path for one in store.journal(lease.run_id)] for lease in leases]
        assert paths == [["mine"], [], ["mine"], ["there"], ["mine"], ["mine"]]

    def test_what_a_refused_one_had_written_is_taken_back(self, store: Store, clock: FakeClock, turns: Turns) -> None:
        leases = several(store, clock)
        store.commit(leases[0], change(clock, done(1, "twice")))
        more = change(clock, record(2, "new"), done(3, "twice"), notes=(Note(at=5.0, type="said"),))
        mine = change(clock, done(1, "mine"))
        before = store.get(leases[0].run_id), store.journal(leases[0].run_id), store.notes(leases[0].run_id)
        calls = [
            lambda: store.commit(leases[0], more),
            *(lambda at=at: store.commit(leases[at], mine) for at in (1, 2)),
        ]
        answers = turns.all(calls)
        assert isinstance(answers[0], CheckpointConflict)
        assert (store.get(leases[0].run_id), store.journal(leases[0].run_id), store.notes(leases[0].run_id)) == before
        assert [len(store.journal(lease.run_id)) for lease in leases[1:3]] == [1, 1]
        assert store.commit(leases[0], change(clock, done(2, "next"))) == before[0].revision + 1

    def test_a_lease_that_is_over_is_refused_among_others_too(
        self, store: Store, clock: FakeClock, turns: Turns
    ) -> None:
        old = several(store, clock)[:2]
        expire(clock)
        young = begin(store, clock, "young")
        mine = change(clock, done(1, "mine"))
        answers = turns.all([lambda lease=lease: store.commit(lease, mine) for lease in (*old, young)])  # type: ignore[misc]
        assert [isinstance(one, LeaseLost) for one in answers] == [True, True, False]
        assert [len(store.journal(lease.run_id)) for lease in (*old, young)] == [0, 0, 1]

    @pytest.mark.parametrize("late", [0, 1])
    def test_who_lost_the_lease_changes_nothing_beside_the_one_who_has_it(
        self, store: Store, clock: FakeClock, turns: Turns, late: int
    ) -> None:
        old = begin(store, clock, "twice")
        store.release(old, now=clock.now())
        _, new = store.claim("twice", owner="other", holder=HERE, ttl=TTL, now=clock.now())
        over = change(clock, status=Status.COMPLETED, outputs="{}", release=True)
        calls = [lambda: store.commit(new, change(clock, done(1, "mine")))]
        calls.insert(late, lambda: store.commit(old, over))
        answers = turns.all(calls)
        assert isinstance(answers.pop(late), LeaseLost)
        run = store.get("twice")
        assert (run.status, run.lease, run.revision) == (Status.RUNNING, new, answers[0])
        assert [one.path for one in store.journal("twice")] == ["mine"]

    def test_one_alone_is_written_too(self, store: Store, clock: FakeClock, turns: Turns) -> None:
        (lease, *_) = several(store, clock)
        assert isinstance(turns.all([lambda: store.commit(lease, change(clock, done(1, "mine")))])[0], int)
        assert [one.path for one in store.journal(lease.run_id)] == ["mine"]

    def test_who_takes_no_turns_waits_for_nobody(self, store: Store, clock: FakeClock, turns: Turns) -> None:
        (lease, *_) = several(store, clock)
        assert isinstance(store.commit(lease, change(clock, done(1, "mine"))), int)
        assert turns.sent == []


def several(store: Store, clock: FakeClock) -> list[Lease]:
    """Leases of some runs that have begun."""
    return [begin(store, clock, f"r{number}") for number in range(COUNT)]
