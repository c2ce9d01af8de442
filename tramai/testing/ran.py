"""How the run of a workflow test ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..codec import Json, decode
from ..errors import Problem
from ..event import Event, StepFinished
from ..store import ENDS, Mark, Record
from ._paths import id_of
from ._script import Call


class StepRan(Struct, frozen=True, kw_only=True):
    """How one step ended, at one path."""

    path: str
    status: str
    attempts: int
    output: Json = None
    error: dict[str, Any] | None = None


class Ran(Struct, frozen=True, kw_only=True):
    """A run that is over, or stands still.

    `steps` by path. `calls` are the attempts of stubbed steps, in order. `problem` is what ended the test early: a step
    that would reach outside, a stub without an answer left. `events` are what the engine told of the run.
    """

    status: str
    exit_status: int
    outputs: Json
    error: dict[str, Any] | None
    state: dict[str, Any]
    inputs: dict[str, Any]
    steps: Mapping[str, StepRan]
    calls: Sequence[Call]
    events: Sequence[Event] = ()
    writes: int = 0
    was_cut: bool = False
    used: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()
    granted: Mapping[str, int] = {}
    problem: Problem | None = None

    def step(self, name: str) -> StepRan | None:
        """The step at a path; or with an id, when it ended at one path only."""
        if name in self.steps:
            return self.steps[name]
        found = [step for path, step in self.steps.items() if id_of(path) == name]
        return found[0] if len(found) == 1 else None

    def called(self, step: str) -> Sequence[Call]:
        """The calls of a stubbed step, by path or id."""
        return [call for call in self.calls if step in (call.path, call.step)]

    def names(self) -> dict[str, Any]:
        """What conditions about the run see."""
        steps = {
            name: {"status": step.status, "output": step.output, "attempts": step.attempts, "error": step.error}
            for name, step in self._by_name().items()
        }
        return {
            "status": self.status,
            "outputs": self.outputs if self.outputs is not None else {},
            "error": self.error,
            "state": self.state,
            "inputs": self.inputs,
            "steps": steps,
            "calls": [call.names() for call in self.calls],
        }

    def _by_name(self) -> dict[str, StepRan]:
        ids = [id_of(path) for path in self.steps]
        alone = {id: step for id, step in zip(ids, self.steps.values(), strict=True) if ids.count(id) == 1}
        return {**alone, **self.steps}


def steps(records: Sequence[Record], events: Sequence[Event]) -> dict[str, StepRan]:
    """How each path ended: by the journal, and by the events for what has no record of its own."""
    found: dict[str, StepRan] = {}
    for event in events:
        if isinstance(event, StepFinished) and event.status != "replayed":
            found[event.path] = StepRan(path=event.path, status=event.status, attempts=event.attempt, error=event.error)
    for record in records:
        if record.mark is Mark.DECIDED:
            continue
        before = found.get(record.path)
        told = before.status if before is not None else ""
        found[record.path] = StepRan(
            path=record.path,
            status="recovered" if told == "recovered" else ENDS.get(record.mark, "unknown"),
            attempts=max(record.attempt, before.attempts if before is not None else 0),
            output=decode(record.value) if record.value is not None else None,
            error=decode(record.error) if record.error is not None else before.error if before is not None else None,
        )
    return found
