"""Metrics and a trace of a run by OpenTelemetry, over OTLP (https://opentelemetry.io/docs/specs/otlp).

The SDK and its exporters do it; what they read from the environment (`OTEL_EXPORTER_OTLP_ENDPOINT`, `_HEADERS`,
`_CERTIFICATE`, `OTEL_RESOURCE_ATTRIBUTES`, ...) counts. Providers are of this module alone: those of the process that
calls the Python API stay as they are.
"""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..errors import HudiServicesError
from ..runs.report import Report, RunState, sentence
from .run_metrics import ended_at, labels_of, metrics_of

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter, MetricsData
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

MODULES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http", "opentelemetry.exporter.otlp.proto.grpc")
EXTRA = "opentelemetry"
_NAME = "hudi-services"
_SUCCESS = "SUCCESS"
"""Of the results of both kinds of exporters."""
_TIMEOUT = 4
"""Seconds for the metrics, and for the trace."""
_UNITS = {"seconds": "s", "bytes": "By", "": ""}
"""As https://ucum.org has them. `1` would be a ratio in the names that collectors make for Prometheus."""


@dataclass(frozen=True, slots=True)
class Collector:
    """A collector of OpenTelemetry; `endpoint` is "" for that of the environment."""

    endpoint: str
    is_grpc: bool

    def __str__(self) -> str:
        return self.endpoint or "the collector of OpenTelemetry"

    def send(self, report: Report) -> None:
        """Raises HudiServicesError with what the library says."""
        with _said_by_the_library() as said:
            resource = _resource()
            metrics, spans = self._exporters()
            try:
                # Who does not take the metrics in time would not take the trace either.
                taken = (
                    metrics.export(_metrics_data(report, resource), timeout_millis=_TIMEOUT * 1000).name == _SUCCESS
                    and spans.export(_spans(report, resource)).name == _SUCCESS
                )
            finally:
                metrics.shutdown()
                spans.shutdown()
        if not taken:
            raise HudiServicesError(said[-1] if said else "the collector did not take it")

    def _exporters(self) -> "tuple[MetricExporter, SpanExporter]":
        if self.is_grpc:
            from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans

            insecure = True if self.endpoint else None
            return (
                GrpcMetrics(endpoint=self.endpoint or None, insecure=insecure, timeout=_TIMEOUT),
                GrpcSpans(endpoint=self.endpoint or None, insecure=insecure, timeout=_TIMEOUT),
            )
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return (
            OTLPMetricExporter(endpoint=self._of_signal("metrics"), timeout=_TIMEOUT),
            OTLPSpanExporter(endpoint=self._of_signal("traces"), timeout=_TIMEOUT),
        )

    def _of_signal(self, signal: str) -> str | None:
        return f"{self.endpoint.rstrip('/')}/v1/{signal}" if self.endpoint else None


def collector(target: str) -> Collector:
    """The collector of a target: `otlp`, or a URL whose scheme begins with `otlp+`."""
    scheme, _, place = target.partition("://")
    if not place:
        return Collector("", os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "") == "grpc")
    if scheme.lower() == "otlp+grpc":
        return Collector(place, is_grpc=True)
    return Collector(f"{scheme.lower().removeprefix('otlp+')}://{place}", is_grpc=False)


def _resource() -> "Resource":
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    # The environment of the operator counts more.
    return Resource({"service.name": _NAME, "service.version": __version__}).merge(OTELResourceDetector().detect())


def _metrics_data(report: Report, resource: "Resource") -> "MetricsData":
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter(_NAME, __version__)
    for one in metrics_of(report):
        # The meter gives the same gauge for the same name.
        meter.create_gauge(one.name, _UNITS[one.unit], one.says).set(float(one.value), dict(one.labels))
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None, "every run has metrics"
    return data


def _spans(report: Report, resource: "Resource") -> "Sequence[ReadableSpan]":
    """One span of the run, and below it one of each phase with a begin: from there on, as long as it took in all."""
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Status, StatusCode, set_span_in_context

    made = InMemorySpanExporter()
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(made))
    tracer = provider.get_tracer(_NAME, __version__)
    run = tracer.start_span(
        f"{report.service} {report.action}", Context(), attributes=_attributes(report), start_time=_nanos(report.began)
    )
    for phase, began in report.phases_began.items():
        span = tracer.start_span(phase, set_span_in_context(run, Context()), start_time=_nanos(began))
        span.end(_nanos(began + report.seconds.get(phase, 0.0)))
    if report.state is RunState.FAILED:
        run.set_status(Status(StatusCode.ERROR, sentence(report.error) if report.error else None))
    run.end(_nanos(ended_at(report)))
    provider.shutdown()
    return made.get_finished_spans()


def _attributes(report: Report) -> dict[str, Any]:
    document = report.document()
    told = {name: document[name] for name in ("state", "exit_code", "instant", "reason") if document[name] is not None}
    without_begin = {
        f"seconds.{phase}": seconds
        for phase, seconds in document["seconds"].items()
        if phase not in report.phases_began and phase != "total"
    }
    return {**labels_of(report), **told, **without_begin}


def _nanos(seconds: float) -> int:
    return round(seconds * 1e9)


@dataclass
class _Senders:
    """The threads of this process that send, and whether the logger of the library propagated before."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0
    propagate: bool = True


_senders = _Senders()


@contextmanager
def _said_by_the_library() -> Iterator[list[str]]:
    """What the library logs meanwhile, instead of its lines on stderr: one warning is enough.

    Threads may send at the same time: each gets what was said in it, and the last one puts the logger back.
    """
    said: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                said.append(record.getMessage())

    logger, kept, thread = logging.getLogger("opentelemetry"), Kept(), threading.get_ident()
    with _senders.lock:
        if not _senders.count:
            _senders.propagate = logger.propagate
        _senders.count += 1
        logger.addHandler(kept)
        logger.propagate = False
    try:
        yield said
    finally:
        with _senders.lock:
            _senders.count -= 1
            logger.removeHandler(kept)
            if not _senders.count:
                logger.propagate = _senders.propagate
