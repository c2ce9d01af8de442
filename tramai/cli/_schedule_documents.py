"""The JSON documents of `tramai schedule`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Firing(Struct, frozen=True, kw_only=True):
    """One time at which a run starts."""

    at: Annotated[str, Meta(description="in the zone of the schedule, with its offset")]
    utc: str
    weekday: Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    moved: Annotated[bool, Meta(description="a clock change skips the time that was meant")]


class Firings(Struct, frozen=True, kw_only=True):
    """The next times of one schedule."""

    cron: str
    timezone: str
    described: Annotated[str, Meta(description="the expression in English")]
    firings: list[Firing]


class SchedulePreview(Struct, frozen=True, kw_only=True):
    """`schedule preview`: the times after an instant, for each schedule."""

    schema: Literal["tramai.schedule_preview/1"] = "tramai.schedule_preview/1"
    after: str
    schedules: list[Firings]


DOCUMENTS = (SchedulePreview,)
