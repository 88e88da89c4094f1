"""The meta columns of rows that a task writes. Source: HoodieRecord, HoodieWriteHandle of Apache Hudi."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.row_selection import in_parts
from ..base_files.slices import RECORD_KEY

_COMMIT_TIME, _SEQUENCE, _PARTITION = "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path"
_STEP_ROWS = 64 * 1024
"""Rows that are written at once, at most: between them the size of the file is looked at."""


@dataclass(frozen=True, slots=True)
class MetaColumns:
    """`number` is that of the task in the write: it makes the sequence numbers of its rows unique."""

    instant: str
    partition: str
    number: int

    def add(self, tables: Iterable[pa.Table], start: int = 0) -> Iterator[pa.Table]:
        """Tables of the record key and data columns with all meta columns but the file name, some rows at a time.

        `start` is the number of the first row.
        """
        for part in some_at_a_time(tables):
            yield self._added(part, start)
            start += part.num_rows

    def _added(self, rows: pa.Table, start: int) -> pa.Table:
        count = rows.num_rows
        numbers = pa.array(np.arange(start, start + count)).cast(pa.string())
        sequence = pc.binary_join_element_wise(f"{self.instant}_{self.number}", numbers, "_")
        names = [_COMMIT_TIME, _SEQUENCE, RECORD_KEY, _PARTITION]
        meta = [
            same_text(self.instant, count),
            sequence,
            rows.column(RECORD_KEY),
            same_text(self.partition, count),
        ]
        data = [name for name in rows.column_names if name != RECORD_KEY]
        return pa.table([*meta, *(rows.column(name) for name in data)], names=[*names, *data])


def some_at_a_time(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of tables in small tables."""
    for table in tables:
        for rows in in_parts(table):
            for start in range(0, rows.num_rows, _STEP_ROWS):
                yield rows.slice(start, _STEP_ROWS)


def same_text(value: str, rows: int) -> pa.ChunkedArray:
    """A column that has one text in each row, as a dictionary."""
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, pa.array([value]))])
