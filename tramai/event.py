"""What an engine tells those who watch a run."""

from __future__ import annotations

from typing import Protocol

import msgspec

from .codec import Json


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of all events; the tag is the `type` of the JSON document."""


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started"):
    """The run has its lease and begins or goes on."""

    run_id: str
    workflow: str
    version: str
    digest: str
    resumed: bool
    file: str | None = None


class Held(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that comes before another one of its group; `owner` carries it out or waits for it."""

    run_id: str
    workflow: str
    owner: str | None = None


class RunQueued(Event, frozen=True, kw_only=True, tag="run.queued"):
    """The run waits for a place in its group; told again whenever others come before it."""

    run_id: str
    group: str
    limit: int
    before: tuple[Held, ...]


class StepStarted(Event, frozen=True, kw_only=True, tag="step.started"):
    """An attempt of a step begins."""

    path: str
    id: str
    verb: str
    attempt: int
    at: float


class StepFinished(Event, frozen=True, kw_only=True, tag="step.finished"):
    """A step is over: `succeeded failed skipped recovered cancelled replayed`."""

    path: str
    id: str
    verb: str
    attempt: int
    status: str
    duration: float
    note: str | None = None
    error: dict[str, Json] | None = None


class StepRetrying(Event, frozen=True, kw_only=True, tag="step.retrying"):
    """An attempt failed and another will follow after `delay` seconds."""

    path: str
    id: str
    verb: str
    attempt: int
    delay: float
    error: dict[str, Json]


class GateAsked(Event, frozen=True, kw_only=True, tag="gate.asked"):
    """A gate waits for people to decide; told once by everybody who carries the run that far.

    `asking` counts the askings of a step, `approvers` are those who may decide (none named: anybody), `min` of them
    must approve before `deadline` (epoch seconds), and say what its form `needs`.
    """

    path: str
    id: str
    asking: int
    ask: str
    deadline: float | None = None
    approvers: tuple[str, ...] = ()
    min: int = 1
    needs: tuple[str, ...] = ()


class GateDecided(Event, frozen=True, kw_only=True, tag="gate.decided"):
    """A gate's question is decided: `approved rejected timed_out`; `by` whom, nobody for `timed_out`."""

    path: str
    id: str
    decision: str
    at: float
    by: str | None = None


class StepOutput(Event, frozen=True, kw_only=True, tag="step.output"):
    """A piece of what a child process wrote, or (`stream` 'model') a model said, for live display; never in the JSON
    stream."""

    path: str
    stream: str
    text: str


class StepProgress(Event, frozen=True, kw_only=True, tag="step.progress"):
    """One more item of a `foreach` or a `parallel` is over, for live display; never in the JSON stream."""

    path: str
    id: str
    verb: str
    done: int
    total: int
    failed: int


class CalledEvent(Event, frozen=True, kw_only=True, tag="called"):
    """What the run that the step at `path` has called told, for live display; never part of the JSON stream.

    Only what its steps do and say is told on; the called run has a record of its own for the rest.
    """

    path: str
    run_id: str
    event: Event


class RunFinished(Event, frozen=True, kw_only=True, tag="run.finished"):
    """The run is over or suspended: `completed failed cancelled sleeping waiting blocked interrupted`."""

    run_id: str
    status: str
    exit_status: int
    outputs: Json = None
    error: dict[str, Json] | None = None
    wake_at: float | None = None
    duration: float = 0.0


Attribute = str | int | float | None
"""A value that a signal may carry: an id, a count, a size, a code, a digest."""


class Signal(msgspec.Struct, frozen=True):
    """One thing that a run did, for logs and metrics: `tramai.workflow.step.completed` and its attributes.

    `signals.NAMES` lists every name with its attributes. None of them holds a payload, a URL, a command or the text
    of a failure.
    """

    name: str
    attributes: dict[str, Attribute]


class Observer(Protocol):
    """Anything that can be called with an event; what it raises never reaches the run."""

    def __call__(self, event: Event, /) -> None:
        """See one event."""
        ...


class Tracer(Protocol):
    """Anything with a method `trace`; given among the observers, it says where a run stands in a trace."""

    def trace(self, run_id: str, workflow: str, /, *, parent: str | None, earlier: str | None) -> str | None:
        """A claim of a run begins: told before its first event. The answer is kept with the run.

        All three are a `traceparent` of W3C Trace Context: of whoever started it, of the claim before, and of this one.
        What is raised here never reaches the run. One that also has a method `traceparent(*paths)` says by it where a
        step stands, whose children are told: the path of the step, behind those of the steps that called its run.
        """
        ...


class Listener(Protocol):
    """Anything with a method `signal`; given among the observers, callable or not, it gets the signals of the run."""

    def signal(self, signal: Signal, /) -> None:
        """See one signal, on whatever thread it came up; what is raised here never reaches the run."""
        ...
