"""The footers of base files, read concurrently, and the values of columns whose range a footer does not have."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from ..errors import CorruptFile, NotFound, UnsupportedTable
from ..files.slices import SliceFacts, SliceSource
from ..metadata.bloom_filters import bloom_record
from ..metadata.records.keys import COLUMN_STATS
from ..metadata.records.model import BloomRecord, StatsRecord
from ..metadata.statistics.column_stats import NewFile, column_records, is_exact, untold_columns
from ..metadata.statistics.indexed_columns import IndexColumns, index_columns
from ..metadata.table import MetadataTable
from ..model import BaseFile, FileSlice

_FOOTERS_AT_ONCE = 16
_VALUES_AT_ONCE = 4
"""Files whose values are read at once; each has a piece of a column in memory."""


@dataclass(frozen=True, slots=True)
class Described:
    """A base file with the column_stats records that a commit would write for it.

    `bloom` is a digest of its bloom filter (a filter has hundreds of kilobytes); None without a filter.
    """

    file: BaseFile
    is_live: bool
    """Whether the file belongs to the newest slice of a file group that was not replaced."""
    row_groups: int
    records: Sequence[StatsRecord]
    bloom: bytes | None
    bounded: frozenset[str] = frozenset()
    """Columns whose bounds hold the values but are not from the footer: the bounds of a stored record may be wider."""
    unreadable: tuple[str, ...] = ()
    """Indexed columns whose range is not known: no record is expected for them."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A base file whose footer cannot be read."""

    file: BaseFile


@dataclass(frozen=True, slots=True)
class _Read:
    """A file as in `Described`, before the indexed columns are known."""

    file: BaseFile
    is_live: bool
    row_groups: int
    stats: NewFile
    bloom: bytes | None
    from_values: frozenset[str] = field(default=frozenset())
    """Columns whose ranges are not from the footer."""

    def untold(self, indexed: IndexColumns) -> frozenset[str]:
        """Columns for which a record is expected, and whose range is not known."""
        return frozenset(untold_columns(self.stats, self._columns(indexed), typed=indexed.typed))

    def describe(self, indexed: IndexColumns) -> Described:
        records = column_records(self.stats, self._columns(indexed), typed=indexed.typed)
        widened = {one.column for one in self.stats.columns if not is_exact(one.type, typed=indexed.typed)}
        bounded, unreadable = self.from_values | widened, tuple(sorted(self.untold(indexed)))
        return Described(self.file, self.is_live, self.row_groups, records, self.bloom, bounded, unreadable)

    def _columns(self, indexed: IndexColumns) -> frozenset[str]:
        # Hudi writes no records for a file without rows.
        return indexed.columns if self.row_groups else frozenset()


class FooterReader:
    """Reads footers for the indexes of one metadata table."""

    def __init__(self, metadata: MetadataTable) -> None:
        self._metadata = metadata
        self._indexed: IndexColumns | None = None

    def read(self, files: Sequence[tuple[BaseFile, bool]]) -> list[Described | Broken]:
        """Describe each of (base file, is live), in order; files that were deleted meanwhile are skipped."""
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            found = [one for one in pool.map(self._read, files) if one is not None]
        if self._indexed is None:
            self._indexed = self._columns([one.stats for one in found if isinstance(one, _Read)])
        with ThreadPoolExecutor(_VALUES_AT_ONCE) as pool:
            return [one for one in pool.map(self._described, found) if one is not None]

    def _read(self, pair: tuple[BaseFile, bool]) -> _Read | Broken | None:
        file, is_live = pair
        try:
            return self._metadata.slices.facts(FileSlice.of_base(file), partial(_of_facts, file, is_live))
        except NotFound:
            return None
        except CorruptFile:
            return Broken(file)

    def _described(self, one: _Read | Broken) -> Described | Broken | None:
        if isinstance(one, Broken):
            return one
        assert self._indexed is not None, "it was settled before"
        untold = one.untold(self._indexed)
        try:
            return (self._with_values(one, untold) if untold else one).describe(self._indexed)
        except NotFound:
            return None
        except (CorruptFile, UnsupportedTable):
            return one.describe(self._indexed)

    def _with_values(self, one: _Read, columns: frozenset[str]) -> _Read:
        reader = self._metadata.slices.open(FileSlice.of_base(one.file))
        stats = replace(one.stats, columns=reader.column_stats(complete=columns))
        return replace(one, stats=stats, from_values=columns)

    def _columns(self, files: Sequence[NewFile]) -> IndexColumns:
        if COLUMN_STATS not in self._metadata.table_config.metadata_partitions:
            return IndexColumns(frozenset(), typed=False)
        candidates = {stats.column: stats for file in files for stats in file.columns}
        return index_columns(self._metadata, list(candidates.values()))


def read_bloom(source: SliceSource, file: BaseFile) -> BloomRecord | None:
    """The bloom filter of one file as a record. Raises CorruptFile and StorageError."""
    one = FileSlice.of_base(file)
    return source.facts(one, lambda facts: bloom_record(one, facts.bloom, file.instant))


def digest(bloom: BloomRecord) -> bytes:
    """A digest of the type and the bits of a bloom filter."""
    return hashlib.blake2b(bloom.bits, digest_size=16, key=bloom.type_code.encode()).digest()


def _of_facts(file: BaseFile, is_live: bool, facts: SliceFacts) -> _Read:
    bloom = bloom_record(FileSlice.of_base(file), facts.bloom, file.instant)
    stats = NewFile(file.partition, file.name, file.size, facts.columns)
    return _Read(file, is_live, facts.row_groups, stats, None if bloom is None else digest(bloom))
