"""Spans of runs, steps and models: by the real SDK, into memory and to a collector that speaks OTLP."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tramai import deciding, engine, tracing
from tramai.cli import _observers
from tramai.clock import SystemClock
from tramai.codec import decode
from tramai.errors import ConfigurationError, ExtraMissing, StoreUnavailable
from tramai.observers import _otel_export as export
from tramai.store import Change, Lease, Note
from tramai.stores.memory import Memory
from tramai.traceparent import valid

from .engine.support import RUN, make, name, run
from .engine.support import call as python
from .plugin_install import ROOT, environment

pytest.importorskip("opentelemetry.sdk", reason="the extra is not installed: pip install 'tramai[otel]'")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tramai.observers.otel import Otel

CANARY = "c4n4ry"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Spans:
    """An observer whose spans end in memory."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.observer = Otel(provider)

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self._kept.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.all if span.name == name]
        return found

    def parent(self, name: str) -> str:
        span = self.named(name)
        assert span.parent is not None
        return next(one.name for one in self.all if one.context.span_id == span.parent.span_id)


@pytest.fixture
def spans() -> Spans:
    return Spans()


def given(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_run_and_its_steps_are_told_as_a_pipeline_and_its_tasks(spans: Spans) -> None:
    steps = [
        {"id": "fine", "shell": f"echo {CANARY}"},
        {"id": "not", "local": 1, "when": "${{ inputs.data == 'x' }}"},
        {"id": "each", "foreach": {"items": [CANARY], "key": "${{ item }}", "do": [{"id": "inner", "local": CANARY}]}},
        {
            "id": "again",
            "local": python("fail_until", name=name(), times=1),
            "retry": {"max_attempts": 2, "delay": "1ms"},
        },
        {"id": "bad", "shell": f"echo {CANARY} >&2; exit 3"},
    ]
    top = {"inputs": {"data": {"type": "string"}}}
    result = run(Memory(), make(steps, **top), {"data": CANARY}, observers=[spans.observer])
    assert result.status == "failed"
    whole = spans.named("RUN test")
    assert (whole.kind, whole.parent, whole.status.status_code) == (SpanKind.SERVER, None, StatusCode.ERROR)
    about = given(whole)
    assert about["cicd.pipeline.name"] == "test"
    assert about["cicd.pipeline.run.id"] == RUN
    assert (about["cicd.pipeline.result"], about["tramai.run.status"]) == ("failure", "failed")
    assert about["error.type"] == "exit.3"
    assert [span.name for span in spans.all] == ["fine", "inner", "each", "again", "again", "bad", "RUN test"]
    assert (spans.parent("fine"), spans.parent("inner"), spans.parent("each")) == ("RUN test", "each", "RUN test")
    ends = [(span.name, given(span)["cicd.pipeline.task.run.result"]) for span in spans.all[:-1]]
    assert ends[-3:] == [("again", "failure"), ("again", "success"), ("bad", "failure")]
    assert {span.context.trace_id for span in spans.all} == {whole.context.trace_id}
    ids = [given(span)["cicd.pipeline.task.run.id"] for span in spans.all[:-1]]
    assert len(ids) == len(set(ids))
    assert CANARY not in json.dumps(
        [[span.name, given(span), str(span.events), str(span.status)] for span in spans.all]
    )


def test_the_steps_of_a_called_run_stand_in_the_step_that_called_it(spans: Spans, tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text("tramai: 1\nname: inner\nsteps: [{id: deep, local: 1}]\n")
    (tmp_path / "w.yaml").write_text("tramai: 1\nname: w\nsteps: [{id: outer, call: {workflow: inner.yaml}}]\n")
    from tramai import plan, workflow

    made = plan.Plan(workflow.load(str(tmp_path / "w.yaml")))
    assert engine.run(made, {}, store=Memory(), observers=[spans.observer]).status == "completed"
    assert (spans.parent("deep"), spans.parent("outer")) == ("outer", "RUN w")


def test_children_stand_in_the_span_of_their_step(spans: Spans, tmp_path: Path) -> None:
    said = "{run: 'echo $TRACEPARENT', parse: text}"
    outputs = "outputs: {at: '${{ steps.deep.output }}'}\n"
    inner = f"tramai: 1\nname: inner\nsteps: [{{id: deep, shell: {said}}}]\n{outputs}"
    (tmp_path / "inner.yaml").write_text(inner)
    outer = f"""tramai: 1
name: w
steps:
  - {{id: flat, shell: {said}}}
  - {{id: each, foreach: {{items: [1], do: [{{id: item, shell: {said}}}]}}}}
  - {{id: sub, call: inner.yaml}}
outputs:
  flat: ${{{{ steps.flat.output }}}}
  item: ${{{{ steps.each.output[0].item }}}}
  deep: ${{{{ steps.sub.output.at }}}}
"""
    (tmp_path / "w.yaml").write_text(outer)
    from tramai import plan, workflow

    made = plan.Plan(workflow.load(str(tmp_path / "w.yaml")))
    options = engine.Options(trace=PARENT)
    result = engine.run(made, {}, store=Memory(), observers=[spans.observer], options=options)
    assert result.status == "completed", result.error
    for name_ in ("flat", "item", "deep"):
        context = spans.named(name_).context
        assert PARENT.split("-")[1] == f"{context.trace_id:032x}"
        assert str(result.outputs[name_]).strip() == f"00-{context.trace_id:032x}-{context.span_id:016x}-01"


def test_models_and_agents_are_told_by_the_conventions_for_them(spans: Spans) -> None:
    steps = [
        {"id": "ask", "ai": {"model": "demo:echo", "prompt": CANARY}},
        {"id": "no", "ai": {"model": f"demo:{CANARY}", "prompt": CANARY}},
    ]
    assert run(Memory(), make(steps), observers=[spans.observer]).status == "failed"
    good, bad = [span for span in spans.all if span.name == "chat"]
    about = given(good)
    assert (about["gen_ai.operation.name"], about["gen_ai.provider.name"]) == ("chat", "demo")
    assert about["gen_ai.usage.input_tokens"] > 0
    assert good.kind is SpanKind.CLIENT
    assert good.parent is not None
    assert good.parent.span_id == spans.named("ask").context.span_id
    assert bad.status.status_code is StatusCode.ERROR
    assert CANARY not in json.dumps([[span.name, given(span)] for span in spans.all])


def test_what_goes_on_later_points_back_and_is_part_of_the_trace_of_who_went_on(spans: Spans) -> None:
    store = Memory()
    made = make([{"id": "first", "local": 1}, {"id": "ok", "gate": {"ask": "Go on?"}}, {"id": "last", "local": 2}])
    options = {"trace": PARENT}
    assert run(store, made, observers=[spans.observer], options=options).status == "waiting"
    deciding.decide(store, RUN, "ok", decision="approved", by="me", clock=SystemClock())
    other = Spans()
    assert engine.resume(RUN, store=store, plan=made, observers=[other.observer]).status == "completed"
    before, after = spans.named("RUN test"), other.named("RUN test")
    assert before.parent is not None
    assert (f"{before.context.trace_id:032x}", f"{before.parent.span_id:016x}") == tuple(PARENT.split("-")[1:3])
    assert (given(before)["cicd.pipeline.run.state"], "cicd.pipeline.result" in given(before)) == ("pending", False)
    assert after.context.trace_id != before.context.trace_id
    (link,) = after.links
    assert (link.context.trace_id, link.context.span_id) == (before.context.trace_id, before.context.span_id)
    assert [span.name for span in other.all] == ["ok", "last", "RUN test"]
    kept = [decode(note.data or "{}") for note in store.notes(RUN) if note.type == tracing.TRACED]
    expected = [
        f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"
        for span in (before, after)
    ]
    assert kept == [{"traceparent": text} for text in expected]


def test_a_tracer_that_raises_or_talks_nonsense_changes_nothing_and_nothing_of_it_is_kept() -> None:
    class Broken:
        def trace(self, *_: Any, **__: Any) -> str:
            raise RuntimeError

    class Odd:
        def trace(self, *_: Any, **__: Any) -> str:
            return CANARY

    store = Memory()
    assert run(store, make([{"id": "a", "local": 1}]), observers=[Broken(), Odd()]).status == "completed"
    assert tracing.TRACED not in [note.type for note in store.notes(RUN)]


@pytest.mark.parametrize(
    "text",
    [None, "", "x", PARENT[:-1], PARENT.upper(), f"ff{PARENT[2:]}", PARENT.replace("b7ad6b7169203331", "0" * 16)],
)
def test_only_what_the_standard_allows_is_handed_on(text: str | None) -> None:
    assert (valid(PARENT), valid(text)) == (PARENT, None)


def test_a_damaged_note_is_no_link(spans: Spans) -> None:
    store = Memory()
    made = make([{"id": "ok", "gate": {"ask": "Go on?"}}])
    assert run(store, made).status == "waiting"
    after = len(store.notes(RUN))
    for data in ('{"traceparent":"x"}', "[]", None):
        store.post(RUN, Note(at=1.0, type=tracing.TRACED, data=data), after=after, now=1.0)
        after += 1
    deciding.decide(store, RUN, "ok", decision="approved", by="me", clock=SystemClock())
    assert engine.resume(RUN, store=store, plan=made, observers=[spans.observer]).status == "completed"
    assert spans.named("RUN test").links == ()


def test_what_an_error_left_open_is_delivered_when_nothing_more_comes(spans: Spans) -> None:
    class Breaks(Memory):
        def commit(self, lease: Lease, change: Change) -> int:
            raise StoreUnavailable(what="it is away")

    with pytest.raises(StoreUnavailable):
        run(Breaks(), make([{"id": "a", "local": 1}]), observers=[spans.observer])
    assert "RUN test" not in [span.name for span in spans.all]
    _observers.close([print, spans.observer, spans.observer])
    whole = spans.named("RUN test")
    assert (whole.status.status_code, given(whole)["error.type"]) == (StatusCode.ERROR, "_OTHER")


# The extra, and where spans go.


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "installed", lambda: False)
    with pytest.raises(ExtraMissing) as raised:
        Otel()
    assert raised.value.hint == "pip install 'tramai[otel]'"


def test_an_exporter_that_nobody_brings_is_refused_before_a_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp,nobody")
    with pytest.raises(ConfigurationError, match="nobody"):
        Otel()
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    Otel()


def test_a_run_without_the_observer_imports_nothing_of_it() -> None:
    code = (
        "import sys\nfrom tramai import build, engine, plan\nfrom tramai.stores.memory import Memory\n"
        "from tramai.observers.otel import Otel\nOtel()\n"
        "made = plan.of(build.build({'tramai': 1, 'name': 'x', 'steps': [{'id': 'a', 'local': 1}]}))\n"
        "assert engine.run(made, {}, store=Memory(), observers=[print]).status == 'completed'\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry.sdk')]\n"
        "assert 'tramai.tracing' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


# A collector, and real processes.


class Collector:
    """Takes OTLP over HTTP, as protobuf."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                import gzip

                from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    about = {one.key: one.value.string_value for one in resource.resource.attributes}
                    outer.services.add(about["service.name"])
                    outer.spans += [span for scope in resource.scope_spans for span in scope.spans]
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def runs(self) -> list[Any]:
        """The spans of runs, by the time they began."""
        return sorted(
            (span for span in self.spans if span.name.startswith("RUN")), key=lambda span: span.start_time_unix_nano
        )

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


Tramai = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tramai(tmp_path: Path) -> Tramai:
    (tmp_path / "tramai.toml").write_text('observers = ["otel"]\n')
    gate = "tramai: 1\nname: w\nsteps: [{id: a, shell: echo 1}, {id: ok, gate: {ask: Go?}}, {id: b, local: 2}]\n"
    (tmp_path / "w.yaml").write_text(gate)

    def call(*arguments: str, to: str, **extra: str) -> subprocess.CompletedProcess[str]:
        variables = environment(tmp_path, (), OTEL_EXPORTER_OTLP_ENDPOINT=to, **extra)
        return subprocess.run(
            [sys.executable, "-m", "tramai", *arguments],
            cwd=tmp_path,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


def test_a_run_that_another_process_goes_on_with_is_linked_at_the_collector(
    collector: Collector, tramai: Tramai
) -> None:
    begun = tramai("run", "w.yaml", "--json", to=collector.url, TRACEPARENT=PARENT)
    assert begun.returncode == 11, begun.stderr
    run_id = json.loads(begun.stdout.splitlines()[0])["run_id"]
    assert tramai("approve", run_id, to=collector.url).returncode == 0
    ended = tramai("resume", run_id, to=collector.url, OTEL_SERVICE_NAME="mine")
    assert ended.returncode == 0, ended.stderr
    first, second = collector.runs()
    assert (first.trace_id.hex(), first.parent_span_id.hex()) == tuple(PARENT.split("-")[1:3])
    assert [(link.trace_id, link.span_id) for link in second.links] == [(first.trace_id, first.span_id)]
    assert second.trace_id != first.trace_id
    assert {span.name for span in collector.spans} == {"RUN w", "a", "ok", "b"}
    assert collector.services == {"tramai", "mine"}


def test_a_run_of_a_worker_is_linked_to_who_put_it_into_the_queue(collector: Collector, tramai: Tramai) -> None:
    put = tramai("run", "w.yaml", "--detach", "--json", to=collector.url, TRACEPARENT=PARENT)
    assert put.returncode == 0, put.stderr
    worked = tramai("worker", "--once", "--concurrency", "1", to=collector.url, TRACEPARENT=PARENT[:-1] + "0")
    assert worked.returncode == 0, worked.stderr
    (span,) = collector.runs()
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in span.links] == [tuple(PARENT.split("-")[1:3])]
    assert span.parent_span_id == b""


def test_a_collector_that_is_away_costs_seconds_and_a_line_and_no_run(tramai: Tramai) -> None:
    began = time.monotonic()
    done = tramai("run", "w.yaml", to="http://127.0.0.1:9")
    spent = time.monotonic() - began
    assert done.returncode == 11, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("otel: nobody takes the spans") == 1
    assert spent < export.FLUSH + 15
