"""Workers: runs that wait for one are given out, each to one worker, in order, and again when its worker is gone."""

from __future__ import annotations

import functools
import os
from typing import Any

import pytest
from msgspec.structs import replace

from ..codec import decode
from ..errors import NotFound
from ..pool import MOST_CLAIMS, Pool, Taken, Wanted, Worker, pooled
from ..portable import Unsupported
from ..store import CALLED, CALLED_QUEUE, Holder, Mark, Note, RunExists, Status, Store
from ._at_once import at_once, in_processes
from ._store_given import (
    AWKWARD,
    HERE,
    TTL,
    Given,
    begin,
    change,
    claim,
    dead_holder,
    definition,
    done,
    everything,
    expire,
    new_run,
    record,
)
from .clock import FakeClock

ANY = Wanted()


class Workers(Given):
    """`take` is `claim` without a name: the same fence, the same count, and nobody gets what another has."""

    @pytest.fixture
    def pool(self, store: Store) -> Pool:
        """The store, where workers can take runs from it."""
        try:
            return pooled(store)
        except Unsupported as lacks:
            pytest.skip(str(lacks))

    def test_a_run_that_is_enqueued_is_ready_and_nobody_has_it(self, pool: Pool, clock: FakeClock) -> None:
        new = new_run(definition=definition(text="a: 1\n"), inputs='{"a":1}', labels=("x",), queue="q", priority=3)
        run = pool.enqueue(new, now=clock.now())
        assert run == pool.get("r1")
        assert (run.status, run.fence, run.revision, run.lease) == (Status.READY, 0, 1, None)
        assert (run.queue, run.priority, run.labels, run.inputs) == ("q", 3, ("x",), '{"a":1}')
        assert pool.definition("d1").text == "a: 1\n"
        assert (pool.journal("r1"), pool.notes("r1")) == ((), ())

    def test_those_who_watch_are_told_how_many_wait(self, pool: Pool, clock: FakeClock) -> None:
        count = getattr(pool, "backlog", None)
        if count is None:
            pytest.skip("the store counts nothing for those who watch")
        for number, queue in enumerate(("a", "a", "a", "b")):
            pool.enqueue(new_run(f"r{number}", queue=queue), now=clock.now())
        assert count(("a", "b", "c"), most=10) == {"a": 3, "b": 1, "c": 0}
        assert count(("a",), most=2) == {"a": 2}
        begin(pool, clock, "carried")
        assert count(("default",), most=2) == {"default": 0}

    def test_a_start_key_enqueues_once_and_an_id_is_taken_once(self, pool: Pool, clock: FakeClock) -> None:
        first = pool.enqueue(new_run("r1", start_key="k"), now=clock.now())
        assert pool.enqueue(new_run("r2", start_key="k"), now=clock.now()) == first
        with pytest.raises(RunExists):
            pool.enqueue(new_run("r1"), now=clock.now())
        with pytest.raises(NotFound):
            pool.get("r2")
        with pytest.raises(ValueError, match="run id"):
            pool.enqueue(new_run(" "), now=clock.now())

    def test_who_takes_has_the_lease_and_is_counted_as_one_who_claims(self, pool: Pool, clock: FakeClock) -> None:
        pool.enqueue(new_run(inputs='"' + "x" * 70_000 + '"'), now=clock.now())
        (one,) = take(pool, clock)
        run = pool.get("r1")
        assert one.lease == run.lease
        assert one.run == replace(run, status=Status.READY)
        assert (run.status, run.fence, run.revision, run.claims_without_progress) == (Status.RUNNING, 1, 2, 1)
        assert run.lease is not None
        assert (run.lease.owner, run.lease.fence) == ("worker", 1)
        assert pool.commit(run.lease, change(clock, done(1))) == 3
        assert take(pool, clock) == ()

    def test_what_is_long_of_a_run_is_there_for_who_takes_it(self, pool: Pool, clock: FakeClock) -> None:
        inputs, error = ('{"a":"' + letter * 70_000 + '"}' for letter in "xy")
        asleep = change(clock, status=Status.SLEEPING, wake_at=clock.now(), error=error, release=True)
        pool.commit(begin(pool, clock, "r1", inputs=inputs), asleep)
        (one,) = take(pool, clock)
        assert one.run == replace(pool.get("r1"), status=Status.SLEEPING)
        assert (one.run.inputs, one.run.error) == (inputs, error)
        if (recall := getattr(pool, "recall", None)) is not None:
            recall(one)
        assert one.lease is not None
        pool.commit(one.lease, change(clock, done(1)))
        assert (pool.get("r1").inputs, pool.get("r1").error) == (inputs, error)

    def test_they_come_by_priority_then_age_and_no_more_than_wanted(self, pool: Pool, clock: FakeClock) -> None:
        for run_id, priority, created in (("c", 0, 3.0), ("a", 0, 1.0), ("low", -1, 0.0), ("high", 5, 9.0)):
            pool.enqueue(new_run(run_id, priority=priority, created=created), now=clock.now())
        assert names(take(pool, clock, limit=3)) == ["high", "a", "c"]
        assert names(take(pool, clock, limit=3)) == ["low"]

    def test_a_worker_takes_from_its_queues_alone(self, pool: Pool, clock: FakeClock) -> None:
        queues = ("default", "gpu", "GPU", AWKWARD)
        for number, queue in enumerate(queues):
            pool.enqueue(new_run(f"r{number}", queue=queue, created=9.0 - number), now=clock.now())
        assert names(take(pool, clock, Wanted(queues=("nobody",)), limit=9)) == []
        assert names(take(pool, clock, Wanted(queues=("gpu", AWKWARD)), limit=9)) == ["r3", "r1"]
        assert names(take(pool, clock, limit=9)) == ["r0"]

    def test_with_labels_a_worker_takes_runs_that_have_one_of_them(self, pool: Pool, clock: FakeClock) -> None:
        for run_id, labels in (("none", ()), ("a", ("a", "x")), ("b", ("b",)), ("c", ("c",))):
            pool.enqueue(new_run(run_id, labels=labels), now=clock.now())
        assert names(take(pool, clock, Wanted(labels=("b", "a")), limit=9)) == ["a", "b"]
        assert names(take(pool, clock, limit=9)) == ["c", "none"]

    def test_what_a_worker_leaves_alone_takes_nobodys_place(self, pool: Pool, clock: FakeClock) -> None:
        for number in range(4):
            pool.enqueue(new_run(f"r{number}", created=float(number)), now=clock.now())
        assert names(take(pool, clock, Wanted(without=("r0", "r1")), limit=1)) == ["r2"]
        assert pool.get("r0").fence == 0

    @pytest.mark.parametrize("status", [Status.SLEEPING, Status.WAITING])
    def test_sleepers_come_up_when_their_time_has_come(self, pool: Pool, clock: FakeClock, status: Status) -> None:
        sleep(pool, clock, "r1", status, clock.now() + 60)
        clock.advance(59)
        assert take(pool, clock) == ()
        assert pool.next_wake(ANY, now=clock.now()) == pytest.approx(1, abs=0.5)
        clock.advance(1.5)
        (one,) = take(pool, clock)
        assert one.run is not None
        assert (one.run.status, pool.get("r1").status) == (status, Status.RUNNING)

    def test_who_waits_without_a_time_comes_up_when_a_word_makes_it_due(self, pool: Pool, clock: FakeClock) -> None:
        sleep(pool, clock, "r1", Status.WAITING, None)
        assert take(pool, clock) == ()
        assert pool.next_wake(ANY, now=clock.now()) is None
        pool.post("r1", Note(at=1.0, type="said"), after=0, due=True, now=clock.now())
        assert pool.next_wake(ANY, now=clock.now()) <= 0  # type: ignore[operator]
        assert names(take(pool, clock)) == ["r1"]

    @pytest.mark.parametrize("status", [Status.BLOCKED, Status.FAILED, Status.COMPLETED, Status.CANCELLED])
    def test_who_stands_still_does_not_come_up(self, pool: Pool, clock: FakeClock, status: Status) -> None:
        pool.commit(begin(pool, clock), change(clock, status=status, wake_at=None, release=True))
        clock.advance(1e6)
        assert take(pool, clock) == ()
        assert pool.next_wake(ANY, now=clock.now()) is None

    def test_a_run_comes_up_again_when_its_lease_ends_or_is_given_back(self, pool: Pool, clock: FakeClock) -> None:
        begin(pool, clock)
        assert take(pool, clock) == ()
        assert pool.next_wake(ANY, now=clock.now()) == pytest.approx(TTL, abs=1)
        expire(clock)
        (one,) = take(pool, clock)
        assert one.lease is not None
        assert (one.lease.fence, pool.get("r1").claims_without_progress) == (2, 1)
        pool.release(one.lease, now=clock.now())
        assert names(take(pool, clock)) == ["r1"]

    def test_a_run_whose_holder_is_known_dead_comes_up_at_once(self, pool: Pool, clock: FakeClock) -> None:
        pool.enqueue(new_run(), now=clock.now())
        owner = f"{HERE.host}:1"
        (one,) = pool.take(
            ANY, limit=1, owner=owner, holder=dead_holder(), ttl=TTL, now=clock.now(), most_claims=MOST_CLAIMS
        )
        (two,) = take(pool, clock)
        assert one.lease is not None
        assert two.lease is not None
        assert two.lease.fence == one.lease.fence + 1

    def test_a_run_that_another_has_called_is_carried_by_its_caller_alone(self, pool: Pool, clock: FakeClock) -> None:
        for run_id, queue in (("old", "default"), ("new", CALLED_QUEUE)):
            pool.enqueue(new_run(run_id, started_by=f"{CALLED}caller", queue=queue), now=clock.now())
        pool.enqueue(new_run("mine", created=2000.0), now=clock.now())
        assert names(take(pool, clock)) == ["mine"]

    def test_who_ends_its_workers_too_often_is_dead_and_the_others_go_on(self, pool: Pool, clock: FakeClock) -> None:
        pool.enqueue(new_run("poison"), now=clock.now())
        for number in range(1, 4):
            (one,) = take(pool, clock, most_claims=3)
            assert one.lease is not None
            assert one.lease.fence == number
            pool.commit(one.lease, change(clock, record(number, attempt=number)))  # a start alone is no progress
            expire(clock)
        for number in range(5):
            pool.enqueue(new_run(f"r{number}", created=2000.0 + number), now=clock.now())
        dead, *others = take(pool, clock, limit=4, most_claims=3)
        assert (dead.run_id, dead.lease, names(others)) == ("poison", None, ["r0", "r1", "r2", "r3"])
        run = pool.get("poison")
        assert dead.run == run
        assert (run.status, run.fence, run.lease, run.wake_at) == (Status.DEAD, 4, None, None)
        assert run.finished is not None
        assert run.error is not None
        error = decode(run.error)
        assert (error["type"], error["claims"]) == ("dead", 3)
        assert [note.type for note in pool.notes("poison")] == ["run.dead"]
        assert names(take(pool, clock, limit=9, most_claims=3)) == ["r4"]

    def test_progress_and_a_claim_that_began_nothing_do_not_count(self, pool: Pool, clock: FakeClock) -> None:
        pool.enqueue(new_run(), now=clock.now())
        for number in range(1, 5):
            (one,) = take(pool, clock, most_claims=2)
            assert one.lease is not None
            pool.commit(one.lease, change(clock, record(number, f"p{number}", Mark.DECIDED), release=True))
        for _ in range(4):
            (one,) = take(pool, clock, most_claims=2)
            assert one.lease is not None
            pool.commit(one.lease, change(clock, status=Status.READY, unclaimed=True, release=True))
        assert pool.get("r1").claims_without_progress == 0

    def test_a_caller_who_wants_nothing_is_refused(self, pool: Pool, clock: FakeClock) -> None:
        pool.enqueue(new_run(), now=clock.now())
        before = everything(pool)
        for wrong in ({"limit": 0}, {"owner": " "}, {"ttl": 0.0}, {"most_claims": 0}, {"wanted": Wanted(queues=())}):
            with pytest.raises(ValueError, match=r"whoever|owner|lease"):
                take(pool, clock, **wrong)
        assert everything(pool) == before

    def test_of_eight_who_take_at_once_none_gets_what_another_got(self, pool: Pool, clock: FakeClock) -> None:
        for number in range(40):
            pool.enqueue(new_run(f"r{number:02}", created=float(number)), now=clock.now())
        calls = [functools.partial(take, pool, clock, limit=5, owner=f"w{n}") for n in range(8)]
        answers = [one.run_id for answer in at_once([*calls]) for one in answer]
        answers += names(take(pool, clock, limit=40))  # whom nobody got because everybody looked at others
        assert sorted(answers) == [f"r{number:02}" for number in range(40)]
        assert {pool.get(run_id).fence for run_id in answers} == {1}

    def test_eight_processes_never_take_one_run_twice(self, pool: Pool, clock: FakeClock) -> None:
        opener = self.opener(pool)
        if opener is None:
            pytest.skip("this store is not shared between processes")
        for number in range(60):
            pool.enqueue(new_run(f"r{number}", created=float(number)), now=clock.now())
        answers = in_processes(opener, _take_all, [(clock.now(),)] * 8)
        assert {said for said, _ in answers} == {"won"}
        assert sorted(run_id for _, got in answers for run_id in got) == sorted(f"r{number}" for number in range(60))

    def test_a_run_that_was_taken_can_be_cancelled_and_claimed_like_any_other(
        self, pool: Pool, clock: FakeClock
    ) -> None:
        pool.enqueue(new_run("r1"), now=clock.now())
        pool.enqueue(new_run("r2"), now=clock.now())
        assert pool.request_cancel("r1", Note(at=1.0, type="cancel"), now=clock.now()).status is Status.CANCELLED
        assert claim(pool, clock, "r2")[1].fence == 1
        assert take(pool, clock) == ()

    def test_the_registry_knows_who_is_there_and_for_how_long(self, pool: Pool, clock: FakeClock) -> None:
        assert pool.workers(now=clock.now()) == ()
        for name in ("w2", "w1"):
            assert pool.beat(worker(name, labels=("é",), queues=("a", "b"), concurrency=3), now=clock.now()) is False
        clock.advance(29)
        pool.beat(worker("w2", running=2), now=clock.now())
        clock.advance(5)
        one, two = pool.workers(now=clock.now())
        assert (one.id, one.labels, one.queues, one.concurrency, one.state) == ("w1", ("é",), ("a", "b"), 3, "stale")
        assert (two.id, two.running, two.state) == ("w2", 2, "online")
        assert two.age == pytest.approx(5, abs=0.5)
        clock.advance(70)
        assert pool.workers(now=clock.now())[0].state == "lost"
        clock.advance(90_000)
        pool.beat(worker("w3"), now=clock.now())
        assert [one.id for one in pool.workers(now=clock.now())] == ["w3"]

    def test_who_is_asked_to_end_hears_of_it_with_its_next_beat(self, pool: Pool, clock: FakeClock) -> None:
        pool.beat(worker("w1"), now=clock.now())
        pool.beat(worker("w2"), now=clock.now())
        asked = pool.drain("w1", now=clock.now())
        assert (asked.id, asked.state) == ("w1", "draining")
        assert pool.beat(worker("w1", running=1), now=clock.now()) is True
        assert [one.state for one in pool.workers(now=clock.now())] == ["draining", "online"]
        assert pool.beat(worker("w1", started=6.0), now=clock.now()) is False  # another one by the same name
        with pytest.raises(NotFound, match="worker"):
            pool.drain("nobody", now=clock.now())

    def test_who_leaves_is_forgotten(self, pool: Pool, clock: FakeClock) -> None:
        pool.beat(worker("w1"), now=clock.now())
        for _ in range(2):
            pool.leave("w1")
        assert pool.workers(now=clock.now()) == ()


def take(pool: Pool, clock: FakeClock, wanted: Wanted = ANY, **fields: Any) -> tuple[Taken, ...]:
    """Take runs."""
    given: dict[str, Any] = {"limit": 1, "owner": "worker", "holder": HERE, "ttl": TTL, "most_claims": MOST_CLAIMS}
    given |= fields
    return pool.take(given.pop("wanted", wanted), now=clock.now(), **given)


def names(taken: tuple[Taken, ...] | list[Taken]) -> list[str]:
    """The ids of those that were taken."""
    assert all(one.lease is not None for one in taken)
    return [one.run_id for one in taken]


def sleep(pool: Pool, clock: FakeClock, run_id: str, status: Status, wake_at: float | None) -> None:
    """Make a run that sleeps or waits."""
    pool.commit(begin(pool, clock, run_id), change(clock, status=status, wake_at=wake_at, release=True))


def worker(id: str, **fields: Any) -> Worker:
    """A worker of the registry."""
    given: dict[str, Any] = {"host": "here", "pid": os.getpid(), "started": 5.0}
    return Worker(id=id, **(given | fields))


def _take_all(store: Store, now: float) -> list[str]:
    """Take runs until there are none."""
    got: list[str] = []
    misses = 0
    while misses < 3:
        found = pooled(store).take(
            ANY, limit=3, owner=f"{os.getpid()}", holder=Holder.here(), ttl=3600.0, now=now, most_claims=MOST_CLAIMS
        )
        got += [one.run_id for one in found]
        misses = 0 if found else misses + 1
    return got
