"""The report job: what doctor finds, and how the table is, as one HTML file; it changes nothing of the table."""

from ..health.all_checks import examine
from ..health.examination import Examination
from ..html_report.drawing import check_library
from ..html_report.page import page
from ..html_report.table_state import table_state
from ..runs.health_rows import measure_rows, show_outcomes, verdict
from ..runs.opening import open_supported
from ..runs.output_file import check_output_file, replace_output_file
from ..runs.report import CheckResult, Report
from ..runs.report_rows import HealthFindingRow, MeasureRow
from ..runs.request import TableReportRequest
from ..storage import Storage


def table_report(request: TableReportRequest, storage: Storage | None = None) -> Report:
    """Look at the table as doctor does, and write the page to `request.html`; starts no JVM.

    `storage` replaces the storage of `request.base_path`. What cannot be looked at is told on the page. Raises
    ConfigError, before any work, for a file that cannot be written and where the library for pictures is missing.
    """
    report = Report.start(request)
    check_output_file(request.html, "--html")
    check_library()
    run = open_supported(request, storage, report, repairs=True)
    seen = Examination(run.table, run.options, run.settings, request.longest_query_minutes)
    with report.phase("look"):
        outcomes = examine(seen)
    with report.phase("gather"):
        state = table_state(seen)
    rows = show_outcomes(report, outcomes, run.table.storage.root)
    told = verdict(rows, outcomes)
    unable = [one for one in report.checks if one.result is CheckResult.SKIPPED]
    with report.phase("draw"):
        replace_output_file(request.html, page(state, told, rows, unable))
    report.show(HealthFindingRow, rows)
    report.show(MeasureRow, measure_rows(seen))
    report.reason = f"{request.html} is written: {told}"
    return report.completed(None)
