"""The health job: facts about a table, what is wrong with it, and the command that mends each; it changes nothing."""

from ..errors import CheckFailed, HudiServicesError
from ..health.model import CheckOutcome, HealthCheck, HealthFinding, Level
from ..runs.health_rows import measure_rows, show_outcomes, verdict
from ..runs.report import Report
from ..runs.report_rows import HealthFindingRow, MeasureRow
from ..runs.request import DoctorRequest, ValidateRequest
from ..runs.table_look import look_at
from ..storage import Storage

WARNED = 8
"""The exit code when something should be done, and no row is in danger."""
EXIT_CODES = {Level.CRITICAL: CheckFailed.exit_code, Level.WARNING: WARNED, Level.NOTE: 0}


def doctor(request: DoctorRequest, storage: Storage | None = None) -> Report:
    """Look at the table, and end the report with the exit code of the worst finding; starts no JVM.

    `storage` replaces the storage of `request.base_path`. A check that cannot be made is told, and the others go on.
    """
    report = Report.start(request)
    look = look_at(request, storage, report)
    outcomes = look.outcomes
    if request.deep:
        with report.phase("validate"):
            outcomes = [*outcomes, _validated(request, look.run.table.storage)]
    rows = show_outcomes(report, outcomes)
    report.show(HealthFindingRow, rows)
    report.show(MeasureRow, measure_rows(look.seen))
    report.reason = verdict(rows, outcomes, look.seen.measures)
    report.completed(None)
    report.exit_code = EXIT_CODES[Level(rows[0].level)] if rows else 0
    return report


def _validated(request: DoctorRequest, storage: Storage) -> CheckOutcome:
    """What `validate` finds, as one more check."""
    # Only here: it loads half as much again.
    from .validate import validate

    outcome = CheckOutcome(HealthCheck("validate", lambda seen: iter(())))
    try:
        validate(ValidateRequest(base_path=request.base_path, options=request.options), storage)
    except CheckFailed as error:
        outcome.findings.append(HealthFinding(Level.CRITICAL, "", error.message, {}, "validate"))
    except HudiServicesError as error:
        outcome.unable = error.message
    return outcome
