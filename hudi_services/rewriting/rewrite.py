"""Rewriting one group of file slices: it reads them, may sort their rows, and writes base files of about equal size.

Runs inside one Spark task. The execution strategy writes the rows; they are counted, and read back, outside of it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..base_files.new_file import NewFile
from ..base_files.slices import SliceReader
from ..errors import REPORT_IT, CheckFailed
from ..model import LogCounts
from ..process import peak_bytes, reset_peak
from ..rows.conservation import Checksum
from .data_skipping import ColumnBounds, column_bounds, joined_bounds
from .execution_strategies import execution_called
from .group import Group
from .group_writer import GroupEstimate
from .task import RewriteTask


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The result of a task; `seconds` by phase, of this task alone.

    `decoded`: why rows were decoded, None when all row groups were copied.
    """

    partition: str
    files: tuple[NewFile, ...]
    rows_in: int
    bytes_in: int
    before: Checksum
    after: Checksum
    seconds: Mapping[str, float]
    decoded: str | None
    logs: LogCounts
    """What the log files of the old slices held, and what their records did."""
    spilled: int = 0
    """Bytes that were written to the local disk, because rows or log records did not fit into memory."""
    peak: int = 0
    """The most bytes of memory that the process had."""
    bounds: tuple[ColumnBounds, ...] = ()
    """The bounds of the sort columns."""
    taken_over: bool = False
    """Whether the group was finished before: `seconds` are then the time of taking it over."""


def rewrite_group(task: RewriteTask, write_token: str) -> RewriteResult:
    """Rewrite the group, read the new files back and compare the rows.

    Raises CheckFailed when a row was lost, doubled or changed, or a schema differs; the rollback of the attempt then
    deletes the files. Raises CorruptFile, UnsupportedTable and StorageError for inputs that cannot be read, ConfigError
    for an execution strategy that fails.
    """
    reset_peak()
    group = Group(task, write_token)
    writer = execution_called(task.execution).write(group)
    before, after = group.finish()
    readers, files = group.readers, group.outputs.files
    return RewriteResult(
        task.partition,
        tuple(files),
        group.rows,
        group.bytes,
        before,
        after,
        group.clock.seconds,
        writer.decoded,
        group.logs,
        group.spilled,
        peak_bytes(),
        skipping_bounds(task, readers, files),
    )


def of_parts(
    parts: Sequence[RewriteResult], size: int, rows: int | None = None, bounds: Sequence[ColumnBounds] = ()
) -> RewriteResult:
    """The result of a group of its parts; `size` (bytes), `rows` and `bounds` are those of its old files.

    Raises CheckFailed when the parts do not have all rows; None where the parts alone know them.
    """
    first = parts[0]
    before, after = (sum(one, start=Checksum()) for one in ([p.before for p in parts], [p.after for p in parts]))
    if before != after or after.rows != (after.rows if rows is None else rows):
        raise CheckFailed(
            f"the parts of a group in {first.partition!r} do not have the same rows ({rows} by the footers; {before} "
            f"before, {after} after)",
            hint=REPORT_IT,
        )
    seconds: Counter[str] = Counter()
    for one in parts:
        seconds.update(one.seconds)
    return RewriteResult(
        first.partition,
        tuple(new for one in parts for new in one.files),
        after.rows,
        size,
        before,
        after,
        seconds,
        first.decoded,
        sum((one.logs for one in parts), start=LogCounts()),
        sum(one.spilled for one in parts),
        max(one.peak for one in parts),
        joined_bounds([bounds, *(one.bounds for one in parts)]),
        taken_over=all(one.taken_over for one in parts),
    )


def estimate_group(task: RewriteTask) -> GroupEstimate | None:
    """The estimate of a rewrite before it is done, from the footers and a few rows; None where it is not known.

    The same code decides here and in the rewrite whether the group is copied and how many files it becomes. Raises the
    errors of `rewrite_group` for inputs that cannot be read.
    """
    return execution_called(task.execution).estimate(Group(task))


def skipping_bounds(
    task: RewriteTask, readers: Sequence[SliceReader], files: Sequence[NewFile]
) -> tuple[ColumnBounds, ...]:
    """The bounds of the sort columns, in the old files and in the new files."""
    if not task.sort:
        return ()
    columns = [column.name for column in task.sort]
    return column_bounds(columns, [r.column_stats() for r in readers], [new.columns for new in files])
