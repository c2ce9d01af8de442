"""Stores that processes share: races between real processes, and a holder that is killed."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection

import pytest

from ..errors import LeaseHeld
from ..store import Holder, Note, Store
from ._at_once import PATIENCE, in_processes, running
from ._store_given import TTL, Given, Opener, begin, change, claim, done, expire, new_run
from .clock import FakeClock

COMMITS = 20


class Processes(Given):
    """What holds between threads holds between processes; a killed holder is known dead at once."""

    @pytest.fixture
    def opener_(self, store: Store) -> Opener:
        """What opens the store elsewhere; skips where nothing can."""
        opener = self.opener(store)
        if opener is None:
            pytest.skip("this store is not shared between processes")
        return opener

    def test_of_six_processes_that_claim_one_wins(self, store: Store, clock: FakeClock, opener_: Opener) -> None:
        begin(store, clock)
        expire(clock)
        answers = in_processes(opener_, _claim, [("r1", f"w{n}", clock.now()) for n in range(6)])
        assert sorted(kind for kind, _ in answers) == ["LeaseHeld"] * 5 + ["won"]
        run = store.get("r1")
        assert (run.fence, run.revision) == (2, 2)
        assert run.lease is not None
        assert ("won", run.lease.token) in answers

    def test_of_six_processes_with_one_start_key_one_starts(
        self, store: Store, clock: FakeClock, opener_: Opener
    ) -> None:
        answers = in_processes(opener_, _start, [(f"r{n}", clock.now()) for n in range(6)])
        assert sorted(started for _, (_, started) in answers) == [False] * 5 + [True]
        assert {run_id for _, (run_id, _) in answers} == {store.page(limit=9)[0][0].run_id}
        assert len(store.page(limit=9)[0]) == 1

    def test_of_six_processes_with_a_word_for_the_same_list_one_is_heard(
        self, store: Store, clock: FakeClock, opener_: Opener
    ) -> None:
        lease = begin(store, clock)
        answers = in_processes(opener_, _say, [("r1", f"p{n}", clock.now()) for n in range(6)])
        assert sorted(kind for kind, _ in answers) == ["CheckpointConflict"] * 5 + ["won"]
        (heard,) = store.notes("r1")
        assert ("won", heard.by) in answers
        assert store.commit(lease, change(clock, done(1))) == 3

    def test_processes_that_write_at_once_lose_nothing(self, store: Store, clock: FakeClock, opener_: Opener) -> None:
        answers = in_processes(opener_, _work, [(f"r{n}", clock.now()) for n in range(4)])
        assert answers == [("won", COMMITS + 1)] * 4
        for number in range(4):
            assert [line.seq for line in store.journal(f"r{number}")] == list(range(1, COMMITS + 1))

    def test_another_process_sees_what_was_acknowledged(self, store: Store, clock: FakeClock, opener_: Opener) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, done(1, value='"\\ud800"')))
        assert in_processes(opener_, _look, [("r1",)]) == [("won", (2, '"\\ud800"'))]

    def test_a_killed_holder_can_be_replaced_at_once(self, store: Store, clock: FakeClock, opener_: Opener) -> None:
        begin(store, clock)
        expire(clock)
        with running(opener_, _hold, ("r1", "w", clock.now())) as (process, pipe):
            assert pipe.poll(PATIENCE)
            assert pipe.recv() == "held"
            with pytest.raises(LeaseHeld):
                claim(store, clock)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join(PATIENCE)
            _, lease = claim(store, clock)
        assert lease.fence == 3


def _claim(store: Store, run_id: str, owner: str, now: float) -> str:
    return store.claim(run_id, owner=owner, holder=Holder.here(), ttl=TTL, now=now)[1].token


def _say(store: Store, run_id: str, by: str, now: float) -> str:
    store.post(run_id, Note(at=now, type="word", by=by), after=0, now=now)
    return by


def _start(store: Store, run_id: str, now: float) -> tuple[str, bool]:
    new = new_run(run_id, start_key="key")
    run, lease = store.create(new, owner="w", holder=Holder.here(), ttl=TTL, now=now)
    return run.run_id, lease is not None


def _work(store: Store, run_id: str, now: float) -> int:
    clock = FakeClock(now)
    lease = begin(store, clock, run_id)
    for seq in range(1, COMMITS + 1):
        revision = store.commit(lease, change(clock, done(seq, f"p{seq}")))
    return revision


def _look(store: Store, run_id: str) -> tuple[int, str | None]:
    return store.get(run_id).revision, store.journal(run_id)[0].value


def _hold(store: Store, run_id: str, owner: str, now: float, pipe: Connection) -> None:
    store.claim(run_id, owner=owner, holder=Holder.here(), ttl=3600.0, now=now)
    pipe.send("held")
    pipe.poll(PATIENCE)
