"""The report of `doctor` in the text format of Prometheus, for the textfile collector of its node exporter.

Names and units follow https://prometheus.io/docs/practices/naming; the library `prometheus-client` writes the format
(https://prometheus.io/docs/instrumenting/exposition_formats). docs/report.md lists the names.
"""

from collections import Counter
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..runs.report import CheckResult, Report
from ..runs.report_rows import HealthFindingRow, MeasureRow

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

PREFIX = "hudi_table"
_LEVELS = ("critical", "warning", "note")


def check_library() -> None:
    """Raise ConfigError, before any work, where the library is missing."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise ConfigError(
            "--format prometheus needs the package prometheus-client",
            hint="install it: pip install 'hudi-services[metrics]'",
        ) from None


def as_prometheus(report: Report) -> str:
    """The measures of the table and the number of findings by check, each with the labels `table` and `base_path`."""
    from prometheus_client import generate_latest

    return generate_latest(_registry(report)).decode()


def _registry(report: Report) -> "CollectorRegistry":
    from prometheus_client import CollectorRegistry, Gauge

    registry = CollectorRegistry()
    of_table = {"table": report.table.name or "", "base_path": report.table.base_path}

    def gauge(name: str, says: str, value: float) -> None:
        Gauge(f"{PREFIX}_{name}", says, [*of_table], registry=registry).labels(**of_table).set(value)

    findings = Gauge(f"{PREFIX}_findings", "Findings of doctor.", [*of_table, "check", "level"], registry=registry)
    counts = Counter((one.check, one.level) for one in report.shown(HealthFindingRow))
    for check in (one.name for one in report.checks):
        for level in _LEVELS:
            findings.labels(**of_table, check=check, level=level).set(counts[check, level])
    skipped = sum(one.result is CheckResult.SKIPPED for one in report.checks)
    gauge("checks_skipped", "Checks of doctor that could not be made.", skipped)
    gauge("doctor_duration_seconds", "How long doctor took.", report.seconds.get("total", 0.0))
    gauge("doctor_timestamp_seconds", "When doctor began, since the epoch.", report.began)
    for one in report.shown(MeasureRow):
        gauge(one.measure, f"{one.measure.replace('_', ' ')} of the table.", one.value)
    return registry
