"""The rows of a write, in the form of the table, with their record keys, by partition: nothing is written yet."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.keyed_slices import RowKeys
from ..base_files.row_selection import by_number, in_parts, take_table
from ..base_files.slices import RECORD_KEY
from ..keygen.key_maker import KeyMaker
from ..merging.log_records import deletes
from ..merging.rules import DeleteMarker
from ..schema.table_schema import TableSchema
from ..table_config import TableConfig
from .buckets import Buckets
from .row_store import CountedRows, Place, RowStore
from .writer_schema import FixedTypes, WriterSchema

NUMBER = "hudi_services number"
"""The column of the numbers of rows in their order."""
_MOST_ROWS = 1 << 20
"""Of a table: keys, with the names of their fields, may have more bytes than the values that they are made of."""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """`store` has tables of the record key, where one is needed, and the data columns of `schema`, by partition path.

    `keys_only`: tables of the record key alone, of rows that are to be deleted. `numbered`: tables have the column
    NUMBER, too, so that the order of the rows is known whatever tables they are in.
    """

    schema: WriterSchema
    store: CountedRows
    """A RowStore when the rows are in this process."""
    keys_only: bool = False
    numbered: bool = False
    buckets: Buckets | None = None
    """Set, the rows of each partition are kept by bucket."""
    omits_deletes: bool = False
    """Whether rows that delete their keys are left out, also by the table's `marker`: inserts by Hudi do so."""
    marker: DeleteMarker | None = None
    file_keys: RowKeys | None = None
    """How the keys of rows in files are made; None where files have them, or where keys are not compared."""
    given: WriterSchema | None = None
    """The schema of the rows as they are given, where it has partition columns that files do not have."""
    null_columns: set[str] = field(default_factory=set)
    """The columns that may have nulls in some row."""

    @property
    def here(self) -> RowStore:
        """The store of rows that are in this process."""
        assert isinstance(self.store, RowStore), "the rows are in this process"
        return self.store

    @property
    def count(self) -> int:
        return sum(self.store.counts.values())

    @property
    def partitions(self) -> list[str]:
        """The partitions of the rows, in order."""
        return sorted({place.partition for place in self.store.counts})

    def add(self, rows: Iterable[pa.RecordBatch], maker: KeyMaker, first: int = 0) -> None:
        """Keep all rows, numbered from `first` on.

        Raises ConfigError for a row that the table cannot take, StorageError for the local disk.
        """
        names, start, store = maker.columns if self.keys_only else None, first, self.here
        for table in _small(rows):
            data = (self.given or self.schema).conform(table, names)
            if self.omits_deletes:
                data = data.filter(pc.invert(deletes(data, self.marker)))
            record_keys, paths = maker.record_keys(data), maker.partition_paths(data)
            if self.given is not None:
                data = data.select([name for name in data.column_names if name in self.schema.arrow.names])
            self.null_columns.update(n for n in data.column_names if _may_have_nulls(data.column(n)))
            if self.keys_only:
                data = pa.table({RECORD_KEY: record_keys})
            elif self.schema.has_meta or self.file_keys is not None:
                data = data.add_column(0, RECORD_KEY, record_keys)
            if self.numbered:
                data = data.append_column(NUMBER, pa.array(np.arange(start, start + data.num_rows)))
                start += data.num_rows
            for path, part in divided(data, paths):
                store_inserts(store, path, part, self.buckets)


def _small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of batches, which may have columns larger than those of tables here can be."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for start in range(0, table.num_rows, _MOST_ROWS):
            yield from in_parts(table.slice(start, _MOST_ROWS), by_values=True)


def _may_have_nulls(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count or pa.types.is_nested(column.type))


def divided(rows: pa.Table, paths: pa.ChunkedArray) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each path, in their order; `paths` are those of the rows, dictionary encoded."""
    if not rows.num_rows:
        return
    encoded = paths.unify_dictionaries().combine_chunks()
    names = encoded.dictionary.to_pylist()
    for code, part in _by_code(rows, encoded.indices.to_numpy()):
        yield names[code], part


def store_inserts(store: RowStore, partition: str, rows: pa.Table, buckets: Buckets | None) -> None:
    """Add rows to the inserts of a partition, or of its buckets."""
    if buckets is None:
        store.add(Place(partition), rows)
    elif rows.num_rows:
        for bucket, part in _by_code(rows, buckets.of(rows.column(RECORD_KEY))):
            store.add(Place(partition, bucket=bucket), part)


def _by_code(rows: pa.Table, codes: "npt.NDArray[np.integer[Any]]") -> Iterator[tuple[int, pa.Table]]:
    """The rows of each code, in their order; there is a row."""
    order = by_number(codes)
    ordered = codes[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    grouped = take_table(rows, order) if len(starts) > 1 else rows
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        yield int(ordered[start]), grouped.slice(start, end - start)


def writer_schema(
    rows: pa.Schema,
    config: TableConfig,
    table: TableSchema | None,
    *,
    nulls_for_missing: bool,
    fixed: FixedTypes,
    compared: Collection[str] = (),
    keys_only: bool = False,
) -> WriterSchema:
    """The schema of a write of `rows` to a table, whose schema may be None. Raises ConfigError.

    `fixed` and `compared` as in `WriterSchema.deduce`. `keys_only`: only the columns of which keys are made are used,
    and the table has a schema.
    """
    if keys_only and table is not None:
        fields = dict.fromkeys(one.partition(".")[0] for one in (*config.record_key_fields, *config.partition_fields))
        schema = WriterSchema.of_table(table, rows, list(fields), has_meta=config.populate_meta_fields)
        return schema.with_columns(rows, [name for name in config.dropped_columns if name not in table.types])
    return WriterSchema.deduce(
        rows,
        table,
        table_name=config.name,
        has_meta=config.populate_meta_fields,
        local_timestamps=config.version.local_timestamps,
        nulls_for_missing=nulls_for_missing,
        fixed=fixed,
        compared=compared,
    )
