"""The one line that each event becomes, for people."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import structs

from ..event import (
    CalledEvent,
    Event,
    GateAsked,
    RunFinished,
    RunQueued,
    RunStarted,
    StepFinished,
    StepOutput,
    StepProgress,
    StepRetrying,
    StepStarted,
)
from ._advice import short
from ._clockface import took, until
from ._glyphs import glyph, word
from ._terminal import Terminal, cells, fit, pad, safe, safe_lines

_SUSPENDED = ("sleeping", "waiting", "blocked")


class Rows:
    """Makes lines for one terminal. Paths are lined up and never cut; what is said after them may be."""

    def __init__(self, terminal: Terminal, names: Sequence[str], *, verbose: bool) -> None:
        self.terminal = terminal
        self.verbose = verbose
        self._into = "›" if terminal.unicode else ">"
        self._width = min(max([8, *(cells(name) for name in names)]), 24)

    def run(self, event: RunStarted) -> str:
        """The first line."""
        paint = self.terminal.paint
        digest = event.digest if self.verbose else event.digest[:8]
        again = "  resumed" if event.resumed else ""
        head = f"run {paint(safe(short(event.run_id)), 'bold')}  {safe(event.workflow)} v{safe(event.version)}"
        tail = paint(safe(self.terminal.typed(f"(tramai show {short(event.run_id)})")), "dim")
        return f"{head}  digest {digest}{again}   {tail}"

    def queued(self, event: RunQueued) -> str:
        """The run waits for others of its group."""
        first, *others = event.before
        who = f"run {short(first.run_id)} of {first.workflow}" + (f" ({first.owner})" if first.owner else "")
        more = f" and {len(others)} more" if others else ""
        room = "one at a time" if event.limit == 1 else f"{event.limit} at a time"
        said = self.terminal.paint(f"waits in the group '{safe(event.group)}', {room}", "yellow")
        return f"  {said}: before it {safe(who)}{more}"

    def started(self, event: StepStarted) -> str:
        """An attempt begins."""
        which = f"attempt {event.attempt}" if event.attempt > 1 else ""
        return self._row("started", event.path, event.verb, "", which)

    def finished(self, event: StepFinished, counted: StepProgress | None = None) -> str:
        """A step is over; a failed one says why, a fan-out how many items it had."""
        said = event.note or ("" if counted is None else _sum(counted))
        if event.error is not None:
            said = str(event.error.get("message") or event.error.get("type") or "")
        long = took(event.duration) if event.status != "skipped" and event.status != "replayed" else ""
        return self._row(event.status, event.path, event.verb, long, said)

    def retrying(self, event: StepRetrying) -> str:
        """Another attempt follows."""
        return self._row("retrying", event.path, event.verb, "", f"attempt {event.attempt + 1} in {took(event.delay)}")

    def silent(self, event: StepStarted, seconds: float, counted: StepProgress | None = None) -> str:
        """A step that has said nothing for a while."""
        said = "" if counted is None else f"{counted.done} of {_sum(counted)}"
        return self._row("running", event.path, event.verb, took(seconds), said)

    def running(
        self, state: str, step: StepStarted, seconds: float, said: str | StepProgress, columns: int, *, ends: bool
    ) -> str:
        """A step at work, in a line that never breaks: its end says how long and what was heard last.

        Here alone a path may lose its beginning: the line is gone soon, and the one that stays has all of it.
        `ends`: of what was heard, the end is shown.
        """
        terminal = self.terminal
        text = said if isinstance(said, str) else f"{said.done} of {_sum(said)}"
        sign = glyph(terminal, state)
        long, name = f"{took(max(seconds, 0.0)):>6}", safe(step.path)
        left = columns - 3 - (1 if terminal.unicode else 2)
        if cells(name) > left - len(long) - 1:
            return f"  {sign} {_end(name, left - len(long) - 1, terminal.ellipsis)} {long}"
        head = f"{pad(name, self._width)}  {step.verb:<8} {long}"
        if cells(head) > left:
            return f"  {sign} {name} {long}"
        room = left - cells(head) - 3
        text = _end(safe(text), room, terminal.ellipsis) if ends else fit(safe(text), room, terminal.ellipsis)
        return f"  {sign} {head}   {terminal.paint(text, 'dim')}".rstrip() if room > 0 and text else f"  {sign} {head}"

    def asked(self, event: GateAsked) -> str:
        """A gate waits for people."""
        return self._row("waiting", event.path, "gate", "", event.ask)

    def suspended(self, event: RunFinished, step: StepStarted, asked: GateAsked | None) -> str:
        """A step at which the run stopped for now; `asked` is what it waits with."""
        state, instant = event.status, event.wake_at
        said = {"waiting": "for a decision", "blocked": "its outcome is unknown"}.get(state, "")
        if asked is not None:
            instant = asked.deadline
        elif state == "waiting" and step.verb not in ("gate", "call"):  # it sleeps beside a gate that waits
            state, said, instant = "sleeping", "", None
        if instant is not None:
            said = f"{said} until {until(instant, time.time())}".strip()
        return self._row(state, step.path, step.verb, "", said)

    def joined(self, event: CalledEvent) -> StepStarted | StepFinished | StepRetrying | StepOutput:
        """What a step of a called run does, at the path of both."""
        inner: Event = event
        path = ""
        while isinstance(inner, CalledEvent):
            path, inner = f"{path}{inner.path} {self._into} ", inner.event
        assert isinstance(inner, StepStarted | StepFinished | StepRetrying | StepOutput)  # no others are told on
        return structs.replace(inner, path=path + inner.path)

    def output(self, path: str, text: str) -> str:
        """A line that a child wrote."""
        bar = "│" if self.terminal.unicode else "|"
        return f"  {self.terminal.paint(f'{safe(path)} {bar}', 'dim')} {safe(text)}"

    def _row(self, state: str, path: str, verb: str, long: str, said: str) -> str:
        sign = glyph(self.terminal, state)
        name = pad(safe(path), self._width)
        # The check mark, the bare sign and a time are the word of an ordinary end; any other state is spelled out.
        spelled = "" if state in ("succeeded", "running") else word(self.terminal, state)
        used = 2 + (1 if self.terminal.unicode else 2) + 1 + cells(name) + 2 + 8 + 1 + 6
        words = [part for part in (spelled, safe_lines(said)[0]) if part]
        room = self.terminal.width - used - 3 if self.terminal.tty else 500
        if len(words) == 2:
            room -= len(state) + 1
        if words and said:
            words[-1] = fit(words[-1], max(room, 16), self.terminal.ellipsis)
        return f"  {sign} {name}  {verb:<8} {long:>6}   {(': ' if state == 'failed' else ' ').join(words)}".rstrip()


def _sum(event: StepProgress) -> str:
    items = f"{event.total} item" if event.total == 1 else f"{event.total} items"
    return f"{items}, {event.failed} failed" if event.failed else items


def _end(text: str, room: int, ellipsis: str) -> str:
    """The end of a text that is too long for its room."""
    if cells(text) <= room:
        return text
    kept, left = "", room - len(ellipsis)
    for character in reversed(text):
        left -= cells(character)
        if left < 0:
            break
        kept = character + kept
    return (ellipsis + kept)[: max(room, 0)] if room < len(ellipsis) else ellipsis + kept
