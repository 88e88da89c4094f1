"""The health job: facts about a table, what is wrong with it, and the command that mends each; it changes nothing."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from ..errors import CheckFailed, HudiServicesError
from ..health.all_checks import examine
from ..health.examination import Examination
from ..health.model import CheckOutcome, HealthFinding, Level
from ..runs.opening import open_supported
from ..runs.report import CheckResult, NamedCheck, Report
from ..runs.report_rows import HealthFindingRow, MeasureRow
from ..runs.request import DoctorRequest, ValidateRequest
from ..storage import Storage

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
    rows = [_row(one.check.name, found, root) for one in outcomes for found in one.findings]
    report.checks = [_named(one) for one in outcomes]
    if request.deep:
        with report.phase("validate"):
            check, found = _validated(request, run.table.storage)
        report.checks.append(check)
        rows += [_row(check.name, one, root) for one in found]
    rows.sort(key=lambda row: Level(row.level).rank)
    report.show(HealthFindingRow, rows)
    report.show(MeasureRow, [MeasureRow(name, float(value)) for name, value in seen.measures.items()])
    levels = [Level(row.level) for row in rows]
    report.reason = _sentence(levels, outcomes)
    report.completed(None)
    report.exit_code = EXIT_CODES[levels[0]] if levels else 0
    return report


def _row(check: str, finding: HealthFinding, root: str) -> HealthFindingRow:
    name, _, flags = finding.command.partition(" ")
    return HealthFindingRow(
        level=finding.level.value,
        check=check,
        subject=finding.subject,
        finding=finding.sentence,
        command=f"hudi-services {name} --base-path {root} {flags}".rstrip() if name else "",
        numbers=json.dumps(dict(finding.numbers)),
    )


def _named(outcome: CheckOutcome) -> NamedCheck:
    if outcome.unable:
        return NamedCheck(outcome.check.name, CheckResult.SKIPPED, outcome.unable)
    if not outcome.findings:
        return NamedCheck(outcome.check.name, CheckResult.PASSED)
    return NamedCheck(outcome.check.name, CheckResult.FAILED, _counted(len(outcome.findings), "finding"))


def _validated(request: DoctorRequest, storage: Storage) -> tuple[NamedCheck, list[HealthFinding]]:
    """What `validate` finds, as one more check."""
    # Only here: it loads half as much again.
    from .validate import validate

    try:
        validate(ValidateRequest(base_path=request.base_path, options=request.options), storage)
    except CheckFailed as error:
        found = HealthFinding(Level.CRITICAL, "", error.message, {}, "validate")
        return NamedCheck("validate", CheckResult.FAILED, _counted(1, "finding")), [found]
    except HudiServicesError as error:
        return NamedCheck("validate", CheckResult.SKIPPED, error.message), []
    return NamedCheck("validate", CheckResult.PASSED), []


def _sentence(levels: Iterable[Level], outcomes: Sequence[CheckOutcome]) -> str:
    counts = Counter(levels)
    critical = [_counted(counts[Level.CRITICAL], "critical finding")] if counts[Level.CRITICAL] else []
    others = [_counted(counts[level], level.value) for level in (Level.WARNING, Level.NOTE) if counts[level]]
    told = ", ".join([*critical, *others]) or "the table is all right"
    unable = sum(bool(one.unable) for one in outcomes)
    return f"{told}; {_counted(unable, 'check')} could not be made" if unable else told


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
