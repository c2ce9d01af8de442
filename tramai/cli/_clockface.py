"""Instants and spans of time as people read them."""

from __future__ import annotations

import time

from ..duration import spell


def stamp(at: float | None) -> str:
    """A local date and time to the minute: `2026-11-29 14:05`."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def until(at: float, now: float) -> str:
    """When something in the future happens: `Tue 14:05`, with the date when it is a week or more away."""
    form = "%a %H:%M:%S" if at - now < 6 * 86400 else "%Y-%m-%d %H:%M"
    return time.strftime(form, time.localtime(at))


def took(seconds: float) -> str:
    """A span of time: tenths below a minute (hundredths below a tenth), whole units above."""
    if seconds < 0.095:
        return f"{seconds:.2f}s"
    return f"{seconds:.1f}s" if seconds < 59.95 else spell(round(seconds))
