"""`tramai schedule`: when workflows start by themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import click

from ._group import noun, verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from datetime import datetime

    from ..schedule import Schedule
    from ._schedule_documents import Firings

MOST = 1000


@verb(
    "preview",
    "tramai schedule preview nightly.yaml",
    'tramai schedule preview "30 2 * * 1-5" --tz Europe/Berlin -n 20',
    "tramai schedule preview nightly.yaml --after 2027-03-27T00:00:00Z --json",
    summary="Show when runs would start.",
)
@click.argument("what", metavar="FILE|CRON")
@click.option("--tz", "zone", metavar="ZONE", help="The IANA zone of a cron expression; UTC when none is given.")
@click.option("-n", "--count", type=click.IntRange(1, MOST), default=10, show_default=True, help="How many times each.")
@click.option("--after", metavar="INSTANT", help="From when on; now when none is given.")
def preview(session: Session, what: str, zone: str | None, count: int, after: str | None) -> int:
    """Show the next times at which the schedules of a workflow file, or a cron
    expression, start a run, in their own zone and in UTC.

    A time that a clock change skips is moved to where the clocks go on, and one
    that comes twice counts once; both are said. Nothing is started or stored.

    Exit status: 0 shown, 2 no such zone or a wrong expression, 3 a file is
    invalid or cannot be read.
    """
    from . import _schedule_documents

    start = _instant(session, after)
    found = [_firings(schedule, start, count) for schedule in _schedules(session, what, zone)]
    if session.json:
        session.emit(_schedule_documents.SchedulePreview(after=start.isoformat(), schedules=found))
        return 0
    if not found:
        session.note(f"{safe(what)} has no `schedules`")
    for index, each in enumerate(found):
        if index:
            session.out.line("")
        session.out.line(f"{safe(each.cron)}  {safe(each.timezone)}  {each.described}")
        for firing in each.firings:
            moved = "  moved: the clocks go forward" if firing.moved else ""
            session.out.line(f"  {firing.weekday} {firing.at[:10]} {firing.at[11:]}  {firing.utc}{moved}")
    return 0


def _schedules(session: Session, what: str, zone: str | None) -> Sequence[Schedule]:
    """Those of a file, or the one of an expression."""
    from ..errors import UsageError
    from ..schedule import Schedule

    if len(what.split()) < 2 or os.path.exists(what):
        if zone is not None:
            raise UsageError(what="a file says the zone of each of its schedules", hint="leave --tz out")
        from . import _load

        return _load.plan_of(session, what).workflow.schedules
    from ..check import cron

    found = cron.fault(what)
    if found is not None:
        raise UsageError(what=found[0], hint=found[1])
    if cron.never(what):
        raise UsageError(what=f"`{what}` never comes", hint="no month that it names has such a day")
    return (Schedule(cron=what, timezone=zone or "UTC"),)


def _firings(schedule: Schedule, start: datetime, count: int) -> Firings:
    from datetime import UTC
    from zoneinfo import ZoneInfo

    from .. import cron
    from ..errors import UsageError
    from ._schedule_documents import Firing, Firings

    try:
        zone = ZoneInfo(schedule.timezone)
    except (KeyError, ValueError, OSError):
        hint = "write an IANA zone such as Europe/Berlin, or UTC"
        raise UsageError(what=f"there is no time zone '{schedule.timezone}'", hint=hint) from None
    times = [
        Firing(
            at=found.at.isoformat(),
            utc=found.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            weekday=("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[found.at.weekday()],
            moved=found.moved,
        )
        for found in islice(cron.firings(schedule.cron, zone, start), count)
    ]
    described = cron.described(schedule.cron)
    return Firings(cron=schedule.cron, timezone=schedule.timezone, described=described, firings=times)


def _instant(session: Session, text: str | None) -> datetime:
    import time
    from datetime import UTC, datetime

    from ..errors import UsageError
    from ..steps.delay import instant

    if text is None:
        return datetime.fromtimestamp(int(time.time()), UTC)
    try:
        return datetime.fromtimestamp(instant(text), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(what=f"'{text}' is no instant", hint=str(error)) from None


TEXT = """Look at the schedules of workflows: when runs start by themselves.

Exit status: that of the verb; 2 for none.
"""

command = noun(
    "schedule",
    TEXT,
    (preview,),
    "tramai schedule preview nightly.yaml",
    'tramai schedule preview "30 2 * * 1-5" --tz Europe/Berlin',
)
