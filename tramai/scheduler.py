"""A scheduler: looks at the schedules of a store, decides what becomes of their times, and makes the runs.

Any number of them may look at one store. What is decided is written by the revision that the schedule had when it was
read, so one of them is heard; and what was decided is there before the run is made, whose start key is the tick's. So
whoever dies in between leaves a tick that is due, and the next one makes its run, or finds that it was made.

There is no thread and no sleeping here: `turn` does what is to be done and says when there will be something again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import msgspec
from msgspec.structs import replace

from . import engine, ticking
from .clock import Clock, SystemClock
from .codec import decode, encode
from .errors import TramaiError
from .event import Attribute
from .faults import public
from .inputs import bind
from .plan import restore
from .results import Options
from .store import Definition, Run, Status
from .timetable import (
    DUE,
    FAILED,
    FIRED,
    MISSED,
    OPEN,
    SKIPPED,
    Entry,
    Roster,
    Tick,
    Timetable,
    Trouble,
    instant,
    start_key,
)

Tell = Callable[[str, dict[str, Attribute]], None]

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0
"""Seconds for which a schedule in trouble is left alone: at first, and at most."""
_TOLD = {SKIPPED: "schedule.skipped", MISSED: "schedule.missed"}


class Damaged(TramaiError):
    """the schedule {name} cannot be read: {what}"""

    code = "TRM461"
    exit_status = 7


class _Patience(msgspec.Struct):
    """What is in trouble here is left alone for a while, longer each time."""

    until: float = 0.0
    pause: float = 0.0

    def again(self, now: float) -> None:
        self.pause = min(max(self.pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
        self.until = now + self.pause


class Scheduler:
    """One scheduler; `by` is its name in what it records. `options` are what its runs are made with."""

    def __init__(
        self, store: Timetable, tell: Tell, *, by: str, options: Options | None = None, clock: Clock | None = None
    ) -> None:
        self._store = store
        self._tell = tell
        self._by = by
        self._options = options or Options()
        self._clock = clock or SystemClock()
        self._next: dict[str, tuple[tuple[str, str, float], float | None]] = {}
        """When each schedule comes next, and from what that was reckoned."""
        self._troubled: dict[str, _Patience] = {}
        self._ahead = 0.0
        """By how much the store's clock is ahead of ours."""
        self._said: dict[str, tuple[str, str]] = {}
        """The trouble of each that was told last: it is told once."""

    def turn(self) -> float | None:
        """Do what is to be done; seconds until a schedule comes next, None while none does.

        What happens to one schedule stops no other; only a store that cannot be asked at all raises.
        """
        roster = self._store.roster(now=self._clock.now())
        self._ahead = roster.now - self._clock.now()
        for name, what in roster.faults:
            self._trouble(name, Damaged(name=name, what=what))
        known = {entry.id for entry in roster.entries}
        self._leave_behind(roster, known)
        times = []
        for entry in self._in_turn(roster.entries):
            if self._ending:
                return None  # what is left is another one's to do
            times.append(self._guarded(entry, roster))
        return min((at - roster.now for at in times if at is not None), default=None)

    @property
    def _ending(self) -> bool:
        return self._options.interrupt is not None and self._options.interrupt.is_set

    def _in_turn(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """Everyone begins somewhere else, so that two who look at once seldom decide the same."""
        start = crc32(self._by.encode("utf-8", "surrogatepass")) % max(len(entries), 1)
        return entries[start:] + entries[:start]

    def _guarded(self, entry: Entry, roster: Roster) -> float | None:
        """Attend to one schedule; when it comes next."""
        patience = self._troubled.get(entry.id)
        coming = self._known(entry)
        if patience is not None and roster.now < patience.until and (coming is None or roster.now < coming):
            return patience.until if coming is None else min(patience.until, coming)
        try:
            coming = self._attend(entry, roster)
        except Exception as error:  # noqa: BLE001 - one schedule; the others go on
            if self._ending:
                return None  # a secret that was waited for, say: no fault of the schedule
            self._trouble(entry.id, public(error), entry)
            return self._troubled[entry.id].until
        self._troubled.pop(entry.id, None)
        return coming

    def _attend(self, entry: Entry, roster: Roster) -> float | None:
        """Make the runs that are due, decide what has come, and make those too; when it comes next."""
        opened = [tick for tick in roster.open if tick.schedule == entry.id]
        due = [tick for tick in opened if tick.status == DUE]
        coming = self._coming(entry)
        come = entry.paused is None and coming is not None and coming <= roster.now
        failed: Exception | None = None
        for tick in due:
            try:
                self._fire(entry, tick)
            except Exception as error:  # noqa: BLE001 - told below, when what has come was decided
                failed = error
                if come:
                    self._give_up(tick, public(error))
        if failed is not None and not come:
            raise failed
        waiting = [tick for tick in opened if tick.status != DUE]
        if entry.paused is None and (come or waiting):
            entry = self._decide(entry, waiting, roster.now) or entry
        if entry.paused is None:
            ticking.check_clock(entry, roster.now)
        if failed is None and entry.trouble is not None:
            self._recover(entry)
        coming = self._coming(entry)
        return None if entry.paused is not None else coming

    def _decide(self, entry: Entry, waiting: list[Tick], now: float) -> Entry | None:
        """Decide, write it, and make the runs; None when somebody else did so first."""
        going = next(iter(self._store.going(entry.id)), None)
        how = "going" if going is None else self._how(going)
        decision = ticking.decide(entry, now, going=going, how=how, queued=waiting, by=self._by)
        if decision is None:
            return entry
        written = self._store.enroll(
            replace(entry, evaluated=decision.evaluated), after=entry.revision, ticks=decision.ticks
        )
        if written is None:
            return None  # it was changed, or another scheduler was quicker: the next turn sees how it stands
        for tick in decision.ticks:
            if tick.status in _TOLD:
                self._tell(_TOLD[tick.status], _about(tick))
        for tick in decision.ticks:
            if tick.status == DUE:
                self._fire(written, tick)
        return written

    def _how(self, run_id: str) -> str:
        """How a run stands, for people."""
        try:
            status = self._store.get(run_id).status
        except TramaiError:
            return "going, and cannot be read"
        return "ready, and no worker had taken it" if status is Status.READY else status.value

    def _fire(self, entry: Entry, tick: Tick) -> None:
        """Make the run of a tick that is due. By its start key there is one, whoever else does the same."""
        run = self._made(entry, tick)
        fired = replace(tick, status=FIRED, run_id=run.run_id, by=self._by, recorded=self._now())
        # The run is there: whoever gave the tick up meanwhile was wrong, or his clock.
        if self._store.settle(fired, was=(DUE, FAILED, MISSED, SKIPPED)):
            late = round(max(fired.recorded - tick.at, 0.0), 3)
            self._tell("schedule.fired", {**_about(fired), "late": late, "queue": run.queue})

    def _made(self, entry: Entry, tick: Tick) -> Run:
        options = replace(
            self._options,
            start_key=start_key(tick),
            labels=(*entry.labels, f"schedule:{entry.id}", f"slot:{instant(tick.at)}"),
            started_by=f"schedule {entry.id}",
        )
        return make(entry, self._store, options, self._clock)

    def _coming(self, entry: Entry) -> float | None:
        """When it comes next, reckoned once. No revision says when: one removed and applied anew has the same."""
        known, by = self._next.get(entry.id), _reckoned_by(entry)
        if known is not None and known[0] == by:
            return known[1]
        self._next.pop(entry.id, None)
        coming = ticking.next_after(entry, entry.evaluated)
        self._next[entry.id] = (by, coming)
        return coming

    def _known(self, entry: Entry) -> float | None:
        """When it comes next, if that is known."""
        known = self._next.get(entry.id)
        return known[1] if known is not None and known[0] == _reckoned_by(entry) and entry.paused is None else None

    def _now(self) -> float:
        """The time by the store's clock."""
        return self._clock.now() + self._ahead

    # What goes wrong.

    def _give_up(self, tick: Tick, error: TramaiError) -> None:
        """The next time has come, and there still was no run for this one."""
        reason = f"no run could be made: {error.message} ({error.code})"
        if self._store.settle(replace(tick, status=FAILED, reason=reason, by=self._by), was=(DUE,)):
            self._tell("schedule.failed", {**_about(tick), "code": error.code, "message": error.message})

    def _trouble(self, name: str, error: TramaiError, entry: Entry | None = None) -> None:
        """Leave a schedule alone for a while; say why, once, here and in the store."""
        self._troubled.setdefault(name, _Patience()).again(self._now())
        said = (error.code, error.message)
        if self._said.get(name) == said:
            return
        self._said[name] = said
        about: dict[str, Attribute] = {"schedule": name, "code": error.code, "message": error.message}
        self._tell("schedule.trouble", {**about, "hint": error.hint} if error.hint else about)
        if entry is None or (entry.trouble is not None and (entry.trouble.code, entry.trouble.message) == said):
            return
        trouble = Trouble(at=self._now(), code=error.code, message=error.message, hint=error.hint)
        current = self._current(entry)
        if current is not None:
            self._store.enroll(replace(current, trouble=trouble), after=current.revision)

    def _recover(self, entry: Entry) -> None:
        self._said.pop(entry.id, None)
        if self._store.enroll(replace(entry, trouble=None), after=entry.revision) is not None:
            self._tell("schedule.recovered", {"schedule": entry.id})

    def _current(self, entry: Entry) -> Entry | None:
        """The schedule as it stands now: it may have been written since it was read."""
        return next((one for one in self._store.roster(now=self._clock.now()).entries if one.id == entry.id), None)

    def _leave_behind(self, roster: Roster, known: set[str]) -> None:
        """Open ticks of schedules that are no more, and what was remembered of these."""
        unread = {name for name, _ in roster.faults}
        for tick in roster.open:
            if tick.schedule not in known and tick.schedule not in unread:
                withdraw(self._store, tick, roster.now, self._by)
        for kept in (self._next, self._troubled, self._said):
            for name in [name for name in kept if name not in known and name not in unread]:
                kept.pop(name)


def _reckoned_by(entry: Entry) -> tuple[str, str, float]:
    return entry.cron, entry.zone, entry.evaluated


def make(entry: Entry, store: Timetable, options: Options, clock: Clock) -> Run:
    """Make a run of a schedule, from the store alone; with a start key that was used before: the run it started.

    What it is given is bound anew, for secrets have to be kept out of it.
    """
    definition = store.definition(entry.digest)  # its text stays; whoever kept it first may call it otherwise
    plan = restore(definition.canonical, entry.version)
    given: Mapping[str, Any] = decode(entry.inputs)
    options = replace(options, cwd=entry.cwd, queue=entry.queue, priority=entry.priority)
    new, _ = engine.new_for(plan, bind(plan.workflow.inputs, given), store, options, clock)
    return store.enqueue(replace(new, definition=_named(definition, entry)), now=clock.now())


def withdraw(store: Timetable, tick: Tick, now: float, by: str) -> bool:
    """Let go of an open tick of a schedule that is no more."""
    gone = replace(tick, status=MISSED, reason="its schedule was removed", recorded=now, by=by)
    return store.settle(gone, was=OPEN)


def _named(definition: Definition, entry: Entry) -> Definition:
    """The definition as the file that the schedule was read from has it."""
    return replace(definition, file=entry.file, version=entry.version)


def _about(tick: Tick) -> dict[str, Attribute]:
    about: dict[str, Attribute] = {"schedule": tick.schedule, "slot": instant(tick.at)}
    if tick.run_id is not None:
        about["run_id"] = tick.run_id
    if tick.reason is not None:
        about["reason"] = tick.reason
    if tick.made_up:
        about["made_up"] = True
    if tick.count > 1:
        about["count"] = tick.count
    return about


def here() -> str:
    """A name for a scheduler of this process."""
    from .store import Holder

    holder = Holder.here()
    return f"{holder.host}:{holder.pid}-{int(time.time() * 1000) % 0x10000:04x}"


def by_hand(
    entry: Entry,
    store: Timetable,
    *,
    inputs: Mapping[str, Any] | None = None,
    options: Options | None = None,
    clock: Clock | None = None,
) -> Run:
    """Make a run of a schedule now: one of its own, that uses up none of its times. `inputs` stand before its own."""
    options = options or Options()
    if inputs:
        entry = replace(entry, inputs=encode({**decode(entry.inputs), **inputs}))
    labels = (*entry.labels, *options.labels, f"schedule:{entry.id}")
    return make(entry, store, replace(options, labels=labels), clock or SystemClock())
