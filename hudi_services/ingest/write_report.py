"""What the report of a write says of its rows and files: what it has done, or would do."""

from collections.abc import Sequence

from ..model import FileSlice
from ..process import peak_bytes
from ..rows.conservation import Checksum
from ..runs.report import CheckResult, InOut, NamedCheck, Report
from ..runs.report_rows import AppendedRow, WriteMemoryRow, WrittenRow
from ..writing.inserted_files import Written
from .write_rows import WriteRows
from .write_tasks import WriteTask


def show_prospect(
    report: Report, rows: int, tasks: Sequence[WriteTask], replaced: Sequence[FileSlice], *, merges_buckets: bool
) -> None:
    """Say what `tasks` would write. `merges_buckets`: rows for buckets may be updates."""
    before = [task for task in tasks if task.before is not None]
    appended = sum(task.appended is not None for task in tasks)
    row = WrittenRow(
        partitions=len({*(task.partition for task in tasks), *(one.partition for one in replaced)}),
        rows=rows,
        # Keys are not looked up in buckets: rows for those that are there may be updates.
        inserts=None if merges_buckets else sum(task.inserts for task in tasks),
        updates=None,
        deletes=None,
        filled_files=sum(not task.changes for task in before),
        updated_files=sum(bool(task.changes) for task in before),
        replaced_files=len(replaced),
        new_files=len(tasks) - len(before) - appended,
        max_bytes=None,
        retries=0,
    )
    report.show(WrittenRow, [row])
    if appended:
        report.show(AppendedRow, [AppendedRow(appended, updates=None, deletes=None, bytes=None)])
    report.rows = InOut(rows, None)


def show_written(
    report: Report,
    rows: WriteRows,
    tasks: Sequence[WriteTask],
    results: Sequence[Written],
    replaced: Sequence[FileSlice],
    *,
    spilled: int,
    retries: int,
) -> None:
    """Say what `tasks` have written. `spilled`: bytes on the local disk before them; `retries`: how often the rows were
    assigned again."""
    before_tasks = [task for task in tasks if task.before is not None]
    before = [task.before for task in before_tasks if task.before is not None]
    stats = [one.stat for result in results for one in result.files]
    logs = [stat for stat in stats if stat.is_log]
    updated = sum(1 for task in before_tasks if task.changes)
    old = [*before, *replaced]
    # A bulk insert of a data frame counts its rows when it has written them.
    given = rows.kept.count or sum(result.checked.rows for result in results)
    report.files = InOut(len(old), len(stats))
    report.bytes = InOut(sum(one.base_bytes for one in old), sum(one.file_size for one in stats))
    report.rows = InOut(given, sum(one.num_writes for one in stats))
    row = WrittenRow(
        partitions=len({*(one.partition for one in stats), *(one.partition for one in replaced)}),
        rows=given,
        inserts=sum(one.num_inserts for one in stats),
        updates=sum(one.num_update_writes for one in stats),
        deletes=sum(one.num_deletes for one in stats),
        filled_files=len(before) - updated,
        updated_files=updated,
        replaced_files=len(replaced),
        new_files=len(stats) - len(before) - len(logs),
        max_bytes=max((one.file_size for one in stats), default=0),
        retries=retries,
    )
    report.show(WrittenRow, [row])
    if logs:
        in_logs = AppendedRow(
            log_files=len(logs),
            updates=sum(one.num_writes for one in logs),
            deletes=sum(one.num_deletes for one in logs),
            bytes=sum(one.file_size for one in logs),
        )
        report.show(AppendedRow, [in_logs])
    memory = WriteMemoryRow(
        limit_bytes=rows.limit,
        peak_bytes=max((result.peak for result in results), default=peak_bytes()),
        spilled_bytes=spilled + sum(result.spilled for result in results),
    )
    report.show(WriteMemoryRow, [memory])
    phases = sorted({phase for result in results for phase in result.seconds})
    spent = {phase: sum(result.seconds.get(phase, 0.0) for result in results) for phase in phases}
    report.seconds |= {f"tasks: {phase}": seconds for phase, seconds in spent.items()}
    checked = sum((result.checked for result in results), start=Checksum())
    detail = f"{checked} read back from the new files"
    report.checks.append(NamedCheck("row conservation", CheckResult.PASSED, detail))
