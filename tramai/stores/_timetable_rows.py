"""Schedules and ticks as the rows of a database: their JSON bodies with a checksum, and the columns that SQL sees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from zlib import crc32

from ..errors import CheckpointCorrupt
from ._rows import Row, body_of, noun_of, utf8

if TYPE_CHECKING:  # a run that has nothing to do with schedules need not load what they are
    from ..timetable import Entry, Roster, Tick

Faults = list[tuple[str, str]]


def entry_row(entry: Entry) -> Row:
    """A schedule as its columns: id, revision, digest, body, sum."""
    body = body_of(entry)
    return (entry.id, entry.revision, entry.digest, body.decode(), crc32(body))


def tick_row(tick: Tick) -> Row:
    """A tick as its columns: id, schedule, at, status, run_id, body, sum."""
    body = body_of(tick)
    return (tick.id, tick.schedule, tick.at, tick.status, tick.run_id, body.decode(), crc32(body))


def entry_of(row: Row) -> Entry:
    """The schedule in a row, which must be as it was written."""
    from ..timetable import Entry

    name, _, _, body, row_sum = row
    what = f"the schedule {name} does not match its checksum"
    if crc32(utf8(body)) != row_sum:
        raise CheckpointCorrupt(what=what)
    entry = noun_of(body, Entry, what)
    if entry_row(entry)[:3] != row[:3]:
        raise CheckpointCorrupt(what=what)
    return entry


def tick_of(row: Row) -> Tick:
    """The tick in a row, which must be as it was written."""
    from ..timetable import Tick

    name, body, row_sum = row[0], row[5], row[6]
    what = f"the tick {name} does not match its checksum"
    if crc32(utf8(body)) != row_sum:
        raise CheckpointCorrupt(what=what)
    tick = noun_of(body, Tick, what)
    if tick_row(tick)[:5] != row[:5]:
        raise CheckpointCorrupt(what=what)
    return tick


def roster(now: float, entries: Iterable[Row], ticks: Iterable[Row]) -> Roster:
    """How everything stands; what cannot be read is named, and stops nothing else."""
    faults: Faults = []
    from ..timetable import Roster

    found = sorted(entries_of(entries, faults), key=lambda entry: entry.id)
    opened = sorted(ticks_of(ticks, faults), key=lambda tick: (tick.at, tick.id))
    return Roster(now=now, entries=tuple(found), open=tuple(opened), faults=tuple(faults))


def entries_of(rows: Iterable[Row], faults: Faults) -> Iterable[Entry]:
    """The schedules that can be read; the others go to `faults`."""
    for row in rows:
        try:
            yield entry_of(row)
        except (CheckpointCorrupt, ValueError) as error:
            faults.append((str(row[0]), error.message if isinstance(error, CheckpointCorrupt) else "it is damaged"))


def unread(row: Row) -> bool:
    """Whether the schedule in a row cannot be read: it is as good as not there, and may be written over."""
    faults: Faults = []
    return not list(entries_of([row], faults))


def unread_tick(row: Row) -> bool:
    """Whether the tick in a row cannot be read."""
    faults: Faults = []
    return not list(ticks_of([row], faults))


def ticks_of(rows: Iterable[Row], faults: Faults) -> Iterable[Tick]:
    """The ticks that can be read; the others go to `faults`."""
    for row in rows:
        try:
            yield tick_of(row)
        except (CheckpointCorrupt, ValueError) as error:
            what = error.message if isinstance(error, CheckpointCorrupt) else "a tick of it is damaged"
            faults.append((str(row[1]), what))
