"""The JSON documents of `tramai schedule`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Text = str | None


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


class TickView(Struct, frozen=True, kw_only=True):
    """What became of a time of a schedule, or of `count` of them from `at` until `until`."""

    schedule: str
    at: Annotated[str, Meta(description="in the zone of the schedule, with its offset; in UTC when it is gone")]
    utc: str
    status: Annotated[str, Meta(description="due, queued, fired, skipped, missed or failed")]
    reason: Text
    run_id: Annotated[Text, Meta(description="the run that was made; for a skipped one the run that was going")]
    made_up: Annotated[bool, Meta(description="its time had passed when it was decided that there shall be a run")]
    count: int
    until: Text
    recorded: Annotated[float, Meta(description="epoch seconds")]
    by: Annotated[str, Meta(description="the scheduler")]


class TroubleView(Struct, frozen=True, kw_only=True):
    """Why a schedule does not work at the moment."""

    code: str
    message: str
    hint: Text
    at: float


class ScheduleView(Struct, frozen=True, kw_only=True):
    """A registered schedule. `applied` and `paused` are in epoch seconds; `next` is null while it pauses."""

    name: str
    workflow: str
    version: str
    digest: str
    cron: str
    timezone: str
    described: Text
    catchup: str
    catchup_window: Annotated[float | None, Meta(description="seconds")]
    overlap: str
    inputs: dict[str, Any]
    file: Text
    cwd: str
    labels: list[str]
    queue: str
    priority: int
    applied: float
    by: str
    paused: float | None
    paused_by: Text
    comment: Text
    next: Firing | None
    last: TickView | None
    waiting: Annotated[int, Meta(description="its times that are due or queued")]
    trouble: TroubleView | None


class ScheduleFault(Struct, frozen=True, kw_only=True):
    """A schedule that cannot be read."""

    name: str
    problem: str


class Schedules(Struct, frozen=True, kw_only=True):
    """`schedule list`."""

    schema: Literal["tramai.schedules/1"] = "tramai.schedules/1"
    schedules: list[ScheduleView]
    faults: list[ScheduleFault]


class Coming(Struct, frozen=True, kw_only=True):
    """One of the next times, and whose it is."""

    schedule: str
    timezone: str
    firing: Firing


class ScheduleNext(Struct, frozen=True, kw_only=True):
    """`schedule next`: the next times of all schedules that do not pause, in order."""

    schema: Literal["tramai.schedule_next/1"] = "tramai.schedule_next/1"
    after: str
    times: list[Coming]


class ScheduleHistory(Struct, frozen=True, kw_only=True):
    """`schedule history`: what became of times, the latest first."""

    schema: Literal["tramai.schedule_history/1"] = "tramai.schedule_history/1"
    ticks: list[TickView]


class Applied(Struct, frozen=True, kw_only=True):
    """What became of one schedule; `differs` names what was changed."""

    name: str
    change: Annotated[str, Meta(description="new, changed, unchanged, gone (from its file) or removed")]
    file: Text
    cron: str
    timezone: str
    differs: list[str]
    next: Firing | None


class ScheduleApply(Struct, frozen=True, kw_only=True):
    """`schedule apply`: what was done, or with `dry_run` would be."""

    schema: Literal["tramai.schedule_apply/1"] = "tramai.schedule_apply/1"
    dry_run: bool
    files: list[str]
    schedules: list[Applied]


class ScheduleChange(Struct, frozen=True, kw_only=True):
    """`schedule pause`, `resume` and `remove`."""

    schema: Literal["tramai.schedule_change/1"] = "tramai.schedule_change/1"
    done: Annotated[str, Meta(description="paused, resumed or removed")]
    schedules: list[ScheduleView]


DOCUMENTS = (SchedulePreview, Schedules, ScheduleNext, ScheduleHistory, ScheduleApply, ScheduleChange)
