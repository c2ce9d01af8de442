"""The times of schedules as they are shown: in their own zone, and in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from ._schedule_documents import Firing, Firings, TickView

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from ..timetable import Entry, Tick

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def zone_of(name: str) -> ZoneInfo:
    """A time zone; UsageError where there is none of this name."""
    from zoneinfo import ZoneInfo

    from ..errors import UsageError

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        hint = "write an IANA zone such as Europe/Berlin, or UTC"
        raise UsageError(what=f"there is no time zone '{name}'", hint=hint) from None


def firings(cron_text: str, timezone: str, start: datetime, count: int) -> Firings:
    """The next times of an expression in a zone."""
    from .. import cron

    zone = zone_of(timezone)
    times = [_firing(found.at, moved=found.moved) for found in islice(cron.firings(cron_text, zone, start), count)]
    return Firings(cron=cron_text, timezone=timezone, described=cron.described(cron_text), firings=times)


def _firing(at: datetime, *, moved: bool) -> Firing:
    weekday: Any = _DAYS[at.weekday()]
    utc = at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Firing(at=at.isoformat(), utc=utc, weekday=weekday, moved=moved)


def coming(entry: Entry, now: float, count: int = 1) -> list[Firing]:
    """When a schedule comes next; nothing while it pauses, or where nobody can say."""
    from .. import cron

    if entry.paused is not None:
        return []
    start = datetime.fromtimestamp(max(now, entry.evaluated), UTC)
    try:
        found = islice(cron.firings(entry.cron, zone_of(entry.zone), start), count)
        return [_firing(one.at, moved=one.moved) for one in found]
    except Exception:  # noqa: BLE001 - what is wrong is told as its trouble
        return []


def described(entry: Entry) -> str | None:
    """Its expression in English; None for one that cannot be read."""
    from .. import cron

    try:
        return cron.described(entry.cron)
    except Exception:  # noqa: BLE001 - what is wrong is told as its trouble
        return None


def tick_view(tick: Tick, entry: Entry | None) -> TickView:
    """What became of a time, in the zone of its schedule."""
    zone: Any = UTC
    if entry is not None:
        from ..errors import UsageError

        try:
            zone = zone_of(entry.zone)
        except UsageError:
            zone = UTC

    def spelled(at: float) -> str:
        return datetime.fromtimestamp(at, UTC).astimezone(zone).isoformat()

    return TickView(
        schedule=tick.schedule,
        at=spelled(tick.at),
        utc=datetime.fromtimestamp(tick.at, UTC).isoformat().replace("+00:00", "Z"),
        status=tick.status,
        reason=tick.reason,
        run_id=tick.run_id,
        made_up=tick.made_up,
        count=tick.count,
        until=None if tick.until is None else spelled(tick.until),
        recorded=tick.recorded,
        by=tick.by,
    )


def shown(iso: str) -> str:
    """A time for people: `2026-11-30 06:00+01:00`."""
    day, _, rest = iso.partition("T")
    clock, offset = rest[:8], rest[8:]
    return f"{day} {clock.removesuffix(':00')}{offset or 'Z'}"


def asked(text: str | None) -> datetime:
    """An instant that was asked for; now when none was."""
    import time

    from ..errors import UsageError
    from ..steps.delay import instant

    if text is None:
        return datetime.fromtimestamp(int(time.time()), UTC)
    try:
        return datetime.fromtimestamp(instant(text), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(what=f"'{text}' is no instant", hint=str(error)) from None
