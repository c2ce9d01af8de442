"""What a worker knows of its slots: what they can do, what they say, what each was given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec

from . import pacing
from .pacing import Pace
from .pool import Taken
from .store import Holder


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted of a run in its slot: seconds, those before its first start, steps as `(verb, status, n)`."""

    workflow: str
    queue: str
    seconds: float
    waited: float | None = None
    steps: tuple[tuple[str, str, int], ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a slot says. `kind`: `ready` (with its `holder`), `began`, `done` (with `status`), `refused` (with the
    error), `returned` (not begun, and not to be any more), or `gone`: it has ended, whatever it was doing."""

    kind: str
    holder: Holder | None = None
    run_id: str | None = None
    status: str | None = None
    exit_status: int | None = None
    wake_at: float | None = None
    code: str | None = None
    message: str | None = None
    hint: str | None = None
    beside: bool = False
    """Of a run that began: others are carried beside it."""
    carried: Carried | None = None
    """For those who count; only when they asked for it."""


class Slot(Protocol):
    """Carries one run at a time, in the order in which it is given them; several at once that only compute."""

    def fileno(self) -> int:
        """Readable when there is something to report."""
        ...

    def give(self, taken: Taken, sent: float) -> None:
        """Carry this run out; it hears of it by the next `flush`."""
        ...

    def flush(self) -> None:
        """Let it hear of what it was given."""
        ...

    def read(self) -> Sequence[Report]:
        """What there is to report; it does not wait."""
        ...

    def withdraw(self) -> None:
        """Have it return what it has not begun."""
        ...

    def stop(self, reason: str) -> None:
        """Interrupt the run: saved, ready again (`drain`); or end its children at once (`hurry`)."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class Given:
    """A run that a slot was given, and since when it carries it."""

    def __init__(self, taken: Taken) -> None:
        self.taken = taken
        self.began: float | None = None
        self.beside = False
        """Others are carried at the same time."""

    def left(self, now: float) -> float:
        """Seconds until it is none of the brief ones."""
        return math.inf if self.began is None else self.began + pacing.lasts(self.beside) - now


class Place:
    """A slot and what it is doing."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.holder: Holder | None = None
        self.runs: dict[str, Given] = {}
        """What it was given and has not ended, in that order."""
        self.pace = Pace()
        self.withdrawn = False
        self.stopped = False

    @property
    def begun(self) -> list[Given]:
        """What it carries."""
        return [given for given in self.runs.values() if given.began is not None]

    def left(self, now: float) -> float:
        """Seconds until the first that it carries is none of the brief ones; none when too much lies ahead of it."""
        if self.pace.behind(len(self.runs) - len(self.begun)):
            return 0.0
        return min((given.left(now) for given in self.runs.values()), default=math.inf)

    def room(self, now: float) -> int:
        """How many runs it may be given now."""
        if self.holder is None or self.withdrawn or self.left(now) <= 0:
            return 0
        return self.pace.room(len(self.runs))
