"""An open slice without log files, which is its base file, and the facts in the footer of one."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..errors import CorruptFile
from ..model import LogCounts
from ..parquet.chunk_stats import ColumnStats, column_stats
from ..parquet.file_schema import FileSchema
from ..parquet.footer import Footer
from .bloom import SIMPLE
from .chunk_bounds import complete_stats
from .file_reader import BaseFileReader
from .record_keys import BLOOM_FILTER, BLOOM_FILTER_TYPE
from .slices import RECORD_KEY, BloomBits, CheckedTables, Segment, StoredRowGroup


class BaseFileSlice(BaseFileReader):
    """A slice without log files: its base file."""

    makes_keys = False
    """Whether its record keys are not stored, but made of its columns."""
    log_counts = LogCounts()
    spilled_bytes = 0

    @property
    def encoded_bytes(self) -> int:
        return sum(group.uncompressed_bytes for group in self.row_groups)

    @property
    def stored_bytes(self) -> int:
        return sum(group.compressed_bytes for group in self.row_groups)

    @property
    def overhead_bytes(self) -> int:
        return self.size - self.bloom_bytes - self.stored_bytes

    @property
    def stored(self) -> tuple[StoredRowGroup, ...]:
        return () if self.is_converted else tuple(StoredRowGroup(self, i) for i in range(len(self.row_groups)))

    @property
    def segments(self) -> tuple[Segment, ...]:
        stored = self.stored or (None,) * len(self.row_groups)
        facts = enumerate(zip(self.row_groups, stored, strict=True))
        return tuple(Segment(self, i, group.num_rows, group.compressed_bytes, one) for i, (group, one) in facts)

    def tables(
        self,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        for group in range(len(self.row_groups)):
            yield from self.pieces_as_read(group, columns, target, dictionary, at_once=at_once)

    def checked_tables(
        self,
        columns: Sequence[str],
        target: FileSchema,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> CheckedTables:
        return _Stored(self, columns, target, dictionary, at_once)

    def record_keys(self) -> Iterator[pa.ChunkedArray]:
        for group in range(len(self.row_groups)):
            keys = self.read_row_group(group, [RECORD_KEY]).column(RECORD_KEY)
            if keys.null_count:
                raise CorruptFile(f"{self.full_path} has rows without a record key")
            yield keys.cast(pa.string())

    def column_stats(self, complete: Collection[str] = ()) -> tuple[ColumnStats, ...]:
        return complete_stats(self, complete) if complete and not self.is_evolved else super().column_stats()


@dataclass(frozen=True, slots=True)
class _Stored:
    """The tables of a slice whose rows are those of its base file."""

    reader: BaseFileSlice
    columns: Sequence[str]
    target: FileSchema
    dictionary: Collection[str]
    at_once: int | None
    merges: bool = False

    def rows(self, segment: Segment) -> Iterator[tuple[pa.Table, pa.Table]]:
        assert segment.index is not None, "all rows are in row groups"
        return self.reader.pieces_as_read(
            segment.index, self.columns, self.target, self.dictionary, at_once=self.at_once
        )

    def stored(self, segment: Segment) -> Iterator[pa.Table]:
        assert segment.index is not None, "all rows are in row groups"
        yield self.reader.read_row_group(segment.index, [RECORD_KEY])

    def expected(self) -> tuple[int, int]:
        return 0, 0


class FooterFacts:
    """The facts in the footer of a base file."""

    def __init__(self, footer: Footer) -> None:
        self._footer = footer
        self.rows = self.most_rows = footer.num_rows
        self.row_groups = len(footer.row_groups)

    @property
    def columns(self) -> tuple[ColumnStats, ...]:
        return column_stats(FileSchema.of(self._footer), self._footer.row_groups)

    @property
    def bloom(self) -> BloomBits | None:
        bits = self._footer.key_values.get(BLOOM_FILTER)
        if bits is None:
            return None
        return BloomBits(self._footer.key_values.get(BLOOM_FILTER_TYPE, SIMPLE), bits.encode())
