"""The health job: facts about a table, what is wrong with it, and the command that mends each; it changes nothing."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from ..errors import CheckFailed, HudiServicesError
from ..health.all_checks import examine
from ..health.examination import Examination
from ..health.model import CheckOutcome, HealthCheck, HealthFinding, Level
from ..own_commands import own_command
from ..runs.opening import open_supported
from ..runs.report import CheckResult, NamedCheck, Report
from ..runs.report_rows import HealthFindingRow, MeasureRow
from ..runs.request import DoctorRequest, ValidateRequest
from ..storage import Storage
from ..units import counted

WARNED = 8
"""The exit code when something should be done, and no row is in danger."""
EXIT_CODES = {Level.CRITICAL: CheckFailed.exit_code, Level.WARNING: WARNED, Level.NOTE: 0}


def doctor(request: DoctorRequest, storage: Storage | None = None) -> Report:
    """Look at the table, and end the report with the exit code of the worst finding; starts no JVM.

    `storage` replaces the storage of `request.base_path`. A check that cannot be made is told, and the others go on.
    """
    run = open_supported(request, storage, Report.start(request), repairs=True)
    report, root = run.report, run.table.storage.root
    seen = Examination(run.table, run.options, run.settings, request.longest_query_minutes)
    with report.phase("look"):
        outcomes = examine(seen)
    if request.deep:
        with report.phase("validate"):
            outcomes = [*outcomes, _validated(request, run.table.storage)]
    rows = show_outcomes(report, outcomes, root)
    report.show(HealthFindingRow, rows)
    report.show(MeasureRow, measure_rows(seen))
    report.reason = verdict(rows, outcomes)
    report.completed(None)
    report.exit_code = EXIT_CODES[Level(rows[0].level)] if rows else 0
    return report


def show_outcomes(report: Report, outcomes: Sequence[CheckOutcome], root: str) -> list[HealthFindingRow]:
    """Put the checks on the report, and give what they have found in the table at `root`, the worst first."""
    report.checks = [_named(one) for one in outcomes]
    rows = [_row(one.check.name, found, root) for one in outcomes for found in one.findings]
    return sorted(rows, key=lambda row: Level(row.level).rank)


def measure_rows(seen: Examination) -> list[MeasureRow]:
    """The numbers of the table that the checks have looked up."""
    return [MeasureRow(name, float(value)) for name, value in seen.measures.items()]


def verdict(rows: Iterable[HealthFindingRow], outcomes: Sequence[CheckOutcome]) -> str:
    """What was found, in one sentence without its full stop."""
    counts = Counter(Level(row.level) for row in rows)
    nouns = {Level.CRITICAL: "critical finding", Level.WARNING: "warning", Level.NOTE: "note"}
    told = ", ".join(counted(counts[level], noun) for level, noun in nouns.items() if counts[level])
    unable = sum(bool(one.unable) for one in outcomes)
    skipped = f"; {counted(unable, 'check')} could not be made" if unable else ""
    return f"{told or 'the table is all right'}{skipped}"


def _row(check: str, finding: HealthFinding, root: str) -> HealthFindingRow:
    name, _, flags = finding.command.partition(" ")
    return HealthFindingRow(
        level=finding.level.value,
        check=check,
        subject=finding.subject,
        finding=finding.sentence,
        command=own_command(name, root, flags) if name else "",
        numbers=json.dumps(dict(finding.numbers)),
    )


def _named(outcome: CheckOutcome) -> NamedCheck:
    if outcome.unable:
        return NamedCheck(outcome.check.name, CheckResult.SKIPPED, outcome.unable)
    if not outcome.findings:
        return NamedCheck(outcome.check.name, CheckResult.PASSED)
    return NamedCheck(outcome.check.name, CheckResult.FAILED, counted(len(outcome.findings), "finding"))


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
