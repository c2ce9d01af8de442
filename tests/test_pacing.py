"""How many runs a slot is given ahead, by how fast it ended the last ones."""

from __future__ import annotations

from tramai.pacing import TOGETHER, Pace, lasts


def after(*spans: float, beside: bool = False) -> Pace:
    pace, now = Pace(), 100.0
    for spent in spans:
        now += spent
        pace.ended(now, spent, beside=beside)
    return pace


def test_a_slot_of_which_nothing_is_known_is_given_one_run() -> None:
    assert (Pace().room(0), Pace().room(1)) == (1, 0)


def test_brief_runs_are_given_ahead_more_each_time_and_no_more_than_end_in_a_moment() -> None:
    assert [after(*[0.001] * count).room(0) for count in (1, 2, 3, 9)] == [2, 4, 8, 64]
    assert after(*[0.03] * 9).room(0) == 3
    assert after(*[0.15] * 9).room(0) == 1


def test_runs_that_are_carried_together_are_given_in_number() -> None:
    assert after(*[0.15] * 9, beside=True).room(0) == TOGETHER


def test_nothing_more_is_given_before_half_is_done() -> None:
    pace = after(*[0.001] * 9)
    assert (pace.room(33), pace.room(32), pace.room(0)) == (0, 32, 64)


def test_one_that_lasts_ends_it() -> None:
    assert after(*[0.001] * 9, lasts(together=False) + 0.01).room(0) == 1
    assert after(*[0.001] * 9, lasts(together=True) - 0.01, beside=True).room(0) > 1
    pace = after(*[0.001] * 9)
    pace.slow()
    assert pace.room(0) == 1
