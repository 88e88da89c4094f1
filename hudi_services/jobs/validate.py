"""The validation job: compute the metadata table anew, list each difference, and repair it on demand."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from ..attempts.metadata_repair import RepairDraft
from ..commit.critical_section import critical_section
from ..commit.times import Times
from ..commit.transaction import complete
from ..errors import (
    CheckFailed,
    ConfigError,
    ConflictError,
    CorruptFile,
    HudiServicesError,
    NotFound,
    NothingToDo,
    PartlyDone,
)
from ..indexing.advice import rescale_advice
from ..indexing.derived import DerivedIndexes
from ..metadata.file_groups.committed_files import REBUILD_HINT
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import EXPRESSION_INDEX
from ..options import file_keys
from ..own_commands import own_command
from ..runs.opening import open_supported
from ..runs.report import CheckResult, NamedCheck, Report
from ..runs.report_rows import (
    CheckedPartitionRow,
    DifferenceRow,
    RepairedDifferenceRow,
    RepairedPartitionRow,
    UnsureRow,
)
from ..runs.request import ValidateRequest
from ..runs.run import Run
from ..snapshot import Snapshot, is_unchanged, refresh
from ..storage import Storage
from ..units import counted
from ..validation.checks import look
from ..validation.model import Difference, DifferenceKind, Severity, ValidationFindings, damaged_logs, wanted_records
from ..validation.record_index import forget_runs, repaired_keys
from .store_check import check_store

D = TypeVar("D", bound=DifferenceRow)

_MOST_LISTED = 100_000
"""Rows of one list in the report; as many as are kept of the differences of an index of keys."""
_LOOKS = 3
"""Attempts at a metadata table whose files are compacted, cleaned and archived meanwhile."""
_PAUSE_SECONDS = 0.2


def validate(request: ValidateRequest, storage: Storage | None = None) -> Report:
    """Compare the metadata table with the table, and with `repair` write the wrong records again; starts no JVM.

    Only harmful differences count, with `strict` all. `storage` replaces the storage of `request.base_path`. Raises
    CheckFailed when there are differences (with `repair`: when some are left and no record was written), PartlyDone
    when some are left after a repair, and NothingToDo when there is no metadata table. With `store` only the store is
    looked at, see `store_check`.
    """
    if request.store:
        if request.repair:
            raise ConfigError("--store only looks, and --apply repairs", hint="give one of the two")
        return check_store(request, storage)
    run = open_supported(request, storage, Report.start(request))
    report, root = run.report, run.table.storage.root
    found = _confirmed(run)
    if not found.differences or not (request.repair or _counting(request, found)):
        return _completed(report, found, "the metadata table agrees with the table")
    if not request.repair:
        count = counted(len(_counting(request, found)), "difference")
        raise CheckFailed(
            f"{root}: {count} between the metadata table and the table",
            hint=_own_hint(found) or f"run: {own_command('validate', root, '--apply')}",
        )
    mended = _repair(run, found)
    left = _confirmed(run.at(refresh(run.table)))
    stays = {one.place for one in left.differences}
    gone = [one for one in mended if one.place not in stays][:_MOST_LISTED]
    report.show(RepairedDifferenceRow, (_row(one, RepairedDifferenceRow) for one in gone))
    repaired = _repaired(report, len(found.differences))
    if counting := _counting(request, left):
        raise _left(run.table, left, len(counting), repaired)
    if not repaired:
        return _completed(report, left, "the differences no longer existed when the table was locked")
    return _completed(report, left, f"{repaired}; no {'harmful ' if left.differences else ''}difference is left")


def _counting(request: ValidateRequest, findings: ValidationFindings) -> Sequence[Difference]:
    """The differences that make the run fail."""
    return findings.differences if request.strict else findings.of(Severity.HARMFUL)


def _confirmed(run: Run[ValidateRequest]) -> ValidationFindings:
    """The differences, which are added to the report; when the table changed meanwhile, those that a second comparison
    confirms."""
    with run.report.phase("look"):
        table, found = _look(run)
        current = refresh(table)
        if found.differences and not _is_unchanged(current, table):
            found = found.confirmed_by(_look(run.at(current), found)[1])
    _describe(run.at(table), found)
    run.report.warnings += [
        one for one in rescale_advice(table.metadata, run.options) if one not in run.report.warnings
    ]
    return found


def _look(run: Run[ValidateRequest], again: ValidationFindings | None = None) -> tuple[Snapshot, ValidationFindings]:
    """The snapshot that was compared, and the findings: about everything, or about what may be in `again`."""
    for _ in range(_LOOKS - 1):
        try:
            return run.table, _look_once(run, again)
        except (NotFound, CorruptFile):
            # Hadoop's local file system lists files that are not whole yet.
            run.table.clock.sleep(_PAUSE_SECONDS)
            run = run.at(refresh(run.table))
    return run.table, _look_once(run, again)


def _look_once(run: Run[ValidateRequest], again: ValidationFindings | None) -> ValidationFindings:
    table, request = run.table, run.request
    metadata, indexes = _metadata_of(table), DerivedIndexes.comparable(table, run.options)
    drop_missing = request.drop_missing_partitions
    return look(table, metadata, request.progress, again, indexes.computations, drop_missing=drop_missing)


def _metadata_of(table: Snapshot) -> MetadataTable:
    if table.metadata is None:
        raise NothingToDo("the table has no metadata table")
    return table.metadata


def _is_unchanged(current: Snapshot, since: Snapshot) -> bool:
    """Whether the table and the timeline of its metadata table are unchanged."""
    return is_unchanged(current, since) and _metadata_of(current).timeline.saw_the_same(_metadata_of(since).timeline)


def _repair(run: Run[ValidateRequest], findings: ValidationFindings) -> Sequence[Difference]:
    """Repair the differences that are confirmed under the lock, and return them: some may stay."""
    action, done = "repair the metadata table", "the repair of the metadata table"
    report, settings = run.report, run.settings
    with report.phase("repair"), critical_section(run.table, action, settings, completes=done) as now:
        now, again = _look(run.at(now), findings)
        confirmed = findings.confirmed_by(again).differences
        agreed = [one for one in confirmed if not one.withheld]
        metadata, times = _metadata_of(now).tolerant(lambda _: None), Times(now, settings.skew_millis).next
        left = {*again.unchecked, *again.cut, *(one.index for one in confirmed if one.withheld)}
        damaged = damaged_logs(one for one in agreed if one.index not in left)
        moved = repaired_keys(metadata, agreed)
        # Under a lock of the writers only their requested and inflight files can be new.
        if not settings.lock.is_shared and not _is_unchanged(refresh(now), now):
            raise ConflictError(
                f"{now.storage.root}: the table has changed while it was compared with its metadata table",
                hint="nothing was changed; run again, or set hoodie.write.lock.provider as the writers do",
            )
        draft = RepairDraft(metadata, wanted_records(agreed), moved, damaged)
        complete(now, draft, times)
        forget_runs(now.storage)
    report.instant = draft.done_at
    report.show(RepairedPartitionRow, (RepairedPartitionRow(*written) for written in draft.written.items()))
    return agreed if draft.written else ()


def _repaired(report: Report, differences: int) -> str:
    """What was found and repaired; "" where nothing was."""
    records = sum(one.records for one in report.shown(RepairedPartitionRow))
    if not records:
        return ""
    were, again = ("was" if count == 1 else "were" for count in (differences, records))
    written = f"{counted(records, 'record')} of the metadata table {again} written again"
    return f"{counted(differences, 'difference')} {were} found, and {written}"


def _completed(report: Report, findings: ValidationFindings, reason: str) -> Report:
    report.reason = reason
    if findings.differences:
        report.reason += f"; {counted(len(findings.differences), 'harmless difference')}"
    if findings.unchecked:
        report.reason += f"; not checked: {', '.join(findings.unchecked)}"
    if findings.unsure:
        report.reason += f"; {counted(len(findings.unsure), 'file')} cannot be judged"
    return report.completed(report.instant)


def _left(table: Snapshot, left: ValidationFindings, count: int, repaired: str) -> HudiServicesError:
    stays = f"{counted(count, 'difference')} {'is' if count == 1 else 'are'} left"
    rest = f"{table.storage.root}: {repaired or 'no difference could be repaired'}; {stays}"
    missing = _own_hint(left)
    if repaired:
        return PartlyDone(rest, hint=missing or f"run the command again; if differences stay, {REBUILD_HINT}")
    return CheckFailed(rest, hint=missing or REBUILD_HINT)


def _own_hint(findings: ValidationFindings) -> str:
    """What to do about a partition without any file, or records that are lost; "" when there is neither."""
    lost = next((one for one in findings.differences if one.kind is DifferenceKind.LOST_RECORDS), None)
    if lost is not None:
        return f"restore {lost.file} from a copy, or write its records again: no metadata table has them"
    partition = next((one.partition for one in findings.differences if one.withheld), None)
    if partition is None:
        return ""
    return (
        f"no file of {partition or 'the table'} is stored: make sure that the folder is mounted and complete; if it "
        "was deleted for good, add --apply --drop-missing-partitions"
    )


def _describe(run: Run[ValidateRequest], findings: ValidationFindings) -> None:
    report = run.report
    wrong = Counter(one.index for one in findings.differences)
    harmless = Counter(one.index for one in findings.of(Severity.HARMLESS))
    checked = [CheckedPartitionRow(name, n, wrong[name], harmless[name]) for name, n in findings.checked.items()]
    unchecked = [CheckedPartitionRow(name, None, None, None) for name in findings.unchecked]
    report.show(CheckedPartitionRow, [*checked, *unchecked])
    harmful_first = [*findings.of(Severity.HARMFUL), *findings.of(Severity.HARMLESS)]
    report.show(DifferenceRow, (_row(one, DifferenceRow) for one in harmful_first[:_MOST_LISTED]))
    unsure = findings.unsure[:_MOST_LISTED]
    report.show(UnsureRow, (UnsureRow(one.index, one.partition, one.file, one.reason.value) for one in unsure))
    failing = Counter(one.index for one in _counting(run.request, findings))
    report.checks = [_check(name, count, failing[name], wrong[name]) for name, count in findings.checked.items()]
    skipped = [(name, _why_unchecked(run.table, findings, name)) for name in findings.unchecked]
    report.checks += [NamedCheck(name, CheckResult.SKIPPED, why) for name, why in skipped]
    for listed, what in ((findings.differences, "differences"), (findings.unsure, "unsure files")):
        if len(listed) > _MOST_LISTED:
            report.warnings.append(f"of {len(listed):,} {what} the first {_MOST_LISTED:,} are listed")
    report.warnings += [f"{name} has more differences than these" for name in findings.cut]
    for name, count in findings.not_compared.items():
        logs = f"the records of {counted(count, 'log file')}, and the ranges of their partitions"
        text = f"{name}: {logs}, are not compared, because releases of Hudi count their values differently"
        report.warnings += [text] if text not in report.warnings else []


def _check(name: str, records: int, failing: int, differences: int) -> NamedCheck:
    """The result for one metadata partition; `failing` is the number of differences that make it fail."""
    detail = counted(records, "record")
    if failing:
        return NamedCheck(name, CheckResult.FAILED, f"{counted(differences, 'difference')}, {detail}")
    harmless = f"{counted(differences, 'harmless difference')}, " if differences else ""
    return NamedCheck(name, CheckResult.PASSED, f"{harmless}{detail}")


def _why_unchecked(table: Snapshot, findings: ValidationFindings, name: str) -> str:
    reason = next((one.reason for one in findings.unsure if one.index == name), None)
    if reason is not None:
        return f"one of its files cannot be judged: {reason.value}"
    being_built = name in table.config.metadata_partitions_inflight
    if being_built:
        return "it is being built"
    if name.startswith(EXPRESSION_INDEX):
        return (
            "this program does not compute its function, or the function depends on "
            f"{file_keys.SESSION_TIME_ZONE.key}, which is not set"
        )
    if not table.config.populate_meta_fields:
        return "the files of a table without meta fields have no record keys to compare with it"
    return "this version does not know how to check it"


def _row(difference: Difference, kind: type[D]) -> D:
    return kind(
        metadata_partition=difference.index,
        kind=difference.kind.value,
        severity=difference.severity.value,
        data_partition=difference.partition,
        file=difference.file,
        column=difference.column,
        key=difference.key if difference.shard is not None else None,
        detail=difference.detail,
        cause=difference.cause,
    )
