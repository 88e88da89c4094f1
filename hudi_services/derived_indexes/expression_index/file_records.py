"""The records of one file in expression indexes: of a base file, or of the log file that a write added to a slice.

    column_stats    of a log file the values in its data blocks as they are, before any merge; none for deletes alone
    bloom_filters   of base files alone: Hudi fails when a write adds a log file beside such an index

Source: SparkMetadataWriterUtils of Apache Hudi 1.0.2, 1.2.0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...base_files.slices import SliceReader, SliceSource
from ...errors import CorruptFile, UnsupportedTable
from ...merging.log_contents import log_contents
from ...metadata.records.keys import COLUMN_STATS, bloom_filter_key, column_stats_key
from ...metadata.records.model import BloomRecord, RecordType, StatsRecord
from ...metadata.statistics.values import greatest, smallest
from ...model import DataFile, FileSlice, LogFile
from ...parquet.conversion import natural
from ...parquet.file_schema import FileSchema, Node
from ...parquet.node_types import parquet_type
from ...schema.column_type import ColumnType, Kind
from ...schema.widening import is_computed_as
from ...storage import Storage
from .definitions import ExpressionIndex, refused
from .expressions import Expression, as_texts
from .index import Computation, ExpressionRecord

_NULLS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class ExpressionTask:
    """A file that the instant `instant` wrote, and the indexes that need a record of it.

    `source` opens base files, which are of its storage.
    """

    storage: Storage
    source: SliceSource
    instant: str
    file: DataFile
    computations: tuple[Computation, ...]


def expression_records(task: ExpressionTask, _token: str) -> dict[str, ExpressionRecord]:
    """The records of a file, by index. Only the columns that are needed are read, and some rows at a time.

    Raises UnsupportedTable for values that are not computed here, CorruptFile and StorageError.
    """
    if isinstance(task.file, LogFile):
        return _of_log(task, task.file)
    reader = task.source.open(FileSlice.of_base(task.file))
    if not reader.num_rows:
        return {}
    collectors = [_collector(task, one, reader.num_rows) for one in task.computations]
    for one, collector in zip(task.computations, collectors, strict=True):
        for values in expression_values(reader, one):
            collector.add(values)
    return {one.index.partition: c.record() for one, c in zip(task.computations, collectors, strict=True)}


def expression_values(reader: SliceReader, computation: Computation) -> Iterator[pa.Array]:
    """The values of the function in a slice. Raises CorruptFile, and UnsupportedTable where they are not computed."""
    expression, where = computation.expression(), reader.full_path
    leaf = reader.schema.column_of(computation.index.column)
    if leaf is None:
        for start in range(0, reader.num_rows, _NULLS_AT_ONCE):
            nulls = pa.nulls(min(_NULLS_AT_ONCE, reader.num_rows - start), expression.source)
            yield _apply(expression, nulls, computation, where)
        return
    _check_type(leaf, computation, where)
    if parquet_type(leaf).kind in (Kind.DATE, Kind.TIMESTAMP) and reader.calendar.is_hybrid:
        raise refused(computation.index.partition, f"{where} counts its dates in the old calendar")
    for _, table in reader.tables([leaf.name]):
        for chunk in table.column(leaf.name).chunks:
            yield _apply(expression, natural(chunk, leaf).cast(expression.source), computation, where)


def _of_log(task: ExpressionTask, file: LogFile) -> dict[str, ExpressionRecord]:
    ranges = [one for one in task.computations if one.index.kind == COLUMN_STATS]
    slice_of_file = FileSlice(file.partition, file.file_id, file.instant, None, (file,))
    (content,) = log_contents(task.storage, slice_of_file, lambda instant: True)
    if content.problem:
        raise CorruptFile(content.problem)
    if not ranges or not content.has_records:
        return {}
    collectors = [_collector(task, one, 0) for one in ranges]
    where = task.storage.full_path(file.path)

    def add(schema: FileSchema, records: pa.Table) -> None:
        for one, collector in zip(ranges, collectors, strict=True):
            expression, leaf = one.expression(), schema.column_of(one.index.column)
            values = pa.nulls(records.num_rows, expression.source)
            if leaf is not None:
                _check_type(leaf, one, where)
                values = natural(records.column(leaf.name).combine_chunks(), leaf).cast(expression.source)
            collector.add(_apply(expression, values, one, where))

    content.statistics(task.storage, (), add)
    return {one.index.partition: collector.record() for one, collector in zip(ranges, collectors, strict=True)}


def _check_type(leaf: Node, computation: Computation, where: str) -> None:
    own = parquet_type(leaf)
    if not is_computed_as(own.kind, computation.column.kind):
        raise refused(computation.index.partition, f"{leaf.name} is of type {own} in {where}, not {computation.column}")


def _apply(expression: Expression, values: pa.Array, computation: Computation, path: str) -> pa.Array:
    try:
        return expression.apply(values)
    except UnsupportedTable as e:
        raise refused(
            computation.index.partition, f"{computation.index.function}({computation.index.column}) in {path}: {e}"
        ) from e


class _Collector(Protocol):
    def add(self, values: pa.Array) -> None: ...

    def record(self) -> ExpressionRecord: ...


class _Range:
    """The range of the values of one file."""

    def __init__(self, file: DataFile, index: ExpressionIndex, bound: ColumnType) -> None:
        self._file = file
        self._index = index
        self._bound = bound
        self._bounds: list[Any] = []
        self._rows = 0
        self._nulls = 0

    def add(self, values: pa.Array) -> None:
        self._rows += len(values)
        self._nulls += values.null_count
        if pa.types.is_date(values.type):
            values = values.cast(pa.int32())
        elif pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        both = pc.min_max(values)
        self._bounds = [smallest([*self._bounds, both["min"].as_py()]), greatest([*self._bounds, both["max"].as_py()])]

    def record(self) -> StatsRecord:
        low, high = self._bounds or (None, None)
        file, column = self._file, self._index.column
        return StatsRecord(
            key=column_stats_key(column, file.partition, file.name),
            type=RecordType.COLUMN_STATS,
            file_name=file.name,
            column=column,
            bound=self._bound,
            minimum=low,
            maximum=high,
            value_count=self._rows - self._nulls,
            null_count=self._nulls,
            total_size=file.size,
            total_uncompressed_size=file.size * 2,
        )


class _Filter:
    """The bloom filter of the values of one file."""

    def __init__(self, task: ExpressionTask, computation: Computation, bound: ColumnType, rows: int) -> None:
        self._task = task
        self._bound = bound
        self._filter = computation.bloom.new_filter(rows)

    def add(self, values: pa.Array) -> None:
        self._filter.add(as_texts(values, self._bound))

    def record(self) -> BloomRecord:
        key = bloom_filter_key(self._task.file.partition, self._task.file.name)
        return BloomRecord(key, self._filter.type_code, self._task.instant, self._filter.serialize().encode())


def _collector(task: ExpressionTask, computation: Computation, rows: int) -> _Collector:
    bound = computation.expression().result
    return (
        _Range(task.file, computation.index, bound)
        if computation.index.kind == COLUMN_STATS
        else _Filter(task, computation, bound, rows)
    )
