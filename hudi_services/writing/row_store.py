"""The rows of a write, kept by partition until it is known which file group each of them goes to.

Small writes stay in memory. Of larger ones, tables of consecutive rows of one partition are put into a temporary file
on the local disk, each as an Arrow IPC stream of its own (LZ4). The rows of a partition keep their order.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from ..rows.stored_tables import StoredTables


class RowStore:
    """The rows, added in tables of one schema; close it to free the disk. At most `memory` bytes wait in memory.

    Raises StorageError when the local disk is full or fails.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._waiting: dict[str, list[pa.Table]] = {}
        self._waiting_bytes = 0
        self._tables = StoredTables("the rows of a write do not fit into memory and cannot be kept")
        self._stored: dict[str, list[tuple[int, int]]] = {}
        """The number of rows of each stored table of a partition, and the table's number."""
        self._counts: dict[str, int] = {}
        self.spilled_bytes = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows of each partition."""
        return self._counts

    def add(self, rows: pa.Table, paths: pa.ChunkedArray) -> None:
        """Add rows; `paths` are their partition paths, dictionary encoded."""
        if not rows.num_rows:
            return
        encoded = paths.unify_dictionaries().combine_chunks()
        names = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
        grouped = rows.take(pa.array(order)) if len(starts) > 1 else rows
        for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
            part, name = grouped.slice(start, end - start), names[ordered[start]]
            self._counts[name] = self._counts.get(name, 0) + part.num_rows
            self._waiting.setdefault(name, []).append(part)
        self._waiting_bytes += rows.get_total_buffer_size()
        if self._waiting_bytes > self._memory:
            self._spill()

    def read(self, partition: str, start: int, count: int) -> Iterator[pa.Table]:
        """`count` rows of a partition from row `start` on."""
        for rows, table in self._parts(partition):
            if count <= 0:
                return
            if start >= rows:
                start -= rows
                continue
            part = table().slice(start, count)
            start, count = 0, count - part.num_rows
            yield part

    def close(self) -> None:
        self._waiting, self._stored = {}, {}
        self._tables.close()

    def __enter__(self) -> "RowStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _parts(self, partition: str) -> Iterator[tuple[int, Callable[[], pa.Table]]]:
        """The tables of a partition in order: the number of rows, and a function that gives the table."""
        for rows, number in self._stored.get(partition, ()):
            yield rows, partial(self._tables.read, number)
        for table in self._waiting.get(partition, ()):
            yield table.num_rows, partial(_itself, table)

    def _spill(self) -> None:
        for name, tables in self._waiting.items():
            table, number = pa.concat_tables(tables).combine_chunks(), len(self._tables)
            self.spilled_bytes += self._tables.append(table)
            self._stored.setdefault(name, []).append((table.num_rows, number))
        self._waiting, self._waiting_bytes = {}, 0


def _itself(table: pa.Table) -> pa.Table:
    return table
