"""When a cron expression fires in a time zone, by the rules of Debian's cron, which the library keeps.

A time that a clock change skips fires once, when the clocks have gone forward; one that comes twice fires the first
time. An expression for every minute or every hour follows the hours that there are. When both the day of the month and
the day of the week are restricted, either of them will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

_BEFORE = timedelta(hours=26)
"""More than any clock change: from so long before, what comes after an instant is the same wherever it is asked for."""

_FIRST = datetime.min.replace(tzinfo=UTC) + 2 * _BEFORE
"""Before it there is no room to look back."""


class Firing(NamedTuple):
    """One time at which runs start: an aware datetime in the zone. `moved`: the time that was meant did not exist."""

    at: datetime
    moved: bool


def firings(text: str, zone: ZoneInfo, after: datetime) -> Iterator[Firing]:
    """Every firing after an instant, in order and each once. The expression must be readable (see `check.cron`).

    They end where the calendar does.
    """
    from cronsim import CronSim

    last = max(after.astimezone(UTC), _FIRST)
    try:
        simulated = CronSim(text, (last - _BEFORE).astimezone(zone))
        for found in simulated:
            if found.astimezone(UTC) > last:
                last = found.astimezone(UTC)
                yield Firing(found, found.minute not in simulated.minutes or found.hour not in simulated.hours)
    except OverflowError:
        return  # the year 9999 is over


def described(text: str) -> str:
    """An expression in English: `At 02:30 on Monday through Friday`."""
    from cronsim import CronSim

    return str(CronSim(text, datetime(2026, 1, 1, tzinfo=UTC)).explain())
