"""Reads base files row group by row group, in the raw form that is written back unchanged.

pyarrow reads the pages, through a footer in the raw form (parquet.file_schema) and through ranges: one request reads
the wanted columns of a row group, so memory holds one row group's bytes and its Arrow form, or a piece of that. Every
page that pyarrow gets is checked here (parquet.page_checks); pyarrow's own check would take five times as long for
the checksum, leave out the headers, and not name the column.
"""

import copy
import functools
import io
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ..calendars.calendar import FileCalendar
from ..calendars.calendar_rebase import Rebase
from ..errors import CorruptFile, HudiServicesError, UnsupportedTable
from ..parquet.chunk_stats import ColumnStats, column_stats
from ..parquet.conversion import converted_table
from ..parquet.file_schema import ColumnMap, FileSchema
from ..parquet.footer import Footer, RowGroup, read_footer
from ..parquet.node_types import parquet_type
from ..parquet.page_checks import ChunkWalk
from ..parquet.page_header import DAMAGED_HINT, ChunkPlace
from ..parquet.range_source import RangeSource
from ..parquet.schema_versions import EvolvedSchema
from ..schema.column_type import Kind
from ..small_files import FileRanges
from ..storage import FileReads
from .record_keys import BLOOM_FILTER

# A dictionary that is most of its column does not pay when it is merged with those of other files.
_SMALL_DICTIONARY = 64 << 10
# Bytes of a piece of a row group in Arrow form; pyarrow decodes half of that at once.
_PIECE_BYTES = 16 << 20
# Each column of a piece costs as much as some thousand values: pieces of many columns are larger, where memory allows.
_BYTES_OF_COLUMN, _MOST_PIECE_BYTES, _PIECES_IN_MEMORY = 64 << 10, 64 << 20, 8
_MOST_BATCH_ROWS, _LEAST_BATCH_ROWS = 8192, 64
_LEAST_BUFFER, _MOST_BUFFER = 64 << 10, 4 << 20


R = TypeVar("R", bound="BaseFileReader")


def open_base_file(storage: FileReads, path: str, size: int | None = None) -> "BaseFileReader":
    """Read the footer of the parquet file at `path`, see `BaseFileReader.open`."""
    return BaseFileReader.open(storage, path, size)


class BaseFileReader:
    """One open base file. `row_groups` are the facts of its footer; data is read on demand."""

    @classmethod
    def open(cls: type[R], storage: FileReads, path: str, size: int | None = None, content: bytes = b"") -> R:
        """Read the footer of the parquet file at `path` (`size` in bytes, and the whole `content`, save requests).

        Raises CorruptFile, NotFound and the other StorageErrors; UnsupportedTable for types that pyarrow does not know.
        """
        footer, ranges = read_footer(storage, path, size, content)
        return cls(path, ranges, footer)

    def __init__(self, path: str, ranges: FileRanges, footer: Footer) -> None:
        self.path = path
        self.size = ranges.size
        self.num_rows = footer.num_rows
        self.schema = self._stored = FileSchema.of(footer)
        self.created_by = footer.created_by
        self.ordered_leaves = footer.ordered_leaves
        # Without the bloom filter: it may be most of a footer, and a group has many files.
        self.key_values: Mapping[str, str] = {k: v for k, v in footer.key_values.items() if k != BLOOM_FILTER}
        self.bloom_bytes = len(footer.key_values.get(BLOOM_FILTER, ""))
        """Bytes of the text of its bloom filter; 0 when it has none."""
        self.row_groups: tuple[RowGroup, ...] = footer.row_groups
        self.full_path = footer.path
        self.calendar = FileCalendar(self.full_path, self.key_values, self.schema, self.row_groups)
        """The calendar of the dates and timestamps that it gives."""
        self._rebase: Rebase | None = None
        self._evolved: EvolvedSchema | None = None
        self._check()
        self._footer = self._raw_footer(footer)
        self._source = RangeSource(ranges)
        # Not a method: a reference cycle would keep this object and its footer until the garbage collector runs.
        self._open_as = functools.lru_cache(maxsize=2)(functools.partial(_open, self._source, self._footer))

    def _check(self) -> None:
        paths = [leaf.path for leaf in self.schema.leaves]
        for number, group in enumerate(self.row_groups):
            if [c.path for c in group.columns] != paths:
                raise CorruptFile(f"{self.full_path}: the columns of row group {number} do not follow the schema")
            if any(c.end > self.size for c in group.columns):
                raise CorruptFile(f"{self.full_path}: row group {number} ends after the file, at byte {self.size}")
        try:
            _ = self.schema.arrow
        except UnsupportedTable as e:
            raise UnsupportedTable(f"{self.full_path}: {e.message}") from e

    def _raw_footer(self, footer: Footer) -> bytes:
        """`footer` in the raw form, encoded; it is changed in place, so its facts must be taken from it before."""
        raw = self.schema.raw
        footer.set_schema(raw.elements)
        for index, (leaf, true) in enumerate(zip(raw.leaves, self.schema.leaves, strict=True)):
            if leaf.physical is not true.physical:
                footer.set_leaf(index, leaf.path, leaf.physical, keep_statistics=False)
        # Also drops ARROW:schema, which would bring back types other than the footer's.
        footer.set_key_values({})
        data = footer.as_file()
        with self._pyarrow_errors():
            # Refused here if need be. The result is not kept: it is many times larger than the bytes.
            pq.read_metadata(io.BytesIO(data))
        return data

    @property
    def dictionary_columns(self) -> frozenset[str]:
        """Top-level string columns to read as dictionaries: all pages are dictionary encoded, and values repeat."""
        found = (
            leaf.path[0]
            for i, leaf in enumerate(self._stored.leaves)
            if len(leaf.path) == 1
            and leaf.max_rep == 0
            and parquet_type(leaf.node).kind is Kind.STRING
            # JSON is a string too, but its raw form is bytes.
            and pa.types.is_string(self._stored.arrow.field(leaf.path[0]).type)
            and all(_repeats(g, i) for g in self.row_groups)
        )
        return frozenset(found) if self._evolved is None else self._evolved.texts.intersection(self._given(found))

    @property
    def plain_leaves(self) -> frozenset[str]:
        """Dotted paths of leaves with pages that are not dictionary encoded: the writer gave the dictionary up."""
        named = self._stored if self._evolved is None else self._evolved.named
        return frozenset(
            leaf.dotted
            for i, leaf in enumerate(named.leaves)
            if any(not g.columns[i].only_dictionary for g in self.row_groups)
        )

    def column_stats(self) -> tuple[ColumnStats, ...]:
        """The statistics of its columns; none of a file whose columns have changed since."""
        return column_stats(self._stored, self.row_groups) if self._evolved is None else ()

    @property
    def is_converted(self) -> bool:
        """Whether values or columns are changed when they are read: pages do not hold them as they are given."""
        return self._rebase is not None or self._evolved is not None

    @property
    def is_evolved(self) -> bool:
        """Whether its columns are those of a later version of the schema."""
        return self._evolved is not None

    def gregorian(self: R) -> R:
        """This file with Gregorian dates and timestamps. Raises UnsupportedTable (`FileCalendar.rebase`)."""
        rebase = self.calendar.rebase()
        if rebase is None:
            return self
        found = copy.copy(self)
        found._rebase, found.calendar = rebase, self.calendar.converted()
        return found

    def evolved(self: R, evolved: EvolvedSchema | None) -> R:
        """This file with the columns that it has in a later version of the schema, if it has other ones there.

        Its dates and timestamps are Gregorian then. Raises as `gregorian`.
        """
        if evolved is None:
            return self
        found = copy.copy(self.gregorian())
        found._evolved, found.schema = evolved, evolved.given
        entries = found.calendar.converted().key_values
        found.calendar = FileCalendar(self.full_path, entries, evolved.given, is_converted=True)
        return found

    def _as_given(self, read: pa.Table) -> pa.Table:
        read = read if self._rebase is None else self._rebase.table(read, self._stored, self.full_path)
        return read if self._evolved is None else self._evolved.table(read)

    def _given(self, stored: Iterable[str]) -> list[str]:
        """The names of columns that have these names in the file; those that are no longer there are left out."""
        if self._evolved is None:
            return list(stored)
        known = set(stored)
        return [name for name, own in self._evolved.stored.items() if own in known]

    def read_row_group(
        self,
        index: int,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
    ) -> pa.Table:
        """Row group `index` in the raw form of `target` (default: the file's own schema), columns in its order.

        `columns`: only these, in this order. `dictionary`: string columns to return as dictionary arrays where they
        are not converted. Columns that the file lacks are nulls. Raises CorruptFile for unreadable pages.
        """
        target = self.schema if target is None else target
        wanted, own = self._columns(columns, target)
        with self._pyarrow_errors():
            read = self._read(index, own, self._encoded(dictionary, own))
            return converted_table(read, self.row_groups[index].num_rows, self.schema, wanted, target)

    def pieces(
        self,
        index: int,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> Generator[pa.Table, None, None]:
        """The rows of `read_row_group` in tables of about 16 MiB, so that not all of them must be in memory.

        Of hundreds of columns a table has up to 64 MiB, where `at_once` is much more.

        `at_once`: a stored row group of at most this many bytes is held in memory; of a larger one only buffers of its
        columns are.
        """
        for _, converted in self.pieces_as_read(index, columns, target, dictionary, at_once=at_once):
            yield converted

    def pieces_as_read(
        self,
        index: int,
        columns: Sequence[str] | None = None,
        target: FileSchema | None = None,
        dictionary: Collection[str] = (),
        *,
        at_once: int | None = None,
    ) -> Generator[tuple[pa.Table, pa.Table], None, None]:
        """Pairs: columns of the file as they were read, in its own raw form; and the one of `pieces` made of them."""
        target = self.schema if target is None else target
        wanted, own = self._columns(columns, target)
        if not own:
            yield pa.table({}), self.read_row_group(index, columns, target)
            return
        with self._pyarrow_errors():
            for read in self._read_pieces(index, own, self._encoded(dictionary, own), at_once):
                yield read, converted_table(read, read.num_rows, self.schema, wanted, target)

    def release(self) -> None:
        """Free the memory that reads have taken; the next read builds its state again."""
        self._open_as.cache_clear()

    def _columns(self, columns: Sequence[str] | None, target: FileSchema) -> tuple[ColumnMap, list[str]]:
        """The columns to give, all of `target` when none are named, and the file's columns that have their values."""
        wanted = self.schema.columns_of(target.columns if columns is None else columns)
        found = [given for given in wanted.values() if given is not None]
        return wanted, found if self._evolved is None else [self._evolved.stored[given] for given in found]

    def _encoded(self, dictionary: Collection[str], own: Sequence[str]) -> frozenset[str]:
        """Those of the file's columns `own` that are read as dictionaries."""
        names = dictionary
        if self._evolved is not None:
            names = [self._evolved.stored[name] for name in self._evolved.texts.intersection(dictionary)]
        return frozenset(names).intersection(own)

    @contextmanager
    def held(self, index: int, *, page_indexes: bool = False) -> Iterator[None]:
        """A context that holds row group `index` (and its page indexes) in memory, read by a request or two; nests."""
        if self._source.holds:
            yield
            return
        chunks = self.row_groups[index].columns
        ranges = [(c.start, c.end) for c in chunks]
        places = [place for c in chunks for place in (c.column_index, c.offset_index) if place is not None]
        for place in places if page_indexes else ():
            if sum(place) <= self.size:
                ranges.append((place[0], sum(place)))
        self._source.load(sorted(ranges))
        self._source.holds = True
        try:
            yield
        finally:
            self._source.holds = False
            self._source.forget()

    def place(self, group: int, leaf: int) -> ChunkPlace:
        """The place of the chunk of a leaf in a row group, for messages."""
        start = self.row_groups[group].columns[leaf].start
        return ChunkPlace(self.full_path, self._stored.leaves[leaf].dotted, group, start)

    def read_bytes(self, start: int, length: int) -> bytes:
        """Bytes of the file as they are."""
        self._source.seek(start)
        return bytes(self._source.read(length))

    def _read(self, index: int, columns: Sequence[str], dictionary: frozenset[str]) -> pa.Table:
        if not columns:
            return pa.table({})
        walks = self._walks(index, columns)
        self._source.load(sorted((walk.position, walk.end) for walk in walks))
        try:
            self._finish(walks)
            read = self._open_as(dictionary).read_row_group(index, columns=list(columns), use_threads=False)
            self._check_rows(index, read.num_rows)
            return self._as_given(read)
        finally:
            self._source.forget()

    def _read_pieces(
        self, index: int, columns: Sequence[str], dictionary: frozenset[str], at_once: int | None
    ) -> Iterator[pa.Table]:
        wanted, walks = set(columns), self._walks(index, columns)
        chunks = [c for c in self.row_groups[index].columns if c.path[0] in wanted]
        stored = sum(c.end - c.start for c in chunks)
        encoded = max(1, sum(c.uncompressed_bytes for c in chunks) // max(1, self.row_groups[index].num_rows))
        piece = _piece_bytes(len(chunks), at_once)
        batch_rows = min(_MOST_BATCH_ROWS, max(_LEAST_BATCH_ROWS, piece // 2 // encoded))
        loaded = at_once is None or stored <= at_once or self._source.holds
        if at_once is None or loaded:
            self._source.load(sorted((c.start, c.end) for c in chunks))
            file = self._open_as(dictionary)
        else:
            file = _open(
                self._source,
                self._footer,
                dictionary,
                buffer_size=min(_MOST_BUFFER, max(_LEAST_BUFFER, at_once // len(chunks))),
            )
            self._source.walks = walks
        try:
            if loaded:
                self._finish(walks)
            batches: list[pa.RecordBatch] = []
            size = rows = 0
            for batch in file.iter_batches(batch_rows, row_groups=[index], columns=list(columns), use_threads=False):
                batches.append(batch)
                size += batch.nbytes
                rows += batch.num_rows
                if size >= piece:
                    yield self._as_given(pa.Table.from_batches(batches))
                    batches, size = [], 0
            if not loaded:
                self._finish(walks)
            self._check_rows(index, rows)
            if batches:
                yield self._as_given(pa.Table.from_batches(batches))
        finally:
            self._source.forget()

    def _walks(self, index: int, columns: Collection[str]) -> list[ChunkWalk]:
        """The checks of the chunks of these columns; none for a row group without rows."""
        group, wanted = self.row_groups[index], set(columns)
        if not group.num_rows:
            return []
        return [
            ChunkWalk(self.place(index, i), leaf, chunk, group.num_rows)
            for i, (leaf, chunk) in enumerate(zip(self._stored.leaves, group.columns, strict=True))
            if chunk.path[0] in wanted
        ]

    def _finish(self, walks: Sequence[ChunkWalk]) -> None:
        for walk in walks:
            walk.finish(self._source.read_at)

    def _check_rows(self, index: int, rows: int) -> None:
        """Raise CorruptFile when rows are missing: pyarrow takes a page without values for the end."""
        lacking = self.row_groups[index].num_rows - rows
        if lacking:
            raise CorruptFile(f"row group {index} lacks {lacking} of the rows of its footer", hint=DAMAGED_HINT)

    @contextmanager
    def _pyarrow_errors(self) -> Iterator[None]:
        try:
            yield
        except CorruptFile as e:
            if self.full_path in e.message:
                raise
            raise CorruptFile(f"{self.full_path}: {e.message}", hint=e.hint) from e
        except HudiServicesError:
            raise
        except (pa.ArrowException, OSError, MemoryError, ValueError, OverflowError) as e:
            text = str(e)
            reason = text.splitlines()[0] if text else type(e).__name__
            raise CorruptFile(f"{self.full_path} cannot be read: {reason}", hint=DAMAGED_HINT) from e


def _piece_bytes(leaves: int, at_once: int | None) -> int:
    """The bytes of a piece of so many leaves, of a file of which `at_once` bytes may be held."""
    room = 0 if at_once is None else at_once // _PIECES_IN_MEMORY
    return max(_PIECE_BYTES, min(_MOST_PIECE_BYTES, room, leaves * _BYTES_OF_COLUMN))


def _repeats(group: RowGroup, index: int) -> bool:
    chunk = group.columns[index]
    return chunk.only_dictionary and chunk.dictionary_bytes <= max(_SMALL_DICTIONARY, chunk.compressed_bytes // 2)


def _open(source: "RangeSource", footer: bytes, dictionary: frozenset[str], buffer_size: int = 0) -> pq.ParquetFile:
    metadata = pq.read_metadata(io.BytesIO(footer))
    return pq.ParquetFile(
        source, metadata=metadata, read_dictionary=sorted(dictionary) or None, buffer_size=buffer_size, pre_buffer=False
    )
