"""What `tramai schedule list`, `next` and `history` show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ._schedule_documents import (
    Coming,
    ScheduleFault,
    ScheduleHistory,
    ScheduleNext,
    Schedules,
    ScheduleView,
    TroubleView,
)
from ._schedule_times import coming, described, shown, tick_view
from ._session import Session
from ._terminal import cells, pad, safe

if TYPE_CHECKING:
    from ..timetable import Entry, Roster, Timetable


def table(session: Session, *, writing: bool = False) -> Timetable:
    """The store, as one that schedules can be kept in."""
    from ..timetable import timetabled

    if writing:
        session.must_last()
    return timetabled(session.store() if writing else session.looking())


def show_all(session: Session) -> int:
    """Print the schedules that are registered; the exit status."""
    store = table(session)
    roster = store.roster(now=time.time())
    views = [view(store, entry, roster) for entry in roster.entries]
    if session.json:
        faults = [ScheduleFault(name=name, problem=what) for name, what in roster.faults]
        session.emit(Schedules(schedules=views, faults=faults))
        return 0
    for name, what in roster.faults:
        session.note(f"{safe(name)} cannot be read: {safe(what)}")
    if not views:
        session.note("no schedule is registered. To register those of a file: tramai schedule apply FILE")
        return 0
    rows = [("SCHEDULE", "CRON", "ZONE", "NEXT", "LAST")]
    for one in views:
        following = f"{one.next.weekday} {shown(one.next.at)}" if one.next is not None else ""
        following = "paused" if one.paused is not None else following
        last = f"{one.last.status} {shown(one.last.at)}" if one.last is not None else ""
        rows.append((one.name, one.cron, one.timezone, following, last))
    _columns(session, rows)
    for one in views:
        if one.paused is not None and (one.paused_by or one.comment):
            by = f" by {one.paused_by}" if one.paused_by else ""
            session.note(safe(f"{one.name} was paused{by}{': ' + one.comment if one.comment else ''}"))
        if one.trouble is not None:
            session.note(safe(f"{one.name} is in trouble: {one.trouble.message} ({one.trouble.code})"))
    return 0


def show_next(session: Session, names: tuple[str, ...], count: int) -> int:
    """Print the next times of schedules, in order; the exit status."""
    from ..enrolling import find

    roster = table(session).roster(now=time.time())
    wanted = [find(roster.entries, name) for name in names] or list(roster.entries)
    times = [
        Coming(schedule=entry.id, timezone=entry.zone, firing=firing)
        for entry in wanted
        for firing in coming(entry, roster.now, count)
    ]
    times = sorted(times, key=lambda one: (one.firing.utc, one.schedule))[:count]
    if session.json:
        after = datetime.fromtimestamp(int(roster.now), UTC).isoformat()
        session.emit(ScheduleNext(after=after, times=times))
        return 0
    if not times:
        session.note("nothing comes: no schedule is registered, or those that are pause")
        return 0
    rows = []
    for one in times:
        moved = "moved: the clocks go forward" if one.firing.moved else ""
        rows.append((f"{one.firing.weekday} {shown(one.firing.at)}", one.firing.utc, one.schedule, moved))
    _columns(session, rows)
    return 0


def show_history(session: Session, name: str | None, count: int, status: str | None) -> int:
    """Print what became of times, the latest first; the exit status."""
    from ..enrolling import find
    from ..timetable import NoSchedule

    store = table(session)
    roster = store.roster(now=time.time())
    known = {entry.id: entry for entry in roster.entries}
    wanted = name
    if name is not None:
        try:
            wanted = find(roster.entries, name).id
        except NoSchedule:
            if not store.ticks(name, limit=1):  # one that was removed still has its past
                raise
    found = [tick_view(tick, known.get(tick.schedule)) for tick in store.ticks(wanted, status=status, limit=count)]
    if session.json:
        session.emit(ScheduleHistory(ticks=found))
        return 0
    if not found:
        session.note("nothing has come yet")
        return 0
    rows = [("TIME", "SCHEDULE", "STATUS", "RUN", "")]
    for one in found:
        many = f"{one.count} times until {shown(one.until)}" if one.until is not None else ""
        made_up = "made up for" if one.made_up else ""
        said = "; ".join(part for part in (many, made_up, one.reason or "") if part)
        rows.append((shown(one.at), one.schedule, one.status, one.run_id or "", said))
    _columns(session, rows)
    return 0


def view(store: Timetable, entry: Entry, roster: Roster) -> ScheduleView:
    """A schedule as its document has it."""
    from ..codec import decode

    following = coming(entry, roster.now)
    last = store.ticks(entry.id, limit=1)
    trouble = entry.trouble
    return ScheduleView(
        name=entry.id,
        workflow=entry.workflow,
        version=entry.version,
        digest=entry.digest,
        cron=entry.cron,
        timezone=entry.zone,
        described=described(entry),
        catchup=entry.catchup,
        catchup_window=entry.window,
        overlap=entry.overlap,
        inputs=decode(entry.inputs),
        file=entry.file,
        cwd=entry.cwd,
        labels=list(entry.labels),
        queue=entry.queue,
        priority=entry.priority,
        applied=entry.applied,
        by=entry.by,
        paused=entry.paused,
        paused_by=entry.paused_by,
        comment=entry.comment,
        next=following[0] if following else None,
        last=tick_view(last[0], entry) if last else None,
        waiting=sum(tick.schedule == entry.id for tick in roster.open),
        trouble=None
        if trouble is None
        else TroubleView(code=trouble.code, message=trouble.message, hint=trouble.hint, at=trouble.at),
    )


def _columns(session: Session, rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(cells(safe(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        line = "  ".join(pad(safe(cell), width) for cell, width in zip(row, widths, strict=True))
        session.out.line(line.rstrip())
