"""The rows of a bulk insert in order: sorted in memory, or in runs on the local disk where they do not fit."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..base_files.row_selection import take_table
from ..base_files.slices import RECORD_KEY
from ..errors import ConfigError
from ..rows.external_sort import ExternalSort
from ..rows.memory import TaskMemory
from ..rows.sort_order import SortColumn
from ..rows.sorting import RowSorter
from .writer_schema import WriterSchema


class SortedRows:
    """The rows of one task, `count` in number, sorted by `columns`; for one pass."""

    def __init__(
        self,
        schema: WriterSchema,
        columns: Sequence[SortColumn],
        rows: Iterable[pa.Table],
        count: int,
        memory: TaskMemory,
    ) -> None:
        self._sorter = RowSorter(schema.target, columns)
        self._rows = rows
        self._count = count
        self._memory = memory
        self.spilled_bytes = 0
        """Bytes of rows that were written to local disk, because they did not fit into memory."""

    def __iter__(self) -> Iterator[pa.Table]:
        with ExternalSort(self._sorter, self._count, self._memory) as sort:
            for table in self._rows:
                sort.add(_alone(table))
            sort.complete()
            self.spilled_bytes = sort.spilled_bytes
            yield from sort.tables()


def check_sort(schema: WriterSchema, columns: Sequence[SortColumn]) -> None:
    """Raise ConfigError when rows of `schema` cannot be sorted by `columns`."""
    fields = [schema.target.arrow.field(RECORD_KEY)] if schema.has_meta else []
    empty = pa.schema([*fields, *schema.arrow]).empty_table()
    for column in columns:
        if column.name == RECORD_KEY and not schema.has_meta:
            raise ConfigError(
                "the table has no meta fields (hoodie.populate.meta.fields=false), so that its rows cannot be sorted "
                "by record key",
                hint="set hoodie.bulkinsert.sort.mode=NONE, or name columns to sort by with "
                "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
            )
        if column.name not in empty.column_names:
            raise ConfigError(
                f"the rows have no sort column {column.name}", hint=f"columns: {', '.join(schema.arrow.names)}"
            )
    if columns:
        RowSorter(schema.target, columns).order(empty)


def _alone(table: pa.Table) -> pa.Table:
    """`table`; the rows of a slice alone, because the whole that it is a part of would count for the memory."""
    is_slice = table.get_total_buffer_size() > 2 * table.nbytes
    return take_table(table, np.arange(table.num_rows)) if is_slice else table
