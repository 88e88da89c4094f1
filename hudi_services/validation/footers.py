"""What the footers of base files say, read side by side; and their values, where a footer does not tell a range."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from ..errors import CorruptFile, NotFound, UnsupportedTable
from ..files.chunk_bounds import complete_stats
from ..files.column_stats import column_stats
from ..files.parquet_footer import Footer, read_footer
from ..files.parquet_reader import open_base_file
from ..files.parquet_schema import FileSchema
from ..metadata.bloom_filters import bloom_record
from ..metadata.records.keys import COLUMN_STATS
from ..metadata.records.model import BloomRecord, StatsRecord
from ..metadata.statistics.column_stats import NewFile, column_records, is_exact, untold_columns
from ..metadata.statistics.indexed_columns import IndexColumns, index_columns
from ..metadata.table import MetadataTable
from ..model import BaseFile
from ..storage import Storage

_FOOTERS_AT_ONCE = 16
_VALUES_AT_ONCE = 4
"""Files; of each, a piece of a column is in memory."""


@dataclass(frozen=True, slots=True)
class Described:
    """A base file with the column_stats records that a commit would write of it.

    `bloom` is a digest of its bloom filter (one has hundreds of kilobytes), None when it has none.
    """

    file: BaseFile
    is_live: bool
    """Whether it belongs to the newest slice of a file group that was not replaced."""
    row_groups: int
    records: Sequence[StatsRecord]
    bloom: bytes | None
    bounded: frozenset[str] = frozenset()
    """Columns whose bounds hold the values without being the footer's: those of a stored record may be wider."""
    unreadable: tuple[str, ...] = ()
    """Indexed columns whose range is not known: no record is expected of them."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A base file whose footer cannot be read."""

    file: BaseFile


@dataclass(frozen=True, slots=True)
class _Read:
    """`Described` before the columns are known that have records."""

    file: BaseFile
    is_live: bool
    row_groups: int
    stats: NewFile
    bloom: bytes | None
    from_values: frozenset[str] = field(default=frozenset())
    """Columns whose ranges are not from the footer."""

    def untold(self, indexed: IndexColumns) -> frozenset[str]:
        """Columns of which a record is expected, and whose range is not known."""
        return frozenset(untold_columns(self.stats, self._columns(indexed), typed=indexed.typed))

    def describe(self, indexed: IndexColumns) -> Described:
        records = column_records(self.stats, self._columns(indexed), typed=indexed.typed)
        widened = {one.column for one in self.stats.columns if not is_exact(one.type, typed=indexed.typed)}
        bounded, unreadable = self.from_values | widened, tuple(sorted(self.untold(indexed)))
        return Described(self.file, self.is_live, self.row_groups, records, self.bloom, bounded, unreadable)

    def _columns(self, indexed: IndexColumns) -> frozenset[str]:
        # Of a file without rows Hudi records nothing.
        return indexed.columns if self.row_groups else frozenset()


class FooterReader:
    """Reads footers for the indexes of one metadata table."""

    def __init__(self, metadata: MetadataTable) -> None:
        self._metadata = metadata
        self._indexed: IndexColumns | None = None

    def read(self, files: Sequence[tuple[BaseFile, bool]]) -> list[Described | Broken]:
        """For each of (base file, is live), in order; files that are gone meanwhile are passed over."""
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            found = [one for one in pool.map(self._read, files) if one is not None]
        if self._indexed is None:
            self._indexed = self._columns([one.stats for one in found if isinstance(one, _Read)])
        with ThreadPoolExecutor(_VALUES_AT_ONCE) as pool:
            return [one for one in pool.map(self._described, found) if one is not None]

    def _read(self, pair: tuple[BaseFile, bool]) -> _Read | Broken | None:
        file, is_live = pair
        try:
            footer = _footer(self._metadata.storage, file)
            columns = column_stats(FileSchema.of(footer), footer.row_groups)
            bloom = bloom_record(file.partition, file.name, footer, file.instant)
        except NotFound:
            return None
        except CorruptFile:
            return Broken(file)
        stats = NewFile(file.partition, file.name, file.size, columns)
        return _Read(file, is_live, len(footer.row_groups), stats, None if bloom is None else digest(bloom))

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
        reader = open_base_file(self._metadata.storage, one.file.path, one.file.size)
        stats = replace(one.stats, columns=complete_stats(reader, columns))
        return replace(one, stats=stats, from_values=columns)

    def _columns(self, files: Sequence[NewFile]) -> IndexColumns:
        if COLUMN_STATS not in self._metadata.table_config.metadata_partitions:
            return IndexColumns(frozenset(), typed=False)
        candidates = {stats.column: stats for file in files for stats in file.columns}
        return index_columns(self._metadata, list(candidates.values()))


def read_bloom(storage: Storage, file: BaseFile) -> BloomRecord | None:
    """The bloom filter of one file as a record. Raises CorruptFile and StorageError."""
    return bloom_record(file.partition, file.name, _footer(storage, file), file.instant)


def digest(bloom: BloomRecord) -> bytes:
    """What tells bloom filters apart: type and bits."""
    return hashlib.blake2b(bloom.bits, digest_size=16, key=bloom.type_code.encode()).digest()


def _footer(storage: Storage, file: BaseFile) -> Footer:
    footer, _ = read_footer(storage, file.path, file.size)
    return footer
