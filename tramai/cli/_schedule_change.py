"""What `tramai schedule apply`, `run`, `pause`, `resume` and `remove` do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ._schedule_documents import Applied, ScheduleApply, ScheduleChange
from ._schedule_look import table, view
from ._schedule_times import coming, shown
from ._session import Session
from ._terminal import safe
from ._who import me

if TYPE_CHECKING:
    from ..enrolling import Asked, Change
    from ..plan import Plan
    from ..store import Definition, Run
    from ..timetable import Entry, Roster, Tick, Timetable
    from ._signals import Signals

_TRIES = 20
"""How often a schedule is read anew because somebody else has written it."""


def apply(
    session: Session, paths: tuple[str, ...], asked: Asked, *, prune: bool, dry_run: bool, take_over: bool
) -> int:
    """Register the schedules of files; the exit status."""
    from .. import enrolling

    plans, folders = _plans(session, paths)
    wanted = [entry for file, plan in plans.items() for entry in enrolling.entries(plan, file, asked)]
    store = table(session, writing=not dry_run)
    roster = store.roster(now=time.time())
    lost = {entry.file for entry in roster.entries if entry.file is not None and _within(entry.file, folders)}
    if not plans and not lost:
        from . import _paths

        _paths.files(paths)  # it says what is wrong
    changes = enrolling.compare(
        wanted, roster.entries, files=plans, gone_files=lost - plans.keys(), take_over=take_over
    )
    definitions = {plan.digest: plan.definition() for plan in plans.values()}
    done = []
    for change in changes:
        kind, entry = change.kind, change.entry
        if not dry_run:
            kind, entry = _carry_out(store, change, definitions, prune=prune)
        elif kind == "gone" and prune:
            kind = "removed"
        following = coming(entry, roster.now) if kind not in ("gone", "removed") else []
        done.append(
            Applied(
                name=entry.id,
                change=kind,
                file=entry.file,
                cron=entry.cron,
                timezone=entry.zone,
                differs=[*change.differs] if kind == "changed" else [],
                next=following[0] if following else None,
            )
        )
    if session.json:
        session.emit(ScheduleApply(dry_run=dry_run, files=list(plans), schedules=done))
    else:
        _say_applied(session, plans, done, dry_run=dry_run)
    return 0


def _plans(session: Session, paths: tuple[str, ...]) -> tuple[dict[str, Plan], list[str]]:
    """The plans of the files, by their absolute paths, and the folders that were named. Nothing is written before
    every file was found right."""
    from ..errors import UsageError
    from . import _load, _paths

    if "-" in paths:
        raise UsageError(what="a schedule is registered from a file, not from standard input", hint="name a file")
    folders = [os.path.abspath(path) for path in paths if os.path.isdir(path)]
    try:
        files = _paths.files(paths)
    except UsageError:
        if len(folders) < len(paths):
            raise
        files = []  # a folder whose files are gone
    return {os.path.abspath(file): _load.plan_of(session, file) for file in files}, folders


def _within(file: str, folders: Sequence[str]) -> bool:
    return any(os.path.commonpath([folder, file]) == folder for folder in folders)


def _carry_out(
    store: Timetable, change: Change, definitions: dict[str, Definition], *, prune: bool
) -> tuple[str, Entry]:
    """Write one change, by how the schedule stands; what it came to."""
    from .. import enrolling

    if change.kind == "gone":
        if prune:
            _write(store, change.entry.id, lambda entry, roster: None)
        return ("removed" if prune else "gone"), change.entry
    if change.kind == "unchanged":
        return change.kind, change.entry
    for _ in range(_TRIES):
        now = store.roster(now=time.time()).now
        entry, ticks = enrolling.enrolled(change, now, me())
        after = 0 if change.before is None else change.before.revision
        written = store.enroll(entry, after=after, ticks=ticks, definition=definitions[entry.digest])
        if written is not None:
            return change.kind, written
        there = _named(store.roster(now=time.time()), change.entry.id)
        change = enrolling.Change("new" if there is None else "changed", change.entry, there)
    raise _busy()


def _say_applied(session: Session, plans: dict[str, Plan], done: list[Applied], *, dry_run: bool) -> None:
    for one in done:
        what = f": {', '.join(one.differs)}" if one.differs else ""
        following = f"   next {one.next.weekday} {shown(one.next.at)}" if one.next is not None else ""
        gone = f"   no longer in {one.file}" if one.change in ("gone", "removed") else ""
        session.out.line(safe(f"{one.change:<9}  {one.name}  {one.cron}  {one.timezone}{what}{following}{gone}"))
    for file, plan in plans.items():
        if not plan.workflow.schedules:
            session.note(f"{safe(os.path.relpath(file))} has no `schedules`")
    if any(one.change == "gone" for one in done):
        session.note("what is gone from its file still fires; to remove it: --prune, or tramai schedule remove NAME")
    if dry_run:
        session.note("nothing was changed (--dry-run)")


def pause(session: Session, names: tuple[str, ...], comment: str | None) -> int:
    """Let schedules pause; the exit status."""
    from ..enrolling import paused

    def stop(entry: Entry, roster: Roster) -> tuple[Entry, tuple[Tick, ...]]:
        return (entry if entry.paused is not None else paused(entry, roster.now, me(), comment)), ()

    return _change(session, names, "paused", stop)


def resume(session: Session, names: tuple[str, ...], comment: str | None) -> int:
    """Let schedules go on; the exit status."""
    from ..enrolling import resumed

    def go_on(entry: Entry, roster: Roster) -> tuple[Entry, tuple[Tick, ...]]:
        return (entry, ()) if entry.paused is None else resumed(entry, roster.now, me(), comment)

    return _change(session, names, "resumed", go_on)


def remove(session: Session, names: tuple[str, ...]) -> int:
    """Take schedules out, those too that cannot be read; the exit status."""
    return _change(session, names, "removed", lambda entry, roster: None)


Made = Callable[["Entry", "Roster"], "tuple[Entry, tuple[Tick, ...]] | None"]


def _change(session: Session, names: tuple[str, ...], done: str, make: Made) -> int:
    from ..enrolling import find

    store = table(session, writing=True)
    roster = store.roster(now=time.time())
    lost = _unread(roster) if done == "removed" else {}
    there = (*roster.entries, *lost.values())
    wanted = list(dict.fromkeys(find(there, name).id for name in names))  # all are known, before any effect
    entries = [_strike(store, lost[name]) if name in lost else _write(store, name, make) for name in wanted]
    roster = store.roster(now=time.time())
    if session.json:
        session.emit(ScheduleChange(done=done, schedules=[view(store, entry, roster) for entry in entries]))
        return 0
    for entry in entries:
        following = coming(entry, roster.now) if done == "resumed" else []
        when = f"; next {following[0].weekday} {shown(following[0].at)}" if following else ""
        session.note(safe(f"{entry.id} {'is' if done == 'paused' else 'was'} {done}{when}"))
    return 0


def _write(store: Timetable, name: str, make: Made) -> Entry:
    """Write what is made of a schedule as it stands, or take it out; the schedule afterwards."""
    from ..scheduler import withdraw
    from ..timetable import NoSchedule

    for _ in range(_TRIES):
        roster = store.roster(now=time.time())
        entry = _named(roster, name)
        if entry is None:
            raise NoSchedule(name=name, hint="it was removed just now")
        made = make(entry, roster)
        if made is None:
            if store.strike(entry):
                for tick in roster.open:
                    if tick.schedule == name:
                        withdraw(store, tick, roster.now, me())
                return entry
            continue
        if made[0] is entry:
            return entry
        written = store.enroll(made[0], after=entry.revision, ticks=made[1])
        if written is not None:
            return written
    raise _busy()


def _unread(roster: Roster) -> dict[str, Entry]:
    """The schedules that cannot be read, by name: nothing else is known of them."""
    from ..timetable import Entry

    lost = {name for name, _ in roster.faults}.difference(entry.id for entry in roster.entries)
    return {
        name: Entry(id=name, workflow=name.rpartition("#")[0], version="", digest="", cron="", zone="")
        for name in sorted(lost)
    }


def _strike(store: Timetable, entry: Entry) -> Entry:
    from ..timetable import NoSchedule

    if not store.strike(entry):
        raise NoSchedule(
            name=entry.id, hint="it is one of its times that cannot be read: tramai store prune lets go of it"
        )
    return entry


def _named(roster: Roster, name: str) -> Entry | None:
    return next((entry for entry in roster.entries if entry.id == name), None)


def _busy() -> Exception:
    from ..errors import StoreUnavailable

    return StoreUnavailable(what="busy: others write the same schedule all the time", hint="try again")


def start(session: Session, name: str, pairs: Sequence[str]) -> int:
    """Make a run of a schedule now; the exit status."""
    from .. import scheduler
    from ..enrolling import find
    from ..results import Options
    from . import _given
    from ._detach import left

    inputs = _given.gather(pairs, None)
    store = table(session, writing=True)
    entry = find(store.roster(now=time.time()).entries, name)
    session.variables()

    def make(signals: Signals) -> Run:
        options = Options(interrupt=signals.interrupt, warn=session.note)
        return scheduler.by_hand(entry, store, inputs=inputs, options=options)

    return left(session, make)
