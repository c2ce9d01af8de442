"""Races between threads behind a start barrier: whoever wins, the others are told, and nothing is torn."""

from __future__ import annotations

import pytest

from ..errors import CheckpointConflict, LeaseHeld, LeaseLost, NotInThatState, TramaiError
from ..store import Note, RunExists, Status, Store
from ._at_once import at_once
from ._store_given import HERE, TTL, Given, begin, change, claim, done, expire, new_run, record
from .clock import FakeClock

ROUNDS = range(10)


class Races(Given):
    """Exactly one wins where one may; what was accepted is all there, in order."""

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_of_eight_claimers_one_wins(self, store: Store, clock: FakeClock, round_: int) -> None:
        begin(store, clock)
        expire(clock)
        answers = at_once([lambda name=f"w{n}": claim(store, clock, owner=name)[1] for n in range(8)])  # type: ignore[misc]
        assert sorted(map(_kind, answers)) == ["LeaseHeld"] * 7 + ["won"]
        won = next(answer for answer in answers if not isinstance(answer, TramaiError))
        run = store.get("r1")
        assert (run.lease, run.fence, run.revision) == (won, 2, 2)

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_of_eight_makers_of_one_id_one_wins(self, store: Store, clock: FakeClock, round_: int) -> None:
        answers = at_once([lambda name=f"w{n}": begin(store, clock, owner=name) for n in range(8)])  # type: ignore[misc]
        assert sorted(map(_kind, answers)) == ["RunExists"] * 7 + ["won"]
        assert store.get("r1").lease in answers

    def test_fifty_starts_with_one_key_make_one_run(self, store: Store, clock: FakeClock) -> None:
        def start(number: int) -> object:
            new = new_run(f"r{number}", start_key="key")
            return store.create(new, owner="a", holder=HERE, ttl=TTL, now=clock.now())

        answers = at_once([lambda n=n: start(n) for n in range(50)])  # type: ignore[misc]
        assert len({run.run_id for run, _ in answers}) == 1
        assert len([lease for _, lease in answers if lease is not None]) == 1
        assert len(store.page(limit=60)[0]) == 1

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_a_takeover_and_a_last_commit_never_mix(self, store: Store, clock: FakeClock, round_: int) -> None:
        lease = begin(store, clock)
        last = change(clock, done(1, value='"old"'))
        expire(clock)
        commit, takeover = at_once([lambda: store.commit(lease, last), lambda: claim(store, clock)])
        assert not isinstance(takeover, Exception)
        assert isinstance(commit, LeaseLost) or commit == 2
        assert len(store.journal("r1")) == (0 if isinstance(commit, LeaseLost) else 1)
        assert store.get("r1").revision == (2 if isinstance(commit, LeaseLost) else 3)

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_a_takeover_and_a_renewal_leave_one_owner(self, store: Store, clock: FakeClock, round_: int) -> None:
        lease = begin(store, clock)
        before = clock.now() + TTL / 2
        expire(clock)
        renewal, takeover = at_once([lambda: store.renew(lease, ttl=TTL, now=before), lambda: claim(store, clock)])
        stored = store.get("r1").lease
        if isinstance(takeover, LeaseHeld):
            assert stored == renewal
        else:
            assert isinstance(renewal, LeaseLost)
            assert stored == takeover[1]

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_a_released_lease_is_not_renewed_back(self, store: Store, clock: FakeClock, round_: int) -> None:
        lease = begin(store, clock)
        now = clock.now()
        at_once([lambda: store.renew(lease, ttl=TTL, now=now), lambda: store.release(lease, now=now)])
        assert store.get("r1").lease is None

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_of_two_commits_of_one_seq_one_wins(self, store: Store, clock: FakeClock, round_: int) -> None:
        lease = begin(store, clock)
        answers = at_once([lambda n=n: store.commit(lease, change(clock, record(1, f"p{n}"))) for n in range(4)])  # type: ignore[misc]
        assert sorted(map(_kind, answers)) == ["CheckpointConflict"] * 3 + ["won"]
        assert len(store.journal("r1")) == 1
        assert store.get("r1").revision == 2

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_of_eight_operators_one_wins(self, store: Store, clock: FakeClock, round_: int) -> None:
        store.commit(begin(store, clock), change(clock, status=Status.BLOCKED, release=True))
        answers = at_once(
            [lambda n=n: store.amend("r1", revision=2, change=change(clock, record(1, f"p{n}"))) for n in range(8)]  # type: ignore[misc]
        )
        assert sorted(map(_kind, answers)) == ["CheckpointConflict"] * 7 + ["won"]
        assert (store.get("r1").revision, store.get("r1").fence, len(store.journal("r1"))) == (3, 2, 1)

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_a_cancel_and_the_last_commit_agree_on_the_end(self, store: Store, clock: FakeClock, round_: int) -> None:
        lease = begin(store, clock)
        end = change(clock, done(1), status=Status.COMPLETED, release=True)
        note = Note(at=1.0, type="cancel")
        commit, cancel = at_once(
            [lambda: store.commit(lease, end), lambda: store.request_cancel("r1", note, now=clock.now())]
        )
        assert not isinstance(commit, Exception)
        assert isinstance(cancel, NotInThatState) or cancel.cancel_requested
        run = store.get("r1")
        assert run.status is Status.COMPLETED
        assert run.revision == 2 + (not isinstance(cancel, NotInThatState))

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_of_many_words_after_the_same_list_one_is_heard(self, store: Store, clock: FakeClock, round_: int) -> None:
        lease = begin(store, clock)
        said = [Note(at=1.0, type="word", by=f"p{n}") for n in range(6)]
        now = clock.now()
        answers = at_once([lambda note=note: store.post("r1", note, after=0, now=now) for note in said])  # type: ignore[misc]
        assert sorted(map(_kind, answers)) == ["CheckpointConflict"] * 5 + ["won"]
        (heard,) = store.notes("r1")
        assert [note.by for note, answer in zip(said, answers, strict=True) if _kind(answer) == "won"] == [heard.by]
        assert store.commit(lease, change(clock, done(1))) == 3

    def test_many_threads_on_many_runs_lose_nothing(self, store: Store, clock: FakeClock) -> None:
        def work(name: str) -> None:
            lease = begin(store, clock, name)
            for seq in range(1, 26):
                store.commit(lease, change(clock, done(seq, f"p{seq}", value=f'"{name}"')))
                store.get(name)

        answers = at_once([lambda n=n: work(f"r{n}") for n in range(6)])  # type: ignore[misc]
        assert answers == [None] * 6
        for number in range(6):
            assert [line.value for line in store.journal(f"r{number}")] == [f'"r{number}"'] * 25
            assert store.get(f"r{number}").revision == 26


def _kind(answer: object) -> str:
    losers = (LeaseHeld, LeaseLost, CheckpointConflict, RunExists)
    return type(answer).__name__ if isinstance(answer, losers) else "won"
