"""Cron: what others got wrong about the times at which things start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import Result
from msgspec.structs import replace

from tramai import cron
from tramai.scheduler import Scheduler
from tramai.store import Note
from tramai.stores import open_store
from tramai.testing.clock import FakeClock
from tramai.timetable import timetabled

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


FLOW = """\
tramai: 1
name: wf
schedules:
  - {{cron: "{cron}", timezone: {zone}, {more}}}
steps:
  - {{id: a, local: 1}}
"""


def registered(tramai: Call, cron: str, zone: str, more: str = "overlap: allow") -> dict[str, Any]:
    """Register a schedule as a deployment does; how the list shows it."""
    Path("wf.yaml").write_text(FLOW.format(cron=cron, zone=zone, more=more), encoding="utf-8")
    assert tramai("schedule", "apply", "wf.yaml").exit_code == 0
    (one,) = json.loads(tramai("schedule", "list", "--json").stdout)["schedules"]
    return dict(one)


_NIGHTS: list[Night] = []


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Nights end with their test, and so do their stores."""
    yield
    while _NIGHTS:
        _NIGHTS.pop().store.close()


class Night:
    """A store, the hours, and schedulers that come and go."""

    def __init__(self, tramai: Call, start: str) -> None:
        self._tramai = tramai
        _NIGHTS.append(self)
        self.store = timetabled(open_store("sqlite:.tramai/tramai.db"))
        self.clock = FakeClock(datetime.fromisoformat(start).timestamp())
        (entry,) = self.store.roster(now=self.clock.now()).entries
        assert self.store.enroll(replace(entry, evaluated=self.clock.now()), after=entry.revision) is not None

    def scheduler(self) -> Scheduler:
        """A new one, as after a start."""
        return Scheduler(self.store, lambda kind, about: None, by="s", clock=self.clock)

    def until(self, when: str) -> None:
        """Let time pass."""
        self.clock.jump(datetime.fromisoformat(when).timestamp() - self.clock.now())

    def end_runs(self) -> None:
        """Whatever was started ends."""
        for run in self.store.page(limit=99)[0]:
            if not run.status.terminal:
                self.store.request_cancel(run.run_id, Note(at=0.0, type="cancel.requested"), now=self.clock.now())

    def slots(self) -> list[str]:
        """What the runs of the schedule stand for, as their labels say."""
        runs = json.loads(self._tramai("list", "--label", "schedule:wf#1", "--json").stdout)["runs"]
        labels = (label for run in runs for label in run["labels"])
        return sorted(label[len("slot:2025-01-01T") :][:5] for label in labels if label.startswith("slot:"))

    def told(self) -> list[tuple[str, str]]:
        """What the history says of each time."""
        ticks = json.loads(self._tramai("schedule", "history", "--json").stdout)["ticks"]
        return sorted((tick["utc"][11:16], tick["status"]) for tick in ticks)


def test_an_edit_changes_what_is_listed_and_what_fires_within_one_look(tramai: Call) -> None:
    assert registered(tramai, "0 6 * * *", "Asia/Tokyo")["next"]["utc"][11:] == "21:00:00Z"
    night = Night(tramai, "2025-01-01T00:00+00:00")
    running = night.scheduler()
    assert running.turn() == 21 * 3600
    shown = registered(tramai, "0 8 * * *", "Asia/Tokyo")
    assert (shown["cron"], shown["next"]["at"][10:16]) == ("0 8 * * *", "T08:00")
    assert '"0 8 * * *"' in tramai("schedule", "list", "--json").stdout
    (entry,) = night.store.roster(now=0.0).entries
    assert night.store.enroll(replace(entry, evaluated=night.clock.now()), after=entry.revision) is not None
    assert running.turn() == 23 * 3600
    night.until("2025-01-01T21:00:30+00:00")
    running.turn()
    assert night.slots() == []
    night.until("2025-01-01T23:00:00+00:00")
    running.turn()
    assert night.slots() == ["23:00"]


def test_the_day_on_which_something_ran_is_that_of_the_schedules_zone(tramai: Call) -> None:
    registered(tramai, "15 0 * * *", "Europe/Paris")
    night = Night(tramai, "2025-01-01T12:00+00:00")
    night.until("2025-01-01T23:15:00+00:00")
    night.scheduler().turn()
    (tick,) = json.loads(tramai("schedule", "history", "--json").stdout)["ticks"]
    assert (tick["at"], tick["utc"]) == ("2025-01-02T00:15:00+01:00", "2025-01-01T23:15:00Z")
    assert "2025-01-02 00:15+01:00" in tramai("schedule", "history").stdout
    assert "2025-01-02 00:15+01:00" in tramai("schedule", "list").stdout


@pytest.mark.parametrize(("catchup", "made_up"), [("none", 0), ("last", 1), ("all", 5)])
def test_what_was_missed_is_made_up_for_by_the_policy_and_nothing_twice(
    tramai: Call, catchup: str, made_up: int
) -> None:
    registered(tramai, "0 * * * *", "UTC", f"catchup: {catchup}, overlap: queue")
    night = Night(tramai, "2024-12-31T23:30+00:00")
    night.until("2025-01-01T00:00:00+00:00")
    night.scheduler().turn()
    night.scheduler().turn()  # it crashed right after it had fired, and was started again
    assert night.slots() == ["00:00"]
    night.end_runs()

    night.until("2025-01-01T05:30:00+00:00")
    running = night.scheduler()
    for _ in range(7):
        running.turn()
        night.end_runs()
    wanted = ["00:00", *(f"{hour:02}:00" for hour in range(6 - made_up, 6))]
    assert night.slots() == wanted
    logged = [(f"{hour:02}:00", "fired" if f"{hour:02}:00" in wanted else "missed") for hour in range(6)]
    assert night.told() == logged

    night.until("2025-01-01T05:40:00+00:00")
    assert tramai("schedule", "run", "wf").exit_code == 0  # by hand, and it goes on and on
    running.turn()
    night.until("2025-01-01T06:00:00+00:00")
    running.turn()
    assert night.slots() == [*wanted, "06:00"]

    night.until("2025-01-01T07:00:00+00:00")  # the run of 06:00 still goes
    running.turn()
    assert night.slots() == [*wanted, "06:00"]
    assert night.told() == [*logged, ("06:00", "fired"), ("07:00", "queued")]
    night.end_runs()
    running.turn()
    assert night.slots() == [*wanted, "06:00", "07:00"]
