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
from .validate import validate

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
    base = f"--base-path {table.storage.root}"
    rows = show_outcomes(report, outcomes, base)
    levels = [Level(row.level) for row in rows]
    if request.deep:
        levels += _deep(request, report, rows, base, table.storage)
    rows.sort(key=lambda row: Level(row.level).rank)
    report.show(HealthFindingRow, rows)
    report.show(MeasureRow, measure_rows(seen))
    report.reason = verdict(levels, [one for one in outcomes if one.unable])
    report.completed(None)
    report.exit_code = max((_EXIT_CODES[level] for level in levels), key=_severity, default=0)
    return report


def show_outcomes(report: Report, outcomes: Sequence[CheckOutcome], base: str) -> list[HealthFindingRow]:
    """Put the checks on the report, and give what they have found, the worst first; `base` is the flag of commands."""
    report.checks = [_named(one) for one in outcomes]
    found = [(one, outcome.check.name) for outcome in outcomes for one in outcome.findings]
    return [
        HealthFindingRow(
            level=one.level.value,
            check=check,
            subject=one.subject,
            finding=one.sentence,
            command=_command(one.command, base),
            numbers=json.dumps(dict(one.numbers)),
        )
        for one, check in sorted(found, key=lambda pair: pair[0].level.rank)
    ]


def measure_rows(seen: Examination) -> list[MeasureRow]:
    """The numbers of the table that the checks have looked up."""
    return [MeasureRow(name, float(value)) for name, value in seen.measures.items()]


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


def verdict(levels: Sequence[Level], unable: Sequence[CheckOutcome]) -> str:
    """What was found, in one sentence without its full stop."""
    counts = {level: levels.count(level) for level in sorted(Level, key=lambda one: one.rank)}
    told = [
        f"{count} {level.value}{'s'[: count != 1]}"
        for level, count in counts.items()
        if count and level is not Level.CRITICAL
    ]
    if counts[Level.CRITICAL]:
        told.insert(0, f"{counts[Level.CRITICAL]} critical")
    skipped = f"; {len(unable)} checks could not be made" if unable else ""
    return ("; ".join([", ".join(told)]) if told else "the table is all right") + skipped
