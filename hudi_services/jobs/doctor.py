"""The health job: facts about a table, what is wrong with it, and the command that mends each; it changes nothing."""

import json
from collections.abc import Sequence

from ..errors import CheckFailed, HudiServicesError, NothingToDo
from ..health.all_checks import examine
from ..health.examination import Examination
from ..health.model import CheckOutcome, Level
from ..runs.opening import open_supported
from ..runs.report import CheckResult, NamedCheck, Report
from ..runs.report_rows import HealthFindingRow, MeasureRow
from ..runs.request import DoctorRequest, ValidateRequest
from ..storage import Storage

WARNED = 8
"""The exit code when something should be done, and no row is in danger."""
_EXIT_CODES = {Level.CRITICAL: CheckFailed.exit_code, Level.WARNING: WARNED, Level.NOTE: 0}


def doctor(request: DoctorRequest, storage: Storage | None = None) -> Report:
    """Look at the table, and end the report with the exit code of the worst finding; starts no JVM.

    `storage` replaces the storage of `request.base_path`. A check that cannot be made is told, and the others go on.
    """
    run = open_supported(request, storage, Report.start(request), repairs=True)
    report, table = run.report, run.table
    seen = Examination(table, run.options, run.settings, request.longest_query_minutes)
    with report.phase("look"):
        outcomes = examine(seen)
    report.checks = [_named(one) for one in outcomes]
    base = f"--base-path {table.storage.root}"
    rows = [
        HealthFindingRow(
            level=found.level.value,
            check=outcome.check.name,
            subject=found.subject,
            finding=found.sentence,
            command=_command(found.command, base),
            numbers=json.dumps(dict(found.numbers)),
        )
        for level in Level.__members__.values()
        for outcome in outcomes
        for found in outcome.findings
        if found.level is level
    ]
    levels = [Level(row.level) for row in rows]
    if request.deep:
        levels += _deep(request, report, rows, base, table.storage)
    rows.sort(key=lambda row: Level(row.level).rank)
    report.show(HealthFindingRow, rows)
    report.show(MeasureRow, [MeasureRow(name, float(value)) for name, value in seen.measures.items()])
    report.reason = _sentence(levels, [one for one in outcomes if one.unable])
    report.completed(None)
    report.exit_code = max((_EXIT_CODES[level] for level in levels), key=_severity, default=0)
    return report


def _severity(code: int) -> int:
    return (0, WARNED, CheckFailed.exit_code).index(code)


def _command(command: str, base: str) -> str:
    name, _, flags = command.partition(" ")
    return f"hudi-services {name} {base} {flags}".rstrip() if command else ""


def _named(outcome: CheckOutcome) -> NamedCheck:
    if outcome.unable:
        return NamedCheck(outcome.check.name, CheckResult.SKIPPED, outcome.unable)
    found = len(outcome.findings)
    detail = f"{found} finding{'s'[: found != 1]}" if found else ""
    return NamedCheck(outcome.check.name, CheckResult.FAILED if found else CheckResult.PASSED, detail)


def _deep(
    request: DoctorRequest, report: Report, rows: list[HealthFindingRow], base: str, storage: Storage
) -> Sequence[Level]:
    """What validate finds, as one more check."""
    # Only here: it loads half as much again.
    from .validate import validate

    try:
        validate(ValidateRequest(base_path=request.base_path, options=request.options), storage)
    except (CheckFailed, NothingToDo) as error:
        if isinstance(error, NothingToDo):
            report.checks.append(NamedCheck("validate", CheckResult.SKIPPED, error.message))
            return []
        rows.append(
            HealthFindingRow(
                level=Level.CRITICAL.value,
                check="validate",
                subject="",
                finding=error.message,
                command=_command("validate", base),
                numbers="{}",
            )
        )
        report.checks.append(NamedCheck("validate", CheckResult.FAILED, error.message))
        return [Level.CRITICAL]
    except HudiServicesError as error:
        report.checks.append(NamedCheck("validate", CheckResult.SKIPPED, error.message))
        return []
    report.checks.append(NamedCheck("validate", CheckResult.PASSED))
    return []


def _sentence(levels: Sequence[Level], unable: Sequence[CheckOutcome]) -> str:
    counts = {level: levels.count(level) for level in Level}
    told = [
        f"{count} {level.value}{'s'[: count != 1]}"
        for level, count in counts.items()
        if count and level is not Level.CRITICAL
    ]
    if counts[Level.CRITICAL]:
        told.insert(0, f"{counts[Level.CRITICAL]} critical")
    skipped = f"; {len(unable)} checks could not be made" if unable else ""
    return ("; ".join([", ".join(told)]) if told else "the table is all right") + skipped
