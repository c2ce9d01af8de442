"""Lines: runs that stand in line for their group while nobody has them, in a store that workers take runs from."""

from __future__ import annotations

from typing import Any

import pytest

from ..places import GRACE
from ..pool import MOST_CLAIMS, Pool, Wanted, pooled
from ..portable import Unsupported
from ..store import Group, Lease, Note, Status, Store
from ._store_given import HERE, TTL, Given, begin, change, claim, done, new_run
from .clock import FakeClock

ONE = Group("deploy")
LATER = 10.0


class Lines(Given):
    """A run that is `queued` keeps its place in line without a lease, and comes up when it is called."""

    @pytest.fixture
    def lines(self, store: Store) -> Any:
        """The store, where it has lines."""
        try:
            pool: Any = pooled(store)
        except Unsupported as lacks:
            pytest.skip(str(lacks))
        if not callable(getattr(pool, "call_up", None)):
            pytest.skip("runs of this store wait for their groups in the slots of workers")
        return pool

    def test_who_was_given_back_comes_before_younger_ones(self, lines: Pool, clock: FakeClock) -> None:
        holder = first(lines, clock, "r1")
        give_back(lines, clock, "r2", created=1001.0)
        run = lines.get("r2")
        assert (run.queued, run.lease, run.status) == (True, None, Status.SLEEPING)
        young = begin(lines, clock, "r3", group=ONE, created=1002.0)
        assert lines.enter(young, now=clock.now()) == ("r1", "r2")
        lines.commit(holder, change(clock, done(1), status=Status.COMPLETED, release=True))
        assert lines.enter(young, now=clock.now()) == ("r2",)
        _, second = claim(lines, clock, "r2")
        assert lines.enter(second, now=clock.now()) == ()
        run = lines.get("r2")
        assert (run.queued, run.status, run.claims_without_progress) == (False, Status.RUNNING, 1)
        assert lines.enter(young, now=clock.now()) == ("r2",)

    def test_who_is_next_is_called_up_and_nobody_else(self, lines: Any, clock: FakeClock) -> None:
        holder = first(lines, clock, "r1")
        for number in (2, 3):
            give_back(lines, clock, f"r{number}", created=1000.0 + number)
        lines.call_up("deploy", now=clock.now())
        assert taken(lines, clock) == []  # the place is taken
        lines.commit(holder, change(clock, done(1), status=Status.COMPLETED, release=True))
        lines.call_up("deploy", now=clock.now())
        lines.call_up("elsewhere", now=clock.now())
        assert taken(lines, clock) == ["r2"]
        lines.call_up("deploy", now=clock.now())
        assert taken(lines, clock) == []  # somebody has it

    def test_a_wider_group_calls_up_as_many_as_there_is_room_for(self, lines: Any, clock: FakeClock) -> None:
        two = Group("deploy", 2)
        held = [first(lines, clock, f"h{number}", group=two) for number in range(2)]
        for number in (2, 3, 4):
            give_back(lines, clock, f"r{number}", group=two, created=1000.0 + number)
        for lease in held:
            lines.commit(lease, change(clock, done(1), status=Status.COMPLETED, release=True))
        lines.call_up("deploy", now=clock.now())
        assert sorted(taken(lines, clock)) == ["r2", "r3"]

    def test_whom_nobody_calls_up_comes_up_by_itself(self, lines: Pool, clock: FakeClock) -> None:
        first(lines, clock, "r1", ttl=3600.0)
        give_back(lines, clock, "r2", created=1001.0)
        assert taken(lines, clock) == []
        clock.advance(LATER)
        assert taken(lines, clock) == ["r2"]

    def test_who_waited_and_is_due_stands_in_line_like_others(self, lines: Pool, clock: FakeClock) -> None:
        first(lines, clock, "r1", ttl=3600.0)
        asleep = change(clock, status=Status.WAITING, wake_at=clock.now(), release=True)
        lines.commit(begin(lines, clock, "r2", group=ONE, created=1001.0), asleep)
        clock.advance(1.0)
        _, lease = claim(lines, clock, "r2")
        assert lines.enter(lease, now=clock.now()) == ("r1",)
        later = change(clock, status=Status.WAITING, wake_at=clock.now() + LATER, queued=True, release=True)
        lines.commit(lease, later)
        assert taken(lines, clock) == []  # it is not asked again and again
        clock.advance(LATER)
        assert taken(lines, clock) == ["r2"]

    def test_whom_nobody_takes_any_more_leaves_the_line(self, lines: Pool, clock: FakeClock) -> None:
        first(lines, clock, "r1", ttl=3600.0)
        give_back(lines, clock, "r2", created=1001.0)
        young = begin(lines, clock, "r3", group=ONE, created=1002.0)
        assert lines.enter(young, now=clock.now()) == ("r1", "r2")
        clock.advance(LATER + GRACE)
        _, again = lines.claim("r3", owner="x", holder=HERE, ttl=TTL, now=clock.now())
        assert lines.enter(again, now=clock.now()) == ("r1",)

    def test_who_is_cancelled_in_line_leaves_it_at_once(self, lines: Any, clock: FakeClock) -> None:
        first(lines, clock, "r1")
        for number in (2, 3):
            give_back(lines, clock, f"r{number}", created=1000.0 + number)
        note = Note(at=clock.now(), type="cancel.requested")
        assert lines.request_cancel("r2", note, now=clock.now()).status is Status.CANCELLED
        young = begin(lines, clock, "r4", group=ONE, created=1009.0)
        assert lines.enter(young, now=clock.now()) == ("r1", "r3")


def first(store: Store, clock: FakeClock, run_id: str, *, group: Group = ONE, ttl: float = TTL) -> Lease:
    """A run that has its place."""
    _, lease = store.create(new_run(run_id, group=group), owner="a", holder=HERE, ttl=ttl, now=clock.now())
    assert lease is not None
    assert store.enter(lease, now=clock.now()) == ()
    return lease


def give_back(store: Store, clock: FakeClock, run_id: str, *, group: Group = ONE, created: float) -> None:
    """A run that asked, and was given back."""
    lease = begin(store, clock, run_id, group=group, created=created)
    assert store.enter(lease, now=clock.now())
    later = change(clock, status=Status.SLEEPING, wake_at=clock.now() + LATER, queued=True, release=True)
    store.commit(lease, later)


def taken(pool: Pool, clock: FakeClock) -> list[str]:
    """Whom a worker gets now."""
    by: dict[str, Any] = {"owner": "w", "holder": HERE, "ttl": TTL, "most_claims": MOST_CLAIMS}
    return [one.run_id for one in pool.take(Wanted(), limit=9, now=clock.now(), **by)]
