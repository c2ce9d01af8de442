"""`tramai schedule preview` on files and expressions."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from tests.cli.conftest import write

Call = Callable[..., Result]
FLOW = """\
tramai: 1
name: nightly
schedules:
  - {cron: "30 2 * * *", timezone: Europe/Berlin}
  - {cron: "0 8 * * 1", timezone: UTC}
steps:
  - {id: a, shell: echo a}
"""


def test_the_schedules_of_a_file_are_shown_in_their_own_zones(tramai: Call) -> None:
    write("nightly.yaml", FLOW)
    result = tramai("schedule", "preview", "nightly.yaml", "-n", "2", "--after", "2026-03-28T12:00:00Z")
    assert result.exit_code == 0
    assert result.stdout == (
        "30 2 * * *  Europe/Berlin  At 02:30 every day\n"
        "  Sun 2026-03-29 03:00:00+02:00  2026-03-29T01:00:00Z  moved: the clocks go forward\n"
        "  Mon 2026-03-30 02:30:00+02:00  2026-03-30T00:30:00Z\n"
        "\n"
        "0 8 * * 1  UTC  At 08:00 on Monday\n"
        "  Mon 2026-03-30 08:00:00+00:00  2026-03-30T08:00:00Z\n"
        "  Mon 2026-04-06 08:00:00+00:00  2026-04-06T08:00:00Z\n"
    )


def test_now_is_where_it_begins_when_nothing_is_said(tramai: Call) -> None:
    result = tramai("schedule", "preview", "* * * * *", "--json")
    found = json.loads(result.stdout)
    assert len(found["schedules"][0]["firings"]) == 10
    assert found["schedules"][0]["firings"][0]["utc"] > found["after"].replace("+00:00", "Z")


def test_a_file_without_schedules_says_so(tramai: Call) -> None:
    write("plain.yaml", "tramai: 1\nname: plain\nsteps:\n  - {id: a, shell: echo a}\n")
    result = tramai("schedule", "preview", "plain.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no `schedules`" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("61 * * * *",), 2, "the minute is 0 to 59"),
        (("0 0 30 2 *",), 2, "never comes"),
        (("0 0 * * *", "--tz", "Mars/Base"), 2, "there is no time zone 'Mars/Base'"),
        (("0 0 * * *", "--after", "tomorrow"), 2, "'tomorrow' is no instant"),
        (("0 0 * * *", "-n", "0"), 2, "0"),
        (("nightly.yaml", "--tz", "UTC"), 2, "leave --tz out"),
        (("gone.yaml",), 3, "gone.yaml"),
        ((), 2, "FILE|CRON"),
    ],
)
def test_what_cannot_be_shown_is_said(tramai: Call, arguments: tuple[str, ...], status: int, said: str) -> None:
    write("nightly.yaml", FLOW)
    result = tramai("schedule", "preview", *arguments)
    assert result.exit_code == status
    assert said in result.stderr
