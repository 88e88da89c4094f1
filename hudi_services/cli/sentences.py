"""What a run has done, in one sentence with its numbers, and what to do next."""

import re
from collections import Counter
from collections.abc import Callable, Iterable

from ..health.model import Level
from ..runs.next_command import next_command
from ..runs.report import CheckResult, Report, RunState, sentence
from ..runs.report_rows import (
    AppendedRow,
    AttemptRow,
    CheckedPartitionRow,
    DeletedRow,
    DifferenceRow,
    FleetServiceRow,
    HealthFindingRow,
    LayoutRow,
    PartitionRow,
    PendingCleanRow,
    PendingInstantRow,
    QuarantineRow,
    RepairedInstantRow,
    RepairedPartitionRow,
    RollbackRow,
    TimelineRow,
    VisibleAgainRow,
    WrittenRow,
)
from ..units import counted, size_text
from ..urls import message_without_secrets

_ENDINGS = {
    RunState.REQUESTED: "a plan was written",
    RunState.COMPLETED: "done",
    RunState.IDLE: "nothing to do",
    RunState.PARTLY_DONE: "partly done",
    RunState.FAILED: "failed",
}
_DRY_RUN = "dry run: "
_APPLIED = {"fleet", "orphan-files", "recover", "validate"}
"""Services that only look unless they are told to --apply."""


def title(report: Report) -> str:
    return " ".join(dict.fromkeys((report.service, report.action)))


def what_happened(report: Report) -> str:
    """The sentence after the title: how the run ended, its numbers, and why."""
    reason = (report.reason or "").strip()
    ending = _ENDINGS[report.state]
    if report.dry_run and report.state is RunState.COMPLETED:
        ending, reason = ", ".join(filter(None, ("a dry run", reason.removeprefix(_DRY_RUN)))), ""
    warnings = f", with {counted(len(report.all_warnings), 'warning')}" if report.all_warnings else ""
    numbers = _numbers(report)
    if report.error is not None and not numbers:
        reason = sentence(report.error)
    if reason and reason in numbers:
        reason = ""
    pieces = (f"{ending}{warnings}", numbers, reason)
    first, *more = (message_without_secrets(piece) for piece in pieces if piece)
    return " ".join([_ended(first), *(_ended(_begun(piece)) for piece in more)])


def steps(report: Report) -> list[str]:
    """What the operator does next, one step after the other."""
    advised = next((row.command for row in report.shown(LayoutRow) if row.is_advised and row.command), "")
    if advised:
        return [advised, next_command(report.options, "execute", report.table.base_path)]
    return [step] if (step := _next_step(report)) else []


def _next_step(report: Report) -> str:
    if report.state in (RunState.FAILED, RunState.PARTLY_DONE):
        return message_without_secrets(report.hint).removeprefix("run: ")
    if report.dry_run and report.state is RunState.COMPLETED:
        if "--apply" in (report.reason or "") or (report.service == "fleet" and not report.shown(FleetServiceRow)):
            return ""
        return f"the same command {'with --apply' if report.service in _APPLIED else 'without --dry-run'}"
    worth = (row for row in report.shown(HealthFindingRow) if row.command and row.level != Level.NOTE.value)
    mends = next((row.command for row in worth), "")
    if mends and report.exit_code:
        return mends
    command = {"clustering": "execute", "compaction": "compact"}.get(report.service)
    if report.state is RunState.REQUESTED and command:
        return next_command(report.options, command, report.table.base_path)
    return ""


def _numbers(report: Report) -> str:
    """Of a run that failed, what was planned did not happen: only what a check has found is told."""
    told = _NUMBERS.get(report.service)
    return "" if told is None or (report.state is RunState.FAILED and told is not _validate) else told(report)


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _begun(text: str) -> str:
    """`text` with a large first letter where it begins with a word, and not with a name or a path."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+(?= )", text) else text


def _files(count: int | None, size: int | None, noun: str = "file") -> str:
    told = counted(count or 0, noun)
    return told if size is None else f"{told} ({size_text(size)})"


def _verb(report: Report, done: str, would: str) -> str:
    return would if report.dry_run else done


def _counted(values: Iterable[str]) -> str:
    """Each value with its number, as `roll back 2, wait 1`; a single one without."""
    counts = Counter(values)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} {count:,}" for value, count in counts.most_common())


def _rewrite(report: Report) -> str:
    files, sizes = report.files, report.bytes
    if not files.before:
        return ""
    become = "are to become" if report.state is RunState.REQUESTED else _verb(report, "became", "would become")
    after = "" if files.after is None else f"{files.after:,}"
    after += "" if sizes.after is None else f" ({size_text(sizes.after)})"
    groups = f", in {counted(report.groups, 'group')}" if report.groups else ""
    if report.tasks and report.groups and report.tasks > report.groups:
        groups += f" of {report.tasks:,} tasks"
    told = f"{_files(files.before, sizes.before)} {become} {after}{groups}"
    if report.rows.before is not None and report.rows.after is not None:
        changed = "" if report.rows.after == report.rows.before else f", {report.rows.after:,} after"
        told += f"; {counted(report.rows.before, 'row')}{changed}"
    if report.resumed_groups:
        told += f"; an earlier attempt had finished {counted(report.resumed_groups, 'group')}"
    return told


def _clean(report: Report) -> str:
    pending = report.shown(PendingCleanRow)
    if report.dry_run and pending:
        files = sum(one.files for one in pending)
        return f"{counted(len(pending), 'clean')} of {counted(files, 'file')} would be finished"
    if not report.files.before:
        return ""
    partitions = {one.partition for one in report.shown(DeletedRow)}
    where = f" in {counted(len(partitions), 'partition')}" if partitions else ""
    return f"{_files(report.files.before, report.bytes.before)}{where} {_deleted(report)}"


def _deleted(report: Report) -> str:
    return _were(report, report.files.before or 0, "deleted")


def _were(report: Report, count: int, done: str) -> str:
    return _verb(report, f"was {done}" if count == 1 else f"were {done}", f"would be {done}")


def _archive(report: Report) -> str:
    archived = [row for row in report.shown(TimelineRow) if row.archived_instants]
    told = " and ".join(f"{counted(row.archived_instants, 'instant')} of the {row.timeline}" for row in archived)
    return f"{told} {_verb(report, 'were', 'would be')} archived" if told else ""


def _orphan_files(report: Report) -> str:
    if report.action == "find":
        attempts = len(report.shown(AttemptRow))
        found = _files(report.files.before, report.bytes.before, "orphan file")
        return f"{found} of {counted(attempts, 'attempt')} found" if attempts else ""
    if not report.files.before:
        return ""
    moved = report.files.after if report.action != "delete" and report.files.after is not None else report.files.before
    files = _files(moved, report.bytes.before)
    if report.action == "delete":
        return f"{files} of {counted(len(report.shown(QuarantineRow)), 'quarantine')} {_deleted(report)}"
    return f"{files} would be moved" if report.dry_run else f"{files} {report.reason or 'moved'}"


def _index(report: Report) -> str:
    if report.groups is None:
        return ""
    groups = f"{counted(report.groups, 'file group')}"
    groups += "" if report.bytes.after is None else f" ({size_text(report.bytes.after)})"
    keys = f" of {counted(report.rows.after, 'record')}" if report.rows.after is not None else ""
    told = f"an index{keys} in {groups} {_verb(report, 'was built', 'would be built')}"
    return f"{told} from {counted(report.files.before, 'file')}" if report.files.before is not None else told


def _rescale(report: Report) -> str:
    before, after = report.files.before, report.files.after
    if before is None or after is None:
        return ""
    size = "" if report.bytes.after is None else f" ({size_text(report.bytes.after)})"
    keys = "" if report.rows.before is None else f" of {counted(report.rows.before, 'key')}"
    groups = f"{counted(after, 'file group')}{size}, not {before:,}"
    return f"the record index{keys} {_verb(report, 'has', 'would have')} {groups}"


def _index_drop(report: Report) -> str:
    if not report.files.before:
        return ""
    return f"{_files(report.files.before, report.bytes.before)} of the index {_deleted(report)}"


def _lookup(report: Report) -> str:
    asked, found = report.rows.before, report.rows.after
    return "" if asked is None or found is None else f"the index has {found:,} of {counted(asked, 'key')}"


def _recover(report: Report) -> str:
    rows = report.shown(PendingInstantRow)
    if not rows:
        return ""
    told = f"{counted(len(rows), 'pending instant')}: {_counted(row.decision for row in rows)}"
    left = [row for row in rows if isinstance(row, RepairedInstantRow) and row.done == "left alone"]
    failed = [row for row in rows if isinstance(row, RepairedInstantRow) and row.done.startswith("failed")]
    pieces = [f"{len(some):,} {what}" for some, what in ((left, "left alone"), (failed, "failed")) if some]
    return "; ".join([told, *pieces])


def _roll_back(report: Report) -> str:
    gone, seen = report.shown(PartitionRow), report.shown(VisibleAgainRow)
    made = [f"the {row.action} {row.of} was rolled back" for row in report.shown(RollbackRow)][:1]
    files, size = sum(row.files for row in gone), sum(row.bytes for row in gone)
    deleted = f"{_files(files, size)} in {counted(len(gone), 'partition')} {_were(report, files, 'deleted')}"
    again = sum(row.files for row in seen)
    size = sum(row.bytes for row in seen)
    shown = [f"{_files(again, size)} {_verb(report, 'are', 'would be')} seen again"] if again else []
    return "; ".join([*made, *([deleted] if gone else []), *shown])


def _validate(report: Report) -> str:
    checked = [row for row in report.shown(CheckedPartitionRow) if row.records is not None]
    if not checked:
        results = Counter(check.result for check in report.checks)
        return ", ".join(f"{counted(results[one], 'check')} {one.value}" for one in CheckResult if results[one])
    records = sum(row.records or 0 for row in checked)
    told = f"{counted(records, 'record')} of {counted(len(checked), 'metadata partition')} compared"
    if report.shown(RepairedPartitionRow):
        # The reason says what was found, and what is left of it.
        return told
    differences = sum(row.differences or 0 for row in checked)
    harmless = sum(row.harmless or 0 for row in checked)
    listed = Counter(row.severity for row in report.shown(DifferenceRow))
    harmful = max(differences - harmless, listed["harmful"])
    found = f"{counted(differences, 'difference')}, {harmful:,} harmful" if differences else "no difference"
    return f"{told}: {found}"


def _fleet(report: Report) -> str:
    rows = report.shown(FleetServiceRow)
    if not rows:
        return ""
    cost = sum(row.cost_bytes or 0 for row in rows)
    if report.dry_run:
        told = f"{counted(len(rows), 'service')} due: {_counted(row.service for row in rows)}"
        return f"{told}; they would read {size_text(cost)}" if cost else told
    ran = [row for row in rows if row.state != "left"]
    tables = len({row.base_path for row in ran})
    told = f"{counted(len(ran), 'service')} ran on {counted(tables, 'table')}"
    told += f": {_counted(row.service for row in ran)}" if ran else ""
    told += f"; {size_text(report.bytes.before)} became {size_text(report.bytes.after)}" if report.bytes.before else ""
    return told + (f"; {counted(len(rows) - len(ran), 'service')} left" if len(ran) < len(rows) else "")


def _write(report: Report) -> str:
    written = report.shown(WrittenRow)
    if not written:
        return ""
    (row,) = written
    kinds = {"inserted": row.inserts, "updated": row.updates, "deleted": row.deletes}
    changes = [f"{count:,} {_verb(report, kind, f'to be {kind}')}" for kind, count in kinds.items() if count]
    told = ", ".join([f"{counted(row.rows, 'row')} given", *changes]) if row.rows else ""
    logs = sum(one.log_files for one in report.shown(AppendedRow))
    rewritten = row.filled_files + row.updated_files
    files = {"new": row.new_files, "rewritten": rewritten, "replaced": row.replaced_files, "log": logs}
    new = ", ".join(f"{count:,} {kind}" for kind, count in files.items() if count)
    size = f" ({size_text(report.bytes.after)})" if report.bytes.after else ""
    files_told = f"files in {counted(row.partitions, 'partition')}: {new}{size}" if new else ""
    return "; ".join(filter(None, (told, files_told)))


_NUMBERS: dict[str, Callable[[Report], str]] = {
    "clustering": _rewrite,
    "compaction": _rewrite,
    "clean": _clean,
    "archive": _archive,
    "orphan-files": _orphan_files,
    "index-bootstrap": _index,
    "index-rescale": _rescale,
    "index-drop": _index_drop,
    "index-lookup": _lookup,
    "recover": _recover,
    "rollback": _roll_back,
    "undo": _roll_back,
    "validate": _validate,
    "write": _write,
    "fleet": _fleet,
}
