"""A run on a terminal: one line that stays per finished step, and below it the few that are running."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

from ..event import (
    CalledEvent,
    Event,
    GateAsked,
    RunFinished,
    RunQueued,
    RunStarted,
    StepFinished,
    StepOutput,
    StepRetrying,
    StepStarted,
)
from ._region import Region
from ._rows import Rows
from ._tally import Tally
from ._terminal import Terminal

TICK = 0.1
"""Seconds between two drawings. A step that is over sooner is never drawn as running."""
ASLEEP = 1.5
"""Seconds without a tick after which the process was stopped (Ctrl-Z), and others have written."""
LONGEST = 4096
"""Characters of a line that has not ended."""
FANS = 4
"""Fan-outs that are shown above what runs in them."""


class Live:
    """A view with a region at the bottom of the terminal, drawn by a thread of its own."""

    def __init__(self, terminal: Terminal, names: Sequence[str], *, verbose: bool = False) -> None:
        self._terminal = terminal
        self._rows = Rows(terminal, names, verbose=verbose)
        self._region = Region(terminal)
        self._verbose = verbose
        self._tally = Tally()
        self._last: dict[str, str] = {}
        self._begun: dict[tuple[str, str], str] = {}
        """Lines that have not ended, by step and stream."""
        self._telling: set[str] = set()
        """Steps of whose lines the end is shown, where they grow."""
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._pulse: threading.Thread | None = None
        self._announced: str | None = None

    def __call__(self, event: Event) -> None:
        """Take one event in; print the line that stays, if it leaves one."""
        with self._lock:
            lines = self._lines(event)
            if isinstance(event, StepStarted) and self._pulse is None:
                self._over.clear()
                self._pulse = threading.Thread(target=self._beat, name="tramai-progress", daemon=True)
                self._pulse.start()
            if lines:
                self._draw(lines)

    def announce(self, text: str) -> bool:
        """Print a line soon, without waiting for anything: for signal handlers. False where nobody would print it."""
        if self._pulse is None:
            return False
        self._announced = text
        return True

    def pause(self) -> None:
        """Take the region away; it comes back when a step starts."""
        self.close()

    def close(self) -> None:
        """Take the region away; the lines above stay."""
        self._over.set()
        pulse, self._pulse = self._pulse, None
        if pulse is not None:
            pulse.join()
        with self._lock:
            self._region.draw((), self._said())

    def _beat(self) -> None:
        before = time.monotonic()
        while not self._over.wait(TICK):
            with self._lock:
                now = time.monotonic()
                if now - before > ASLEEP:
                    self._region.lose()
                before = now
                self._draw(self._said())

    def _draw(self, above: Sequence[str]) -> None:
        columns, lines = self._region.room()
        # Before the first tick there is nothing to wipe away, and a quick step leaves its one line alone.
        shown = list(self._shown(columns, lines)) if self._pulse is not None and lines else []
        self._region.draw(shown, above)

    def _said(self) -> list[str]:
        said, self._announced = self._announced, None
        return [said] if said else []

    def _lines(self, event: Event) -> list[str]:
        if isinstance(event, StepOutput):
            return self._heard(event)
        if isinstance(event, CalledEvent):
            return self._inside(event)
        counted = self._tally.counts.get(event.path) if isinstance(event, StepFinished) else None
        self._tally(event)
        if isinstance(event, StepFinished):
            rest = self._rest(event.path)
            return [*rest, self._rows.finished(event, counted)] if self._stays(event) else rest
        if isinstance(event, GateAsked):
            return [self._rows.asked(event)]
        if isinstance(event, StepRetrying):
            return [*self._rest(event.path), self._rows.retrying(event)]
        if isinstance(event, RunStarted):
            return [self._rows.run(event)]
        if isinstance(event, RunQueued):
            return [self._rows.queued(event)]
        if isinstance(event, RunFinished):
            return [
                self._rows.suspended(event, step, self._tally.questions.get(step.path)) for step in self._tally.leaves()
            ]
        return []

    def _stays(self, event: StepFinished) -> bool:
        """The items of a fan-out are summed up by its own line, unless one fails."""
        return self._verbose or event.status == "failed" or ("[" not in event.path and event.status != "replayed")

    def _heard(self, event: StepOutput) -> list[str]:
        """Lines come in pieces, those of a model word by word; what a line has so far is shown while it grows."""
        key = (event.path, event.stream)
        *whole, rest = (self._begun.pop(key, "") + event.text).split("\n")
        if rest:
            self._begun[key] = rest[-LONGEST:]
        said = [line for line in (*whole, rest) if line.strip()]
        if said:
            self._last[event.path] = said[-1]
        if event.stream == "model":
            self._telling.add(event.path)
        return [self._rows.output(event.path, line) for line in whole if line.strip()] if self._verbose else []

    def _rest(self, path: str) -> list[str]:
        """What a step has said last, without a line break; nothing of it is left afterwards."""
        said = [self._begun.pop(key) for key in [key for key in self._begun if key[0] == path]]
        self._last.pop(path, None)
        self._telling.discard(path)
        return [self._rows.output(path, line) for line in said if line.strip()] if self._verbose else []

    def _inside(self, event: CalledEvent) -> list[str]:
        """What a called run does is the last word of the step that calls it; its lines stay when they are asked for."""
        inner = self._rows.joined(event)
        below = inner.path[len(event.path) + 3 :]
        if isinstance(inner, StepOutput):
            said = [line for line in inner.text.splitlines() if line.strip()]
            if said:
                self._last[event.path] = f"{below}: {said[-1]}"
            return [self._rows.output(inner.path, line) for line in said] if self._verbose else []
        if isinstance(inner, StepStarted):
            self._last[event.path] = below
        if isinstance(inner, StepFinished) and (self._verbose or inner.status == "failed"):
            return [self._rows.finished(inner)]
        return [self._rows.retrying(inner)] if isinstance(inner, StepRetrying) else []

    def _shown(self, columns: int, most: int) -> Iterator[str]:
        """The lines of the region: fan-outs with how far they are, then what runs, the earliest first."""
        now, counts = time.time(), self._tally.counts
        fans = [step for path, step in self._tally.open.items() if path in counts][: min(FANS, most // 2)]
        for step in fans:
            yield self._rows.running("running", step, now - step.at, counts[step.path], columns, ends=False)
        steps = self._tally.leaves()
        room = most - len(fans)
        shown = steps if len(steps) <= room else steps[: room - 1]
        for step in shown:
            state = "waiting" if step.path in self._tally.questions else "running"
            said, ends = self._last.get(step.path, ""), step.path in self._telling
            yield self._rows.running(state, step, now - step.at, said, columns, ends=ends)
        if len(shown) < len(steps):
            yield f"    and {len(steps) - len(shown)} more"
