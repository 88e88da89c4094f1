"""Sorting more rows than fit into memory: sorted runs on local disk, merged a section at a time.

A run is a file of small batches, each an Arrow IPC stream of its own (LZ4) with dictionaries of its own. The keys of
the first row of every batch stay in memory. Batches are read in the order of these keys, until enough are loaded: then
all loaded rows up to the first row of the next batch are complete. The complete rows are one section; the other rows
wait for the next section. Every batch is read once for each pass, and at most one batch of each run waits. Many runs
are first merged into fewer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from ..base_files.row_selection import PART_BYTES, take_rows, take_table
from ..stored_tables import StoredTables
from .memory import TaskMemory, sort_bytes
from .sorting import Order, RowSorter, taken

_FAN_IN = 32
"""The number of runs that are merged into one: with more runs their batches would be tiny."""


class OrderedRows(Protocol):
    """Consecutive rows of the group in order."""

    @property
    def num_rows(self) -> int: ...

    def rows(self, start: int, length: int) -> pa.Table:
        """`length` rows from row `start` on."""


class ExternalSort:
    """Sorts the rows of a group; `expected` is their number by the footers. Close it to free the disk.

    Raises StorageError when the local disk is full or fails, and the errors of `RowSorter`.
    """

    def __init__(self, sorter: RowSorter, expected: int, memory: TaskMemory) -> None:
        self._sorter = sorter
        self._expected = expected
        self._memory = memory
        self._waiting: list[pa.Table] = []
        self._bytes = 0
        self._runs: list[_Run] = []
        self._whole: pa.Table | None = None
        self.rows = 0
        self.spilled_bytes = 0
        """Bytes written to local disk; rows that were merged several times count several times."""

    def add(self, table: pa.Table) -> None:
        """Add rows."""
        if not table.num_rows:
            return
        size = sort_bytes(table.get_total_buffer_size(), table.num_rows)
        if self._waiting and self._bytes + size > self._memory.run:
            self._spill()
        self._waiting.append(table)
        self._bytes += size
        self.rows += table.num_rows

    def complete(self) -> None:
        """Finish the input; to be called after the last `add`."""
        if self._waiting and self._runs:
            self._spill()
        elif self._waiting:
            self._whole = self._sorter.bare(self._sorter.sorted(self._waiting))

    def sections(self) -> Iterator[OrderedRows]:
        """All rows in order; may be called again."""
        if self._whole is not None:
            yield SortedTable(self._whole)
        for tables, order in self._merged(self._runs):
            yield _Merged([self._sorter.bare(table) for table in tables], order)

    def tables(self) -> Iterator[pa.Table]:
        """All rows in order, a table for each section; may be called again."""
        for section in self.sections():
            yield section.rows(0, section.num_rows)

    def close(self) -> None:
        for run in self._runs:
            run.close()
        self._runs, self._waiting, self._whole = [], [], None

    def __enter__(self) -> "ExternalSort":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _spill(self) -> None:
        run = self._new_run(0)
        table = self._sorter.sorted(self._waiting)
        runs = max(len(self._runs) + 1, min(_FAN_IN, -(-self._expected // table.num_rows)))
        self.spilled_bytes += run.append(table, self._batch_bytes(runs))
        del table
        self._bytes = 0
        # Otherwise the process would keep the small blocks of memory of the run.
        pa.default_memory_pool().release_unused()
        self._merge_runs(0)

    def _merge_runs(self, level: int) -> None:
        """Merge the runs of `level` into one, when there are `_FAN_IN` of them."""
        merged = [run for run in self._runs if run.level == level]
        if len(merged) < _FAN_IN:
            return
        into = self._new_run(level + 1)
        for tables, order in self._merged(merged):
            section = _Merged(tables, order)
            self.spilled_bytes += into.append(section.rows(0, section.num_rows), self._batch_bytes(_FAN_IN))
        for run in merged:
            self._runs.remove(run)
            run.close()
        self._merge_runs(level + 1)

    def _new_run(self, level: int) -> "_Run":
        self._runs.append(_Run(level, self._sorter.keys))
        return self._runs[-1]

    def _batch_bytes(self, runs: int) -> int:
        # Up to half of the memory for merging may hold batches of which only a part is complete.
        return min(self._memory.merged // (2 * runs), PART_BYTES)

    def _merged(self, runs: Sequence["_Run"]) -> Iterator[tuple[list[pa.Table], Order]]:
        """The rows of all runs in order: tables, and the numbers of their rows that come next."""
        places = [(run, number) for run in runs for number in range(run.batches)]
        if not places:
            return
        heads = pa.concat_tables([head for run in runs for head in run.heads])
        order = self._sorter.order(heads)
        loaded: list[pa.Table] = []
        size = 0
        for position, at in enumerate(order):
            run, number = places[at]
            loaded.append(run.read(number))
            size += loaded[-1].get_total_buffer_size()
            is_last = position + 1 == len(order)
            if is_last or size >= self._memory.merged:
                ready = self._complete(loaded, None if is_last else heads.slice(order[position + 1], 1))
                yield loaded, ready
                counts = _taken_of(loaded, ready)
                # A batch is sorted, so that its rows before the bound are at its start.
                loaded = [t.slice(n) for t, n in zip(loaded, counts, strict=True) if n < t.num_rows]
                size = sum(table.get_total_buffer_size() for table in loaded)

    def _complete(self, loaded: Sequence[pa.Table], bound: pa.Table | None) -> Order:
        """The row numbers of `loaded` up to `bound`, in order; all rows when `bound` is None."""
        keys = [table.select(self._sorter.keys) for table in loaded]
        if bound is None:
            return self._sorter.order(pa.concat_tables(keys))
        # The bound comes last among equal rows, so that they are complete, too.
        order = self._sorter.order(pa.concat_tables([*keys, of_schema(bound, keys[0].schema)]))
        return order[: int(np.flatnonzero(order == len(order) - 1)[0])]


def _taken_of(tables: Sequence[pa.Table], rows: Order) -> list[int]:
    """The number of the `rows` in each of the tables."""
    starts = np.cumsum([0, *(table.num_rows for table in tables)])
    return [int(n) for n in np.bincount(np.searchsorted(starts, rows, "right") - 1, minlength=len(tables))]


class _Run:
    """A sorted run; `level` is the number of merges before it, `heads` are the keys of the first row of each batch.

    No file is open until rows are appended.
    """

    def __init__(self, level: int, keys: Sequence[str]) -> None:
        self.level = level
        self.heads: list[pa.Table] = []
        self._keys = keys
        self._batches = StoredTables("a group that does not fit into memory cannot be sorted")

    def append(self, table: pa.Table, batch_bytes: int) -> int:
        """Append rows, in batches of about `batch_bytes`; return the number of bytes written to disk."""
        step = max(1, table.num_rows * batch_bytes // max(1, _plain_bytes(table)))
        starts = range(0, table.num_rows, step)
        written = sum(self._batches.append(with_own_dictionaries(table.slice(start, step))) for start in starts)
        self.heads.append(plain(take_table(table.select(self._keys), pa.array(starts))))
        return written

    @property
    def batches(self) -> int:
        return len(self._batches)

    def read(self, number: int) -> pa.Table:
        return self._batches.read(number)

    def close(self) -> None:
        self._batches.close()


@dataclass(frozen=True, slots=True)
class SortedTable:
    """Rows that are sorted, in memory."""

    table: pa.Table

    @property
    def num_rows(self) -> int:
        return int(self.table.num_rows)

    def rows(self, start: int, length: int) -> pa.Table:
        return self.table.slice(start, length)


class _Merged:
    """Rows of several batches; `order` has their row numbers in sorted order."""

    def __init__(self, tables: Sequence[pa.Table], order: Order) -> None:
        self._table = pa.concat_tables(tables).unify_dictionaries()
        self._order = order

    @property
    def num_rows(self) -> int:
        return len(self._order)

    def rows(self, start: int, length: int) -> pa.Table:
        order = self._order[start : start + length]
        if 2 * len(order) > self._table.num_rows:
            return taken(self._table.schema, self._table.columns, order)
        rows = pa.array(order)
        return pa.table([take_rows(c, rows) for c in self._table.columns], schema=self._table.schema)


def plain(table: pa.Table) -> pa.Table:
    """`table` without dictionaries."""
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def with_own_dictionaries(table: pa.Table) -> pa.Table:
    """`table` in one chunk, with dictionaries that have only the values of its rows."""
    columns = [
        column.cast(column.type.value_type).combine_chunks().dictionary_encode()
        if pa.types.is_dictionary(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, schema=table.schema).combine_chunks()


def _plain_bytes(table: pa.Table) -> int:
    """About how many bytes the rows would need without dictionaries."""
    size = 0
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            values = column.chunk(0).dictionary
            size += len(column) * (4 + values.nbytes // max(1, len(values)))
        else:
            size += column.nbytes
    return size


def of_schema(bound: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows without dictionaries in a schema that may have some."""
    columns = [
        column.dictionary_encode() if pa.types.is_dictionary(field.type) else column
        for field, column in zip(schema, bound.columns, strict=True)
    ]
    return pa.table(columns, schema=schema)
