"""What a report measures, as plain values: the names, units and labels that every exporter sends (docs/metrics.md).

A process is a run, so that all values are gauges: a counter would begin anew with each of them. Names are those of the
fields of the JSON report, after a prefix; names and units follow https://prometheus.io/docs/practices/naming.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import ConflictError
from ..runs.report import CheckResult, InOut, Report, RunState
from ..runs.report_rows import DroppedGroupRow, FleetServiceRow, FleetTableRow, HealthFindingRow, MeasureRow

OF_RUN = "hudi_services_"
OF_TABLE = "hudi_table_"
LAST_SUCCESS = f"{OF_RUN}last_success_timestamp_seconds"
"""Only a run that ended well has it; until the next one, that of the last stays."""
_ENDED_WELL = (RunState.REQUESTED, RunState.COMPLETED, RunState.IDLE)
_LEVELS = ("critical", "warning", "note")


@dataclass(frozen=True, slots=True)
class Metric:
    """One value of one run. Metrics of one name have the same text and the same names of labels."""

    name: str
    says: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """`seconds`, `bytes`, or "" for a number: the last word of the name tells."""
        last = self.name.rpartition("_")[2]
        return last if last in ("seconds", "bytes") else ""


def labels_of(report: Report) -> dict[str, str]:
    """What tells the runs of one service on one table from all others: the labels of each of its metrics."""
    return {
        "table": report.table.name or "",
        "base_path": report.table.base_path,
        "service": report.service,
        "action": report.action,
        "dry_run": str(report.dry_run).lower(),
    }


def ended_at(report: Report) -> float:
    """Epoch seconds; the report has its `total`."""
    return report.began + report.seconds.get("total", 0.0)


def metrics_of(report: Report) -> list[Metric]:
    """All metrics of a run that has ended; what is unknown has none."""
    return [*_of_run(report), *table_metrics(report)]


def table_metrics(report: Report) -> Iterator[Metric]:
    """What `doctor` has found out about the table; nothing of other services, and of one that failed."""
    if report.service != "doctor" or report.state is RunState.FAILED:
        return
    of_table = {name: text for name, text in labels_of(report).items() if name in ("table", "base_path")}
    counts = Counter((one.check, one.level) for one in report.shown(HealthFindingRow))
    for check in (one.name for one in report.checks):
        for level in _LEVELS:
            labels = {**of_table, "check": check, "level": level}
            yield Metric(f"{OF_TABLE}findings", "Findings of doctor.", counts[check, level], labels)
    skipped = sum(one.result is CheckResult.SKIPPED for one in report.checks)
    yield Metric(f"{OF_TABLE}checks_skipped", "Checks of doctor that could not be made.", skipped, of_table)
    total = report.seconds.get("total", 0.0)
    yield Metric(f"{OF_TABLE}doctor_duration_seconds", "How long doctor took.", total, of_table)
    yield Metric(f"{OF_TABLE}doctor_timestamp_seconds", "When doctor began, since the epoch.", report.began, of_table)
    for row in report.shown(MeasureRow):
        says = f"{row.measure.replace('_', ' ')} of the table."
        yield Metric(f"{OF_TABLE}{row.measure}", says, row.value, of_table)


def _of_run(report: Report) -> Iterator[Metric]:
    of_run = labels_of(report)

    def metric(name: str, says: str, value: float, **labels: str) -> Metric:
        return Metric(f"{OF_RUN}{name}", says, value, {**of_run, **labels})

    for state in RunState:
        says = "How the run ended: 1 for its state, 0 for the others."
        yield metric("state", says, report.state is state, state=state.value)
    yield metric("exit_code", "The exit code of the run.", report.exit_code)
    yield metric("run_timestamp_seconds", "When the run began, since the epoch.", report.began)
    if report.state in _ENDED_WELL:
        says = "When the last run that ended well came to its end, since the epoch."
        yield Metric(LAST_SUCCESS, says, ended_at(report), of_run)
    yield metric("duration_seconds", "How long the run took.", report.seconds.get("total", 0.0))
    for phase, seconds in report.seconds.items():
        if phase != "total":
            yield metric("seconds", "How long a phase of the run took.", seconds, phase=phase)
    yield from _quantities(metric, report)
    conflicts = report.exit_code == ConflictError.exit_code
    yield metric("conflicts", "1 for a run that a conflict ended (exit code 4), else 0.", conflicts)
    yield metric(
        "dropped_groups",
        "Groups of the plan that were left out, for a conflict or a time limit; the others were committed.",
        len(report.shown(DroppedGroupRow)),
    )
    for reason, slices in report.left_out.items():
        yield metric("left_out", "File slices that are not in the plan, by reason.", slices, reason=reason)
    for reason, groups in report.decoded.items():
        yield metric("decoded", "Groups whose rows were decoded, by reason.", groups, reason=reason)
    for result, checks in Counter(one.result.value for one in report.checks).items():
        yield metric("checks", "Checks of the run, by their results.", checks, result=result)
    for place, asked in report.requests.items():
        for kind, requests in asked.items():
            yield metric("requests", "Requests made of stores.", requests, place=place, kind=kind)
    for of_table, tables in Counter(row.state for row in report.shown(FleetTableRow)).items():
        yield metric("tables", "Tables of a fleet, by what became of them.", tables, state=of_table)
    for of_service, services in Counter(row.state for row in report.shown(FleetServiceRow)).items():
        yield metric(
            "fleet_services",
            "Services that were due on the tables of a fleet, by their states.",
            services,
            state=of_service,
        )
    yield metric("warnings", "Warnings of the run.", len(report.all_warnings))


def _quantities(metric: Callable[..., Metric], report: Report) -> Iterator[Metric]:
    """Those that may be unknown."""
    counts = {
        "groups": ("Groups of the plan.", report.groups),
        "tasks": ("Tasks that the groups were.", report.tasks),
        "resumed_groups": ("Groups that an earlier attempt had finished.", report.resumed_groups),
        "peak_bytes": ("The most memory of the run, with all its processes on this machine.", report.peak_bytes),
    }
    for name, (says, count) in counts.items():
        if count is not None:
            yield metric(name, says, count)
    both: dict[str, tuple[str, InOut]] = {
        "files": ("Files that the run took in, and put out.", report.files),
        "bytes": ("Bytes of the files that the run took in, and put out.", report.bytes),
        "rows": ("Rows of the files that the run took in, and put out.", report.rows),
    }
    for name, (says, quantity) in both.items():
        for direction, count in (("in", quantity.before), ("out", quantity.after)):
            if count is not None:
                yield metric(name, says, count, direction=direction)
