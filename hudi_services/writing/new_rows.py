"""New rows of a write in the form of a base file; and such rows as the end of a file group that is there.

No key of theirs is looked for: of an upsert they are those that no file has.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..base_files.keyed_slices import without_meta_columns
from ..base_files.slices import RECORD_KEY, CheckedTables, Segment, SliceReader, StoredRowGroup
from ..calendars.calendar import FileCalendar
from ..model import LogCounts
from ..parquet.chunk_stats import ColumnStats
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from ..parquet.node_types import parquet_type
from ..parquet.schema_evolution import SourceSchema, resolve_target
from ..schema.table_schema import TableSchema
from ..schema.widening import has_coarser_times
from .meta_columns import MetaColumns, some_at_a_time
from .writer_schema import WriterSchema


def new_rows(
    schema: WriterSchema,
    meta: MetaColumns,
    rows: Iterable[pa.Table],
    target: FileSchema,
    names: Sequence[str],
    start: int = 0,
) -> Iterator[pa.Table]:
    """The columns `names` of rows in the raw form of `target`, with meta columns, in small tables.

    `rows` have the data columns of the writer's schema, and with meta fields the record key; `start` is the number of
    the first row.
    """
    plain = data_alone(schema, rows)
    parts = meta.add(plain, start) if schema.has_meta else some_at_a_time(plain)
    source, is_same = schema.target, schema.target == target
    columns = source.columns_of(names)
    for part in parts:
        yield part.select(names) if is_same else converted_table(part, part.num_rows, source, columns, target)


def data_alone(schema: WriterSchema, rows: Iterable[pa.Table]) -> Iterable[pa.Table]:
    """Rows without their keys where files have none: rows that were looked up have them."""
    return rows if schema.has_meta else (table.select(schema.arrow.names) for table in rows)


def next_slice_schema(
    old: SliceReader, schema: WriterSchema, dropped: Collection[str]
) -> tuple[FileSchema, TableSchema]:
    """The schema of the next slice of a file group, and the table's for it: `schema` with all columns of the old file.

    `dropped` are partition columns that files need not have. Raises UnsupportedTable where the two do not fit.
    """
    # The meta columns of a table without meta fields have no value, and bulk inserts of Hudi allow no null in them.
    stored = old.schema if schema.has_meta else without_meta_columns(old.schema)
    table = schema.table.for_files({*schema.target.columns, *stored.columns}, dropped)
    sources = [SourceSchema(old.path, stored)]
    pairs = ((stored.column_of(name), kind) for name, kind in table.types.items())
    if any(has_coarser_times(parquet_type(column), kind) for column, kind in pairs if column is not None):
        # Times of new rows may have digits that those of the old file have no room for.
        sources.append(SourceSchema(old.path, schema.target))
    return resolve_target(sources, table), table


@dataclass(frozen=True, slots=True)
class InsertedRows:
    """`count` rows, of about `memory_bytes`, that follow those of a slice (`RewriteTask.appended`).

    `rows` gives them, each time from the first one on, as `new_rows` takes them.
    """

    rows: Callable[[], Iterator[pa.Table]]
    count: int
    memory_bytes: int
    schema: WriterSchema
    meta: MetaColumns
    start: int
    dropped_columns: tuple[str, ...]

    def after(self, old: SliceReader) -> tuple[FileSchema, TableSchema]:
        """As `next_slice_schema`."""
        return next_slice_schema(old, self.schema, self.dropped_columns)

    def opened(self, old: SliceReader, target: FileSchema) -> "NewRows":
        """The rows as a slice with the schema `target`, to be rewritten together with the slice `old`."""
        return NewRows(self, old, target)


class NewRows:
    """Rows that are in no file yet, as an open file slice that follows another one."""

    is_converted = False
    size = overhead_bytes = spilled_bytes = 0
    stored: tuple[StoredRowGroup, ...] = ()
    plain_leaves: frozenset[str] = frozenset()

    def __init__(self, rows: InsertedRows, old: SliceReader, target: FileSchema) -> None:
        self._rows = rows
        self.path = old.path
        self.full_path = old.full_path
        self.schema = target
        self.num_rows = rows.count
        self.encoded_bytes = self.stored_bytes = rows.memory_bytes
        self.log_counts = LogCounts(inserts=rows.count)
        # What the footer of the file says stays true.
        self.key_values = old.key_values
        self.dictionary_columns = old.dictionary_columns
        self.calendar = FileCalendar(self.full_path, old.calendar.converted().key_values, target, is_converted=True)
        self.segments = (Segment(self, None, rows.count, rows.memory_bytes, None),)

    def gregorian(self) -> "NewRows":
        return self

    def tables(
        self,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        rows, names = self._rows, self.schema.columns if columns is None else columns
        for table in new_rows(rows.schema, rows.meta, rows.rows(), self.schema, names, rows.start):
            yield table, table

    def checked_tables(
        self,
        columns: Sequence[str],
        target: FileSchema,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> CheckedTables:
        return _Given(self, columns)

    def record_keys(self) -> Iterator[pa.ChunkedArray]:
        return (rows.column(RECORD_KEY) for rows, _ in self.tables([RECORD_KEY]))

    def column_stats(self, complete: Collection[str] = ()) -> tuple[ColumnStats, ...]:
        return ()

    def release(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Given:
    """The tables of new rows."""

    reader: NewRows
    columns: Sequence[str]
    merges: bool = False

    def rows(self, segment: Segment) -> Iterator[tuple[pa.Table, pa.Table]]:
        return self.reader.tables(self.columns)

    def stored(self, segment: Segment) -> Iterator[pa.Table]:
        return iter(())

    def expected(self) -> tuple[int, int]:
        return 0, 0
