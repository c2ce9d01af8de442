"""Times of `cron`: what is wrong with one, told by its field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any, NamedTuple

Fault = tuple[str, str | None, str]
"""What, a hint, and the part of the text that is meant."""


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)
_SPELLED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_START = datetime(2026, 1, 1)
"""Where the search for a firing begins: fixed, so that a file is right or wrong on every day."""


def fault(text: str) -> Fault | None:
    """The first thing that is wrong with an expression."""
    shown = text.strip()
    if shown.startswith("@"):
        better = _SPELLED.get(shown.lower())
        advice = f'write "{better}"' if better else "write five fields, such as 30 2 * * 1-5"
        return f"`{shown[:40]}` is no cron expression", advice, text
    parts = shown.split()
    if len(parts) != len(FIELDS):
        return f"a cron expression has 5 fields, not {len(parts)}", _count_hint(parts), text
    for part, field in zip(parts, FIELDS, strict=True):
        found = _wrong(part, field)
        if found is not None:
            what, hint = found
            return what, hint, part
    return None


def never(text: str) -> bool:
    """Whether a readable expression has no firing, such as on 30 February."""
    try:
        return next(_times(text, _START), None) is None
    except _unreadable():
        return True


def gaps(text: str, zone: tzinfo) -> Iterator[tuple[datetime, datetime]]:
    """Local times of two years that an expression names and that a zone skips; each with the time that comes then.

    An expression for every minute or every hour simply has no firing there.
    """
    minute, hour = text.split()[:2]
    if minute.startswith("*") or hour.startswith("*"):
        return
    for start, end in _skipped(zone):
        found = next(_times(text, start - timedelta(seconds=1)), None)
        if found is not None and found < end:
            yield found, end


def _times(text: str, start: datetime) -> Any:
    from cronsim import CronSim

    return CronSim(text, start)


def _unreadable() -> type[Exception]:
    from cronsim import CronSimError

    return CronSimError


def _skipped(zone: tzinfo) -> Iterator[tuple[datetime, datetime]]:
    """The gaps in the local times of two years."""
    day = timedelta(days=1)
    for number in range(2 * 366):
        before = _START + number * day
        if (before + day).replace(tzinfo=zone).utcoffset() <= before.replace(tzinfo=zone).utcoffset():  # type: ignore[operator]
            continue
        minutes = (before + timedelta(minutes=count) for count in range(24 * 60))
        lost = [moment for moment in minutes if not _exists(moment, zone)]
        if lost:
            yield lost[0], lost[-1] + timedelta(minutes=1)


def _exists(moment: datetime, zone: tzinfo) -> bool:
    from datetime import UTC

    there = moment.replace(tzinfo=zone)
    return there.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == moment


def _count_hint(parts: list[str]) -> str:
    if len(parts) == 6:
        if any(part.endswith(",") for part in parts):
            return "leave no blanks between the numbers of a field: 1,15"
        return "there are no seconds: minute, hour, day of the month, month, day of the week"
    if len(parts) == 7:
        return "there are neither seconds nor years: minute, hour, day of the month, month, day of the week"
    return "minute, hour, day of the month, month, day of the week: 30 2 * * 1-5"


def _wrong(part: str, field: _Field) -> tuple[str, str | None] | None:
    """What is wrong with one field."""
    for item in part.split(","):
        found = _wrong_item(item, field)
        if found is not None:
            return found
    return None


def _wrong_item(item: str, field: _Field) -> tuple[str, str | None] | None:
    body, slash, step = item.partition("/")
    if slash and (not step.isdigit() or int(step) == 0):
        return f"`{item}` has no step for the {field.name}", "write */5 for every fifth"
    if body == "*" or (field.name == "day of the month" and body.upper() in ("L", "LW")):
        return None
    if field.name == "day of the week" and (found := re.fullmatch(r"(\w+)#(\d+)|(\w+)L", body, re.I | re.A)):
        if found[2] is not None and not 1 <= int(found[2]) <= 5:
            return f"`{item}`: a month has no such week", "write #1 to #5"
        body = found[1] or found[3]
    first, dash, last = body.partition("-")
    for value in (first, last) if dash else (first,):
        found_wrong = _wrong_value(value, item, field)
        if found_wrong is not None:
            return found_wrong
    if dash and _number(first, field) > _number(last, field):
        hint = (
            f"write {first}-{field.most},{field.least}-{last}"
            if first.isdigit()
            else "write both parts of it: FRI,SAT,SUN,MON"
        )
        return f"the range {item} of the {field.name} ends before it begins", hint
    return None


def _number(text: str, field: _Field) -> int:
    if text.isdigit():
        return int(text)
    return field.words.index(text.upper()) + field.least


def _wrong_value(value: str, item: str, field: _Field) -> tuple[str, str | None] | None:
    bounds = f"{field.least} to {field.most}"
    if value.isascii() and value.isdigit():
        if field.least <= int(value) <= field.most:
            return None
        return f"the {field.name} is {bounds}, not {value[:20]}", _range_hint(value, field)
    if value.upper() in field.words:
        return None
    words = f", or {field.words[0]} to {field.words[-1]}" if field.words else ""
    hint = f"the {field.name} is {bounds}{words}"
    if value[:3].upper() in field.words:
        hint = f"write {value[:3].upper()}"
    elif value == "?":
        hint = "write * for any"
    elif "W" in value.upper() or value.upper().startswith("H"):
        hint = f"there is no `{value[:10]}`: {hint}"
    return f"`{item[:40]}` is no {field.name}", hint


def _range_hint(value: str, field: _Field) -> str | None:
    if field.name == "hour" and value == "24":
        return "midnight is hour 0 of the next day"
    return "minutes go from 0" if field.name == "minute" and value == "60" else None
