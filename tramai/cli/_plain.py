"""A run as plain lines, one an event, and a sign of life while a step is silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

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
from ._rows import Rows
from ._tally import Tally
from ._terminal import Terminal

FIRST_SIGN = 30.0
NEXT_SIGN = 60.0
LONGEST_LINE = 4096
MOST = 6
"""Lines of a sign of life."""


class Plain:
    """Lines only: no cursor movement, no animation."""

    def __init__(self, terminal: Terminal, names: Sequence[str], *, verbose: bool = False) -> None:
        self._terminal = terminal
        self._rows = Rows(terminal, names, verbose=verbose)
        self._verbose = verbose
        self._tally = Tally()
        self._lock = threading.Lock()
        self._partial: dict[tuple[str, str], str] = {}
        self._over = threading.Event()
        self._pulse: threading.Thread | None = None
        self._last = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Print what one event says."""
        with self._lock:
            for line in self._lines(event):
                self._terminal.line(line)
            self._last = time.monotonic()

    def pause(self) -> None:
        """Lines make room by themselves; a gate that waits gives no sign of life."""

    def close(self) -> None:
        """End the sign of life."""
        self._over.set()
        if self._pulse is not None:
            self._pulse.join()

    def _lines(self, event: Event) -> list[str]:
        if isinstance(event, StepOutput):
            return self._output(event)
        if isinstance(event, CalledEvent):
            return self._inside(event)
        counted = self._tally.counts.get(event.path) if isinstance(event, StepFinished) else None
        self._tally(event)
        if isinstance(event, StepStarted):
            self._watch()
            return [self._rows.started(event)]
        if isinstance(event, StepFinished):
            if event.status == "replayed" and not self._verbose:
                return []
            return [*self._rest(event.path), self._rows.finished(event, counted)]
        if isinstance(event, GateAsked):
            return [self._rows.asked(event)]
        if isinstance(event, StepRetrying):
            return [self._rows.retrying(event)]
        if isinstance(event, RunStarted):
            return [self._rows.run(event)]
        if isinstance(event, RunQueued):
            return [self._rows.queued(event)]
        if isinstance(event, RunFinished):
            return [
                self._rows.suspended(event, step, self._tally.questions.get(step.path)) for step in self._tally.leaves()
            ]
        return []

    def _inside(self, event: CalledEvent) -> list[str]:
        """The ends of the steps of a called run, and what they say."""
        inner = self._rows.joined(event)
        if isinstance(inner, StepOutput):
            return self._output(inner)
        if isinstance(inner, StepFinished) and (inner.status != "replayed" or self._verbose):
            return [*self._rest(inner.path), self._rows.finished(inner)]
        return [self._rows.retrying(inner)] if isinstance(inner, StepRetrying) else []

    def _output(self, event: StepOutput) -> list[str]:
        key = (event.path, event.stream)
        text = self._partial.pop(key, "") + event.text
        *whole, rest = text.split("\n")
        if len(rest) > LONGEST_LINE:
            whole, rest = [*whole, rest], ""
        if rest:
            self._partial[key] = rest
        return [self._rows.output(event.path, line.rstrip("\r")) for line in whole]

    def _rest(self, path: str) -> list[str]:
        """Output that did not end with a line break."""
        keys = [key for key in self._partial if key[0] == path]
        return [self._rows.output(path, self._partial.pop(key)) for key in keys]

    def _signs(self) -> list[str]:
        """A line for each fan-out and each step at work, the earliest first; of very many, some."""
        tally, now = self._tally, time.time()
        fans = [step for path, step in tally.open.items() if path in tally.counts]
        steps = [*fans, *(step for step in tally.leaves() if step.path not in tally.questions)]
        rows = [self._rows.silent(step, now - step.at, tally.counts.get(step.path)) for step in steps[:MOST]]
        return rows + ([f"    and {len(steps) - MOST} more"] if len(steps) > MOST else [])

    def _watch(self) -> None:
        if self._pulse is None:
            self._pulse = threading.Thread(target=self._beat, name="tramai-progress", daemon=True)
            self._pulse.start()

    def _beat(self) -> None:
        wait = FIRST_SIGN
        while not self._over.wait(wait):
            with self._lock:
                quiet = time.monotonic() - self._last
                if quiet + 0.5 < FIRST_SIGN:
                    wait = FIRST_SIGN - quiet
                    continue
                for line in self._signs():
                    self._terminal.line(line)
                wait = NEXT_SIGN
