"""The memory store as schedulers see it: everything under the one lock."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..store import Definition
    from ..timetable import Entry, Roster, Tick


class Timetable:
    """What `Memory` has of `tramai.timetable.Timetable`."""

    if TYPE_CHECKING:
        _lock: threading.Lock
        _runs: dict[str, Any]
        _definitions: dict[str, Definition]
        _entries: dict[str, Entry]
        _ticks: dict[str, Tick]

        def _check_takes(self) -> None: ...
        def _check_open(self) -> None: ...

    def roster(self, *, now: float) -> Roster:
        """How everything stands; see `Timetable.roster`."""
        from ..timetable import OPEN, Roster

        with self._lock:
            self._check_open()
            entries = sorted(self._entries.values(), key=lambda entry: entry.id)
            opened = [tick for tick in self._ticks.values() if tick.status in OPEN]
        opened.sort(key=lambda tick: (tick.at, tick.id))
        return Roster(now=now, entries=tuple(entries), open=tuple(opened))

    def enroll(
        self, entry: Entry, *, after: int, ticks: Sequence[Tick] = (), definition: Definition | None = None
    ) -> Entry | None:
        """Write a schedule and ticks of it; see `Timetable.enroll`."""
        from ..timetable import QUEUED
        from ..timetable import written as as_written

        with self._lock:
            self._check_takes()
            there = self._entries.get(entry.id)
            if (0 if there is None else there.revision) != after:
                return None
            written = self._entries[entry.id] = as_written(entry, after)
            if definition is not None:
                self._definitions.setdefault(definition.digest, definition)
            for tick in ticks:
                if self._ticks.setdefault(tick.id, tick).status == QUEUED:
                    self._ticks[tick.id] = tick
            return written

    def strike(self, entry: Entry) -> bool:
        """Take a schedule out; see `Timetable.strike`."""
        with self._lock:
            self._check_takes()
            there = self._entries.get(entry.id)
            if there is None or there.revision != entry.revision:
                return False
            del self._entries[entry.id]
            return True

    def settle(self, tick: Tick, *, was: Sequence[str]) -> bool:
        """Write what became of a tick; see `Timetable.settle`."""
        with self._lock:
            self._check_takes()
            there = self._ticks.get(tick.id)
            if there is None or there.status not in was:
                return False
            self._ticks[tick.id] = tick
            return True

    def going(self, schedule: str) -> tuple[str, ...]:
        """Its runs that are not over; see `Timetable.going`."""
        from ..timetable import FIRED, GOING, LOOK_BACK

        with self._lock:
            self._check_open()
            fired = [tick for tick in self._ticks.values() if (tick.schedule, tick.status) == (schedule, FIRED)]
            fired.sort(key=lambda tick: tick.at, reverse=True)
            names = [tick.run_id for tick in fired[:LOOK_BACK] if tick.run_id in self._runs]
            return tuple(name for name in names if name is not None and self._runs[name].run.status in GOING)

    def ticks(
        self, schedule: str | None = None, *, status: str | None = None, before: float | None = None, limit: int
    ) -> tuple[Tick, ...]:
        """What became of ticks; see `Timetable.ticks`."""
        with self._lock:
            self._check_open()
            found = [
                tick
                for tick in self._ticks.values()
                if schedule in (None, tick.schedule)
                and status in (None, tick.status)
                and (before is None or tick.at < before)
            ]
        found.sort(key=lambda tick: (tick.at, tick.id), reverse=True)
        return tuple(found[:limit])

    def forget_ticks(self, *, before: float) -> int:
        """Let go of old ticks; see `Timetable.forget_ticks`."""
        from ..timetable import GOING, OPEN

        with self._lock:
            self._check_open()
            old = [tick for tick in self._ticks.values() if tick.at < before and tick.status not in OPEN]
            runs = {run_id: kept.run.status for run_id, kept in self._runs.items()}
            gone = [tick.id for tick in old if runs.get(tick.run_id or "") not in GOING]
            for name in gone:
                del self._ticks[name]
            return len(gone)
