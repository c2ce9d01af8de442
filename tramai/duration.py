"""Durations as people write them: `500ms`, `90s`, `1h30m`, `2d`, or ISO 8601 `PT5M`."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", re.ASCII)
_ISO = r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
"""Compiled by `re` when a file has such a duration."""
LONGEST = 100 * 365 * 86400.0
PATTERN = (
    r"^\s*(?=[0-9P])([0-9]+(\.[0-9]+)?w)?([0-9]+(\.[0-9]+)?d)?([0-9]+(\.[0-9]+)?h)?([0-9]+(\.[0-9]+)?m)?"
    r"([0-9]+(\.[0-9]+)?s)?([0-9]+(\.[0-9]+)?ms)?\s*$"
    r"|^\s*P(?=[0-9T])([0-9]+W)?([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?\s*$"
)
"""What `parse` takes, for editors."""


class Duration(float):
    """Seconds, never negative. A day is 86,400 seconds, whatever the clocks do."""

    def json_default(self) -> str:
        """How a file would say it."""
        return spell(self)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What a file may hold here."""
        return {
            "type": "string",
            "title": "duration",
            "pattern": PATTERN,
            "description": "A duration: 500ms, 90s, 1h30m, 2d, or ISO 8601.",
            "examples": ["90s", "1h30m"],
        }


def parse(text: str) -> Duration:
    """Seconds of a duration text; ValueError with a hint when it is none."""
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        raise ValueError(f"{text} what? write {text}s or {text}m")
    if text.startswith("-"):
        raise ValueError("a duration cannot be negative")
    seconds = _iso(text) if text.startswith("P") else _short(text)
    if seconds > LONGEST:
        raise ValueError("a duration cannot be longer than 100 years")
    return Duration(seconds)


_WORDS = {"ms": "ms", "msec": "ms", "millis": "ms", "milliseconds": "ms", "s": "s", "sec": "s", "secs": "s"}
_WORDS |= {"second": "s", "seconds": "s", "m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m"}
_WORDS |= {"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "d": "d", "day": "d", "days": "d"}
_WORDS |= {"w": "w", "week": "w", "weeks": "w"}


def _meant(text: str) -> str | None:
    """How a duration in other words is written."""
    if re.fullmatch(r"\d{1,2}:\d\d(:\d\d)?", text, re.ASCII):
        hours, minutes, seconds = ([*map(int, text.split(":")), 0])[:3]
        return "".join(f"{value}{unit}" for value, unit in ((hours, "h"), (minutes, "m"), (seconds, "s")) if value)
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", text, re.ASCII)
    if not parts or re.sub(r"[\d.\sA-Za-z,]|and", "", text) or any(unit.lower() not in _WORDS for _, unit in parts):
        return None
    return "".join(number + _WORDS[unit.lower()] for number, unit in parts)


def _short(text: str) -> float:
    position, total, last = 0, 0.0, float("inf")
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or _UNITS[part[2]] >= last:
            if "${{" in text:
                raise ValueError("this is fixed and never templated: write 500ms, 90s, 5m, 1h30m or 2d")
            better = _meant(text)
            raise ValueError(f"write {better}" if better else "write a duration as 500ms, 90s, 5m, 1h30m or 2d")
        last = _UNITS[part[2]]
        total += float(part[1]) * last
        position = part.end()
    if not text:
        raise ValueError("write a duration as 500ms, 90s, 5m, 1h30m or 2d")
    return total


def _iso(text: str) -> float:
    found = re.fullmatch(_ISO, text, re.ASCII)
    if found is None or not any(found.groups()) or text.endswith("T"):
        raise ValueError("not an ISO 8601 duration; write PT90S, PT1H30M or P2D")
    return sum(
        float(value or 0) * unit for value, unit in zip(found.groups(), (604800, 86400, 3600, 60, 1), strict=True)
    )


def spell(seconds: float) -> str:
    """The shortest spelling for people: `1h30m`, `90s` as `1m30s`, `0.25s` as `250ms`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms" if seconds else "0s"
    left, parts = round(seconds, 1), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if left >= size:
            parts.append(f"{int(left // size)}{unit}")
            left = round(left % size, 1)
    if left:
        parts.append(f"{left:g}s")
    return "".join(parts)
