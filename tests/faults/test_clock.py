"""Clocks that jump, and two that disagree: a lease may end early or late, and never does a stale runner write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tramai import engine
from tramai.errors import LeaseHeld, LeaseLost
from tramai.event import StepFinished
from tramai.store import Mark, Status, Store
from tramai.stores import open_store
from tramai.testing._store_given import HERE, TTL, begin, change, claim, dead_holder, done
from tramai.testing.clock import FakeClock

from ..engine.functions import calls
from ..engine.support import call, make, name
from ..engine.support import run_r as run
from .support import PLAIN, url_of

HOUR = 3600.0


@pytest.fixture(params=PLAIN)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = open_store(url_of(request.param, tmp_path, request))
    yield store
    store.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_an_hour_forward_ends_the_lease_and_what_the_old_owner_may_write(store: Store, clock: FakeClock) -> None:
    old = begin(store, clock)
    clock.jump(HOUR)
    for write in (
        lambda: store.commit(old, change(clock, done(1))),
        lambda: store.renew(old, ttl=TTL, now=clock.now()),
    ):
        with pytest.raises(LeaseLost):
            write()
    _, new = claim(store, clock)
    store.commit(new, change(clock, done(1, value='"new"')))
    clock.jump(-HOUR)
    with pytest.raises(LeaseLost):
        store.commit(old, change(clock, done(2, "late")))
    store.release(new, now=clock.now())
    assert [line.value for line in store.journal("r1")] == ['"new"']
    assert (store.get("r1").fence, store.get("r1").revision) == (2, 3)


def test_an_hour_back_keeps_others_out_and_the_owner_in(store: Store, clock: FakeClock) -> None:
    lease = begin(store, clock)
    clock.jump(-HOUR)
    with pytest.raises(LeaseHeld):
        claim(store, clock)
    assert store.commit(lease, change(clock, done(1))) == 2
    renewed = store.renew(lease, ttl=TTL, now=clock.now())
    assert renewed.expires == clock.now() + TTL
    clock.advance(TTL)
    _, other = claim(store, clock)
    with pytest.raises(LeaseLost):
        store.commit(renewed, change(clock, done(2, "late")))
    assert store.commit(other, change(clock, done(2, "next"))) == 4


def test_an_hour_back_does_not_keep_a_dead_runners_run(store: Store, clock: FakeClock) -> None:
    store.release(begin(store, clock), now=clock.now())
    claim(store, clock, holder=dead_holder())
    clock.jump(-HOUR)
    _, lease = claim(store, clock)
    assert lease.fence == 3


def test_of_two_runners_whose_clocks_disagree_the_later_one_writes(store: Store) -> None:
    """The one ten minutes ahead finds every lease of the other expired: it takes over, and the other never writes."""
    slow, fast = FakeClock(1_800_000_000.0), FakeClock(1_800_000_600.0)
    first = begin(store, slow)
    store.commit(first, change(slow, done(1, "p1")))
    _, second = claim(store, fast)
    for late in (first, replace(first, expires=fast.now() + HOUR)):
        with pytest.raises(LeaseLost):
            store.commit(late, change(slow, done(2, "stale")))
        with pytest.raises(LeaseLost):
            store.renew(late, ttl=TTL, now=slow.now())
    store.commit(second, change(fast, done(2, "p2")))
    with pytest.raises(LeaseHeld):
        claim(store, slow)
    fences, revisions = [store.get("r1").fence], [store.get("r1").revision]
    for taker in (fast, slow, fast):
        fast.advance(20 * 60.0)
        slow.advance(20 * 60.0)
        _, lease = store.claim("r1", owner="any", holder=HERE, ttl=TTL, now=taker.now())
        revisions.append(store.commit(lease, change(taker, done(len(store.journal("r1")) + 1, f"of {lease.fence}"))))
        fences.append(lease.fence)
    assert fences == sorted(set(fences))
    assert revisions == sorted(set(revisions))


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_run_whose_clock_jumps_repeats_nothing(store: Store, clock: FakeClock, jump: float) -> None:
    counter = name()
    steps = [{"id": f"s{n}", "local": call("count", name=counter), "replay": "non_replayable"} for n in range(4)]
    made = make(steps)

    def set_the_clock(event: object, /) -> None:
        if isinstance(event, StepFinished) and event.path == "s1" and event.status == "succeeded":
            clock.jump(jump)

    result = run(store, made, observers=(set_the_clock,), clock=clock)
    assert (result.status, result.exit_status) == (("interrupted", 5) if jump > 0 else ("completed", 0))
    if jump > 0:
        result = engine.resume("r", store=store, clock=clock)
    assert result.status == "completed"
    assert calls[counter] == 4
    ends = [record.path for record in store.journal("r") if record.mark is Mark.COMPLETED]
    assert ends == ["s0", "s1", "s2", "s3"]
    assert store.get("r").status is Status.COMPLETED
