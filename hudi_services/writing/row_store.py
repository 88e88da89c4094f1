"""The rows of a write, kept by partition until it is known which file group each of them goes to.

Small writes stay in memory. Of larger ones, tables of consecutive rows of one partition are put into a temporary file
on the local disk, each as an Arrow IPC stream of its own (LZ4). The rows of a partition keep their order.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import IO

import numpy as np
import pyarrow as pa

from ..temporary_files import disk_errors, temporary_file

_Stored = tuple[int, int, int]
"""The number of rows, and the place and length in the temporary file."""


class RowStore:
    """The rows, added in tables of one schema; close it to free the disk. At most `memory` bytes wait in memory.

    Raises StorageError when the local disk is full or fails.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._waiting: dict[str, list[pa.Table]] = {}
        self._waiting_bytes = 0
        self._stored: dict[str, list[_Stored]] = {}
        self._counts: dict[str, int] = {}
        self._file: IO[bytes] | None = None
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
        if isinstance(encoded, pa.ChunkedArray):
            encoded = pa.concat_arrays(encoded.chunks)
        names = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
        # A copy: a slice of the caller's table would keep all of it in memory.
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
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> "RowStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _parts(self, partition: str) -> Iterator[tuple[int, Callable[[], pa.Table]]]:
        """The tables of a partition in order: the number of rows, and a function that gives the table."""
        for rows, place, length in self._stored.get(partition, ()):
            yield rows, partial(self._load, place, length)
        for table in self._waiting.get(partition, ()):
            yield table.num_rows, partial(_itself, table)

    def _load(self, place: int, length: int) -> pa.Table:
        assert self._file is not None, "rows were stored in it"
        with _disk_errors():
            self._file.seek(place)
            data = self._file.read(length)
        return pa.ipc.open_stream(data).read_all()

    def _spill(self) -> None:
        with _disk_errors():
            if self._file is None:
                self._file = temporary_file()
            self._file.seek(0, 2)
            for name, tables in self._waiting.items():
                table, place = pa.concat_tables(tables).combine_chunks(), self._file.tell()
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                with pa.ipc.new_stream(self._file, table.schema, options=options) as writer:
                    writer.write_table(table)
                length = self._file.tell() - place
                self._stored.setdefault(name, []).append((table.num_rows, place, length))
                self.spilled_bytes += length
            self._file.flush()
        self._waiting, self._waiting_bytes = {}, 0


def _itself(table: pa.Table) -> pa.Table:
    return table


def _disk_errors() -> AbstractContextManager[None]:
    return disk_errors("the rows of a write do not fit into memory and cannot be kept")
