"""Schedules: times that come, zones that exist, and inputs with which a run can start."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition import declared
from ..errors import Pointer, Problem
from ..schedule import Schedule
from ..shape import Mismatch, conform
from . import cron
from .scene import Scene

_MEANT = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "PT": "America/Los_Angeles",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "CT": "America/Chicago",
    "MDT": "America/Denver",
    "EDT": "America/New_York",
    "ET": "America/New_York",
    "BST": "Europe/London",
    "CEST": "Europe/Berlin",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
    "Z": "UTC",
}
_NO_ZONES = frozenset(("localtime", "local", "system", "posixrules", "factory", ""))


def times(scene: Scene) -> Iterator[Problem]:
    """Every `cron` can be read and comes, in a zone that exists."""
    for index, schedule in enumerate(scene.workflow.schedules):
        at = ("schedules", index)
        found = cron.fault(schedule.cron)
        if found is not None:
            what, hint, part = found
            yield scene.problem("TRM380", what, (*at, "cron"), hint=hint, range=_inside(schedule.cron, part))
        elif cron.never(schedule.cron):
            hint = "no month that it names has such a day"
            yield scene.problem("TRM381", f"`{schedule.cron}` never comes", (*at, "cron"), hint=hint)
        else:
            yield from _skipped(scene, schedule, at)
        yield from _zone(scene, schedule.timezone, (*at, "timezone"))
        yield from _window(scene, schedule, at)


def _inside(text: str, part: str) -> tuple[int, int] | None:
    """Where one field stands, unless it is the whole or stands more than once."""
    padded = f" {text} "
    if part == text or padded.count(f" {part} ") != 1:
        return None
    start = padded.index(f" {part} ")
    return start, start + len(part)


def _zone(scene: Scene, name: str, at: Pointer) -> Iterator[Problem]:
    from zoneinfo import ZoneInfo, available_timezones

    if "${{" in name:
        return
    try:
        if name.lower() not in _NO_ZONES and not name.startswith(("posix/", "right/")):
            ZoneInfo(name)
            return
    except (KeyError, ValueError, OSError):
        pass
    known = available_timezones()
    if not known:
        return  # this machine has no zones at all: nothing can be said
    message = f"there is no time zone `{name[:60]}`"
    if name.startswith(("+", "-")) or name[:4].upper() in ("UTC+", "UTC-", "GMT+", "GMT-"):
        message, hint = f"`{name[:60]}` is an offset, no time zone", "name a place, such as Europe/Berlin, or UTC"
    else:
        near = _near(scene, name, known) if name.lower() not in _NO_ZONES else None
        hint = near or "write an IANA zone such as Europe/Berlin, or UTC"
    yield scene.problem("TRM382", message, at, hint=hint)


def _near(scene: Scene, name: str, known: set[str]) -> str | None:
    if name.upper() in _MEANT:
        return f"did you mean `{_MEANT[name.upper()]}`?"
    wanted = name.strip().lower().replace(" ", "_")
    for zone in sorted(known):
        if zone.lower() == wanted or zone.lower().rpartition("/")[2] == wanted:
            return f"did you mean `{zone}`?"
    return scene.did_you_mean(name, sorted(known))


def _skipped(scene: Scene, schedule: Schedule, at: Pointer) -> Iterator[Problem]:
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(schedule.timezone)
    except (KeyError, ValueError, OSError):
        return
    for moment, then in cron.gaps(schedule.cron, zone):
        message = f"{moment:%H:%M} does not exist in {schedule.timezone} on a day when clocks go forward"
        hint = f"on such a day, as on {moment:%Y-%m-%d}, the run starts at {then:%H:%M}"
        yield scene.problem("TRM383", message, (*at, "cron"), hint=hint, severity="warning")
        return


def _window(scene: Scene, schedule: Schedule, at: Pointer) -> Iterator[Problem]:
    window, where = schedule.catchup_window, (*at, "catchup_window")
    if window is None:
        return
    if schedule.catchup == "none":
        message = "`catchup_window` has no effect: nothing is made up for"
        hint = "add catchup: last or catchup: all, or remove it"
        yield scene.problem("TRM385", message, where, hint=hint, key=True)
    elif window <= 0:
        hint = "take it out for no limit"
        yield scene.problem("TRM385", "a window of 0 leaves nothing to make up for", where, hint=hint)


def inputs(scene: Scene) -> Iterator[Problem]:
    """What a schedule gives is declared, whole and of the right kind."""
    every = scene.workflow.inputs
    specs = declared(every)
    for index, schedule in enumerate(scene.workflow.schedules):
        at = ("schedules", index)
        for name, value in schedule.inputs.items():
            where = (*at, "inputs", name)
            if name not in every:
                hint = scene.did_you_mean(name, every) or "declare it under `inputs`"
                yield scene.problem("TRM384", f"input `{name}` is not declared", where, hint=hint, key=True)
                continue
            if name not in specs or (isinstance(value, str) and "${{" in value):
                continue
            try:
                conform(specs[name], value)
            except Mismatch as error:
                what = f"input `{name}` {error}"
                yield scene.problem("TRM384", what, where, hint=error.hint or _quoted(specs[name].type, value))
        for name, spec in specs.items():
            if spec.needed and name not in schedule.inputs and not _nearly(scene, name, schedule):
                message = f"this schedule does not give the input `{name}`"
                hint = f"add inputs: {{{name}: …}}, or give the input a default"
                related = ((("inputs", name), "declared here, without a default"),)
                yield scene.problem("TRM384", message, at, hint=hint, related=related)


def _nearly(scene: Scene, name: str, schedule: Schedule) -> bool:
    """Whether a misspelt name stands in its place: that is told already."""
    wrong = [given for given in schedule.inputs if given not in scene.workflow.inputs]
    return any(scene.suggest(given, scene.workflow.inputs) == name for given in wrong)


def _quoted(type: str | None, value: object) -> str | None:
    if type == "string" and isinstance(value, (int, float)):
        return f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
    return None
