"""The rows of one slice while its group is rewritten: each row is counted once, before anybody else has it."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from ..base_files.slices import CheckedTables, Segment, SliceReader
from ..codecs.row_hash import all_row_hashes
from ..errors import CheckFailed
from ..parquet.file_schema import FileSchema
from ..rows.conservation import Checksum, checksum, sum_of
from ..rows.conversion_check import ConversionCheck
from ..rows.file_output import CHECK, Stopwatch
from ..rows.file_sizing import segments_of
from .columns import Columns

HASH = "hudi_services hash"
"""The column of the hashes of rows that are handed on."""


class CountedSlice:
    """Segments of a slice, which are taken once, in their order: read, or copied as they are stored.

    What is not taken, or not read to its end, is read and counted by `finish`: so `counted` is of all rows of the
    slice, whatever becomes of them.
    """

    def __init__(
        self,
        reader: SliceReader,
        segments: Iterable[Segment],
        columns: Columns,
        target: FileSchema,
        at_once: int,
        clock: Stopwatch,
    ) -> None:
        """`segments` of the slice are wanted; `at_once` as for `SliceReader.tables`."""
        self.counted = Checksum()
        self._reader = reader
        self._columns = columns
        self._target = target
        self._at_once = at_once
        self._clock = clock
        self._segments = tuple(segments)
        self._left = deque(self._segments)
        self._is_begun = self._is_done = self._keeps_hashes = False
        self._check = ConversionCheck(reader.full_path, reader.schema, target, reader.schema.columns_of(columns.kept))
        self._checked: CheckedTables | None = None
        self._pieces: Iterator[pa.Table] = iter(())
        """The rest of the segment that is read."""

    def tables(self) -> Iterator[pa.Table]:
        """All rows, in pieces, in the raw form of the target; they are counted the first time."""
        if self._is_begun:
            self.finish()
            yield from self.values(self._columns.kept)
        else:
            for one in [*self._left]:
                yield from self.take(one)

    def hashed(self) -> Iterator[pa.Table]:
        """As `tables`, the first time, with the hash of each row in the column `HASH`."""
        self._keeps_hashes = True
        return self.tables()

    def values(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of all rows that are wanted, in the raw form of the target; they are not counted."""
        self._complete()
        dictionary = self._columns.dictionary.intersection(columns)
        if self._segments == tuple(segments_of([self._reader])):
            pieces = self._reader.tables(columns, self._target, dictionary, at_once=self._at_once)
        else:
            checked = self._reader.checked_tables(columns, self._target, dictionary, at_once=self._at_once)
            pieces = (piece for one in self._segments for piece in _within(checked.rows(one), one.within))
        for _, table in self._clock.each("read", pieces):
            yield table
        self._reader.release()

    def take(self, segment: Segment) -> Iterator[pa.Table]:
        """The rows of the next segment. Raises CheckFailed for any other segment."""
        tables = self._begin(segment)
        # No generator: it goes on for `_complete` when the one that reads it is closed.
        self._pieces = map(self._count, self._clock.each("read", _within(tables.rows(segment), segment.within)))
        yield from self._pieces
        self._end()

    def copied(self, segment: Segment, fingerprint: int, *, needs_keys: bool) -> Iterator[pa.Table]:
        """Count the next segment, which is copied as it is stored; gives its record keys, if needed or known.

        Raises CheckFailed for any other segment, and when log records change it.
        """
        tables = self._begin(segment)
        self.counted += Checksum(segment.rows, fingerprint)
        if needs_keys or tables.merges:
            yield from self._clock.each(CHECK if tables.merges else "keys", tables.stored(segment))
        self._end()

    def finish(self) -> Checksum:
        """Read and count what is left, and free the memory that reads have taken; the checksum of all rows."""
        self._complete()
        while self._left:
            for _ in self.take(self._left[0]):
                pass
        self._end()
        return self.counted

    def _begin(self, segment: Segment) -> CheckedTables:
        self._complete()
        if not self._left or self._left[0].index != segment.index:
            raise CheckFailed(f"{self._reader.full_path}: a row group was to be rewritten twice, or out of its order")
        self._left.popleft()
        return self._tables()

    def _tables(self) -> CheckedTables:
        self._is_begun = True
        if self._checked is None:
            with self._clock.phase(CHECK):
                columns = self._columns
                self._checked = self._reader.checked_tables(
                    columns.kept, self._target, columns.dictionary, at_once=self._at_once
                )
        return self._checked

    def _count(self, piece: tuple[pa.Table, pa.Table]) -> pa.Table:
        with self._clock.phase(CHECK):
            rows, merges = self._check.rows(*piece), self._tables().merges
            if not self._keeps_hashes:
                self.counted += Checksum() if merges else checksum(rows)
                return piece[1]
            hashes = all_row_hashes(piece[1] if merges else rows)
            self.counted += Checksum() if merges else sum_of(hashes)
            return piece[1].append_column(HASH, pa.array(hashes))

    def _complete(self) -> None:
        """Read and count the rest of the segment that is read."""
        for _ in self._pieces:
            pass

    def _end(self) -> None:
        if self._left or self._is_done:
            return
        self._is_done = True
        with self._clock.phase(CHECK):
            # Of no segments, too: no rows, says the merge, and other code must say so.
            self.counted += Checksum(*self._tables().expected())
        self._checked = None
        self._reader.release()


def _within(
    pieces: Iterator[tuple[pa.Table, pa.Table]], within: tuple[int, int] | None
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The pieces of a segment, without rows that belong to other parts of its group."""
    if within is None:
        yield from pieces
        return
    first, end = within
    at = 0
    for read, converted in pieces:
        low, high = max(0, first - at), min(converted.num_rows, end - at)
        if low < high:
            # A table without columns of the file has no rows.
            yield read.slice(low, high - low), converted.slice(low, high - low)
        at += converted.num_rows
        if at >= end:
            return
