"""Delays: long ones, those that are over, clocks that jump, and days on which clocks change."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from tests.written import Clockwork, again, ran
from tramai import engine
from tramai.stores.memory import Memory

from .support import call, problems, save, shown, text_of

# J01


@pytest.mark.parametrize("days", [30, 400, 10_000])
def test_a_delay_of_any_length_is_exact(days: int) -> None:
    save(f"- {{id: rest, delay: {days}d}}\n- {{id: after, shell: echo x >> effects}}")
    before = time.time()
    ended = call("run", "case.yaml")
    assert (ended.status, ended.last["status"]) == (11, "sleeping")
    run = shown()
    assert before + days * 86_400 <= run["wake_at"] <= time.time() + days * 86_400
    early = call("resume", "@last")
    assert (early.status, early.last["status"]) == (11, "sleeping")
    assert {key: value for key, value in shown().items() if key != "events"} == {
        key: value for key, value in run.items() if key != "events"
    }
    said = text_of("resume", "@last")
    assert "sleeping until" in said


# J03


@pytest.mark.parametrize("settings", ["0s", "{for: 0ms}", "{until: '2001-01-01T00:00:00Z'}"])
def test_a_delay_that_is_over_goes_on_at_once(settings: str) -> None:
    save(f"- {{id: rest, delay: {settings}}}")
    began = time.monotonic()
    assert call("run", "case.yaml", "--wait", "0s").status == 0
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("settings", ["-5s", "{for: -5s}", "'-PT5S'"])
def test_a_negative_delay_is_no_delay(settings: str) -> None:
    save(f"- {{id: rest, delay: {settings}}}")
    (problem,) = problems("case.yaml")
    assert (problem["code"], problem["line"]) == ("TRM124", 5)


def test_a_timeout_of_a_delay_is_refused_as_it_would_mean_nothing() -> None:
    save("- {id: rest, delay: 60s, timeout: 2s}")
    assert [problem["code"] for problem in problems("case.yaml")] == ["TRM360"]


@pytest.mark.parametrize("beside", ["", "\n- {id: never, local: 1}"])
def test_the_time_of_the_run_ends_a_delay_that_is_waited_for_and_a_resume_waits_no_second_time(beside: str) -> None:
    save(f"- {{id: rest, delay: 60s}}{beside}", "limits: {timeout: 500ms}")
    began = time.monotonic()
    assert call("run", "case.yaml").status == 1
    assert call("resume", "@last").status == 1
    assert time.monotonic() - began < 30
    error = shown()["error"]
    assert (error["type"], error["step"]) == ("limit", "rest")


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_jumps_makes_no_step_run_twice(jump: float) -> None:
    store = Memory()
    steps = "- {id: rest, delay: 10s}\n- {id: after, local: '${{ steps.rest.output.woke_at }}'}"
    top = "outputs: {it: '${{ steps.after.output }}'}"
    clock = Clockwork(1_000_000.0)
    assert ran(steps, top, store=store, clock=clock, wait=0.0).wake_at == 1_000_010.0
    clock.time += jump
    early = again(store, clock=clock, wait=0.0)
    if jump < 0:
        assert (early.status, early.wake_at) == ("sleeping", 1_000_010.0)
        clock.time = 1_000_010.0
        early = again(store, clock=clock, wait=0.0)
    assert early.outputs == {"it": 1_000_010}
    assert [record.path for record in store.journal(_only(store)) if record.mark.value == "completed"] == [
        "rest",
        "after",
    ]


def _only(store: Memory) -> str:
    (run,), _ = store.page(limit=2)
    return run.run_id


# J04


@pytest.mark.parametrize(
    ("until", "utc"),
    [
        ("2125-03-25T02:30 Europe/Rome", "2125-03-25T01:30:00+00:00"),  # the clock shows 03:30 then
        ("2125-10-28T02:30 Europe/Rome", "2125-10-28T00:30:00+00:00"),  # the first of the two
        ("2125-03-24T12:00 Europe/Rome", "2125-03-24T11:00:00+00:00"),
    ],
)
def test_a_local_time_that_is_missing_or_comes_twice_is_one_instant(until: str, utc: str) -> None:
    save(f"- {{id: rest, delay: {{until: '{until}'}}}}")
    assert call("run", "case.yaml").status == 11
    assert shown()["wake_at"] == datetime.fromisoformat(utc).timestamp()


def test_a_time_without_a_zone_is_refused() -> None:
    save("- {id: rest, delay: {until: '2125-03-30T02:30'}}")
    (problem,) = problems("case.yaml")
    assert problem["code"] == "TRM343"


def test_a_day_is_86_400_seconds() -> None:
    clock = Clockwork(1_743_202_800.0)  # the evening before the clocks of Rome go forward
    result: engine.Result = ran("- {id: rest, delay: 1d}", store=Memory(), clock=clock)
    assert result.wake_at == clock.time + 86_400
