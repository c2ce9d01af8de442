"""Those who watch a run: observers of its events, and listeners to its signals. Nothing they do reaches the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .codec import Json
from .event import (
    Attribute,
    CalledEvent,
    Event,
    Observer,
    StepFinished,
    StepOutput,
    StepRetrying,
    StepStarted,
    Tracer,
)
from .redact import Redactor
from .step import Node
from .traceparent import valid

if TYPE_CHECKING:
    from .signals import Signals


class Audience:
    """Who watches one run. `observers` is empty and `signals` None when nobody does, so that nothing is made ready."""

    __slots__ = ("_told", "observers", "parent", "redactor", "signals", "tracers")

    def __init__(self, observers: Iterable[Observer | object], run_id: str) -> None:
        everybody = tuple(observers)
        self._told: set[tuple[str | int, ...]] = set()
        self.redactor = Redactor()
        """Takes the secrets of the run out of what is told in words."""
        listeners = [one for one in everybody if hasattr(one, "signal")]
        self.parent: str | None = None
        """The `traceparent` of whoever started the run."""
        self.signals: Signals | None = None
        self.observers: tuple[Observer, ...] = tuple(one for one in everybody if callable(one))
        self.tracers: tuple[Tracer, ...] = tuple(one for one in everybody if hasattr(one, "trace"))
        if listeners:
            from .signals import Signals

            self.signals = Signals(listeners, run_id)
            self.observers += (self.signals,)

    def news(self, *what: str | int) -> bool:
        """Whether this was not told yet: a walk that comes by again tells nothing twice."""
        if what in self._told:
            return False
        self._told.add(what)
        return True

    def tell(self, event: Event) -> None:
        """Tell the observers; whatever they raise stays with them. An interruption is not theirs to keep."""
        for observer in self.observers:
            try:
                observer(event)
            except Exception:  # noqa: BLE001, S112 - observers are fail-open by promise
                continue

    def traceparent(self, *paths: str) -> str | None:
        """What children of a step are told of the trace: where the step stands, or else whoever started the run."""
        for observer in self.observers:
            try:
                found = valid(observer.traceparent(*paths)) if hasattr(observer, "traceparent") else None
            except Exception:  # noqa: BLE001 - observers are fail-open by promise
                found = None
            if found is not None:
                return found
        return valid(self.parent)

    def signal(self, name: str, **attributes: Attribute) -> None:
        """Tell the listeners. Ask for `signals` first where attributes cost something."""
        if self.signals is not None:
            self.signals.send(name, attributes)

    def signal_of(self, name: str, id: str, path: str, attempt: int, attributes: dict[str, Attribute]) -> None:
        """Tell the listeners about a step."""
        if self.signals is not None:
            from .signals import of_step

            self.signals.send(name, {**of_step(id, path, attempt), **attributes})

    def started(self, node: Node, path: str, attempt: int, at: float) -> None:
        """An attempt begins, or a control step."""
        if self.observers:
            self.tell(StepStarted(path=path, id=node.id, verb=node.verb, attempt=attempt, at=at))

    def retrying(self, node: Node, path: str, attempt: int, delay: float, error: dict[str, Json]) -> None:
        """Another attempt will follow."""
        if self.observers:
            error = self.redactor.error(error)
            self.tell(StepRetrying(path=path, id=node.id, verb=node.verb, attempt=attempt, delay=delay, error=error))

    def over(
        self,
        node: Node,
        path: str,
        attempt: int,
        status: str,
        duration: float,
        *,
        note: str | None = None,
        error: dict[str, Json] | None = None,
    ) -> None:
        """Say how a step ended."""
        if self.observers:
            ended = StepFinished(
                path=path,
                id=node.id,
                verb=node.verb,
                attempt=attempt,
                status=status,
                duration=duration,
                note=None if note is None else self.redactor.text(note),
                error=None if error is None else self.redactor.error(error),
            )
            self.tell(ended)


class Overheard:
    """Among the observers of a called run: tells the audience of its caller what the run does."""

    __slots__ = ("_audience", "_path", "_run_id")

    def __init__(self, audience: Audience, path: str, run_id: str) -> None:
        """`path`: of the step that calls the run `run_id`."""
        self._audience = audience
        self._path = path
        self._run_id = run_id

    def __call__(self, event: Event) -> None:
        """See one event: those of steps are told."""
        if isinstance(event, StepStarted | StepFinished | StepRetrying | StepOutput | CalledEvent):
            self._audience.tell(CalledEvent(path=self._path, run_id=self._run_id, event=event))

    def traceparent(self, *paths: str) -> str | None:
        """Where a step of the called run stands, by those who watch its caller."""
        return self._audience.traceparent(self._path, *paths)
