"""What happened in a run, counted while it happens, for the last lines."""

from __future__ import annotations

from ..event import Event, GateAsked, GateDecided, RunFinished, RunStarted, StepFinished, StepProgress, StepStarted
from ..paths import step_id

DONE = ("succeeded", "skipped", "recovered", "replayed")


def is_top(path: str) -> bool:
    """Whether the step stands in the workflow itself, not inside another step."""
    return "." not in path and "[" not in path


class Tally:
    """An observer that remembers: who the run is, which top steps are done, what failed, what is still open."""

    def __init__(self) -> None:
        self.started: RunStarted | None = None
        self.finished: RunFinished | None = None
        self.done: set[str] = set()
        self.failed: dict[str, StepFinished] = {}
        self.open: dict[str, StepStarted] = {}
        self.questions: dict[str, GateAsked] = {}
        """What gates wait with, by their paths."""
        self.counts: dict[str, StepProgress] = {}
        """How far open fan-outs have come."""

    def __call__(self, event: Event) -> None:
        """See one event."""
        if isinstance(event, StepStarted):
            self.open[event.path] = event
        elif isinstance(event, StepFinished):
            self._ended(event)
        elif isinstance(event, StepProgress):
            self.counts[event.path] = event
        elif isinstance(event, GateAsked):
            self.questions[event.path] = event
        elif isinstance(event, GateDecided):
            self.questions.pop(event.path, None)
        elif isinstance(event, RunStarted):
            self.started = event
        elif isinstance(event, RunFinished):
            self.finished = event

    def _ended(self, event: StepFinished) -> None:
        self.open.pop(event.path, None)
        self.counts.pop(event.path, None)
        self.questions.pop(event.path, None)
        if event.status == "failed":
            self.failed[event.path] = event
        else:
            self.failed.pop(event.path, None)
            if event.status in DONE and is_top(event.path):
                self.done.add(step_id(event.path))

    def leaves(self) -> list[StepStarted]:
        """The open steps that hold no other open step."""
        holding = {path[:at] for path in self.open for at, character in enumerate(path) if character in ".["}
        return [step for path, step in self.open.items() if path not in holding]
