"""Leases: who may write to a run, until when, and how the right passes on."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import CheckpointConflict, LeaseHeld, LeaseLost, NotInThatState
from ..store import Lease, Mark, Note, Status, Store
from ._store_given import HERE, TTL, Given, begin, change, claim, dead_holder, everything, expire, record
from .clock import FakeClock

WRONG: list[dict[str, Any]] = [{"token": "other"}, {"owner": "other"}, {"fence": 99}, {"run_id": "nobody"}]


class Leases(Given):
    """A lease is active iff it expires after now; then nobody else may have the run, its own owner included."""

    def test_an_active_lease_keeps_everybody_out(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        before = everything(store)
        clock.advance(TTL - 0.001)
        for owner in ("bob", "alice"):
            with pytest.raises(LeaseHeld, match=r"^run r1 is owned by alice until 2027-01-15T08:00:30Z$") as caught:
                claim(store, clock, owner=owner)
            assert caught.value.details["host"] == HERE.host
            assert caught.value.details["expires"] == lease.expires
        assert everything(store) == before

    def test_at_its_very_end_a_lease_is_over(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        expire(clock)
        claim(store, clock)

    def test_a_claim_gives_a_new_token_and_a_higher_fence(self, store: Store, clock: FakeClock) -> None:
        first = begin(store, clock)
        expire(clock)
        run, lease = claim(store, clock, owner="alice")
        assert lease.token not in ("", first.token)
        assert (lease.fence, run.fence, run.revision) == (2, 2, 2)
        assert (lease.owner, lease.holder, lease.run_id) == ("alice", HERE, "r1")
        assert (lease.acquired, lease.expires) == (clock.now(), clock.now() + TTL)
        assert (run.lease, run.updated) == (lease, clock.now())

    @pytest.mark.parametrize("status", [Status.SLEEPING, Status.WAITING, Status.BLOCKED, Status.FAILED, Status.READY])
    def test_a_claim_tells_the_status_before_and_sets_running(
        self, store: Store, clock: FakeClock, status: Status
    ) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, status=status, wake_at=5000.0, error='"e"', finished=7.0, release=True))
        run, _ = claim(store, clock)
        now = store.get("r1")
        assert (run.status, now.status) == (status, Status.RUNNING)
        assert replace(run, status=Status.RUNNING) == now
        assert (now.wake_at, now.error, now.finished) == (5000.0, '"e"', None)

    @pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED, Status.DEAD])
    def test_a_run_that_is_over_cannot_be_claimed(self, store: Store, clock: FakeClock, status: Status) -> None:
        store.commit(begin(store, clock), change(clock, status=status, release=True))
        before = everything(store)
        with pytest.raises(NotInThatState, match=rf"^run r1 is {status.value}: "):
            claim(store, clock)
        assert everything(store) == before

    def test_whoever_was_replaced_can_never_write_again(self, store: Store, clock: FakeClock) -> None:
        old = [begin(store, clock)]
        for _ in range(4):
            expire(clock)
            old.append(claim(store, clock, owner="alice")[1])
        newest = old.pop()
        before = everything(store)
        for lease in old:
            for write in (store.commit, lambda lease, change: store.renew(lease, ttl=TTL, now=change.now)):
                with pytest.raises(LeaseLost, match=r"^Workflow lease is no longer active$"):
                    write(lease, change(clock, record(1)))
            with pytest.raises(CheckpointConflict):
                store.release(lease, now=clock.now())
        assert everything(store) == before
        assert len({lease.token for lease in (*old, newest)}) == len({lease.fence for lease in (*old, newest)}) == 5
        store.commit(newest, change(clock, record(1)))

    def test_a_renewal_counts_from_now(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        clock.advance(10)
        renewed = store.renew(lease, ttl=12.0, now=clock.now())
        assert renewed == replace(lease, expires=clock.now() + 12.0)
        assert store.get("r1").lease == renewed

    def test_a_renewal_is_no_checkpoint(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        before = store.get("r1")
        renewed = store.renew(lease, ttl=99.0, now=clock.now())
        assert store.get("r1") == replace(before, lease=renewed)

    def test_an_older_snapshot_of_the_current_lease_is_good(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.renew(lease, ttl=TTL * 2, now=clock.now())
        expire(clock)
        store.commit(lease, change(clock, record(1)))
        store.renew(lease, ttl=TTL, now=clock.now())

    def test_what_is_stored_wins_over_what_a_caller_changed(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        tampered = replace(lease, acquired=0.0, expires=9e9, holder=replace(HERE, pid=1))
        assert store.renew(tampered, ttl=TTL, now=clock.now()) == lease
        expire(clock)
        for write in (
            lambda: store.renew(tampered, ttl=TTL, now=clock.now()),
            lambda: store.commit(tampered, change(clock)),
        ):
            with pytest.raises(LeaseLost):
                write()

    @pytest.mark.parametrize("wrong", WRONG, ids=str)
    def test_only_the_very_lease_renews(self, store: Store, clock: FakeClock, wrong: dict[str, Any]) -> None:
        lease = begin(store, clock)
        before = everything(store)
        with pytest.raises(LeaseLost):
            store.renew(replace(lease, **wrong), ttl=TTL, now=clock.now())
        assert everything(store) == before

    def test_a_renewal_never_resurrects(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        expire(clock)
        before = everything(store)
        with pytest.raises(LeaseLost):
            store.renew(lease, ttl=TTL, now=clock.now())
        assert everything(store) == before
        released = claim(store, clock)[1]
        store.release(released, now=clock.now())
        with pytest.raises(LeaseLost):
            store.renew(released, ttl=TTL, now=clock.now())

    def test_a_released_run_is_free_and_otherwise_unchanged(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        before = store.get("r1")
        store.release(lease, now=clock.now())
        assert store.get("r1") == replace(before, lease=None)
        store.release(lease, now=clock.now())
        assert claim(store, clock)[1].fence == 2

    def test_releasing_what_is_not_there_does_nothing(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.release(replace(lease, run_id="nobody"), now=clock.now())
        expire(clock)
        before = everything(store)
        store.release(lease, now=clock.now())
        store.release(replace(lease, **WRONG[0]), now=clock.now())
        assert everything(store) == before

    @pytest.mark.parametrize("wrong", WRONG[:3], ids=str)
    def test_nobody_releases_anothers_lease(self, store: Store, clock: FakeClock, wrong: dict[str, Any]) -> None:
        lease = begin(store, clock)
        before = everything(store)
        with pytest.raises(CheckpointConflict, match=r"^Workflow checkpoint conflict$"):
            store.release(replace(lease, **wrong), now=clock.now())
        assert everything(store) == before

    def test_a_lease_of_one_run_is_nothing_for_another(self, store: Store, clock: FakeClock) -> None:
        mine, other = begin(store, clock, "mine"), begin(store, clock, "other")
        before = everything(store, "other")
        forged = replace(mine, run_id="other")
        with pytest.raises(LeaseLost):
            store.commit(forged, change(clock, record(1)))
        with pytest.raises(LeaseLost):
            store.commit(forged, change(clock, status=Status.FAILED))
        with pytest.raises(LeaseLost):
            store.renew(forged, ttl=TTL, now=clock.now())
        with pytest.raises(CheckpointConflict):
            store.release(forged, now=clock.now())
        assert everything(store, "other") == before
        store.commit(other, change(clock, record(1)))

    def test_a_holder_known_dead_holds_nothing(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        expire(clock)
        _, dead = claim(store, clock, holder=dead_holder())
        _, lease = claim(store, clock, owner="carol")
        assert lease.fence == dead.fence + 1
        with pytest.raises(LeaseLost):
            store.commit(dead, change(clock, record(1)))

    def test_a_holder_on_another_host_is_believed(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        expire(clock)
        claim(store, clock, holder=replace(dead_holder(), host="elsewhere.invalid"))
        with pytest.raises(LeaseHeld):
            claim(store, clock, owner="carol")

    def test_a_holder_from_before_a_restart_of_this_host_is_dead(self, store: Store, clock: FakeClock) -> None:
        if not (HERE.boot and HERE.machine):
            pytest.skip("this system tells no boot id, or not which machine it is")
        begin(store, clock)
        expire(clock)
        claim(store, clock, holder=replace(HERE, boot="another"))
        claim(store, clock, owner="carol")

    @pytest.mark.parametrize(
        "other",
        [
            {"boot": "another", "machine": "another"},
            {"boot": "another", "machine": ""},
            {"start": "1", "space": "pid:[1]"},
        ],
        ids=["machine", "container of another machine", "container"],
    )
    def test_a_holder_in_another_place_of_the_same_name_is_believed(
        self, store: Store, clock: FakeClock, other: dict[str, str]
    ) -> None:
        begin(store, clock)
        expire(clock)
        claim(store, clock, holder=replace(HERE, **other))
        with pytest.raises(LeaseHeld):
            claim(store, clock, owner="carol")

    def test_a_fence_is_never_used_twice(self, store: Store, clock: FakeClock) -> None:
        lease, seen = begin(store, clock), [1]
        for _ in range(3):
            store.release(lease, now=clock.now())
            store.amend("r1", revision=store.get("r1").revision, change=change(clock))
            seen.append(store.get("r1").fence)
            run, lease = claim(store, clock)
            assert run.fence == lease.fence
            seen.append(lease.fence)
        store.release(lease, now=clock.now())
        seen.append(store.request_cancel("r1", Note(at=1.0, type="cancel"), now=clock.now()).fence)
        assert seen == sorted(set(seen))

    def test_claims_without_progress_are_counted_until_a_record_comes(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        for expected in (1, 2, 3):
            store.release(lease, now=clock.now())
            run, lease = claim(store, clock)
            assert run.claims_without_progress == expected
        store.commit(lease, change(clock, notes=(Note(at=1.0, type="seen"),), step="x"))
        assert store.get("r1").claims_without_progress == 3
        store.commit(lease, change(clock, record(1, mark=Mark.DECIDED)))
        assert store.get("r1").claims_without_progress == 0

    @pytest.mark.parametrize(
        "wrong", [{"owner": " "}, {"owner": ""}, {"ttl": 0.0}, {"ttl": -5.0}, {"run_id": ""}], ids=str
    )
    def test_a_claimers_mistake_is_refused_before_storage(
        self, store: Store, clock: FakeClock, wrong: dict[str, Any]
    ) -> None:
        lease = begin(store, clock)
        expire(clock)
        before = everything(store)
        call: dict[str, Any] = {"run_id": "r1", "owner": "bob", "ttl": TTL} | wrong
        with pytest.raises(ValueError):
            store.claim(call.pop("run_id"), holder=HERE, now=clock.now(), **call)
        if "ttl" in wrong:
            with pytest.raises(ValueError):
                store.renew(lease, ttl=wrong["ttl"], now=clock.now())
        assert everything(store) == before

    def test_a_frozen_clock_still_orders_by_fence(self, store: Store, clock: FakeClock) -> None:
        leases: list[Lease] = [begin(store, clock)]
        for _ in range(5):
            store.release(leases[-1], now=clock.now())
            leases.append(claim(store, clock)[1])
        assert [lease.fence for lease in leases] == [1, 2, 3, 4, 5, 6]
