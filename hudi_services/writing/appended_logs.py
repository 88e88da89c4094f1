"""Appends the updates and deletes of a write to file groups of a merge-on-read table, as log files.

A log file has data blocks, and after them the deletes. Every new file is read back, and its records compared with the
rows that were to be written. Source: HoodieAppendHandle of Apache Hudi.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.file_writer import FILE_NAME_COLUMN
from ..base_files.new_file import NewFile
from ..commit.markers import create_marker
from ..errors import CheckFailed
from ..file_names import parse_log_file
from ..log_files.avro_encoding import Encoded, flat
from ..log_files.block_contents import delete_block_content
from ..log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ..log_files.log_writer import encode_block
from ..merging.delete_entries import ordering_entries
from ..merging.log_contents import LogContent, log_contents
from ..merging.log_records import KEY, deletes
from ..merging.ordering import OrderingField, ordering_fields
from ..merging.rules import MergeRule
from ..merging.slices import MergedSlices
from ..model import FileSlice
from ..parquet.chunk_stats import ColumnStats
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..process import peak_bytes, reset_peak
from ..rows.conservation import Checksum, checksum
from ..rows.file_output import CHECK, Stopwatch
from ..rows.settings import FileSettings
from ..small_files import FileRanges, with_small_files
from ..storage import Storage
from ..table.new_logs import NewLog
from .comparable_rows import check_merge, comparing, have_nulls, may_have_nulls
from .data_block import AvroBlock, DataBlock, ParquetBlock
from .meta_columns import MetaColumns, same_text
from .path_columns import PathColumns, with_path_columns
from .writer_schema import WriterSchema


@dataclass(frozen=True, slots=True)
class AppendTask:
    """Rows for one file group that is there, whose newest slice is `appended`; `log` is the file that gets them.

    `number` is that of the task in the write; `inserts` of the rows are new. `block_bytes`: the size at which a data
    block is closed. `dates`: whether entries of deletes may have dates as ordering values. `ranged` are the columns
    whose statistics are needed.
    """

    storage: Storage
    instant: str
    number: int
    appended: FileSlice
    log: NewLog
    marker_kind: str
    rule: MergeRule
    schema: WriterSchema
    inserts: int
    block_bytes: int
    parquet: FileSettings | None
    """Set, data blocks are parquet files; otherwise they are Avro records."""
    dates: bool
    ranged: frozenset[str]
    path_columns: PathColumns
    """What the records have besides: columns that base files do not have."""
    source: MergedSlices
    """Opens slices of the table, by the rule by which readers merge the log file with what is there, if we have it."""

    @property
    def partition(self) -> str:
        return self.appended.partition

    @property
    def of_records(self) -> WriterSchema:
        """The schema of its records."""
        names = [name for name, _ in self.path_columns]
        return self.schema.with_columns(pa.schema([(name, pa.string()) for name in names]), names)


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What a task wrote; `checked` is of the records of its data blocks."""

    file: NewFile
    checked: Checksum
    seconds: dict[str, float]
    peak: int


def append_rows(task: AppendTask, rows: Iterator[pa.Table]) -> AppendResult:
    """Write the log file.

    `rows` are tables of the record key and the data columns of the writer's schema, and tables of the record key
    alone, of rows that are deleted. Raises CheckFailed when the file does not hold exactly what was to be written,
    UnsupportedTable for a row that readers could not merge with that of its key, and for ordering values that a delete
    cannot have, and StorageError.
    """
    reset_peak()
    return _NewLogFile(task).write(rows)


class _NewLogFile:
    """The state of one task."""

    def __init__(self, task: AppendTask) -> None:
        self._task = task
        self._clock = Stopwatch()
        schema = task.of_records
        self._target = target = schema.target
        self._ordering = ordering_fields(task.rule, target, task.storage.root)
        of_readers = task.source.rule
        self._comparing = comparing(
            ordering_fields(of_readers, target, task.storage.root) if of_readers is not None else ()
        )
        self._has_rows = self._has_nulls = False
        """Whether there are rows, other than keys to delete, and nulls in the ordering fields of `_comparing`."""
        text = schema.table.for_files(target.columns).text
        self._header = {HeaderKey.INSTANT_TIME: task.instant, HeaderKey.SCHEMA: text}
        self._meta = MetaColumns(task.instant, task.partition, task.number)
        self._meant = Checksum()
        self._block: DataBlock | None = None
        """The data block that gets records."""
        self._deleted: list[tuple[pa.Array, Encoded]] = []
        """Keys with their ordering values."""
        self._deleted_bytes = 0
        """About how many bytes they have in a block, where each key has the path of the partition beside it."""
        self._deletes = 0
        self._contents: list[bytes] = []
        """Hashes of the delete blocks."""

    def write(self, rows: Iterator[pa.Table]) -> AppendResult:
        task, start = self._task, time.perf_counter()
        create_marker(task.storage, task.instant, task.log.stat.path, task.marker_kind)
        size = 0
        with self._clock.phase("write"):
            output = task.storage.open_output(task.log.stat.path)
            for block in self._blocks(rows):
                size += output.write(encode_block(block))
            output.close()
        millis = round((time.perf_counter() - start) * 1000)
        with self._clock.phase(CHECK):
            columns = self._check(size)
        inserts = min(task.inserts, self._meant.rows)
        stat = task.log.written(size, self._meant.rows - inserts, inserts, self._deletes, millis)
        return AppendResult(NewFile(stat, columns), self._meant, self._clock.seconds, peak_bytes())

    def _blocks(self, rows: Iterator[pa.Table]) -> Iterator[LogBlock]:
        for table in rows:
            for part in self._records_of(table):
                self._meant += checksum(part)
                self._block = self._block or self._new_block()
                self._block.add(part)
                if self._block.size >= self._task.block_bytes:
                    yield from self._data_block()
            if self._deleted_bytes >= self._task.block_bytes:
                yield self._delete_block()
        yield from self._data_block()
        if self._deleted:
            yield self._delete_block()

    def _records_of(self, table: pa.Table) -> Iterator[pa.Table]:
        """The rows that are no deletes, with their meta columns, in small tables."""
        if table.column_names == [KEY]:
            self._delete(table, ())
            return
        self._has_rows = True
        self._has_nulls = self._has_nulls or have_nulls(table, self._comparing)
        gone = deletes(table, self._task.rule.marker)
        if pc.any(gone).as_py():
            self._delete(table.filter(gone), self._ordering)
            table = table.filter(pc.invert(gone))
        table = with_path_columns(table, self._task.path_columns)
        for part in self._meta.add([table], self._meant.rows) if table.num_rows else ():
            yield part.append_column(FILE_NAME_COLUMN, same_text(self._task.appended.file_id, part.num_rows))

    def _new_block(self) -> DataBlock:
        task, text = self._task, self._header[HeaderKey.SCHEMA]
        if task.parquet is None:
            return AvroBlock(text)
        path = task.storage.full_path(task.log.stat.path)
        return ParquetBlock(self._target, text, task.parquet, task.appended.file_id, path)

    def _delete(self, rows: pa.Table, ordering: Sequence[OrderingField]) -> None:
        task = self._task
        path = task.storage.full_path(task.log.stat.path)
        keys, values = flat(rows.column(KEY)), ordering_entries(rows, ordering, path, dates=task.dates)
        self._deleted.append((keys, values))
        self._deleted_bytes += keys.nbytes + values.nbytes + len(keys) * len(task.partition.encode())

    def _data_block(self) -> Iterator[LogBlock]:
        block, self._block = self._block, None
        if block is not None:
            yield LogBlock(block.type, self._header, block.content())

    def _delete_block(self) -> LogBlock:
        keys, ordering = (pa.concat_arrays(some) for some in zip(*self._deleted, strict=True))
        self._deleted, self._deleted_bytes = [], 0
        content = delete_block_content(keys, self._task.partition, ordering)
        self._deletes += len(keys)
        self._contents.append(hashlib.sha256(content).digest())
        return LogBlock(BlockType.DELETE, self._header, content)

    def _check(self, size: int) -> tuple[ColumnStats, ...]:
        """Compare what the file holds with what was to be written; returns the statistics of its columns."""
        task, target = self._task, self._target
        log = parse_log_file(task.partition, task.log.name, size)
        assert log is not None, "it is the name of a log file"
        may_not_merge = self._has_rows and (self._has_nulls or bool(self._comparing))
        appended = task.appended if may_not_merge else replace(task.appended, base_file=None, log_files=())
        # What the merge may need is read beside the new file.
        whole = with_small_files(task.storage, replace(appended, log_files=(*appended.log_files, log)))
        *older, log = whole.log_files
        appended = replace(whole, log_files=tuple(older))
        (content,) = log_contents(task.storage, replace(whole, base_file=None, log_files=(log,)), lambda instant: True)
        found = Checksum()

        def add(schema: FileSchema, records: pa.Table) -> None:
            nonlocal found
            columns = schema.columns_of(target.columns)
            found += checksum(converted_table(records, records.num_rows, schema, columns, target))

        columns = content.statistics(task.storage, task.ranged, add) if content.has_records else content.columns()
        if content.problem or found != self._meant or self._stored_deletes(content) != self._contents:
            raise CheckFailed(
                f"{task.storage.full_path(log.path)} does not hold the records that were to be written ({found} are in "
                f"it, {self._meant} were to be; {content.problem or 'or other deletes'})",
                hint="nothing was committed; please report this with the input",
            )
        if may_not_merge and (self._has_nulls or may_have_nulls(task.storage, appended, self._comparing)):
            check_merge(task.source, task.storage.root, appended, log, task.instant)
        return columns

    def _stored_deletes(self, content: LogContent) -> list[bytes]:
        read = content.read or FileRanges(self._task.storage, content.file.path, content.file.size)
        return [
            hashlib.sha256(read(block.offset, block.length)).digest()
            for block in content.blocks
            if block.type is BlockType.DELETE
        ]
