"""Retention: what was over long enough ago goes when a run ends, and its name stays taken."""

from __future__ import annotations

from typing import cast

import pytest

from .. import retention
from ..errors import NotFound, NotInThatState
from ..portable import Unsupported, portable
from ..store import Lease, Note, RunExists, Status, Store
from ._store_given import HERE, TTL, Given, begin, bundle, change, claim, definition, done, header, new_run, record
from .clock import FakeClock

DAY = 86_400.0
LARGE = '"' + "v" * 100_000 + '"'
OVER = [Status.COMPLETED, Status.CANCELLED, Status.DEAD]
NOT_OVER = sorted(set(Status) - set(OVER) - {Status.MOVED, Status.REMOVED})


class Retention(Given):
    """What `?retention=…` makes of a store. Skipped for one that cannot leave tombstones."""

    @pytest.fixture
    def monthly(self, store: Store) -> Store:
        """The store, with a rule of thirty days."""
        return _with(store, "30d")

    @pytest.fixture
    def emptied(self, store: Store) -> Store:
        """The store, with the rule that nothing is kept of a run that is over."""
        return _with(store, "completion")

    @pytest.mark.parametrize("status", OVER)
    def test_what_was_over_long_enough_goes_when_a_run_ends(
        self, monthly: Store, clock: FakeClock, status: Status
    ) -> None:
        old, young = begin(monthly, clock, "old", start_key="k"), begin(monthly, clock, "young")
        _end(monthly, clock, old, status)
        clock.advance(1.0)
        _end(monthly, clock, _claim_again(monthly, clock, young), status)
        clock.advance(30 * DAY - 1.0)
        last = begin(monthly, clock, "last")
        assert monthly.get("old").status is status
        _end(monthly, clock, last, status)
        assert [monthly.get(run_id).status for run_id in ("old", "young", "last")] == [Status.REMOVED, status, status]
        assert (monthly.journal("old"), len(monthly.journal("last"))) == ((), 1)
        assert [(note.type, note.by) for note in monthly.notes("old")] == [("run.removed", "retention")]

    def test_the_name_of_a_run_that_went_stays_taken(self, emptied: Store, clock: FakeClock) -> None:
        _end(emptied, clock, begin(emptied, clock, start_key="k"))
        with pytest.raises(RunExists):
            begin(emptied, clock)
        run, lease = emptied.create(new_run("r2", start_key="k"), owner="a", holder=HERE, ttl=TTL, now=clock.now())
        assert (run.run_id, run.status, lease) == ("r1", Status.REMOVED, None)
        with pytest.raises(NotInThatState):
            claim(emptied, clock)

    def test_on_completion_nothing_is_kept_of_a_run(self, emptied: Store, clock: FakeClock) -> None:
        lease = begin(emptied, clock, inputs=LARGE, definition=definition("d9"))
        emptied.commit(lease, change(clock, done(1, value=LARGE)))
        assert emptied.get("r1").inputs == LARGE
        assert emptied.commit(lease, change(clock, status=Status.COMPLETED, outputs=LARGE, release=True)) == 3
        run = emptied.get("r1")
        assert (run.status, run.inputs, run.outputs, emptied.journal("r1")) == (Status.REMOVED, "{}", None, ())
        with pytest.raises(NotFound):
            emptied.definition("d9")

    def test_a_cancelled_run_goes_likewise(self, emptied: Store, clock: FakeClock) -> None:
        emptied.release(begin(emptied, clock), now=clock.now())
        run = emptied.request_cancel("r1", Note(at=1.0, type="cancel"), now=clock.now())
        assert run.status is Status.CANCELLED
        assert emptied.get("r1").status is Status.REMOVED

    @pytest.mark.parametrize("status", NOT_OVER)
    def test_what_can_go_on_stays(self, emptied: Store, clock: FakeClock, status: Status) -> None:
        lease = begin(emptied, clock, "old")
        emptied.commit(lease, change(clock, done(1), status=status, wake_at=5.0, release=True))
        clock.advance(DAY)
        _end(emptied, clock, begin(emptied, clock, "last"))
        assert (emptied.get("old").status, len(emptied.journal("old"))) == (status, 1)

    def test_a_renewal_and_a_step_remove_nothing(self, store: Store, clock: FakeClock) -> None:
        _end(store, clock, begin(store, clock, "old"))
        emptied = _with(store, "completion")
        lease = begin(emptied, clock, "other")
        emptied.renew(lease, ttl=TTL, now=clock.now())
        emptied.commit(lease, change(clock, record(1)))
        assert emptied.get("old").status is Status.COMPLETED

    def test_one_end_removes_so_many_and_no_more(self, store: Store, clock: FakeClock) -> None:
        many = retention.AT_ONCE + 3
        for number in range(many):
            _end(store, clock, begin(store, clock, f"old{number}", created=float(number)))
        clock.advance(30 * DAY)
        monthly = _with(store, "30d")
        for wanted in (3, 0):
            _end(monthly, clock, begin(monthly, clock, f"last{wanted}", created=clock.now()))
            left = [run.run_id for run in store.page(limit=99)[0] if run.run_id.startswith("old")]
            assert len(left) == wanted

    def test_who_lives_long_does_not_hide_what_is_due(self, monthly: Store, clock: FakeClock) -> None:
        _end(monthly, clock, begin(monthly, clock, "old", created=clock.now()))
        clock.advance(30 * DAY)
        for number in range(2 * retention.AT_ONCE):
            _end(monthly, clock, begin(monthly, clock, f"new{number}", created=clock.now()))
        assert monthly.get("old").status is Status.REMOVED

    def test_a_run_that_somebody_has_taken_meanwhile_stays(self, store: Store, clock: FakeClock) -> None:
        _adopted(store, "old", clock.now() - DAY)
        before = store.get("old")
        claim(store, clock, "old")
        assert not retention.remove(store, before, clock=clock)
        assert store.get("old").status is Status.RUNNING

    def test_a_store_with_a_rule_is_that_store_in_everything_else(self, monthly: Store, store: Store) -> None:
        assert monthly.url == f"{store.url}{'&' if '?' in store.url else '?'}retention=30d"
        assert retention.split(monthly.url) == (store.url, "30d")
        assert (monthly.page(limit=1), monthly.faults(), monthly.match("x")) == (((), None), (), ())


def _with(store: Store, rule: str) -> Store:
    try:
        return cast(Store, retention.Retaining(store, rule))
    except Unsupported as lacks:
        pytest.skip(str(lacks))


def _claim_again(store: Store, clock: FakeClock, lease: Lease) -> Lease:
    store.release(lease, now=clock.now())
    return claim(store, clock, lease.run_id)[1]


def _end(store: Store, clock: FakeClock, lease: Lease, status: Status = Status.COMPLETED) -> None:
    store.commit(lease, change(clock, done(1), status=status, finished=clock.now(), release=True))


def _adopted(store: Store, run_id: str, at: float) -> None:
    try:
        portable(store, "adopt").adopt(bundle(header(run_id, finished=at, updated=at)))
    except Unsupported as lacks:
        pytest.skip(str(lacks))
