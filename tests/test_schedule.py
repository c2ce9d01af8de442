"""Schedules in a file: what is taken, and what is told of those that cannot be meant."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from cronsim import CronSim, CronSimError

from tramai.check import cron

from .reading import HEAD, examine, planned, said, sound

INPUTS = "inputs: {repo: {type: string, description: d}, limit: {type: integer, default: 3, description: d}}\n"


def scheduled(schedule: str, top: str = "") -> str:
    return f"{HEAD}{top}schedules:\n  - {schedule}\nsteps:\n  - {{id: one, local: 1}}\n"


def at(text: str, zone: str = "UTC") -> str:
    return scheduled(f"{{cron: '{text}', timezone: {zone}}}")


GOOD = ["* * * * *", "30 2 * * 1-5", "*/5 0-6,20-23 1,15 * *", "0 0 * JAN-MAR mon,WED", "0 0 L * *", "0 0 LW * *"]
GOOD += ["0 9 * * 1#2", "0 9 * * 5L", "0 9 * * FRI#1", "5/15 * * * *", "0 0 * * 7", "0 0 29 2 *", "  0   0 * * 0 "]


@pytest.mark.parametrize("text", GOOD)
def test_what_the_scheduler_reads_is_taken(text: str) -> None:
    CronSim(text, datetime(2026, 1, 1))
    sound(at(text))


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("* * * *", "a cron expression has 5 fields, not 4", "minute, hour, day of the month, month, day of the week"),
        ("0 30 2 * * 1-5", "a cron expression has 5 fields, not 6", "there are no seconds"),
        ("0 0 2 * * 1 2026", "a cron expression has 5 fields, not 7", "neither seconds nor years"),
        ("0 0 1, 15 * *", "a cron expression has 5 fields, not 6", "leave no blanks"),
        ("@daily", "`@daily` is no cron expression", 'write "0 0 * * *"'),
        ("@reboot", "`@reboot` is no cron expression", "five fields"),
        ("60 * * * *", "the minute is 0 to 59, not 60", "minutes go from 0"),
        ("0 24 * * *", "the hour is 0 to 23, not 24", "midnight is hour 0"),
        ("0 0 0 * *", "the day of the month is 1 to 31, not 0", None),
        ("0 0 32 * *", "the day of the month is 1 to 31, not 32", None),
        ("0 0 * 13 *", "the month is 1 to 12, not 13", None),
        ("0 0 * * 8", "the day of the week is 0 to 7, not 8", None),
        ("*/0 * * * *", "`*/0` has no step for the minute", "*/5"),
        ("*/x * * * *", "`*/x` has no step for the minute", "*/5"),
        ("0 0 * * MONDAY", "`MONDAY` is no day of the week", "write MON"),
        ("0 0 * january *", "`january` is no month", "write JAN"),
        ("0 0 ? * *", "`?` is no day of the month", "write * for any"),
        ("0 0 15W * *", "`15W` is no day of the month", "there is no `15W`"),
        ("H 2 * * *", "`H` is no minute", "there is no `H`"),
        ("0 22-2 * * *", "the range 22-2 of the hour ends before it begins", "write 22-23,0-2"),
        ("0 0 * * FRI-MON", "the range FRI-MON of the day of the week ends before it begins", None),
        ("0 0 * * 1#6", "`1#6`: a month has no such week", "#1 to #5"),
        ("1.5 * * * *", "`1.5` is no minute", None),
        ("-5 * * * *", "`-5` is no minute", None),
        ("", "a cron expression has 5 fields, not 0", None),
    ],
)
def test_what_is_no_cron_expression_is_told_by_its_field(text: str, what: str, hint: str | None) -> None:
    found = examine(at(text))[1]
    assert [(problem.code, problem.message) for problem in found] == [("TRM380", what)]
    assert hint is None or hint in (found[0].hint or "")


def test_the_field_itself_is_marked() -> None:
    place = examine(at("0 24 * * *"))[1][0].position
    assert place is not None
    assert (place.line, place.column, place.end_column) == (4, 15, 17)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 *"])
def test_what_never_comes_is_told(text: str) -> None:
    assert said(at(text)) == [f"TRM381 `{text}` never comes"]


@pytest.mark.parametrize(
    "part", ["0-59", "*", "7", "L", "5L", "1#3", "MON", "99", "a", "1-", "-", "*/3", "3/2", "1,2", ","]
)
@pytest.mark.parametrize("position", range(5))
def test_we_take_no_field_that_the_scheduler_refuses(part: str, position: int) -> None:
    fields = ["*"] * 5
    fields[position] = part
    text = " ".join(fields)
    try:
        CronSim(text, datetime(2026, 1, 1))
    except CronSimError:
        assert cron.fault(text) is not None
    else:
        assert cron.fault(text) is None


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("PST", "America/Los_Angeles"),
        ("'+02:00'", "name a place"),
        ("UTC+2", "name a place"),
        ("local", "IANA"),
        ("''", "IANA"),
        ("../etc/passwd", "IANA"),
        ("'New York'", "America/New_York"),
    ],
)
def test_a_zone_is_the_name_of_a_place(zone: str, hint: str) -> None:
    found = examine(at("0 6 * * *", zone))[1]
    assert [problem.code for problem in found] == ["TRM382"]
    assert hint in (found[0].hint or "")


def test_utc_is_a_zone() -> None:
    for zone in ("UTC", "Etc/UTC", "Asia/Tokyo"):
        sound(at("0 6 * * *", zone))


def test_a_time_that_clocks_skip_is_a_warning() -> None:
    loaded, found = examine(at("30 2 * * *", "Europe/Berlin"))
    assert loaded is not None
    assert [(problem.code, problem.severity) for problem in found] == [("TRM383", "warning")]
    assert "03:00" in (found[0].hint or "")
    assert said(at("0 0 * * *", "America/Santiago")) == [
        "TRM383 00:00 does not exist in America/Santiago on a day when clocks go forward"
    ]
    for text in ("30 2 * * 1-5", "30 * * * *", "*/10 2 * * *", "30 3 * * *", "30 2 1 * *"):
        sound(at(text, "Europe/Berlin"))


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("", "this schedule does not give the input `repo`"),
        (", inputs: {repo: a, lmit: 3}", "input `lmit` is not declared"),
        (", inputs: {rpeo: a}", "input `rpeo` is not declared"),
        (", inputs: {repo: 7}", "input `repo` must be text, not an integer"),
        (", inputs: {repo: a, limit: many}", "input `limit` must be an integer, not text 'many'"),
        (", catchup_window: 6h, inputs: {repo: a}", "`catchup_window` has no effect: nothing is made up for"),
        (", catchup: all, catchup_window: 0s, inputs: {repo: a}", "a window of 0 leaves nothing to make up for"),
        (", inputs: {repo: '${{ run.id }}'}", "a schedule is fixed: an expression in it would never be evaluated"),
    ],
)
def test_what_a_schedule_gives_must_fit(given: str, what: str) -> None:
    found = examine(scheduled(f"{{cron: '0 6 * * *', timezone: UTC{given}}}", INPUTS))[1]
    assert [problem.message for problem in found] == [what]


@pytest.mark.parametrize(
    ("schedule", "code"),
    [
        ("{cron: '0 6 * * *'}", "TRM105"),
        ("{timezone: UTC}", "TRM105"),
        ("{cron: '0 6 * * *', timezone: UTC, catchup: lst}", "TRM107"),
        ("{cron: '0 6 * * *', timezone: UTC, overlap: wait}", "TRM107"),
        ("{cron: '0 6 * * *', tz: UTC}", "TRM104"),
        ("{cron: 5, timezone: UTC, catchup: none}", "TRM380"),
        ("0 6 * * *", "TRM106"),
    ],
)
def test_the_form_of_a_schedule_is_the_schemas(schedule: str, code: str) -> None:
    found = examine(scheduled(schedule))[1]
    assert [problem.code for problem in found][:1] == [code]


def test_a_schedule_is_part_of_the_definition_and_survives_a_rebuild() -> None:
    from tramai import plan

    full = "{cron: '30 4 * * *', timezone: Europe/Berlin, catchup: last, catchup_window: 6h, "
    full += "overlap: queue, inputs: {repo: a}}"
    made = planned(scheduled(full, INPUTS))
    again = plan.restore(made.canonical)
    assert again.digest == made.digest
    assert again.workflow.schedules == made.workflow.schedules
    assert made.workflow.schedules[0].catchup_window == 6 * 3600
    other = planned(scheduled(full.replace("30 4", "31 4"), INPUTS))
    assert other.digest != made.digest


def test_cron_is_imported_only_for_schedules(tmp_path: Path) -> None:
    def modules(text: str) -> str:
        file = tmp_path / "case.yaml"
        file.write_text(text)
        code = f"import sys; from tramai import workflow; workflow.load({str(file)!r}); print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    names = modules(HEAD + "steps:\n  - {id: one, local: 1}\n").split()
    assert "cronsim" not in names
    assert "zoneinfo" not in names
    assert "cronsim" in modules(at("0 6 * * *")).split()
