"""The report job: what doctor finds, and how the table is, as one HTML file; it changes nothing of the table."""

from ..health.clustering_gains import ClusteringGain
from ..html_report.drawing import check_library
from ..html_report.page import page
from ..html_report.table_state import table_state
from ..options.clustering_keys import NO_LAYOUT
from ..runs.health_rows import measure_rows, show_outcomes, verdict
from ..runs.output_file import check_output_file, replace_output_file
from ..runs.report import CheckResult, Report
from ..runs.report_rows import ClusteringGainRow, HealthFindingRow, MeasureRow
from ..runs.request import TableReportRequest
from ..runs.table_look import look_at
from ..storage import Storage


def table_report(request: TableReportRequest, storage: Storage | None = None) -> Report:
    """Look at the table as doctor does, and write the page to `request.html`; starts no JVM.

    `storage` replaces the storage of `request.base_path`. What cannot be looked at is told on the page. Raises
    ConfigError, before any work, for a file that cannot be written and where the library for pictures is missing.
    """
    report = Report.start(request)
    check_output_file(request.html, "--html")
    check_library()
    look = look_at(request, storage, report)
    with report.phase("gather"):
        state = table_state(look.seen)
    rows = show_outcomes(report, look.outcomes)
    told = verdict(rows, look.outcomes, look.seen.measures)
    unable = [one for one in report.checks if one.result is CheckResult.SKIPPED]
    with report.phase("draw"):
        replace_output_file(request.html, page(state, told, rows, unable))
    report.show(HealthFindingRow, rows)
    report.show(MeasureRow, measure_rows(look.seen))
    if state.clusterings is not None:
        report.show(ClusteringGainRow, map(_gain_row, state.clusterings))
    report.reason = f"{request.html} is written: {told}"
    return report.completed(None)


def _gain_row(gain: ClusteringGain) -> ClusteringGainRow:
    old, new, lookup = gain.old, gain.new, gain.lookup
    return ClusteringGainRow(
        instant=gain.instant.ts,
        layout=gain.layout or NO_LAYOUT,
        columns=", ".join(gain.columns),
        old_files=None if old is None else old.files,
        new_files=None if new is None else new.files,
        old_bytes=None if old is None else old.bytes,
        new_bytes=None if new is None else new.bytes,
        old_median_bytes=None if old is None else old.median,
        new_median_bytes=None if new is None else new.median,
        opened_before=None if lookup is None else round(lookup.before.files, 2),
        opened_after=None if lookup is None else round(lookup.after.files, 2),
        opened_before_bytes=None if lookup is None else round(lookup.before.bytes),
        opened_after_bytes=None if lookup is None else round(lookup.after.bytes),
        ranges=None if lookup is None else lookup.ranges,
        why=gain.why or None,
    )
