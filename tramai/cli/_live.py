"""A run on a terminal: one line that stays per finished step, and below it the few that are running."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

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
from ._clockface import took
from ._glyphs import glyph
from ._rows import Rows
from ._tally import Tally
from ._terminal import Terminal, fit, pad, safe

MOST = 12
"""Lines that may be redrawn."""
LONGEST = 4096
"""Characters of a line that has not ended."""


class Live:
    """A region at the bottom of the terminal. Rich is imported when the first step starts, never earlier."""

    def __init__(self, terminal: Terminal, names: Sequence[str], *, verbose: bool = False) -> None:
        self._terminal = terminal
        self._rows = Rows(terminal, names, verbose=verbose)
        self._verbose = verbose
        self._tally = Tally()
        self._last: dict[str, str] = {}
        self._begun: dict[tuple[str, str], str] = {}
        """Lines that have not ended, by step and stream."""
        self._telling: set[str] = set()
        """Steps of whose lines the end is shown, where they grow."""
        # Never held while something is printed: rich's refresh thread holds its own lock when it asks for the region.
        self._lock = threading.Lock()
        self._live: Any = None

    def __call__(self, event: Event) -> None:
        """Take one event in; print the line that stays, if it leaves one."""
        with self._lock:
            lines = self._lines(event)
        if isinstance(event, StepStarted) and self._live is None:
            self._open()
        for line in lines:
            self._print(line)

    def pause(self) -> None:
        """Take the region away; it comes back when a step starts."""
        self.close()

    def close(self) -> None:
        """Take the region away; the lines above stay."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _lines(self, event: Event) -> list[str]:
        if isinstance(event, StepOutput):
            return self._heard(event)
        if isinstance(event, CalledEvent):
            return self._inside(event)
        self._tally(event)
        if isinstance(event, StepFinished):
            rest = self._rest(event.path)
            return [*rest, self._rows.finished(event)] if self._stays(event) else rest
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

    def _open(self) -> None:
        from rich.console import Console
        from rich.live import Live as Region

        terminal = self._terminal
        console = Console(
            file=terminal.stream,
            force_terminal=True,
            no_color=not terminal.coloured,
            width=terminal.width,
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
        )
        self._live = Region(
            get_renderable=self._region,
            console=console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def _print(self, line: str) -> None:
        live = self._live
        if live is None:
            self._terminal.line(line)
            return
        from rich.text import Text

        live.console.print(Text.from_ansi(line), soft_wrap=True)

    def _region(self) -> Any:
        from rich.text import Text

        with self._lock:
            steps = self._tally.leaves()
            shown = [self._running(step) for step in steps[: MOST - 1]]
        if len(steps) >= MOST:
            shown.append(f"    and {len(steps) - MOST + 1} more")
        return Text("\n").join(Text.from_ansi(line) for line in shown)

    def _running(self, step: StepStarted) -> str:
        terminal = self._terminal
        head = f"  {glyph(terminal, 'running')} {pad(safe(step.path), 12)}  {step.verb:<8} "
        long = f"{took(max(time.time() - step.at, 0.0)):>6}"
        used = 26 + max(len(step.path), 12)
        room = max(terminal.width - used - 3, 0)
        said = safe(self._last.get(step.path, ""))
        if step.path in self._telling and len(said) > room:
            said = terminal.ellipsis + said[len(said) - room + len(terminal.ellipsis) :]
        said = fit(said, room, terminal.ellipsis)
        return f"{head}{long}   {terminal.paint(said, 'dim')}".rstrip()
