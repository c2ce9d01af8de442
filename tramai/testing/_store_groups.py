"""Groups: of the runs that name one, at most as many as its limit allows are carried out at the same time."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import LeaseLost
from ..store import Group, Holder, Lease, Note, Status, Store
from ._at_once import PATIENCE, at_once, in_processes
from ._store_given import (
    AWKWARD,
    HERE,
    TTL,
    Given,
    Opener,
    begin,
    change,
    claim,
    dead_holder,
    done,
    everything,
    expire,
    new_run,
    record,
)
from .clock import FakeClock

ONE = Group("deploy")
TWO = Group("deploy", 2)
ENDS = [Status.COMPLETED, Status.FAILED, Status.SLEEPING, Status.WAITING, Status.BLOCKED]
TURNS = 3
"""How often each of those who race has a place."""


class Groups(Given):
    """A place is held by a run that is running under an active lease; `enter` gives it, in order of creation."""

    def test_a_new_run_of_a_group_has_its_lease_and_no_place_yet(self, store: Store, clock: FakeClock) -> None:
        run, lease = store.create(new_run(group=TWO), owner="a", holder=HERE, ttl=TTL, now=clock.now())
        assert lease is not None
        assert (run.status, run.group, run.lease) == (Status.READY, TWO, lease)
        assert store.get("r1") == run

    def test_where_there_is_room_a_run_is_running_at_once(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock, group=ONE)
        before = store.get("r1")
        assert store.enter(lease, now=clock.now()) == ()
        run = store.get("r1")
        assert run == replace(before, status=Status.RUNNING, revision=2, claims_without_progress=1)
        assert store.commit(lease, change(clock, done(1))) == 3

    def test_without_a_group_nobody_is_before_a_run_and_nothing_changes(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        before = everything(store)
        assert store.enter(lease, now=clock.now()) == ()
        assert everything(store) == before

    def test_who_has_a_place_is_asked_for_nothing_more(self, store: Store, clock: FakeClock) -> None:
        lease = enter(store, clock, "r1")
        before = everything(store)
        assert store.enter(lease, now=clock.now()) == ()
        assert everything(store) == before

    def test_a_full_group_names_those_before_and_changes_nothing_of_the_run(
        self, store: Store, clock: FakeClock
    ) -> None:
        enter(store, clock, "r1")
        lease = begin(store, clock, "r2", group=ONE, created=1001.0)
        before = everything(store, "r2"), everything(store, "r1")
        for _ in range(2):
            assert store.enter(lease, now=clock.now()) == ("r1",)
        assert (everything(store, "r2"), everything(store, "r1")) == before

    def test_as_many_as_the_limit_allows_have_a_place(self, store: Store, clock: FakeClock) -> None:
        enter(store, clock, "r1", TWO)
        enter(store, clock, "r2", TWO)
        third = begin(store, clock, "r3", group=TWO, created=1002.0)
        assert store.enter(third, now=clock.now()) == ("r1", "r2")

    def test_each_run_goes_by_its_own_limit(self, store: Store, clock: FakeClock) -> None:
        enter(store, clock, "r1", TWO)
        strict = begin(store, clock, "r2", group=ONE, created=1001.0)
        assert store.enter(strict, now=clock.now()) == ("r1",)
        wide = begin(store, clock, "r3", group=Group("deploy", 3), created=1002.0)
        assert store.enter(wide, now=clock.now()) == ()

    def test_groups_know_nothing_of_each_other(self, store: Store, clock: FakeClock) -> None:
        names = ("deploy", "Deploy", "deploy ", "deploy/eu", "../deploy", "déploy", AWKWARD, "x" * 200)
        for number, name in enumerate(names):
            enter(store, clock, f"r{number}", Group(name))
        late = begin(store, clock, "late", group=Group(AWKWARD), created=1001.0)
        assert store.enter(late, now=clock.now()) == ("r6",)
        assert store.get("late").group == Group(AWKWARD)

    @pytest.mark.parametrize(
        "status", [Status.COMPLETED, Status.FAILED, Status.SLEEPING, Status.WAITING, Status.BLOCKED]
    )
    def test_a_run_that_ends_or_is_suspended_gives_its_place_back(
        self, store: Store, clock: FakeClock, status: Status
    ) -> None:
        first = enter(store, clock, "r1")
        second = begin(store, clock, "r2", group=ONE, created=1001.0)
        assert store.enter(second, now=clock.now()) == ("r1",)
        store.commit(first, change(clock, done(1), status=status, release=True))
        assert store.enter(second, now=clock.now()) == ()

    def test_a_lease_that_is_over_or_given_back_holds_no_place(self, store: Store, clock: FakeClock) -> None:
        enter(store, clock, "r1")
        expire(clock)
        second = enter(store, clock, "r2", created=1001.0)
        store.release(second, now=clock.now())
        enter(store, clock, "r3", created=1002.0)

    def test_a_holder_known_dead_holds_no_place(self, store: Store, clock: FakeClock) -> None:
        new = new_run("r1", group=ONE)
        _, lease = store.create(new, owner="a", holder=dead_holder(), ttl=TTL, now=clock.now())
        assert lease is not None
        assert store.enter(lease, now=clock.now()) == ()
        enter(store, clock, "r2", created=1001.0)

    def test_a_lease_that_is_renewed_keeps_the_place(self, store: Store, clock: FakeClock) -> None:
        lease = enter(store, clock, "r1")
        clock.advance(TTL - 1)
        store.renew(lease, ttl=TTL, now=clock.now())
        clock.advance(TTL - 1)
        late = begin(store, clock, "r2", group=ONE, created=1001.0)
        assert store.enter(late, now=clock.now()) == ("r1",)

    def test_places_go_in_order_of_creation(self, store: Store, clock: FakeClock) -> None:
        first = enter(store, clock, "r1")
        young = begin(store, clock, "young", group=ONE, created=1009.0)
        assert store.enter(young, now=clock.now()) == ("r1",)
        old = begin(store, clock, "old", group=ONE, created=1001.0)
        assert store.enter(old, now=clock.now()) == ("r1",)
        assert store.enter(young, now=clock.now()) == ("r1", "old")
        store.commit(first, change(clock, status=Status.COMPLETED, release=True))
        assert store.enter(young, now=clock.now()) == ("old",)
        assert store.enter(old, now=clock.now()) == ()

    def test_who_no_longer_stands_in_line_keeps_nobody_waiting(self, store: Store, clock: FakeClock) -> None:
        first = enter(store, clock, "r1")
        old = begin(store, clock, "old", group=ONE, created=1001.0)
        young = begin(store, clock, "young", group=ONE, created=1002.0)
        for lease in (old, young):
            assert store.enter(lease, now=clock.now()) != ()
        store.commit(first, change(clock, status=Status.COMPLETED, release=True))
        store.release(old, now=clock.now())
        assert store.enter(young, now=clock.now()) == ()
        assert store.get("old").status is Status.READY

    def test_an_older_run_that_comes_back_waits_for_those_who_have_their_places(
        self, store: Store, clock: FakeClock
    ) -> None:
        first = enter(store, clock, "r1")
        store.commit(first, change(clock, status=Status.SLEEPING, release=True))
        enter(store, clock, "r2", created=1001.0)
        before, lease = claim(store, clock, "r1")
        assert before.status is Status.SLEEPING
        assert store.enter(lease, now=clock.now()) == ("r2",)
        assert store.get("r1").status is Status.SLEEPING

    def test_a_claim_of_a_group_waits_for_its_place_to_count(self, store: Store, clock: FakeClock) -> None:
        enter(store, clock, "r1")
        expire(clock)
        before, lease = claim(store, clock)
        now = store.get("r1")
        assert (before.status, now.status, now.claims_without_progress) == (Status.RUNNING, Status.READY, 1)
        assert store.enter(lease, now=clock.now()) == ()
        assert store.get("r1").claims_without_progress == 2
        store.commit(lease, change(clock, done(1)))
        assert store.get("r1").claims_without_progress == 0

    def test_a_failed_run_is_finished_until_it_has_its_place(self, store: Store, clock: FakeClock) -> None:
        store.commit(enter(store, clock, "r1"), change(clock, status=Status.FAILED, finished=7.0, release=True))
        _, lease = claim(store, clock)
        assert (store.get("r1").status, store.get("r1").finished) == (Status.FAILED, 7.0)
        assert store.enter(lease, now=clock.now()) == ()
        assert (store.get("r1").status, store.get("r1").finished) == (Status.RUNNING, None)

    def test_the_place_of_a_caller_is_enough_for_what_it_calls(self, store: Store, clock: FakeClock) -> None:
        caller = enter(store, clock, "caller")
        called = begin(store, clock, "called", group=ONE, created=1001.0)
        assert store.enter(called, within=("above", "caller"), now=clock.now()) == ()
        assert store.get("called").status is Status.RUNNING
        store.commit(caller, change(clock, status=Status.COMPLETED, release=True))
        enter(store, clock, "r3", created=1002.0)  # the called one had no place of its own

    def test_a_caller_without_a_place_helps_nobody(self, store: Store, clock: FakeClock) -> None:
        enter(store, clock, "r1")
        begin(store, clock, "caller", group=ONE, created=1000.5)
        begin(store, clock, "stranger", group=Group("other"))
        called = begin(store, clock, "called", group=ONE, created=1001.0)
        assert store.enter(called, within=("caller", "stranger"), now=clock.now()) == ("r1",)

    def test_only_the_lease_of_a_run_takes_its_place(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock, group=ONE)
        before = everything(store)
        wrong: tuple[dict[str, Any], ...] = ({"token": "x"}, {"owner": "x"}, {"fence": 9}, {"run_id": "nobody"})
        for fields in wrong:
            with pytest.raises(LeaseLost):
                store.enter(replace(lease, **fields), now=clock.now())
        expire(clock)
        with pytest.raises(LeaseLost):
            store.enter(lease, now=clock.now())
        assert everything(store) == before

    def test_a_cancel_of_who_stands_in_line_is_a_wish(self, store: Store, clock: FakeClock) -> None:
        enter(store, clock, "r1")
        lease = begin(store, clock, "r2", group=ONE, created=1001.0)
        assert store.enter(lease, now=clock.now()) == ("r1",)
        run = store.request_cancel("r2", Note(at=1.0, type="cancel"), now=clock.now())
        assert (run.status, run.cancel_requested) == (Status.READY, True)

    @pytest.mark.parametrize("wrong", [Group(" "), Group(""), Group("deploy", 0)], ids=str)
    def test_a_group_without_name_or_room_is_refused_before_storage(
        self, store: Store, clock: FakeClock, wrong: Group
    ) -> None:
        with pytest.raises(ValueError):
            begin(store, clock, group=wrong)
        assert store.page(limit=1) == ((), None)

    def test_of_eight_threads_two_have_a_place(self, store: Store, clock: FakeClock) -> None:
        leases = [begin(store, clock, f"r{n}", group=TWO, created=1000.0 + n) for n in range(8)]
        now = clock.now()
        answers = at_once([lambda lease=lease: store.enter(lease, now=now) for lease in leases])  # type: ignore[misc]
        assert answers.count(()) == 2
        running, _ = store.page(limit=9, status=Status.RUNNING)
        assert {run.run_id for run in running} == {f"r{n}" for n, answer in enumerate(answers) if answer == ()}

    def test_eight_threads_get_through_two_at_a_time(self, store: Store, clock: FakeClock) -> None:
        answers = at_once([lambda n=n: _carry(store, f"r{n}", clock.now()) for n in range(8)])  # type: ignore[misc]
        assert _most_at_once([stay for stays in answers for stay in stays]) <= TWO.limit
        assert {run.status for run in store.page(limit=9)[0]} == {Status.COMPLETED}

    def test_eight_processes_get_through_two_at_a_time(self, store: Store, clock: FakeClock) -> None:
        opener: Opener | None = self.opener(store)
        if opener is None:
            pytest.skip("this store is not shared between processes")
        answers = in_processes(opener, _carry, [(f"r{n}", clock.now()) for n in range(8)])
        assert [kind for kind, _ in answers] == ["won"] * 8
        assert _most_at_once([stay for _, stays in answers for stay in stays]) <= TWO.limit
        assert {run.status for run in store.page(limit=9)[0]} == {Status.COMPLETED}


def enter(store: Store, clock: FakeClock, run_id: str, group: Group = ONE, **fields: Any) -> Lease:
    """Make a run that has its place."""
    lease = begin(store, clock, run_id, group=group, **fields)
    assert store.enter(lease, now=clock.now()) == ()
    return lease


def _carry(store: Store, run_id: str, now: float) -> list[tuple[float, float]]:
    """Carry a run to its end, suspended now and then; from when to when it certainly had its place, each time."""
    new = new_run(run_id, group=TWO, created=now)
    _, lease = store.create(new, owner=run_id, holder=Holder.here(), ttl=3600.0, now=now)
    assert lease is not None
    stays = []
    for number in range(1, TURNS + 1):
        limit = time.monotonic() + PATIENCE
        while store.enter(lease, now=now):
            assert time.monotonic() < limit, "a place never came"
            time.sleep(0.002)  # as whoever asks again does; nothing is proved by it
        came = time.monotonic()
        store.commit(lease, change(FakeClock(now), record(number, f"p{number}")))
        stays.append((came, time.monotonic()))
        status = Status.COMPLETED if number == TURNS else Status.SLEEPING
        store.commit(lease, change(FakeClock(now), status=status, release=True))
        if number < TURNS:
            run, lease = store.claim(run_id, owner=run_id, holder=Holder.here(), ttl=3600.0, now=now)
            assert run.status is Status.SLEEPING
    return stays


def _most_at_once(stays: list[tuple[float, float]]) -> int:
    return max(sum(came <= at <= went for came, went in stays) for at, _ in stays)
