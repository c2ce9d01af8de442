"""When cron expressions fire: exactly, in order, once, on days when clocks change too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tramai import cron

ZONES = ("Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Africa/Casablanca")


def listed(text: str, zone: str, after: str, count: int) -> list[str]:
    """The next firings: local time, offset, and `moved`."""
    found = islice(cron.firings(text, ZoneInfo(zone), datetime.fromisoformat(after)), count)
    return [f"{one.at:%m-%d %H:%M%z}" + (" moved" if one.moved else "") for one in found]


@pytest.mark.parametrize(
    ("text", "zone", "after", "times"),
    [
        # Clocks go forward by an hour: from 02:00 to 03:00.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["03-29 03:00+0200 moved", "03-30 02:30+0200"]),
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["03-29 03:00+0200 moved", "03-30 02:00+0200"]),
        ("15 1-3 * * *", "Europe/Berlin", "2026-03-28T22:00Z", ["03-29 01:15+0100", "03-29 03:00+0200 moved"]),
        ("0 * * * *", "Europe/Berlin", "2026-03-29T00:30Z", ["03-29 03:00+0200", "03-29 04:00+0200"]),
        ("30 2 * * *", "America/New_York", "2026-03-07T12:00Z", ["03-08 03:00-0400 moved", "03-09 02:30-0400"]),
        # Midnight itself is skipped.
        ("0 0 * * *", "America/Santiago", "2026-09-05T12:00Z", ["09-06 01:00-0300 moved", "09-07 00:00-0300"]),
        # Half an hour only: from 02:00 to 02:30.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", ["10-04 02:30+1100 moved", "10-05 02:15+1100"]),
        # Clocks go back: what comes twice fires the first time, what fires every hour follows the hours there are.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("30 1 * * *", "America/New_York", "2026-10-31T12:00Z", ["11-01 01:30-0400", "11-02 01:30-0500"]),
        ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z", ["10-25 02:30+0200", "10-25 02:30+0100"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00Z", ["04-05 01:45+1100", "04-06 01:45+1030"]),
        # A month in which the offset is another one.
        ("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00Z", ["02-15 02:30+0100", "02-16 02:30+0000"]),
    ],
)
def test_a_night_in_which_clocks_change(text: str, zone: str, after: str, times: list[str]) -> None:
    assert listed(text, zone, after, len(times)) == times


TEXTS = some.sampled_from(
    [
        "30 2 * * *",
        "*/20 * * * *",
        "0 */3 * * *",
        "15,45 0-4 * * *",
        "0 0 * * 0",
        "0 12 1,15 * *",
        "59 23 L * *",
        "5 1 * * 1",
    ]
)
INSTANTS = some.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


@given(TEXTS, some.sampled_from(ZONES), INSTANTS)
def test_firings_only_go_forward_and_come_after_the_instant(text: str, zone: str, after: datetime) -> None:
    found = [one.at.astimezone(UTC) for one in islice(cron.firings(text, ZoneInfo(zone), after), 12)]
    assert all(one < other for one, other in pairwise((after, *found)))


@given(TEXTS, some.sampled_from(ZONES), INSTANTS, some.integers(1, 5))
def test_the_list_is_the_same_wherever_it_is_asked_for(text: str, zone: str, after: datetime, skipped: int) -> None:
    found = [one.at for one in islice(cron.firings(text, ZoneInfo(zone), after), 10)]
    for start in (found[skipped - 1], found[skipped - 1] + timedelta(seconds=1)):
        rest = [one.at for one in islice(cron.firings(text, ZoneInfo(zone), start), 10 - skipped)]
        assert rest == found[skipped:]


def test_an_expression_is_told_in_words() -> None:
    assert cron.described("30 2 * * 1-5") == "At 02:30 on Monday through Friday"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_calendar_has_a_first_day_and_a_last(zone: str) -> None:
    first = next(cron.firings("0 0 1 1 *", ZoneInfo(zone), datetime.min.replace(tzinfo=UTC)))
    assert first.at.year == 2
    last = list(cron.firings("0 12 * * *", ZoneInfo(zone), datetime(9999, 12, 28, tzinfo=UTC)))
    assert [one.at.day for one in last[:2]] == [28, 29]
    assert all(one.at.year == 9999 for one in last)
    assert list(cron.firings("0 0 29 2 *", ZoneInfo(zone), datetime.max.replace(tzinfo=UTC))) == []
