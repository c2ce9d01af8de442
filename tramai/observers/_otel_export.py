"""Where spans go: one provider for the process, made by the OTEL_* variables; delivered within a bounded time."""

from __future__ import annotations

import os
import sys
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

FLUSH = 3.0
"""Seconds that the end of a run waits for its spans to be taken."""
_AGAIN = 0.2
"""Seconds, once they were not."""
_GROUP = "opentelemetry_traces_exporter"


def installed() -> bool:
    """Whether the extra is here; nothing of it is imported."""
    from importlib.util import find_spec

    try:
        return all(
            find_spec(name) is not None for name in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
        )
    except ModuleNotFoundError:
        return False


def check() -> None:
    """Refuse an exporter that nobody brings, before a run begins."""
    for name in _wanted():
        if name not in ("otlp", "console"):
            _point(name)


@lru_cache(maxsize=1)
def provider() -> TracerProvider:
    """The provider of this process."""
    import logging

    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from .. import __version__

    # What it has to say of a collector that is away would be traces of its own; `_Told` says it in a line.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    named = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "") or os.environ.get("OTEL_SERVICE_NAME")
    about = {} if named else {"service.name": "tramai"}
    made = TracerProvider(resource=Resource.create({**about, "service.version": __version__}), shutdown_on_exit=False)
    for name in _wanted():
        made.add_span_processor(BatchSpanProcessor(cast("SpanExporter", _Told(_exporter(name)))))
    return made


def flush(made: Any) -> None:
    """Have what is there delivered, on a thread of its own: nobody waits longer than `FLUSH`."""
    global _late
    waiting = _late
    if waiting is None or not waiting.is_alive():
        waiting = threading.Thread(target=_deliver, args=(made,), name="otel", daemon=True)
        waiting.start()
    waiting.join(FLUSH if _late is None else _AGAIN)
    _late = waiting if waiting.is_alive() else None
    if _late is not None:
        _Told.tell()


_late: threading.Thread | None = None
"""The delivery that was not over when its time was."""


def _deliver(made: Any) -> None:
    try:
        made.force_flush()
    except Exception:  # noqa: BLE001, S110 - observers are fail-open by promise
        pass


def _wanted() -> list[str]:
    """The names of exporters, as the SDK reads them."""
    text = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    return [name for name in (part.strip() for part in text.split(",")) if name not in ("", "none")]


def _exporter(name: str) -> SpanExporter:
    """An exporter by its name; OTLP speaks HTTP unless the environment wants gRPC."""
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if name == "otlp" and protocol == "grpc":
        name = "otlp_proto_grpc"
    if name in ("otlp", "otlp_proto_http"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)  # standard output is for results
    made: SpanExporter = _point(name).load()()
    return made


def _point(name: str) -> Any:
    from importlib.metadata import entry_points

    found = list(entry_points(group=_GROUP, name=name))
    if not found:
        what = f"OTEL_TRACES_EXPORTER: no installed package brings the exporter `{name}`"
        raise ConfigurationError(what=what, hint="otlp, console and none are always there")
    return found[0]


class _Told:
    """An exporter that says once, in a line, that nobody took what it sent."""

    said = False

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Deliver them."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        try:
            found = self._exporter.export(spans)
        except Exception:  # noqa: BLE001 - whatever an exporter raises
            found = SpanExportResult.FAILURE
        if found is not SpanExportResult.SUCCESS:
            self.tell()
        return found

    @staticmethod
    def tell() -> None:
        """Say it, the first time."""
        if not _Told.said:
            _Told.said = True
            os.write(2, b"otel: nobody takes the spans; runs go on without\n")

    def shutdown(self) -> None:
        """End it."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Deliver what it holds back."""
        return self._exporter.force_flush(timeout_millis)
