"""Cron: what others got wrong about the times at which things start."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from click.testing import Result

from tramai import cron

Call = Callable[..., Result]


def preview(tramai: Call, text: str, zone: str, after: str, count: int) -> list[str]:
    """The times that the command shows, local."""
    result = tramai("schedule", "preview", text, "--tz", zone, "--after", after, "-n", str(count), "--json")
    assert result.exit_code == 0, result.stderr
    (one,) = json.loads(result.stdout)["schedules"]
    return [firing["at"] for firing in one["firings"]]


def test_a_time_that_does_not_exist_comes_once_and_right_after(tramai: Call) -> None:
    wanted = ["2025-03-29T02:30:00+01:00", "2025-03-30T03:00:00+02:00", "2025-03-31T02:30:00+02:00"]
    for minute in ("00:00", "00:01", "01:29"):
        assert preview(tramai, "30 2 * * *", "Europe/Rome", f"2025-03-29T{minute} Europe/Rome", 3) == wanted
    assert preview(tramai, "0 5 * * 7", "Europe/Rome", "2025-03-29T00:00 Europe/Rome", 1) == [
        "2025-03-30T05:00:00+02:00"
    ]


def test_a_midnight_that_does_not_exist_ends_no_search(tramai: Call) -> None:
    assert preview(tramai, "0 0 * * 0", "America/Santiago", "2022-08-21T05:00Z", 4) == [
        "2022-08-28T00:00:00-04:00",
        "2022-09-04T00:00:00-04:00",
        "2022-09-11T01:00:00-03:00",
        "2022-09-18T00:00:00-03:00",
    ]
    start = datetime(2022, 8, 21, tzinfo=UTC)
    for zone in ("America/Santiago", "Europe/Berlin", "Asia/Beirut", "Africa/Cairo", "America/Havana"):
        found = [one.at.astimezone(UTC) for one in islice(cron.firings("0 0 * * 0", ZoneInfo(zone), start), 1000)]
        assert len(found) == 1000
        assert all(one < other for one, other in pairwise(found))


def test_a_day_is_met_by_either_of_two_restrictions(tramai: Call) -> None:
    days = preview(tramai, "0 0 13 * 5", "UTC", "2022-12-31T23:59Z", 7)
    assert [day[5:10] for day in days] == ["01-06", "01-13", "01-20", "01-27", "02-03", "02-10", "02-13"]
    march = preview(tramai, "0 0 5 3 1-7", "UTC", "2025-02-28T00:00Z", 31)
    assert [day[:10] for day in march] == [f"2025-03-{day:02}" for day in range(1, 32)]
    third = preview(tramai, "0 0 8 * 5#3", "UTC", "2024-01-01T00:00Z", 4)
    assert [day[:10] for day in third] == ["2024-01-08", "2024-01-19", "2024-02-08", "2024-02-16"]


def test_steps_sundays_and_last_days(tramai: Call) -> None:
    steps = preview(tramai, "*/7 * * * *", "UTC", "2025-01-01T10:50Z", 4)
    assert [time[11:16] for time in steps] == ["10:56", "11:00", "11:07", "11:14"]
    assert {
        datetime.fromisoformat(day).weekday() for day in preview(tramai, "0 0 * * 7", "UTC", "2025-01-01T00:00Z", 9)
    } == {6}
    last = preview(tramai, "0 0 L * *", "UTC", "2024-02-01T00:00Z", 3)
    assert [day[:10] for day in last] == ["2024-02-29", "2024-03-31", "2024-04-30"]
    both = preview(tramai, "0 0 L,15 * *", "UTC", "2024-02-01T00:00Z", 3)
    assert [day[:10] for day in both] == ["2024-02-15", "2024-02-29", "2024-03-15"]


@pytest.mark.parametrize("text", ["0 9 15W * *", "0 9 1W * *"])
def test_what_is_not_known_is_refused_and_never_guessed(tramai: Call, text: str) -> None:
    result = tramai("schedule", "preview", text)
    assert result.exit_code == 2
    assert "W" in result.stderr


def test_a_zone_is_the_schedules_own_and_one_that_is_unknown_is_refused(tramai: Call) -> None:
    result = tramai("schedule", "preview", "0 6 * * *", "--tz", "Asia/Tokyo", "--after", "2025-01-01T00:00Z", "-n", "1")
    assert "2025-01-01T21:00:00Z" in result.stdout
    assert tramai("schedule", "preview", "0 6 * * *", "--tz", "Asia/Tokio").exit_code == 2
