"""Spans of runs, steps and model calls for OpenTelemetry: the extra `tramai[otel]`.

Runs and steps are told by the conventions for CI/CD pipelines, models and agents by those for generative AI. No
attribute holds a payload, a prompt, a command or the text of a failure. Where spans go is said by the usual OTEL_*
variables. Nothing of OpenTelemetry is imported before a run begins.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from ..errors import ExtraMissing
from ..event import CalledEvent, Event, RunFinished, RunStarted, Signal, StepFinished, StepRetrying, StepStarted
from ..signals import PREFIX, digest
from . import _otel_export as export
from ._otel_words import RESULTS, agent, chat, result, tool, used

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_Place = tuple[str, ...]
"""The path of a step, behind those of the steps that called its run."""


class _Run:
    """The spans of one run that are not over."""

    def __init__(self, run_id: str, span: Span) -> None:
        self.run_id = run_id
        self.span = span
        self.steps: dict[_Place, Span] = {}
        self.models: dict[str, Span] = {}
        """By the digest of the step's path."""


class Otel:
    """An observer, a listener and a tracer. `provider` is for those who have one already."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        if provider is None and not export.installed():
            hint = "pip install 'tramai[otel]'"
            raise ExtraMissing(what="the observer `otel`", extra="otel", hint=hint)
        if provider is None:
            export.check()
        self._provider = provider
        self._run: _Run | None = None
        self._lock = threading.Lock()

    def trace(self, run_id: str, workflow: str, *, parent: str | None, earlier: str | None) -> str | None:
        """A claim of a run begins: in the trace of `parent` if there is one, with a link to the `earlier` one."""
        from opentelemetry import trace

        if self._provider is None:
            self._provider = export.provider()
        context = None
        if parent is not None:
            context = trace.set_span_in_context(trace.NonRecordingSpan(_remote(parent)))
        links = [] if earlier is None else [trace.Link(_remote(earlier), {"tramai.link": "earlier"})]
        about = {"cicd.pipeline.name": workflow, "cicd.pipeline.run.id": run_id, "cicd.pipeline.action.name": "RUN"}
        with self._lock:
            self._abandon()
            span = self._tracer.start_span(
                f"RUN {workflow}", context, trace.SpanKind.SERVER, attributes=about, links=links
            )
            self._run = _Run(run_id, span)
        return _said(span)

    def traceparent(self, *paths: str) -> str | None:
        """Where a step stands: its span."""
        with self._lock:
            return None if self._run is None else _said(self._run.steps.get(paths) or _around(self._run, paths))

    def __call__(self, event: Event) -> None:
        """See one event."""
        run = self._run
        if run is None:
            return
        with self._lock:
            self._see(run, event)
        if isinstance(event, RunFinished):
            export.flush(self._provider)

    def close(self) -> None:
        """Nothing more comes: deliver what an error left open."""
        if self._run is not None:
            with self._lock:
                self._abandon()
            export.flush(self._provider)

    def signal(self, signal: Signal) -> None:
        """See one signal: those of models and agents."""
        run, name = self._run, signal.name.removeprefix(PREFIX)
        if (
            run is None
            or signal.attributes.get("run_id") != run.run_id
            or name.partition(".")[0] not in ("ai", "agent")
        ):
            return
        with self._lock:
            self._model(run, name, signal.attributes)

    def _see(self, run: _Run, event: Event, before: _Place = ()) -> None:
        if isinstance(event, CalledEvent):
            self._see(run, event.event, (*before, event.path))
        elif isinstance(event, StepStarted):
            self._begin(run, event, (*before, event.path))
        elif isinstance(event, StepFinished):
            self._end(run, (*before, event.path), result(event.status, event.error), event.error)
        elif isinstance(event, StepRetrying):
            self._end(run, (*before, event.path), result("failed", event.error), event.error)
        elif isinstance(event, RunStarted):
            run.span.set_attribute("tramai.workflow.version", event.version)
            run.span.set_attribute("tramai.workflow.digest", event.digest)
            run.span.set_attribute("tramai.run.resumed", event.resumed)
        elif isinstance(event, RunFinished):
            self._finish(run, event)

    def _begin(self, run: _Run, event: StepStarted, place: _Place) -> None:
        self._end(run, place, "cancellation", None)
        about: dict[str, Any] = {
            "cicd.pipeline.task.name": event.id,
            "cicd.pipeline.task.run.id": f"{run.run_id}/{digest('/'.join(place))}/{event.attempt}",
            "tramai.step.verb": event.verb,
            "tramai.step.attempt": event.attempt,
        }
        context = _within(_around(run, place))
        run.steps[place] = self._tracer.start_span(event.id, context, attributes=about)

    def _end(self, run: _Run, place: _Place, how: str, error: Any) -> None:
        span = run.steps.pop(place, None)
        if span is None:
            return  # it did not run: skipped, or answered from the journal
        if len(place) == 1 and (model := run.models.pop(digest(place[0]), None)) is not None:
            model.end()
        span.set_attribute("cicd.pipeline.task.run.result", how)
        _close(span, how, error)

    def _finish(self, run: _Run, event: RunFinished) -> None:
        for place in sorted(run.steps, reverse=True):
            self._end(run, place, "cancellation", None)
        run.span.set_attribute("tramai.run.status", event.status)
        if event.status in RESULTS:
            how = result(event.status, event.error)
            run.span.set_attribute("cicd.pipeline.result", how)
            _close(run.span, how, event.error)
        else:  # it goes on later
            run.span.set_attribute("cicd.pipeline.run.state", "pending")
            run.span.end()
        self._run = None

    def _abandon(self) -> None:
        """End what an error left open that let no end be told."""
        run, self._run = self._run, None
        if run is not None:
            for place in sorted(run.steps, reverse=True):
                self._end(run, place, "error", None)
            _close(run.span, "error", None)

    def _model(self, run: _Run, name: str, about: dict[str, Any]) -> None:
        from opentelemetry.trace import SpanKind

        key = str(about.get("path_digest"))
        if name in ("ai.started", "agent.started"):
            words, given = chat(about) if name == "ai.started" else agent(about)
            step = next(
                (span for place, span in run.steps.items() if len(place) == 1 and digest(place[0]) == key), None
            )
            context = _within(step or run.span)
            run.models[key] = self._tracer.start_span(words, context, SpanKind.CLIENT, attributes=given)
        elif (span := run.models.get(key)) is None:
            return
        elif name == "ai.tool_called":
            begun = time.time_ns() - int(float(about.get("duration") or 0.0) * 1e9)
            one = self._tracer.start_span("execute_tool", _within(span), attributes=tool(about), start_time=begun)
            one.end()
        elif name in ("ai.completed", "ai.failed", "agent.completed", "agent.failed"):
            for word, value in used(about).items():
                span.set_attribute(word, value)
            del run.models[key]
            failed = name.endswith(".failed")
            _close(span, "failure" if failed else "success", {"type": about.get("error_type")} if failed else None)

    @property
    def _tracer(self) -> Any:
        from .. import __version__

        assert self._provider is not None
        return self._provider.get_tracer("tramai", __version__)


def _around(run: _Run, place: _Place) -> Span:
    """The span that a step belongs to: the step it stands in, the step that called its run, or the run."""
    *callers, path = place
    for end in range(len(path) - 1, 0, -1):
        if path[end] in ".[@" and (found := run.steps.get((*callers, path[:end]))) is not None:
            return found
    return run.steps.get(tuple(callers), run.span) if callers else run.span


def _within(span: Span) -> Context:
    from opentelemetry import trace

    return trace.set_span_in_context(span)


def _close(span: Span, how: str, error: Any) -> None:
    from opentelemetry.trace import StatusCode

    if how in ("failure", "error", "timeout"):
        said = error.get("type") if isinstance(error, dict) else None
        span.set_attribute("error.type", said if isinstance(said, str) else "_OTHER")
        span.set_status(StatusCode.ERROR)
    span.end()


def _said(span: Span) -> str:
    found = span.get_span_context()
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"


def _remote(traceparent: str) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    _, trace_id, span_id, flags = traceparent.split("-")
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
