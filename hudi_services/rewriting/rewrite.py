"""Rewriting one group of file slices: it reads them, may sort their rows, and writes base files of about equal size.

Runs inside one Spark task. Groups that are not sorted are copied without decoding where possible.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..base_files.footer_entries import footer_entries
from ..base_files.new_file import NewFile
from ..base_files.slices import SliceReader
from ..calendars.calendar import calendar_metadata, have_two_calendars
from ..errors import CheckFailed, CorruptFile
from ..file_names import parse_base_file
from ..model import FileSlice, LogCounts
from ..process import keep_freed_blocks, peak_bytes, reset_peak
from ..rows.conservation import Checksum
from ..rows.file_sizing import Piece, needs_no_cut, unweighed, weighed_readers
from ..rows.output import CHECK, Form, Stopwatch
from .copy_plan import CopyPlan, copy_plan
from .copying import CopiedGroup
from .data_skipping import ColumnBounds, column_bounds
from .decoding import DecodedGroup
from .inputs import OpenGroup, open_group
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
    deletes the files. Raises CorruptFile, UnsupportedTable and StorageError for inputs that cannot be read.
    """
    clock = Stopwatch()
    reset_peak()
    with clock.phase("read"):
        opened = open_group(task)
        readers = opened.readers
        if task.memory.is_plenty(sum(reader.encoded_bytes for reader in readers)):
            keep_freed_blocks()
        form = _form(task, opened, write_token)
        # Slices with log files are merged to be counted.
        rows = sum(reader.num_rows for reader in readers)
    pieces = _pieces(task, readers, clock)
    plan = copy_plan(task, readers, form.target, pieces)
    if isinstance(plan, CopyPlan):
        group: CopiedGroup | DecodedGroup = CopiedGroup(task, form, readers, plan, clock)
    else:
        group = DecodedGroup(task, form, readers, pieces, clock)
    files = group.write()
    with clock.phase(CHECK):
        after = sum((group.checksum_of(_read_back(task, form, readers, new)) for new in files), start=Checksum())
    if group.before != after or after.rows != rows:
        raise CheckFailed(
            f"{task.storage.full_path(task.partition)}: the rewrite of {len(readers)} files does not hold the same "
            f"rows ({rows} by their footers; {group.before} before, {after} after)",
            hint="nothing was committed; please report this with the plan and the files",
        )
    return RewriteResult(
        task.partition,
        tuple(files),
        rows,
        sum(r.size for r in readers),
        group.before,
        after,
        clock.seconds,
        plan.decoded if isinstance(plan, CopyPlan) else plan,
        sum((reader.log_counts for reader in readers), start=LogCounts()),
        group.spilled_bytes + sum(reader.spilled_bytes for reader in readers),
        peak_bytes(),
        skipping_bounds(task, readers, files),
    )


def _form(task: RewriteTask, group: OpenGroup, write_token: str) -> Form:
    key_values = calendar_metadata([reader.calendar for reader in group.readers], group.target)
    key_values |= footer_entries([reader.key_values for reader in group.readers], group.target, group.table)
    return task.form(write_token, group.target, key_values)


def _pieces(task: RewriteTask, readers: list[SliceReader], clock: Stopwatch) -> list[Piece]:
    """The weighed pieces of a group that is not sorted; [] for a sorted group, whose sorted rows are weighed."""
    if task.sort:
        return []
    if needs_no_cut(readers, len(task.file_ids), task.settings):
        return unweighed(readers)
    with clock.phase("cut"):
        return weighed_readers(readers, task.settings.codec, task.memory.stored)


def new_slice(task: RewriteTask, file_id: str, path: str, size: int = 0) -> FileSlice:
    """The slice of a new file of the group; without a `size`, that is read from storage."""
    name = path.rpartition("/")[2]
    file = parse_base_file(task.partition, name, size)
    if file is None or (file.instant, file.file_id, file.path) != (task.instant, file_id, path):
        raise CorruptFile(f"{path} is no new file of {task.instant}")
    return FileSlice.of_base(file)


def skipping_bounds(
    task: RewriteTask, readers: Sequence[SliceReader], files: Sequence[NewFile]
) -> tuple[ColumnBounds, ...]:
    """The bounds of the sort columns, in the old files and in the new files."""
    if not task.sort:
        return ()
    columns = [column.name for column in task.sort]
    return column_bounds(columns, [r.column_stats() for r in readers], [new.columns for new in files])


def _read_back(task: RewriteTask, form: Form, readers: Sequence[SliceReader], new: NewFile) -> SliceReader:
    """Open a new file from storage. Raises CheckFailed when its footer gives the values another meaning."""
    reader = task.written.open(new_slice(task, new.file_id, new.path, new.size))
    if reader.schema != form.target:
        raise CheckFailed(f"{reader.path}: the schema that was written is not the one that was meant")
    if any(reader.key_values.get(key) != value for key, value in form.key_values.items()):
        raise CheckFailed(f"{reader.path}: the key-value metadata in its footer is not what was written")
    if any(have_two_calendars([reader.calendar, one.calendar], form.target) for one in readers):
        raise CheckFailed(f"{reader.path}: its dates would be counted in another calendar than before")
    return reader
