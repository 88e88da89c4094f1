"""Rows on the local disk, in the order in which they were added, and rows divided among several such files."""

from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base_files.row_selection import take_table, with_few_chunks
from ..codecs.row_hash import all_row_hashes
from ..temporary_files import disk_errors, temporary_file
from .log_records import KEY

_GREATEST = (1 << 64) - 1
_TASK = "log records that do not fit into memory cannot be merged"


class Spill:
    """Rows in one temporary file, which is deleted when the value is, or by `close`."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.rows = self.size = 0
        """The rows, and their bytes in memory."""
        self.stored_bytes = 0
        """Bytes on the local disk, also after `close`."""
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def add(self, table: pa.Table) -> None:
        """Add rows. Raises StorageError."""
        if not table.num_rows:
            return
        with disk_errors(_TASK):
            if self._writer is None or self._file is None:
                self._file = temporary_file()
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._writer = pa.ipc.new_stream(self._file, self._schema, options=options)
            self._writer.write_table(with_few_chunks(table))
            self.stored_bytes = self._file.tell()
        self.rows, self.size = self.rows + table.num_rows, self.size + table.nbytes

    def tables(self) -> Iterator[pa.Table]:
        """The rows, some at a time; no more may be added. Raises StorageError."""
        if self._file is None or self._writer is None:
            return
        with disk_errors(_TASK):
            self._writer.close()
            self._file.flush()
            self._file.seek(0)
            for batch in pa.ipc.open_stream(self._file):
                yield pa.Table.from_batches([batch])

    def read(self) -> pa.Table:
        """All rows."""
        return pa.concat_tables([self._schema.empty_table(), *self.tables()])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._writer = None


class Partitions:
    """Rows in `count` spills; by key, those of one of `before` parts, that were divided by key, are divided again."""

    def __init__(self, schema: pa.Schema, count: int, before: int = 1) -> None:
        self.spills = [Spill(schema) for _ in range(count)]
        self._before = np.uint64(before)
        self._least, self._greatest = np.full(count, _GREATEST, np.uint64), np.zeros(count, np.uint64)
        """Of the hashes of the keys in each spill."""

    @property
    def stored_bytes(self) -> int:
        return sum(spill.stored_bytes for spill in self.spills)

    def add_by_key(self, table: pa.Table) -> None:
        """Add each row to the spill of its record key."""
        if table.num_rows:
            hashes = all_row_hashes(table.select([KEY]))
            numbers = (hashes // self._before % np.uint64(len(self.spills))).astype(np.int64)
            np.minimum.at(self._least, numbers, hashes)
            np.maximum.at(self._greatest, numbers, hashes)
            self.add(table, numbers)

    def has_several_keys(self, number: int) -> bool:
        """Whether the rows of a spill, which were added by key, can be divided further."""
        return bool(self._least[number] < self._greatest[number])

    def add(self, table: pa.Table, numbers: npt.NDArray[np.int64]) -> None:
        """Add each row to the spill with its number."""
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(self.spills))).tolist()
        # To take all rows once costs a fraction of taking those of each spill.
        in_order = take_table(table, order)
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            self.spills[number].add(in_order.slice(start, end - start))

    def close(self) -> None:
        for spill in self.spills:
            spill.close()


def by_key(tables: Iterable[pa.Table], count: int, before: int = 1) -> Partitions:
    """The rows of tables, divided by their keys among `count` spills; `before` as for `Partitions`."""
    parts: Partitions | None = None
    for table in tables:
        if parts is None:
            parts = Partitions(table.schema, count, before)
        parts.add_by_key(table)
    return parts if parts is not None else Partitions(pa.schema([]), count)
