"""Metrics in the text format of Prometheus: as text, in a file for the textfile collector, and to a push gateway.

The library `prometheus-client` writes the format (https://prometheus.io/docs/instrumenting/exposition_formats) and
speaks to the gateway (https://github.com/prometheus/pushgateway#api).
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..runs.report import Report
from .run_metrics import LAST_SUCCESS, Metric, labels_of, metrics_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

MODULES, EXTRA = ("prometheus_client",), "metrics"
JOB = "hudi-services"
_TIMEOUT = 4.0
"""Seconds for one request to a gateway."""
_USER, _PASSWORD = "HUDI_SERVICES_PUSH_USER", "HUDI_SERVICES_PUSH_PASSWORD"


def as_text(metrics: Iterable[Metric]) -> str:
    """The metrics in the text format."""
    from prometheus_client import generate_latest

    return generate_latest(_registry(metrics)).decode()


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file for the textfile collector of the node exporter; a run replaces it as a whole."""

    path: str

    def __str__(self) -> str:
        return self.path

    def send(self, report: Report) -> None:
        """Raises OSError."""
        from prometheus_client import write_to_textfile

        metrics = metrics_of(report)
        if not any(one.name == LAST_SUCCESS for one in metrics):
            metrics += self._last_success(labels_of(report))
        write_to_textfile(self.path, _registry(metrics))

    def _last_success(self, labels: dict[str, str]) -> list[Metric]:
        """What the file that is there says about the last run of this kind that ended well."""
        from prometheus_client.parser import text_string_to_metric_families

        told = []
        # A file that is not there, or that somebody else has written, says nothing. The parser also raises IndexError.
        with suppress(OSError, ValueError, LookupError), open(self.path, encoding="utf-8") as file:
            for family in text_string_to_metric_families(file.read()):
                told += [
                    Metric(LAST_SUCCESS, family.documentation, one.value, one.labels)
                    for one in family.samples
                    if one.name == LAST_SUCCESS and _but_table(one.labels) == _but_table(labels)
                ]
        return told


def _but_table(labels: dict[str, str]) -> dict[str, str]:
    """Without the name of the table, which a run that could not open it does not know."""
    return {name: text for name, text in labels.items() if name != "table"}


@dataclass(frozen=True, slots=True)
class PushGateway:
    """A push gateway of Prometheus. A run replaces all that the last one of its kind has pushed, but for the time of
    the last success, which is in a group of its own."""

    url: str

    def __str__(self) -> str:
        return self.url

    def send(self, report: Report) -> None:
        """Raises OSError."""
        metrics, key = metrics_of(report), _but_table(labels_of(report))
        # Other than the name of a table, its place is always known, and no two tables have the same.
        key["instance"] = key.pop("base_path")
        self._push([one for one in metrics if one.name != LAST_SUCCESS], key)
        success = [one for one in metrics if one.name == LAST_SUCCESS]
        if success:
            self._push(success, {**key, "of": "last_success"})

    def _push(self, metrics: list[Metric], key: dict[str, str]) -> None:
        from prometheus_client.exposition import basic_auth_handler, default_handler, push_to_gateway

        user = os.environ.get(_USER)

        handler: Callable[..., Callable[[], None]] = default_handler
        if user is not None:
            handler = partial(basic_auth_handler, username=user, password=os.environ.get(_PASSWORD, ""))
        push_to_gateway(self.url, JOB, _registry(metrics), key, _TIMEOUT, handler)


def _registry(metrics: Iterable[Metric]) -> "CollectorRegistry":
    from prometheus_client import CollectorRegistry, Gauge

    registry = CollectorRegistry()
    gauges: dict[str, Gauge] = {}
    for one in metrics:
        if one.name not in gauges:
            gauges[one.name] = Gauge(one.name, one.says, list(one.labels), registry=registry)
        gauges[one.name].labels(**one.labels).set(one.value)
    return registry
