"""Rows of a write by where they go, kept until they are written: by partition, and then by file group.

Small writes stay in memory. Of larger ones, tables of consecutive rows of one place are put into a temporary file on
the local disk, each as an Arrow IPC stream of its own (LZ4). The rows of a place keep their order.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from ..base_files import row_selection
from ..base_files.row_selection import gathered, in_parts, with_few_chunks
from ..stored_tables import StoredTables

_JOINED_ROWS, _JOINED_BYTES = 1 << 16, 16 << 20
"""Rows and bytes of a table that is not joined with the next one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows go: to the file group `file_id`, or with "" to the inserts of the partition.

    `deletes`: its tables have the record key alone, of rows that are deleted there. By a bucket index, inserts go to
    those of one `bucket` of the partition. Rows that come from other processes are kept by the `part` of the data that
    they come from, so that their order is the same whichever comes first.
    """

    partition: str
    file_id: str = ""
    deletes: bool = False
    bucket: int | None = None
    part: int = 0


@dataclass(frozen=True, slots=True)
class Portion:
    """`count` rows of a place from row `start` on; None for all of them."""

    place: Place
    start: int = 0
    count: int | None = None

    @property
    def is_insert(self) -> bool:
        """Whether its rows are of no file group yet."""
        return not self.place.file_id


class CountedRows(Protocol):
    """What is known of the rows of each place, wherever they are."""

    @property
    def counts(self) -> Mapping[Place, int]:
        """The number of rows."""

    @property
    def sizes(self) -> Mapping[Place, int]:
        """The bytes in memory of the rows."""

    @property
    def spilled_bytes(self) -> int: ...


class RowStore:
    """The rows of each place, in tables of one schema; close it to free the disk. At most `memory` bytes are in memory.

    Raises StorageError when the local disk is full or fails.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._waiting: dict[Place, list[pa.Table]] = {}
        self._waiting_bytes = 0
        self._tables = StoredTables("the rows of a write do not fit into memory and cannot be kept")
        self._stored: dict[Place, list[tuple[int, int]]] = {}
        """The number of rows of each stored table of a place, and the table's number."""
        self._counts: dict[Place, int] = {}
        self._sizes: dict[Place, int] = {}
        self.spilled_bytes = 0

    @property
    def counts(self) -> Mapping[Place, int]:
        """The number of rows of each place."""
        return self._counts

    @property
    def sizes(self) -> Mapping[Place, int]:
        """The bytes in memory of the rows of each place."""
        return self._sizes

    def add(self, place: Place, rows: pa.Table) -> None:
        """Add rows of a place."""
        if not rows.num_rows:
            return
        size = rows.nbytes
        self._counts[place] = self._counts.get(place, 0) + rows.num_rows
        self._sizes[place] = self._sizes.get(place, 0) + size
        self._waiting.setdefault(place, []).extend(in_parts(rows) if size > row_selection.PART_BYTES else [rows])
        self._waiting_bytes += size
        if self._waiting_bytes > self._memory:
            self._spill()

    def read(self, place: Place, start: int = 0, count: int | None = None) -> Iterator[pa.Table]:
        """`count` rows of a place from row `start` on; None for all of them. Small tables are joined."""
        return joined(self._read(place, start, count))

    def _read(self, place: Place, start: int, count: int | None) -> Iterator[pa.Table]:
        count = self._counts.get(place, 0) - start if count is None else count
        for rows, table in self._parts(place):
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

    def _parts(self, place: Place) -> Iterator[tuple[int, Callable[[], pa.Table]]]:
        """The tables of a place in order: the number of rows, and a function that gives the table."""
        for rows, number in self._stored.get(place, ()):
            yield rows, partial(self._tables.read, number)
        for table in self._waiting.get(place, ()):
            yield table.num_rows, partial(_itself, table)

    def _spill(self) -> None:
        for place, tables in self._waiting.items():
            for some in gathered(tables, _itself, sys.maxsize, row_selection.PART_BYTES):
                table, number = with_few_chunks(pa.concat_tables(some)), len(self._tables)
                self.spilled_bytes += self._tables.append(table)
                self._stored.setdefault(place, []).append((table.num_rows, number))
        self._waiting, self._waiting_bytes = {}, 0


def joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in fewer tables: all that follows costs as much for few rows as for many."""
    for some in gathered(tables, _itself, _JOINED_ROWS, _JOINED_BYTES):
        yield with_few_chunks(pa.concat_tables(some)) if len(some) > 1 else some[0]


def _itself(table: pa.Table) -> pa.Table:
    return table
