"""`delay`: an instant that is fixed once, and waited for in the process or asleep."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tramai.step import Replay
from tramai.steps.delay import Delay, instant
from tramai.stores.memory import Memory

from .step_context import made
from .written import Clockwork, again, codes, ran

TOP = "outputs: {it: '${{ steps.it.output.woke_at }}'}"


def test_a_long_delay_puts_the_run_to_sleep_until_an_instant_that_a_resume_does_not_move() -> None:
    store, clock = Memory(), Clockwork(1000.0)
    result = ran("- id: it\n  delay: 2h", TOP, store=store, clock=clock)
    assert (result.status, result.exit_status, result.wake_at) == ("sleeping", 11, 8200.0)
    clock.time = 8000.0
    early = again(store, clock=clock, wait=0.0)
    assert (early.status, early.wake_at, early.resumed) == ("sleeping", 8200.0, False)
    clock.time = 8200.0
    assert again(store, clock=clock).outputs == {"it": 8200}


def test_a_run_that_slept_too_long_goes_on_at_once() -> None:
    store, clock = Memory(), Clockwork(1000.0)
    ran("- id: it\n  delay: {for: 1h1m}", TOP, store=store, clock=clock)
    clock.time = 10**6
    assert again(store, clock=clock).outputs == {"it": 1000 + 3660}


def test_an_instant_in_the_past_means_no_wait() -> None:
    result = ran('- id: it\n  delay: {until: "2001-01-01T00:00:00Z"}', TOP)
    assert result.outputs == {"it": datetime(2001, 1, 1, tzinfo=UTC).timestamp()}


def test_a_short_delay_is_waited_for() -> None:
    store = Memory()
    assert ran("- id: it\n  delay: 5ms", TOP, store=store).status == "completed"


def test_a_duration_may_come_from_an_input_and_is_checked_then() -> None:
    top = TOP + "\ninputs: {rest: {type: string}}"
    steps = "- id: it\n  delay: ${{ inputs.rest }}"
    assert ran(steps, top, given={"rest": "3h"}).status == "sleeping"
    failed = ran(steps, top, given={"rest": "30"})
    assert failed.error is not None
    assert failed.error["type"] == "expression"
    assert "write 30s or 30m" in failed.error["message"]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("{}", "TRM342"),
        ("{for: 1s, until: '2027-01-01T00:00Z'}", "TRM342"),
        ("30", "TRM124"),
        ("-5s", "TRM124"),
        ("soon", "TRM124"),
        ("1m1h", "TRM124"),
        ("{until: tomorrow}", "TRM343"),
        ("{until: '2027-01-01T00:00'}", "TRM343"),
        ("{until: '2027-01-01T00:00Z Europe/Berlin'}", "TRM343"),
        ("{until: '2027-01-01T00:00 Europe/Atlantis'}", "TRM343"),
        ("{until: '0001-01-01T00:00+14:00'}", "TRM343"),
        ("{until: '9999-12-31T23:59-14:00'}", "TRM343"),
    ],
)
def test_what_cannot_be_read_is_refused_before_the_run(settings: str, code: str) -> None:
    assert codes(f"- id: it\n  delay: {settings}") == [code]


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2027-01-31T08:00:00Z", "2027-01-31T08:00:00"),
        ("2027-01-31T08:00+02:00", "2027-01-31T06:00:00"),
        ("2027-01-31T08:00 Europe/Berlin", "2027-01-31T07:00:00"),
        ("2027-07-31 08:00 Europe/Berlin", "2027-07-31T06:00:00"),
        ("2027-03-28T02:30 Europe/Berlin", "2027-03-28T01:30:00"),  # does not exist: the clock shows 03:30 then
        ("2027-10-31T02:30 Europe/Berlin", "2027-10-31T00:30:00"),  # happens twice: the first time
    ],
)
def test_an_instant_is_exact_also_where_clocks_change(text: str, utc: str) -> None:
    assert instant(text) == datetime.fromisoformat(utc + "+00:00").timestamp()


def test_an_instant_beyond_the_calendar_fails_the_step_and_not_tramai() -> None:
    top = TOP + "\ninputs: {then: {type: string}}"
    failed = ran("- id: it\n  delay: {until: '${{ inputs.then }}'}", top, given={"then": "9999-12-31T23:59-14:00"})
    assert failed.error is not None
    assert failed.error["type"] == "expression"
    assert "from the year 1 to 9999" in failed.error["message"]


def test_a_delay_may_be_begun_again() -> None:
    assert made(Delay, **{"for": "1s"}).replay() is Replay.REPLAYABLE
