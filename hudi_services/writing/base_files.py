"""Writes the base files of a write: new file groups, and the next slices of small files with more rows.

A file of a new group is closed when its stored bytes reach the largest size: the next file of the same task begins a
file group with the same uuid and the next number. A file may be a little larger where this takes the last rows of the
task: then an average record size that is a little too small leaves no tiny file behind each bucket. The next slice of a
small file is never closed before its last row.
Every new file is read back, and its rows compared with those that were to be written.
Source: HoodieCreateHandle, HoodieConcatHandle, HoodieBaseParquetWriter, HoodiePartitionMetadata of Apache Hudi.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from ..base_files.file_writer import BaseFileWriter
from ..base_files.footer_entries import footer_entries
from ..base_files.keyed_slices import without_meta_columns
from ..base_files.new_file import NewFile
from ..base_files.slices import BaseFileSlices, SliceReader, SliceSource
from ..calendars.calendar import calendar_metadata
from ..errors import CheckFailed
from ..file_names import new_prefix, written_slice
from ..model import FileSlice, LogCounts
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..parquet.schema_evolution import SourceSchema, resolve_target
from ..process import peak_bytes, reset_peak
from ..rewriting.columns import Columns
from ..rows.conservation import Checksum, checksum
from ..rows.conversion_check import ConversionCheck
from ..rows.memory import TaskMemory
from ..rows.output import CHECK, Form, Output, Stopwatch
from ..rows.settings import FileSettings
from ..rows.sort_order import SortColumn
from ..schema.table_schema import TableSchema
from ..storage import Storage
from .meta_columns import MetaColumns, some_at_a_time
from .schema import WriterSchema
from .sorted_rows import SortedRows

_ROOM = 0.02
"""The share of the file size that may be left."""
_TOLERANCE = 0.08
"""The share of the file size that the last rows of a task may add to it. Hudi lets any file be a tenth larger; what
rows take here is an estimate, which is some percent off."""


@dataclass(frozen=True, slots=True)
class InsertTask:
    """Rows for one bucket: `rows` of them go to the small file `filled`, or to new file groups (None).

    `number` is that of the bucket in the write. `file_bytes` is the size at which a file of a new group is closed.
    """

    storage: Storage
    instant: str
    partition: str
    number: int
    rows: int
    filled: FileSlice | None
    source: SliceSource
    schema: WriterSchema
    dropped_columns: tuple[str, ...]
    settings: FileSettings
    ranged: frozenset[str]
    memory: TaskMemory
    sort: tuple[SortColumn, ...] = ()
    """What the rows for new groups are sorted by; () when they keep their order."""
    bucket: int | None = None
    """Of a bucket index: the new group is named after it."""


@dataclass(frozen=True, slots=True)
class InsertResult:
    """The new files of a bucket."""

    files: tuple[NewFile, ...]
    checked: Checksum
    """Of all rows of the new files."""
    seconds: dict[str, float]
    peak: int
    spilled: int = 0
    """Bytes of rows that were sorted on the local disk."""


def write_inserts(task: InsertTask, rows: Iterable[pa.Table], token: str) -> InsertResult:
    """Write the bucket; `rows` have the data columns of the writer's schema, and with meta fields the record key.

    Raises CheckFailed when a new file does not hold exactly the rows that were to be written, CorruptFile and
    UnsupportedTable for a small file that cannot be read, and StorageError.
    """
    reset_peak()
    return _Bucket(task, token).write(rows)


class _Bucket:
    """The state of one task."""

    def __init__(self, task: InsertTask, token: str) -> None:
        self._task = task
        self._clock = Stopwatch()
        self._readers: list[SliceReader] = []
        if task.filled is not None:
            self._readers.append(task.source.open(task.filled).gregorian())
        target, table = self._target()
        # New rows are Gregorian, and so is their file.
        key_values = calendar_metadata([reader.calendar.converted() for reader in self._readers], target)
        key_values |= footer_entries([reader.key_values for reader in self._readers], target, table)
        self._form = Form(
            task.storage,
            task.instant,
            task.partition,
            token,
            target,
            key_values,
            task.schema.has_meta,
            task.settings,
            task.ranged,
        )
        self._columns = Columns.of(self._form, self._readers)
        self._prefix = new_prefix(task.bucket)
        self._begun = 0
        self._written = 0

    def write(self, rows: Iterable[pa.Table]) -> InsertResult:
        task, spilled = self._task, 0
        if not task.schema.has_meta:
            # Rows that were looked up have their keys, too.
            rows = (table.select(task.schema.arrow.names) for table in rows)
        if task.sort:
            ordered = SortedRows(task.schema, task.sort, rows, task.rows, task.memory)
            new, spilled = list(self._new_groups(ordered)), ordered.spilled_bytes
        else:
            new = self._filled(rows) if task.filled is not None else list(self._new_groups(rows))
        done = sum((self._check(file, meant) for file, meant in new), start=Checksum())
        files = tuple(self._next_of_filled(file) for file, _ in new)
        return InsertResult(files, done, self._clock.seconds, peak_bytes(), spilled)

    def _next_of_filled(self, new: NewFile) -> NewFile:
        filled = self._task.filled
        return new if filled is None else new.next_of(filled, LogCounts(inserts=self._written))

    def _target(self) -> tuple[FileSchema, TableSchema]:
        task = self._task
        if task.filled is None:
            return task.schema.target, task.schema.table.for_files(task.schema.target.columns)
        return next_slice_schema(self._readers[0], task.schema, task.dropped_columns)

    def _filled(self, rows: Iterable[pa.Table]) -> list[tuple[NewFile, Checksum]]:
        """The next slice of the small file: its rows as they are, and then the new ones."""
        assert self._task.filled is not None, "the task has a small file"
        reader, meant = self._readers[0], Checksum()
        output = Output(self._form, self._task.filled.file_id, reader.num_rows + self._task.rows)
        with self._writer(output) as writer:
            kept, dictionary = self._columns.kept, self._columns.dictionary
            old = reader.tables(kept, self._form.target, dictionary, at_once=self._task.memory.stored)
            stored = reader.schema.columns_of(kept)
            check = ConversionCheck(reader.full_path, reader.schema, self._form.target, stored)
            for read, table in self._clock.each("read", old):
                with self._clock.phase(CHECK):
                    meant += checksum(check.rows(read, table))
                self._append(output, writer, table)
            reader.release()
            for table in self._inserts(rows):
                with self._clock.phase(CHECK):
                    meant += checksum(table.select(kept))
                self._append(output, writer, table)
            with self._clock.phase("write"):
                file = output.close(writer)
        return [(file, meant)]

    def _new_groups(self, rows: Iterable[pa.Table]) -> Iterator[tuple[NewFile, Checksum]]:
        waiting = self._inserts(rows)
        table, left = next(waiting, None), self._task.rows
        while table is not None:
            output = Output(self._form, f"{self._prefix}-{self._begun}", max(1, self._task.rows - self._written))
            self._begun += 1
            meant = Checksum()
            with self._writer(output) as writer:
                limit = max(self._task.settings.file_bytes - self._overhead(), self._task.settings.file_bytes // 2)
                while table is not None:
                    part = table.slice(0, self._fitting(writer, table, limit, left))
                    with self._clock.phase(CHECK):
                        meant += checksum(part.select(self._columns.kept))
                    self._append(output, writer, part)
                    left -= part.num_rows
                    table = table.slice(part.num_rows) if part.num_rows < table.num_rows else next(waiting, None)
                    if table is not None and not self._fitting(writer, table, limit, left):
                        break
                with self._clock.phase("write"):
                    file = output.close(writer)
            yield file, meant

    def _fitting(self, writer: BaseFileWriter, table: pa.Table, limit: int, left: int) -> int:
        """How many rows of `table` still fit into the file, by bytes as stored; at least 1 into an empty file.

        `left` rows of the task are not written yet; `table` has the first ones.
        """
        each = table.nbytes / table.num_rows
        if writer.expected_bytes + table.nbytes * writer.stored_share > limit:
            writer.settle()
        room = limit - writer.expected_bytes
        if left * each * writer.stored_share <= room + limit * _TOLERANCE:
            return int(table.num_rows)
        fitting = min(int(room / max(each * writer.stored_share, 1e-9)), int(table.num_rows))
        if not writer.expected_bytes:
            return max(1, fitting)
        # No row group for a few rows that the estimate left room for.
        return fitting if fitting == table.num_rows or room > limit * _ROOM else 0

    def _overhead(self) -> int:
        bloom = self._task.settings.bloom
        return 0 if bloom is None else bloom.new_filter(0).serialized_bytes(self._task.rows)

    def _writer(self, output: Output) -> BaseFileWriter:
        settings = self._task.settings
        row_group = min(self._task.memory.row_group(settings.row_group_bytes), settings.file_bytes)
        return output.row_writer(row_group, self._columns.plain_leaves)

    def _append(self, output: Output, writer: BaseFileWriter, table: pa.Table) -> None:
        with self._clock.phase("write"):
            output.add_keys(table)
            writer.write(table)

    def _inserts(self, rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The new rows in the raw form of the target, with their meta columns, in small tables."""
        task, source = self._task, self._task.schema.target
        meta = MetaColumns(task.instant, task.partition, task.number)
        columns = source.columns_of(self._columns.kept)
        is_same = self._form.target == source
        for part in meta.add(rows) if task.schema.has_meta else some_at_a_time(rows):
            yield part if is_same else converted_table(part, part.num_rows, source, columns, self._form.target)
            self._written += part.num_rows

    def _check(self, new: NewFile, meant: Checksum) -> Checksum:
        """Compare the rows of a new file, read back from storage, with those that were to be written."""
        with self._clock.phase(CHECK):
            task = self._task
            reader = BaseFileSlices(task.storage).open(written_slice(new.stat))
            if reader.schema != self._form.target:
                raise CheckFailed(f"{reader.full_path}: the schema that was written is not the one that was meant")
            found = self._columns.checksum(reader, reader.stored, task.memory.stored)
        if found != meant:
            raise CheckFailed(
                f"{reader.full_path} does not hold the rows that were to be written ({found} are in it, {meant} were "
                "to be)",
                hint="nothing was committed; please report this with the input",
            )
        return found


def next_slice_schema(
    old: SliceReader, schema: WriterSchema, dropped: Collection[str]
) -> tuple[FileSchema, TableSchema]:
    """The schema of the next slice of a file group, and the table's for it: `schema` with all columns of the old file.

    `dropped` are partition columns that files need not have. Raises UnsupportedTable where the two do not fit.
    """
    # The meta columns of a table without meta fields have no value, and bulk inserts of Hudi allow no null in them.
    stored = old.schema if schema.has_meta else without_meta_columns(old.schema)
    table = schema.table.for_files({*schema.target.columns, *stored.columns}, dropped)
    return resolve_target([SourceSchema(old.path, stored)], table), table
