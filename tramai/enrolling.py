"""From the `schedules` of workflow files to what a store keeps: what is new, changed, unchanged or gone."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from . import ticking
from .codec import encode
from .errors import TramaiError
from .inputs import bind
from .plan import Plan
from .pool import QUEUE
from .timetable import Entry, NoSchedule, Tick

_MATTERS = (
    *("version", "digest", "cron", "zone", "catchup", "window", "overlap", "inputs"),
    *("cwd", "file", "labels", "queue", "priority"),
)
"""The fields by which a schedule differs from what is registered."""
_TIMES = ("cron", "zone")
_UNTIMED = "it was changed before it was fired"
_PAUSED = "it was paused"


class NameTaken(TramaiError):
    """the schedule {name} of {file} is registered from {other} already"""

    code = "TRM523"
    exit_status = 5


class Ambiguous(TramaiError):
    """several schedules go by {name}: {names}"""

    code = "TRM524"
    exit_status = 2


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all runs of the schedules that are registered together."""

    cwd: str
    labels: tuple[str, ...] = ()
    queue: str = QUEUE
    priority: int = 0


class Change(msgspec.Struct, frozen=True):
    """What registering makes of one schedule: `new`, `changed`, `unchanged`, or `gone` from its file."""

    kind: str
    entry: Entry
    before: Entry | None = None

    @property
    def differs(self) -> tuple[str, ...]:
        """The names of what is changed; of the digest only where nothing else says what."""
        if self.before is None:
            return ()
        found = [name for name in _MATTERS if getattr(self.before, name) != getattr(self.entry, name)]
        return tuple(name for name in found if name != "digest") or tuple(found)


def entries(plan: Plan, file: str, asked: Asked) -> tuple[Entry, ...]:
    """The schedules of a file, by their places in it; InvalidInput where one does not give what a run needs."""
    workflow = plan.workflow
    return tuple(
        Entry(
            id=f"{workflow.name}#{number}",
            workflow=workflow.name,
            version=workflow.version,
            digest=plan.digest,
            cron=one.cron,
            zone=one.timezone,
            catchup=one.catchup,
            window=None if one.catchup_window is None else float(one.catchup_window),
            overlap=one.overlap,
            inputs=encode(bind(workflow.inputs, one.inputs)),
            cwd=asked.cwd,
            file=file,
            labels=asked.labels,
            queue=asked.queue,
            priority=asked.priority,
        )
        for number, one in enumerate(workflow.schedules, 1)
    )


def compare(
    wanted: Iterable[Entry],
    there: Sequence[Entry],
    *,
    files: Collection[str],
    gone_files: Collection[str] = (),
    take_over: bool = False,
) -> tuple[Change, ...]:
    """What registering these would change. `files` were read, `gone_files` are no more; NameTaken before any effect."""
    known = {entry.id: entry for entry in there}
    seen: dict[str, Entry] = {}
    changes = []
    for entry in wanted:
        before = known.get(entry.id)
        rival = seen.setdefault(entry.id, entry)
        if rival is not entry:
            hint = "a schedule goes by the name of its workflow: give one of the two workflows another"
            raise NameTaken(name=entry.id, file=entry.file, other=rival.file, hint=hint)
        if before is not None and before.file != entry.file and not take_over:
            hint = "give the workflow another name; or, if it is the same one in another place: --take-over"
            raise NameTaken(name=entry.id, file=entry.file, other=before.file, hint=hint)
        if before is None:
            changes.append(Change("new", entry))
        else:
            same = all(getattr(before, name) == getattr(entry, name) for name in _MATTERS)
            changes.append(Change("unchanged" if same else "changed", entry, before))
    read = {*files, *gone_files}
    changes += [Change("gone", entry, entry) for entry in there if entry.file in read and entry.id not in seen]
    return tuple(changes)


def enrolled(change: Change, now: float, by: str) -> tuple[Entry, tuple[Tick, ...]]:
    """The schedule as it is to be written, and its times that nobody will fire any more."""
    entry, before = change.entry, change.before
    if before is None:
        return replace(entry, applied=now, evaluated=now, by=by, revision=_first_revision()), ()
    kept = replace(
        entry,
        applied=now,
        by=by,
        evaluated=before.evaluated,
        paused=before.paused,
        paused_by=before.paused_by,
        comment=before.comment,
    )
    if all(getattr(entry, name) == getattr(before, name) for name in _TIMES):
        return kept, ()
    why = _UNTIMED if before.paused is None else _PAUSED
    return replace(kept, evaluated=max(now, before.evaluated)), _missed(before, now, why, by)


def paused(entry: Entry, now: float, by: str, comment: str | None) -> Entry:
    """The schedule, pausing."""
    return replace(entry, paused=now, paused_by=by or None, comment=comment)


def resumed(entry: Entry, now: float, by: str, comment: str | None) -> tuple[Entry, tuple[Tick, ...]]:
    """The schedule, going on; and the times that it let pass."""
    after = replace(entry, paused=None, paused_by=None, comment=comment, evaluated=max(now, entry.evaluated))
    return after, _missed(entry, now, _PAUSED, by)


def find(there: Sequence[Entry], name: str) -> Entry:
    """The schedule that goes by a name: its own, or its workflow's when that has one only."""
    exact = [entry for entry in there if entry.id == name]
    found = exact or [entry for entry in there if entry.workflow == name]
    if len(found) > 1:
        raise Ambiguous(name=name, names=", ".join(entry.id for entry in found), hint="name one of them")
    if not found:
        from .expression import suggest

        near = suggest(name, [*(entry.id for entry in there), *(entry.workflow for entry in there)])
        raise NoSchedule(name=name, hint=f"did you mean {near}?" if near else "tramai schedule list")
    return found[0]


def _first_revision() -> int:
    """Where a new schedule begins to count, so that none has the revision of one of its name that was removed."""
    return int.from_bytes(os.urandom(6)) + 1


def _missed(entry: Entry, now: float, why: str, by: str) -> tuple[Tick, ...]:
    try:
        return ticking.missed(entry, now, why, by)
    except ticking.NoTimes:
        return ()  # nobody can say which times these were
