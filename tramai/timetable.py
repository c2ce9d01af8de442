"""What a store offers to schedulers: the schedules that were registered, and what became of each of their times.

Optional, as `pool` is: a store that lacks it still runs workflows, and `timetabled` says what it cannot do. A tick is
one time at which a schedule wanted a run. Its id is made of the schedule and the time, and there is one row of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol, cast

import msgspec
from msgspec.structs import replace

from .errors import TramaiError
from .hashing import sha256
from .pool import QUEUE, Pool, pooled
from .portable import Unsupported
from .store import Definition, Status

DUE, QUEUED, FIRED, SKIPPED, MISSED, FAILED = "due", "queued", "fired", "skipped", "missed", "failed"
"""What becomes of a tick. `due`: a run is to be made, and whoever comes by makes it; `queued`: when the run before is
over; `fired`: its run was made; `skipped`: another one was going; `missed`: nobody was there, or nobody wanted it;
`failed`: no run could be made."""
OPEN = (DUE, QUEUED)
"""Ticks that are still to become something."""
GOING = (Status.READY, Status.RUNNING, Status.SLEEPING, Status.WAITING, Status.BLOCKED, Status.ARRIVING)
"""Runs that are not over; a failed one may be resumed, but nothing waits for it."""
LOOK_BACK = 20
"""How many of a schedule's last runs are looked at to know whether one is going: more are never left behind."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why a schedule does not work at the moment."""

    at: float
    code: str
    message: str
    hint: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A registered schedule. `inputs` is a canonical JSON text; times are epoch seconds by the store's clock."""

    id: str
    """`workflow#1`: the workflow, and the place of the schedule in its file."""
    workflow: str
    version: str
    digest: str
    cron: str
    zone: str
    catchup: str = "none"
    window: float | None = None
    overlap: str = "skip"
    inputs: str = "{}"
    cwd: str = "/"
    file: str | None = None
    """Absolute; None when it was read from no file."""
    labels: tuple[str, ...] = ()
    queue: str = QUEUE
    priority: int = 0
    applied: float = 0.0
    by: str = ""
    evaluated: float = 0.0
    """What became of all times up to this one is decided."""
    paused: float | None = None
    """Since when."""
    paused_by: str | None = None
    comment: str | None = None
    trouble: Trouble | None = None
    revision: int = 0
    """Counted by every write, from a number on that was drawn when it was made: see `written`."""


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One time of a schedule, or `count` of them that shared a fate: the first `at`, the last `until`."""

    id: str
    schedule: str
    at: float
    status: str
    recorded: float
    by: str
    reason: str | None = None
    run_id: str | None = None
    """The run that was made; for one that was skipped, the run that was going."""
    made_up: bool = False
    """The time had passed when it was decided that there shall be a run."""
    count: int = 1
    until: float | None = None


class Roster(msgspec.Struct, frozen=True, kw_only=True):
    """How everything stands: by the store's clock, all schedules by id, their open ticks by time.

    `faults` names the schedules and ticks that cannot be read, with what is wrong.
    """

    now: float
    entries: tuple[Entry, ...] = ()
    open: tuple[Tick, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()


class NoSchedule(TramaiError):
    """no schedule {name} is registered"""

    code = "TRM522"
    exit_status = 4


class Timetable(Pool, Protocol):
    """A store that schedules can be kept in. `now` is the caller's clock, as in `Store`."""

    def roster(self, *, now: float) -> Roster:
        """How everything stands."""
        ...

    def enroll(
        self, entry: Entry, *, after: int, ticks: Sequence[Tick] = (), definition: Definition | None = None
    ) -> Entry | None:
        """Write a schedule as it is now, with ticks that were decided for it, in one write.

        None, and nothing is written, unless it stands at revision `after` (0: it is not there, or cannot be read). A
        tick takes the place of one that is queued; one that is anything else stays as it is. The entry as it is then:
        see `written`.
        """
        ...

    def strike(self, entry: Entry) -> bool:
        """Take a schedule out, if it stands at this revision or cannot be read. Its ticks stay."""
        ...

    def settle(self, tick: Tick, *, was: Sequence[str]) -> bool:
        """Write what became of a tick, if it still is one of these; whether it was."""
        ...

    def going(self, schedule: str) -> tuple[str, ...]:
        """The ids of runs that its last ticks made (`LOOK_BACK`) and that are not over, newest first."""
        ...

    def ticks(
        self, schedule: str | None = None, *, status: str | None = None, before: float | None = None, limit: int
    ) -> tuple[Tick, ...]:
        """What became of ticks, the latest first; of those that cannot be read there is none."""
        ...

    def forget_ticks(self, *, before: float) -> int:
        """Let go of ticks of times before an instant, but for open ones and those whose run is not over; how many.

        Open ones that cannot be read go, too: nobody will ever make a run of them.
        """
        ...


def written(entry: Entry, after: int) -> Entry:
    """A schedule as a store writes it: at the revision after `after`, a new one at that after its own.

    So one that was removed and applied anew is not taken for the one before it: whoever read that writes nothing.
    """
    return replace(entry, revision=(after or entry.revision) + 1)


def timetabled(store: object) -> Timetable:
    """The store as one that schedules can be kept in; Unsupported when they cannot."""
    for name in ("roster", "enroll", "strike", "settle", "going", "ticks", "forget_ticks"):
        if not callable(getattr(store, name, None)):
            raise Unsupported(
                url=getattr(store, "url", "?"),
                what="keep schedules",
                hint="sqlite:PATH can for one host, postgresql://HOST/DB for many",
            )
    return cast(Timetable, pooled(cast(Timetable, store)))


def tick_id(schedule: str, at: float) -> str:
    """The id of a tick: of one schedule and one time, whoever asks."""
    return sha256(f"{schedule}\n{instant(at)}".encode("utf-8", "surrogatepass"))


def start_key(tick: Tick) -> str:
    """The start key of the run of a tick: it is why a tick never has two."""
    return f"schedule:{tick.id}"


def instant(at: float) -> str:
    """A time as people and labels have it: `2026-11-30T06:00:00Z`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
