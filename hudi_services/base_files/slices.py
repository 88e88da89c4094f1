"""Reading file slices: the interface between code that needs the rows of a slice and the files that hold them.

    SliceSource    opens slices; is sent with every task to the executors
    SliceReader    one open slice: schema, rows, record keys, row groups to copy, statistics
    SliceFacts     the facts of a slice that are known without its rows

`base_file_slices.BaseFileSlices` is the source for slices that are a base file alone. Slices with log files need a
source of their own, which merges them; no module above opens a base file by itself.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..concurrency import at_once
from ..model import FileSlice, LogCounts

# A command that opens no slice does without Arrow.
if TYPE_CHECKING:
    import pyarrow as pa

    from ..calendars.calendar import FileCalendar
    from ..parquet.chunk_stats import ColumnStats
    from ..parquet.file_schema import FileSchema
    from ..parquet.footer import RowGroup
    from ..schema.schema_history import KnownHistory
    from .file_reader import BaseFileReader

RECORD_KEY = "_hoodie_record_key"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredRowGroup:
    """One row group of a base file whose rows are rows of the slice as they are: the row group may be copied."""

    reader: "BaseFileReader"
    index: int

    @property
    def facts(self) -> "RowGroup":
        return self.reader.row_groups[self.index]

    @property
    def rows(self) -> int:
        return self.facts.num_rows

    @property
    def compressed_bytes(self) -> int:
        return self.facts.compressed_bytes

    @property
    def uncompressed_bytes(self) -> int:
        return self.facts.uncompressed_bytes

    @property
    def encoded(self) -> dict[tuple[str, ...], int]:
        """The uncompressed bytes of each leaf."""
        return {chunk.path: chunk.uncompressed_bytes for chunk in self.facts.columns}

    @property
    def codecs(self) -> frozenset[int]:
        """The codecs of its chunks, by their numbers in the footer."""
        return frozenset(chunk.codec for chunk in self.facts.columns)

    @property
    def created_by(self) -> str:
        """The writer that the footer of its file names."""
        return self.reader.created_by

    def first_piece(self, target: "FileSchema", dictionary: Collection[str], at_once: int) -> "pa.Table":
        """Its first rows, as a sample; the arguments are those of `BaseFileReader.pieces`."""
        pieces = self.reader.pieces(self.index, target=target, dictionary=dictionary, at_once=at_once)
        piece = next(pieces)
        pieces.close()
        self.reader.release()
        return piece


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive rows of a slice: those of one row group of its base file, or those that only log records have."""

    slice: "SliceReader"
    index: int | None
    """The number of the row group; None for the rows that only log records have."""
    rows: int
    """Rows that readers see."""
    stored_bytes: int
    """Bytes of the rows as they are stored in a base file; an estimate when rows must be merged."""
    stored: StoredRowGroup | None
    """The row group, when all its rows are rows of the slice as they are stored; None when they must be decoded."""
    within: tuple[int, int] | None = None
    """Of a segment that is cut: the first of its row group's rows, and the one after the last."""


@dataclass(frozen=True, slots=True)
class BloomBits:
    """The bloom filter of record keys as a base file holds it."""

    type_code: str
    bits: bytes


class SliceFacts(Protocol):
    """The facts of a slice that are known without reading its rows. Reading a property raises CorruptFile."""

    @property
    def rows(self) -> int:
        """Rows that readers see."""

    @property
    def most_rows(self) -> int:
        """Rows and log records: no fewer than `rows`, and known without a merge."""

    @property
    def row_groups(self) -> int: ...

    @property
    def columns(self) -> "tuple[ColumnStats, ...]":
        """The statistics of its columns, with ranges where the files have them."""

    @property
    def bloom(self) -> BloomBits | None:
        """Its bloom filter; None when there is none."""


class SliceReader(Protocol):
    """One open file slice. Every method that reads raises CorruptFile and StorageError."""

    @property
    def path(self) -> str:
        """The path of its base file, relative to the table."""

    @property
    def full_path(self) -> str:
        """The full path of its base file, for messages."""

    @property
    def schema(self) -> "FileSchema": ...

    @property
    def num_rows(self) -> int:
        """Rows that readers see."""

    @property
    def log_counts(self) -> LogCounts:
        """What its log files hold, and what their records do; all 0 without log files."""

    @property
    def spilled_bytes(self) -> int:
        """Bytes that its reads have written to the local disk."""

    @property
    def size(self) -> int:
        """Bytes of its files."""

    @property
    def encoded_bytes(self) -> int:
        """Bytes of its rows as they are encoded, before compression."""

    @property
    def stored_bytes(self) -> int:
        """Bytes of its rows as they are stored in a base file; an estimate when rows must be merged."""

    @property
    def overhead_bytes(self) -> int:
        """Bytes of its files that are neither rows nor bloom filter."""

    @property
    def key_values(self) -> Mapping[str, str]:
        """The key/value metadata of the footer, without the bloom filter."""

    @property
    def calendar(self) -> "FileCalendar":
        """The calendar of the dates and timestamps of `tables`."""

    @property
    def is_converted(self) -> bool:
        """Whether dates, timestamps or columns are changed when they are read, so that no row group may be copied."""

    def gregorian(self) -> "SliceReader":
        """The slice with dates and timestamps of the proleptic Gregorian calendar.

        Raises UnsupportedTable where what they are depends on the reader (`FileCalendar.rebase`).
        """

    @property
    def dictionary_columns(self) -> frozenset[str]:
        """Top-level string columns that are best read as dictionaries."""

    @property
    def plain_leaves(self) -> frozenset[str]:
        """Dotted paths of leaves for which a dictionary does not pay."""

    @property
    def stored(self) -> tuple[StoredRowGroup, ...]:
        """The row groups that hold all rows as they are stored; () when rows must be merged, or are rebased."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All rows, in order."""

    def tables(
        self,
        columns: Sequence[str] | None = None,
        target: "FileSchema | None" = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> "Iterator[tuple[pa.Table, pa.Table]]":
        """All rows, in pieces as those of `BaseFileReader.pieces`: as they were read, and in the raw form of `target`.

        `columns`: only these (default: all of `target`). `dictionary`: string columns to give as dictionaries.
        `at_once`: how many bytes of stored data may be held.
        """

    def checked_tables(
        self,
        columns: Sequence[str],
        target: "FileSchema",
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> "CheckedTables":
        """The tables of `tables` by segment, and what they must hold where rows are merged."""

    def record_keys(self) -> "Iterator[pa.ChunkedArray]":
        """The record keys as strings, some at a time. Raises CorruptFile for null keys, too."""

    def column_stats(self, complete: Collection[str] = ()) -> "tuple[ColumnStats, ...]":
        """Statistics of every column; for `complete` (dotted paths) with the range, if need be from the values."""

    def release(self) -> None:
        """Free the memory that reads have taken."""


class CheckedTables(Protocol):
    """The pieces of `SliceReader.tables`; of merged rows, other code than that which merges them counts what they hold.

    Segments are read once, in order.
    """

    @property
    def merges(self) -> bool:
        """Whether rows are merged: then `stored` must see each segment that is copied, and `expected` counts the rest.

        Otherwise rows are what they are read as.
        """

    def rows(self, segment: Segment) -> "Iterator[tuple[pa.Table, pa.Table]]":
        """The pieces of one segment."""

    def stored(self, segment: Segment) -> "Iterator[pa.Table]":
        """Pieces of a segment that is copied as it is stored: its record keys, and what decides about log records."""

    def expected(self) -> tuple[int, int]:
        """The number of merged rows that were not copied, and the sum of their hashes modulo 2**64; at the end.

        Raises CheckFailed when log records change rows that were copied.
        """


class SliceSource(Protocol):
    """Opens the slices of one table; a plain value, which is sent to the executors."""

    @property
    def history(self) -> "KnownHistory":
        """The versions of the table's schema, in whose newest one the rows are given."""

    def open(self, file_slice: FileSlice) -> SliceReader:
        """A reader of a slice. Raises CorruptFile, NotFound and the other StorageErrors, and UnsupportedTable."""

    def facts(self, file_slice: FileSlice, take: Callable[[SliceFacts], T]) -> T:
        """The result of `take` for the facts of a slice, then released. Raises CorruptFile and StorageError."""

    def as_of(self, instant: str | None, memory: int) -> "SliceSource":
        """A source that reads log records of no later instant, and holds at most `memory` bytes of them for a slice.

        None: a source that reads log records of all instants.
        """

    def columns_at(self, instant: str) -> "SliceSource":
        """A source whose rows have the columns of the table at an instant, where there is a schema history."""

    def counting(self, instant: str) -> "SliceSource":
        """A source that also reads log records of `instant`, as if it were completed."""

    def checked(self, file_slice: FileSlice) -> FileSlice:
        """The slice, with what was read of it. Raises UnsupportedTable or CorruptFile for log files that cannot be
        merged.

        The properties of the table and the headers of the log blocks decide; records are not read.
        """


def describe(source: SliceSource, slices: Sequence[FileSlice], take: Callable[[FileSlice, SliceFacts], T]) -> list[T]:
    """The results of `take` for the facts of each slice, in order; several slices are read, and `take` runs, at once.

    Raises what `SliceSource.facts` raises.
    """
    return at_once(lambda one: source.facts(one, partial(take, one)), slices)
