"""What the checks of a table have found, as rows of a report and as a sentence."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..health.examination import Examination
from ..health.model import CheckOutcome, HealthFinding, Level, Number
from ..units import counted
from .next_command import next_command
from .report import CheckResult, NamedCheck, Report
from .report_rows import HealthFindingRow, MeasureRow

_PENDING = {"live_writes": "live write", "pending_plans": "waiting plan"}


def show_outcomes(report: Report, outcomes: Sequence[CheckOutcome]) -> list[HealthFindingRow]:
    """Put the checks on the report of the table, and give what they have found, the worst first."""
    report.checks = [_named(one) for one in outcomes]
    rows = [_row(report, one.check.name, found) for one in outcomes for found in one.findings]
    return sorted(rows, key=lambda row: Level(row.level).rank)


def measure_rows(seen: Examination) -> list[MeasureRow]:
    """The numbers of the table that the checks have looked up."""
    return [MeasureRow(name, float(value)) for name, value in seen.measures.items()]


def verdict(rows: Iterable[HealthFindingRow], outcomes: Sequence[CheckOutcome], measures: Mapping[str, Number]) -> str:
    """What was found, and what others are at, in one sentence without its full stop."""
    counts = Counter(Level(row.level) for row in rows)
    nouns = {Level.CRITICAL: "critical finding", Level.WARNING: "warning", Level.NOTE: "note"}
    told = ", ".join(counted(counts[level], noun) for level, noun in nouns.items() if counts[level])
    unable = sum(bool(one.unable) for one in outcomes)
    skipped = f"; {counted(unable, 'check')} could not be made" if unable else ""
    # They are no findings while they are young, and yet keep writers and services waiting.
    at_work = [counted(int(measures.get(name, 0)), noun) for name, noun in _PENDING.items() if measures.get(name)]
    pending = f"; pending: {', '.join(at_work)}" if at_work else ""
    return f"{told or 'the table is all right'}{skipped}{pending}"


def _row(report: Report, check: str, finding: HealthFinding) -> HealthFindingRow:
    name, _, flags = finding.command.partition(" ")
    return HealthFindingRow(
        level=finding.level.value,
        check=check,
        subject=finding.subject,
        finding=finding.sentence,
        command=next_command(report.options, name, report.table.base_path, flags) if name else "",
        numbers=json.dumps(dict(finding.numbers)),
    )


def _named(outcome: CheckOutcome) -> NamedCheck:
    if outcome.unable:
        return NamedCheck(outcome.check.name, CheckResult.SKIPPED, outcome.unable)
    if not outcome.findings:
        return NamedCheck(outcome.check.name, CheckResult.PASSED)
    return NamedCheck(outcome.check.name, CheckResult.FAILED, counted(len(outcome.findings), "finding"))
