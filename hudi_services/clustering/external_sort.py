"""Sorting more rows than fit into memory: sorted runs on local disk, merged a section at a time.

A run is an Arrow IPC file (LZ4) of small batches. Of every batch the keys of the first row stay in memory. Batches are
read in the order of these, until enough are there: all their rows up to the first one of the next batch are complete.
They are one section, and the rest waits for the next; so every batch is read once for each pass, and never more than
one of each run beside those that make up a section.
"""

import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Protocol

import numpy as np
import pyarrow as pa

from ..errors import StorageError
from .memory import TaskMemory, sort_bytes
from .sorting import Order, RowSorter, take_rows, taken

_LEAST_BATCH_ROWS = 64


class Section(Protocol):
    """Consecutive rows of the group in order."""

    @property
    def num_rows(self) -> int: ...

    def rows(self, start: int, length: int) -> pa.Table:
        """Some of them."""


class ExternalSort:
    """Takes the rows of a group, `expected` by its footers, and gives them in order; close it to free the disk.

    Raises StorageError when the local disk is full or fails, and what `RowSorter` raises.
    """

    def __init__(self, sorter: RowSorter, expected: int, memory: TaskMemory) -> None:
        self._sorter = sorter
        self._expected = expected
        self._memory = memory
        self._waiting: list[pa.Table] = []
        self._bytes = 0
        self._runs: list[_Run] = []
        self._batch_rows = 0
        self._plain: list[str] = []
        """Columns whose dictionaries are so large that runs do without them."""
        self._whole: pa.Table | None = None
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        """More rows."""
        size = sort_bytes(table.get_total_buffer_size(), table.num_rows)
        if self._waiting and self._bytes + size > self._memory.run:
            self._spill()
        self._waiting.append(table)
        self._bytes += size
        self.rows += table.num_rows

    def complete(self) -> None:
        """Call it when all rows are there."""
        if self._waiting and self._runs:
            self._spill()
        elif self._waiting:
            self._whole = self._sorter.bare(self._sorter.sorted(self._waiting))

    def sections(self) -> Iterator[Section]:
        """All rows in order; may be called again."""
        if self._whole is not None:
            yield _Sorted(self._whole)
        elif self._runs:
            yield from self._merged()

    @property
    def spilled_bytes(self) -> int:
        """On local disk."""
        return sum(run.size for run in self._runs)

    def close(self) -> None:
        for run in self._runs:
            run.file.close()
        self._runs, self._waiting, self._whole = [], [], None

    def __enter__(self) -> "ExternalSort":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _spill(self) -> None:
        table = self._sorter.sorted(self._waiting)
        if not self._runs:
            runs = -(-self._expected // table.num_rows) + 1
            a_row = max(1, self._bytes // table.num_rows)
            # Half of what is merged at once may be batches of which only a part is complete.
            self._batch_rows = max(_LEAST_BATCH_ROWS, self._memory.merged // (2 * runs) // a_row)
            # Each section brings those of all its runs together.
            self._plain = [name for name in table.column_names if _dictionary_size(table[name]) > self._batch_rows]
        self._runs.append(_Run.write(_plain(table, self._plain), self._batch_rows, self._sorter.keys))
        self._bytes = 0
        # Of the small blocks of a run so much would stay.
        pa.default_memory_pool().release_unused()

    def _merged(self) -> Iterator[Section]:
        places = [(run, number) for run in self._runs for number in range(run.batches)]
        heads = pa.concat_tables([run.heads for run in self._runs])
        order = self._sorter.order(heads)
        loaded: list[_Loaded] = []
        for position, at in enumerate(order):
            run, number = places[at]
            loaded.append(_Loaded(run.read(number)))
            is_last = position + 1 == len(order)
            if is_last or sum(one.size for one in loaded) >= self._memory.merged:
                bound = None if is_last else heads.slice(order[position + 1], 1)
                section, loaded = self._complete(loaded, bound)
                yield section

    def _complete(self, loaded: "list[_Loaded]", bound: pa.Table | None) -> "tuple[Section, list[_Loaded]]":
        """The rows up to `bound`, and what is left of each batch: all of them are sorted, so that this is its end."""
        tables = [one.table for one in loaded]
        keys = [table.select(self._sorter.keys) for table in tables]
        if bound is not None:
            # The last among equals, so that these are complete, too.
            keys.append(_of_type(bound, keys[0].schema))
        order = self._sorter.order(pa.concat_tables(keys))
        starts = np.cumsum([0, *(table.num_rows for table in tables)])
        if bound is not None:
            order = order[: int(np.flatnonzero(order == starts[-1])[0])]
        taken_of = np.bincount(np.searchsorted(starts, order, "right") - 1, minlength=len(tables))
        rest = [
            _Loaded(one.table.slice(count), one.size)
            for one, count in zip(loaded, taken_of, strict=False)
            if count < one.table.num_rows
        ]
        return _Merged([self._sorter.bare(table) for table in tables], order), rest


@dataclass(slots=True)
class _Loaded:
    """A batch, or the rest of one; `size` is that of the whole, which stays in memory."""

    table: pa.Table
    size: int = 0

    def __post_init__(self) -> None:
        self.size = self.size or sum(_row_bytes(column) for column in self.table.columns)


@dataclass(frozen=True, slots=True)
class _Run:
    """A sorted run. `heads`: the keys of the first row of each batch."""

    file: IO[bytes]
    reader: pa.RecordBatchFileReader
    heads: pa.Table
    size: int

    @classmethod
    def write(cls, table: pa.Table, batch_rows: int, keys: Sequence[str]) -> "_Run":
        with _disk_errors():
            # Without a name it goes with the process, however that ends.
            file = tempfile.TemporaryFile(dir=_folder(), prefix="hudi_services-")  # noqa: SIM115
            batches = table.to_batches(max_chunksize=batch_rows)
            with pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            file.flush()
            # Those of two runs differ in their dictionaries; and a slice would keep all of its batch.
            firsts = [_plain(pa.Table.from_batches([batch.slice(0, 1)]).select(keys), keys) for batch in batches]
            heads = pa.concat_tables(firsts).take(pa.array(range(len(firsts))))
            size = int(file.tell())
            file.seek(0)
            return cls(file, pa.ipc.open_file(file), heads, size)

    @property
    def batches(self) -> int:
        return int(self.heads.num_rows)

    def read(self, number: int) -> pa.Table:
        with _disk_errors():
            return pa.Table.from_batches([self.reader.get_batch(number)])


@dataclass(frozen=True, slots=True)
class _Sorted:
    """All rows of a group that fits into memory."""

    table: pa.Table

    @property
    def num_rows(self) -> int:
        return int(self.table.num_rows)

    def rows(self, start: int, length: int) -> pa.Table:
        return self.table.slice(start, length)


class _Merged:
    """Rows of several batches, which lie in `order`."""

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


def _plain(table: pa.Table, names: Collection[str]) -> pa.Table:
    """`table` with these columns as they are without dictionaries."""
    fields = [
        field.with_type(field.type.value_type) if field.name in names and pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _dictionary_size(column: pa.ChunkedArray) -> int:
    return len(column.chunk(0).dictionary) if pa.types.is_dictionary(column.type) and column.num_chunks else 0


def _row_bytes(column: pa.ChunkedArray) -> int:
    """Without the dictionary, which all batches of a run share."""
    if pa.types.is_dictionary(column.type):
        return sum(chunk.indices.nbytes for chunk in column.chunks)
    return int(column.nbytes)


def _of_type(bound: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        column.dictionary_encode() if pa.types.is_dictionary(field.type) else column
        for field, column in zip(schema, bound.columns, strict=True)
    ]
    return pa.table(columns, schema=schema)


def _folder() -> str:
    """Where Spark has its own scratch files (spark.local.dir), else the system's."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise StorageError(
            f"a group that does not fit into memory cannot be sorted on the local disk: {_folder()}: {e}",
            hint="free some space, set spark.local.dir, or give the task more memory (--memory-per-task)",
        ) from e
