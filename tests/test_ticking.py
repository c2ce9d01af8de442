"""What becomes of the times of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tramai import ticking
from tramai.ticking import GRACE, MOST_MADE_UP, MOST_QUEUED, NoTimes
from tramai.timetable import DUE, MISSED, QUEUED, SKIPPED, Entry, Tick, instant, tick_id

HOUR = 3600.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def schedule(since: str = "2026-11-30T00:00", cron: str = "0 * * * *", **fields: object) -> Entry:
    entry = Entry(id="wf#1", workflow="wf", version="1", digest="d", cron=cron, zone="UTC", evaluated=at(since))
    return replace(entry, **fields)


def decided(entry: Entry, now: str, going: str | None = None, queued: list[Tick] | None = None) -> list[Tick]:
    found = ticking.decide(entry, at(now), going=going, queued=queued or [], by="s")
    return [] if found is None else list(found.ticks)


def said(ticks: list[Tick]) -> list[tuple[str, str]]:
    return [(instant(tick.at)[11:16], tick.status) for tick in ticks]


def test_a_time_is_decided_when_it_has_come_and_not_before() -> None:
    entry = schedule()
    assert decided(entry, "2026-11-30T00:59:59") == []
    (tick,) = decided(entry, "2026-11-30T01:00:00")
    assert (tick.status, tick.at, tick.made_up) == (DUE, at("2026-11-30T01:00"), False)
    assert tick.id == tick_id("wf#1", at("2026-11-30T01:00"))
    decision = ticking.decide(entry, at("2026-11-30T01:00:01"), going=None, queued=[], by="s")
    assert decision is not None
    assert decision.evaluated == at("2026-11-30T01:00")
    assert decided(replace(entry, evaluated=decision.evaluated), "2026-11-30T01:00:02") == []


def test_a_clock_that_goes_back_fires_nothing_again() -> None:
    assert decided(schedule("2026-11-30T05:00"), "2026-11-30T01:00:01") == []


@pytest.mark.parametrize(
    ("catchup", "window", "wanted"),
    [
        ("none", None, [MISSED] * 5),
        ("last", None, [MISSED] * 4 + [DUE]),
        ("all", None, [DUE] + [QUEUED] * 4),
        ("all", 3 * HOUR, [MISSED] * 2 + [DUE] + [QUEUED] * 2),
        ("last", 0.4 * HOUR, [MISSED] * 5),
    ],
)
def test_what_was_missed_is_made_up_for_as_catchup_says(catchup: str, window: float | None, wanted: list[str]) -> None:
    ticks = decided(schedule(catchup=catchup, window=window), "2026-11-30T05:30")
    assert sorted((tick.at, tick.status) for tick in ticks) == [
        (at(f"2026-11-30T0{hour}:00"), status) for hour, status in enumerate(wanted, 1)
    ]
    assert all(tick.made_up for tick in ticks if tick.status != MISSED)
    assert all(tick.reason for tick in ticks if tick.status == MISSED)


def test_late_by_the_grace_is_on_time_and_by_more_is_missed() -> None:
    entry = schedule()
    (tick,) = ticking.decide(entry, at("2026-11-30T01:00") + GRACE, going=None, queued=[], by="s").ticks  # type: ignore[union-attr]
    assert (tick.status, tick.made_up) == (DUE, False)
    (tick,) = ticking.decide(entry, at("2026-11-30T01:00") + GRACE + 1, going=None, queued=[], by="s").ticks  # type: ignore[union-attr]
    assert tick.status == MISSED


def test_the_last_one_is_not_made_up_for_when_one_is_on_time() -> None:
    ticks = decided(schedule(catchup="last"), "2026-11-30T03:00:10")
    assert said(ticks) == [("01:00", MISSED), ("02:00", MISSED), ("03:00", DUE)]
    assert not ticks[-1].made_up


@pytest.mark.parametrize(("overlap", "status"), [("skip", SKIPPED), ("queue", QUEUED), ("allow", DUE)])
def test_a_run_that_goes_is_met_as_overlap_says(overlap: str, status: str) -> None:
    (tick,) = decided(schedule(overlap=overlap), "2026-11-30T01:00", going="r7")
    assert tick.status == status
    assert (tick.run_id, bool(tick.reason)) == (("r7", True) if status == SKIPPED else (None, status == QUEUED))


def test_times_that_come_together_do_not_overlap_either() -> None:
    minutely = schedule("2026-11-30T00:00", "* * * * *")
    assert said(decided(minutely, "2026-11-30T00:02:00"))[-2:] == [("00:01", DUE), ("00:02", SKIPPED)]
    queued = replace(minutely, overlap="queue")
    assert said(decided(queued, "2026-11-30T00:02:00"))[-2:] == [("00:01", DUE), ("00:02", QUEUED)]
    allowed = replace(minutely, overlap="allow")
    assert said(decided(allowed, "2026-11-30T00:02:00"))[-2:] == [("00:01", DUE), ("00:02", DUE)]


def queue(count: int) -> list[Tick]:
    return [
        Tick(id=tick_id("wf#1", n * 60.0), schedule="wf#1", at=n * 60.0, status=QUEUED, recorded=0.0, by="s")
        for n in range(count)
    ]


def test_no_more_are_queued_than_the_documentation_says() -> None:
    entry = schedule(overlap="queue")
    (tick,) = decided(entry, "2026-11-30T01:00", going="r7", queued=queue(MOST_QUEUED - 1))
    assert tick.status == QUEUED
    (tick,) = decided(entry, "2026-11-30T01:00", going="r7", queued=queue(MOST_QUEUED))
    assert (tick.status, tick.run_id) == (SKIPPED, "r7")
    assert f"{MOST_QUEUED} are queued" in (tick.reason or "")


def test_what_is_queued_has_its_turn_one_by_one_and_first() -> None:
    entry = schedule(overlap="queue")
    (tick,) = decided(entry, "2026-11-30T00:30", queued=queue(3))
    assert (tick.at, tick.status, tick.reason) == (0.0, DUE, None)
    assert decided(entry, "2026-11-30T00:30", going="r7", queued=queue(3)) == []
    assert said(decided(entry, "2026-11-30T01:00", queued=queue(2))) == [("00:00", DUE), ("01:00", QUEUED)]
    assert [tick.status for tick in decided(replace(entry, overlap="allow"), "2026-11-30T00:30", queued=queue(3))] == [
        DUE, DUE, DUE
    ]  # fmt: skip


def test_a_long_gap_is_a_few_rows_that_say_how_many() -> None:
    ticks = decided(schedule("2026-11-01T00:00", "* * * * *"), "2026-11-03T00:00:30")
    assert len(ticks) < 30
    assert sum(tick.count for tick in ticks) == 2 * 24 * 60
    assert [tick.status for tick in ticks[-1:]] == [DUE]
    first = ticks[0]
    assert (instant(first.at), first.status) == ("2026-11-01T00:01:00Z", MISSED)
    assert first.until is not None
    assert first.until < ticks[1].at
    years = decided(schedule("2020-01-01T00:00", "* * * * *", catchup="all"), "2026-11-03T00:00:30")
    assert len([tick for tick in years if tick.status != MISSED]) == MOST_MADE_UP
    assert "more than 10,000" in (years[0].reason or "")


def test_all_of_a_gap_can_be_missed_for_one_reason() -> None:
    ticks = ticking.missed(schedule(), at("2026-11-30T03:30"), "it was paused", "ann")
    assert [(tick.status, tick.reason, tick.by) for tick in ticks] == [(MISSED, "it was paused", "ann")] * 3
    assert ticking.missed(schedule(), at("2026-11-30T00:30"), "it was paused", "ann") == ()


@pytest.mark.parametrize(("cron", "zone"), [("0 * * * *", "Mars/Olympus"), ("nonsense", "UTC"), ("0 0 * * *", "../x")])
def test_times_that_cannot_be_reckoned_are_told(cron: str, zone: str) -> None:
    with pytest.raises(NoTimes, match="wf#1"):
        ticking.next_after(schedule(cron=cron, zone=zone), 0.0)


NIGHTS = [
    ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
    ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ("America/New_York", "30 2 * * *", "2026-03-07T12:00", ["2026-03-08T07:00", "2026-03-09T06:30"]),
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00", ["2026-11-01T05:30", "2026-11-02T06:30"]),
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00", ["2026-10-03T15:30", "2026-10-04T15:15"]),
    ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00", ["2026-04-04T14:45", "2026-04-05T15:15"]),
    ("America/Santiago", "0 0 * * *", "2026-09-05T12:00", ["2026-09-06T04:00", "2026-09-07T03:00"]),
    ("Africa/Cairo", "0 0 * * *", "2026-04-23T12:00", ["2026-04-23T22:00", "2026-04-24T21:00"]),
]


@pytest.mark.parametrize(("zone", "cron", "since", "wanted"), NIGHTS)
def test_a_night_in_which_clocks_change_fires_each_time_once(
    zone: str, cron: str, since: str, wanted: list[str]
) -> None:
    entry = schedule(since, cron, zone=zone)
    fired = []
    now = at(since)
    while len(fired) < len(wanted) and now < at(since) + 3 * 86400:
        found = ticking.decide(entry, now, going=None, queued=[], by="s")
        if found is not None:
            fired += [instant(tick.at)[:16] for tick in found.ticks]
            assert [tick.status for tick in found.ticks] == [DUE]
            entry = replace(entry, evaluated=found.evaluated)
        now = min(ticking.next_after(entry, now) or now, now + 3600) + 0.5
    assert fired == wanted


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.integers(1, 6 * 3600), min_size=1, max_size=12),
    catchup=st.sampled_from(["none", "last", "all"]),
    overlap=st.sampled_from(["skip", "queue", "allow"]),
    cron=st.sampled_from(["*/20 * * * *", "0 * * * *", "7 */3 * * *"]),
)
def test_whenever_one_looks_each_time_is_decided_once(steps: list[int], catchup: str, overlap: str, cron: str) -> None:
    entry = schedule(cron=cron, catchup=catchup, overlap=overlap)
    start, now = entry, entry.evaluated
    seen: list[Tick] = []
    for step in steps:
        now += step
        found = ticking.decide(entry, now, going=None, queued=[], by="s")
        if found is not None:
            seen += found.ticks
            entry = replace(entry, evaluated=found.evaluated)
    spans = sorted((tick.at, tick.until or tick.at) for tick in seen)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    assert sum(tick.count for tick in seen) == len(ticking.slots(start, now).latest) + ticking.slots(start, now).before
