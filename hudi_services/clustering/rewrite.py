"""Rewriting one clustering group: base files in, sorted or not, base files of even row counts out.

Runs inside one Spark task. Groups that are not sorted are copied without decoding where that can be done.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..codecs.table_schema import for_files, parse_table_schema
from ..errors import CheckFailed
from ..files.calendar import FileNotes, calendar_notes, same_calendar
from ..files.parquet_evolution import SourceSchema, agrees, resolve_target
from ..files.parquet_reader import BaseFileReader, open_base_file
from ..files.parquet_schema import FileSchema
from ..files.record_keys import AVRO_SCHEMA, WRITER_MODEL
from ..process import peak_bytes, reset_peak
from ..rows.conservation import Checksum
from ..rows.file_sizing import Piece, needs_no_cut, stored_row_groups, weighed_row_groups
from ..rows.output import Form, NewFile, RewriteTask, Stopwatch
from .copying import CopiedGroup, CopyPlan, copy_plan
from .data_skipping import ColumnBounds, column_bounds
from .decoding import DecodedGroup


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """What became of a task; `seconds` by phase, of this task alone.

    `decoded`: why the rows were decoded, None when they were copied.
    """

    partition: str
    files: tuple[NewFile, ...]
    rows_in: int
    bytes_in: int
    before: Checksum
    after: Checksum
    seconds: Mapping[str, float]
    decoded: str | None
    spilled: int = 0
    """Bytes of rows on local disk, because they did not fit into memory."""
    peak: int = 0
    """Bytes of memory that the process had at most."""
    bounds: tuple[ColumnBounds, ...] = ()
    """Of the sort columns."""
    taken_over: bool = False
    """Whether an earlier try had done it: `seconds` are then those of finding out."""


def rewrite_group(task: RewriteTask, write_token: str) -> RewriteResult:
    """Rewrite the group, read the new files back and compare the rows.

    Raises CheckFailed when a row was lost, doubled or changed, or a schema differs; the files are then left to the
    rollback of the attempt. Raises CorruptFile, UnsupportedTable and StorageError for inputs that cannot be read.
    """
    clock = Stopwatch()
    reset_peak()
    with clock.phase("read"):
        readers = open_inputs(task)
        form = _form(task, readers, write_token)
    pieces = _pieces(task, readers, clock)
    plan = copy_plan(task, readers, form.target, pieces)
    if isinstance(plan, CopyPlan):
        group: CopiedGroup | DecodedGroup = CopiedGroup(form, plan, clock)
    else:
        group = DecodedGroup(form, readers, pieces, clock)
    files = group.write()
    with clock.phase("proof"):
        after = sum((group.checksum_of(_read_back(form, readers, new)) for new in files), start=Checksum())
    rows = sum(reader.num_rows for reader in readers)
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
        plan if isinstance(plan, str) else None,
        group.spilled_bytes,
        peak_bytes(),
        skipping_bounds(task, readers, files),
    )


def open_inputs(task: RewriteTask) -> list[BaseFileReader]:
    """The old files of the group. Raises CorruptFile, UnsupportedTable and StorageError."""
    readers: list[BaseFileReader] = []
    for path in task.inputs:
        readers.append(open_base_file(task.storage, path, like=readers[-1] if readers else None))
    return readers


def target_schema(task: RewriteTask, readers: Sequence[BaseFileReader]) -> tuple[FileSchema, dict[str, Any] | None]:
    """The one schema of the new files, and the table's Avro schema as files have it, None when there is none.

    Raises UnsupportedTable where the schemas of the old files do not go together.
    """
    avro_schema = _file_schema(task, readers)
    return resolve_target([SourceSchema(r.path, r.schema) for r in readers], avro_schema), avro_schema


def _form(task: RewriteTask, readers: Sequence[BaseFileReader], write_token: str) -> Form:
    target, avro_schema = target_schema(task, readers)
    notes = calendar_notes([FileNotes(r.path, r.key_values) for r in readers], target)
    # A reader that trusts the note would take millis for micros; without it, it asks the parquet schema.
    if avro_schema is not None and agrees(target, avro_schema):
        notes |= {AVRO_SCHEMA: json.dumps(avro_schema), WRITER_MODEL: "avro"}
    return Form(task, write_token, target, notes)


def _pieces(task: RewriteTask, readers: list[BaseFileReader], clock: Stopwatch) -> list[Piece]:
    """The row groups of a group that is not sorted, as they weigh; [] when it is, for then its rows are weighed."""
    if task.sort:
        return []
    groups = stored_row_groups(readers)
    if needs_no_cut(readers, len(task.file_ids), task.settings):
        return [(group.rows, 1.0) for group in groups]
    with clock.phase("cut"):
        return weighed_row_groups(groups, task.settings.codec, task.memory.stored)


def skipping_bounds(
    task: RewriteTask, readers: Sequence[BaseFileReader], files: Sequence[NewFile]
) -> tuple[ColumnBounds, ...]:
    """Those of the sort columns, in the old files and in the new ones."""
    if not task.sort:
        return ()
    columns = [column.name for column in task.sort]
    return column_bounds(columns, [r.column_stats() for r in readers], [new.file.columns for new in files])


def _read_back(form: Form, readers: Sequence[BaseFileReader], new: NewFile) -> BaseFileReader:
    """What storage now holds. Raises CheckFailed when its footer gives the values another meaning."""
    reader = open_base_file(form.task.storage, new.file.path)
    if reader.schema != form.target:
        raise CheckFailed(f"{reader.path}: the schema that was written is not the one that was meant")
    if any(reader.key_values.get(key) != value for key, value in form.notes.items()):
        raise CheckFailed(f"{reader.path}: the notes in its footer are not those that were meant")
    if not same_calendar([FileNotes(one.path, one.key_values) for one in (reader, *readers)], form.target):
        raise CheckFailed(f"{reader.path}: its dates would be counted in another calendar than before")
    return reader


def _file_schema(task: RewriteTask, readers: Sequence[BaseFileReader]) -> dict[str, Any] | None:
    if task.table_schema is None:
        return None
    columns = {column for reader in readers for column in reader.schema.columns}
    schema = parse_table_schema(task.table_schema, task.storage.root)
    return for_files(schema, columns, task.dropped_columns)
