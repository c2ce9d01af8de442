"""What becomes of the times of a schedule: fired, queued, skipped or missed. Decided here, carried out by a scheduler.

A time that comes to be decided within `GRACE` is on time. One that is later than that was missed, and it is for
`catchup` to say whether a run is made all the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import msgspec

from . import cron
from .errors import TramaiError
from .timetable import DUE, MISSED, QUEUED, SKIPPED, Entry, Tick, tick_id

GRACE = 60.0
"""Seconds by which a run may be late without having been missed: a scheduler was started anew, a store was away."""
MOST_MADE_UP = 100
"""Missed times for which `catchup: all` makes runs, the latest of them."""
MOST_QUEUED = 10
"""Times that wait for the run before them with `overlap: queue`; those that come then are skipped."""
_ROWS = 25
"""Missed times that have a row of their own; those before them share one."""
_COUNTED = 10_000
_SPANS = (3600.0, 86400.0, 30 * 86400.0, 366 * 86400.0)


class NoTimes(TramaiError):
    """the times of the schedule {name} cannot be reckoned: {what}"""

    code = "TRM460"
    exit_status = 3


class Slots(msgspec.Struct, frozen=True):
    """The times of a schedule in a span, up to now: the latest ones, and how many come before these."""

    latest: tuple[float, ...]
    first: float | None = None
    """The first of those before."""
    last: float | None = None
    before: int = 0
    more: bool = False
    """There are more than were counted."""


class Decision(msgspec.Struct, frozen=True):
    """The ticks that come of it, and up to when everything is decided now."""

    ticks: tuple[Tick, ...]
    evaluated: float


def next_after(entry: Entry, after: float) -> float | None:
    """The first time after an instant; None where the calendar ends."""
    return next(_times(entry, after), None)


def as_typed(name: str) -> str:
    """The name of a schedule as a shell takes it for one word: `nightly#1` is one already."""
    workflow, _, number = name.rpartition("#")
    return name if shlex.quote(workflow + number) == workflow + number else shlex.quote(name)


def check_clock(entry: Entry, now: float) -> None:
    """NoTimes when all is decided up to a time that is far from here: it would not fire until then, without a word."""
    if entry.evaluated > now + GRACE:
        until = datetime.fromtimestamp(entry.evaluated, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        remove = f"tramai schedule remove {as_typed(entry.id)}"
        hint = f"if the clock is right now: {remove}, and tramai schedule apply with its file"
        what = f"a clock was wrong, for they are decided up to {until}, and none fires before"
        raise NoTimes(name=entry.id, what=what, hint=hint)


def slots(entry: Entry, now: float) -> Slots:
    """The times that are still to be decided."""
    latest = _latest(entry, now)
    if len(latest) <= MOST_MADE_UP:
        return Slots(tuple(latest))
    latest = latest[-MOST_MADE_UP:]
    early = islice(_times(entry, entry.evaluated), _COUNTED + 1)
    before = [at for at in early if at < latest[0]]
    more = len(before) > _COUNTED
    return Slots(tuple(latest), before[0], _last_before(entry, latest[0]), min(len(before), _COUNTED), more)


def decide(
    entry: Entry, now: float, *, going: str | None, queued: Sequence[Tick], by: str, how: str = "going"
) -> Decision | None:
    """What becomes of the times up to now, and of those that are queued; None when there is nothing to decide.

    `going`: the run of this schedule that is not over, and `how` it stands. The caller has seen to it that no tick of
    the schedule is due.
    """
    found = slots(entry, now)
    judge = _Judge(entry, now, going, list(queued), by)
    judge.how = how
    judge.promote()
    if not found.latest:
        return Decision(tuple(judge.ticks), entry.evaluated) if judge.ticks else None
    wanted = _wanted(entry, found.latest, now)
    _miss(judge, found, [at for at in found.latest if at not in wanted])
    for at in found.latest:
        if at in wanted:
            judge.want(at)
    return Decision(tuple(judge.ticks), found.latest[-1])


def missed(entry: Entry, now: float, why: str, by: str) -> tuple[Tick, ...]:
    """All times that are still to be decided, as missed for one reason."""
    found = slots(entry, now)
    judge = _Judge(entry, now, None, [], by, why)
    _miss(judge, found, list(found.latest))
    return tuple(judge.ticks)


class _Judge:
    def __init__(
        self, entry: Entry, now: float, going: str | None, queued: list[Tick], by: str, why: str | None = None
    ) -> None:
        self.entry = entry
        self.now = now
        self.ticks: list[Tick] = []
        self.how = "going"
        self._going = going
        self._busy = going is not None
        self._queued = queued
        self._by = by
        self._why = why

    def promote(self) -> None:
        """The first that is queued has its turn when nothing is going; all of them where nothing has to wait."""
        while self._queued and (not self._busy or self.entry.overlap == "allow"):
            first = self._queued.pop(0)
            self._busy = True
            self.ticks.append(msgspec.structs.replace(first, status=DUE, reason=None, recorded=self.now, by=self._by))

    def want(self, at: float) -> None:
        """A time for which there shall be a run."""
        late = self.now - at > GRACE
        waits = self._busy and self.entry.overlap != "allow"
        if not waits:
            self._add(at, DUE, made_up=late)
            self._busy = True
        elif (late and self.entry.catchup == "all") or (self.entry.overlap == "queue" and self._room()):
            self._add(at, QUEUED, "until the run before it is over", made_up=late)
            self._queued.append(self.ticks[-1])
        elif self.entry.overlap == "queue":
            self._add(at, SKIPPED, f"{len(self._queued)} are queued already", run_id=self._going)
        else:
            why = f"a run of it was {self.how}" if self._going else "another of its times had its turn"
            self._add(at, SKIPPED, why, run_id=self._going)

    def miss(self, at: float, until: float | None = None, count: int = 1, *, more: bool = False) -> None:
        """A time for which there shall be none, or several of them."""
        why = self._why or _why_missed(self.entry, at if until is None else until, self.now)
        why = f"{why}; there were more than {count:,} such times" if more else why
        self._add(at, MISSED, why, until=until, count=count)

    def _room(self) -> bool:
        return len(self._queued) < MOST_QUEUED

    def _add(
        self,
        at: float,
        status: str,
        reason: str | None = None,
        *,
        run_id: str | None = None,
        made_up: bool = False,
        until: float | None = None,
        count: int = 1,
    ) -> None:
        tick = Tick(
            id=tick_id(self.entry.id, at),
            schedule=self.entry.id,
            at=at,
            status=status,
            recorded=self.now,
            by=self._by,
            reason=reason,
            run_id=run_id,
            made_up=made_up,
            count=count,
            until=until,
        )
        self.ticks.append(tick)


def _miss(judge: _Judge, found: Slots, times: list[float]) -> None:
    """Rows for times that are missed: the latest each have one, those before share one."""
    early, late = times[:-_ROWS], times[-_ROWS:]
    if found.first is not None:
        judge.miss(found.first, early[-1] if early else found.last, found.before + len(early), more=found.more)
    elif early:
        judge.miss(early[0], early[-1], len(early))
    for at in late:
        judge.miss(at)


def _wanted(entry: Entry, times: Sequence[float], now: float) -> set[float]:
    """Those for which there shall be a run."""
    late = [at for at in times if now - at > GRACE]
    on_time = [at for at in times if now - at <= GRACE]
    within = [at for at in late if entry.window is None or now - at <= entry.window]
    if entry.catchup == "all":
        return {*within, *on_time}
    if entry.catchup == "last" and not on_time:
        return set(within[-1:])
    return set(on_time)


def _why_missed(entry: Entry, at: float, now: float) -> str:
    if entry.catchup != "none" and entry.window is not None and now - at > entry.window:
        return "nobody fired it in time, and it is past the catchup_window"
    if entry.catchup == "last":
        return "nobody fired it in time, and only the last one is made up for"
    if entry.catchup == "all":
        return f"nobody fired it in time, and no more than {MOST_MADE_UP} are made up for"
    return "nobody fired it in time"


def _times(entry: Entry, after: float) -> Iterator[float]:
    from cronsim import CronSimError

    try:
        zone = ZoneInfo(entry.zone)
    except (KeyError, ValueError, OSError):
        hint = "install the package tzdata, or the zones of the system, where schedulers run"
        raise NoTimes(name=entry.id, what=f"this machine has no time zone {entry.zone}", hint=hint) from None
    try:
        for found in cron.firings(entry.cron, zone, datetime.fromtimestamp(after, UTC)):
            yield found.at.timestamp()
    except CronSimError:
        hint = "correct it in the workflow file, then: tramai schedule apply FILE"
        raise NoTimes(name=entry.id, what=f"{entry.cron!r} is no cron expression", hint=hint) from None


def _latest(entry: Entry, now: float) -> list[float]:
    """The times up to now that are not decided: all of them, or the latest, more than are ever made up for."""
    if now <= entry.evaluated:
        return []
    for span in _SPANS:
        start = max(entry.evaluated, now - span)
        found = list(_until(entry, start, now))
        if start == entry.evaluated or len(found) > MOST_MADE_UP:
            return found
    return list(_until(entry, entry.evaluated, now))


def _until(entry: Entry, start: float, now: float) -> Iterator[float]:
    for at in _times(entry, start):
        if at > now:
            return
        yield at


def _last_before(entry: Entry, at: float) -> float:
    """The time before one that has a time before it."""
    for span in _SPANS:
        found = list(_until(entry, max(entry.evaluated, at - span), at - 1.0))
        if found:
            return found[-1]
    return at
