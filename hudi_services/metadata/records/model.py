"""Records of the metadata table as values, and the merge of two records of one key. Their bytes: `codec`.

    type 1  key `__all_partitions__`: the data partitions
    type 2  key = a data partition:   its files
    type 3  column_stats:     statistics of one column of one file
    type 4  bloom_filters:    the bloom filter over the record keys of one base file
    type 5  record_index:     the location of the record of a key
    type 6  partition_stats:  as type 3, of one column of one data partition, whose path stands for the file's name
    type 7  secondary_index_*: a pair of secondary key and record key, both in the record's own key

Source: HoodieMetadataPayload (preCombine), MetadataPartitionType.combineMetadataPayloads,
HoodieTableMetadataUtil.mergeColumnStatsRecords of Apache Hudi.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ...schema.column_type import ColumnType
from ..record_index.locations import Location
from ..statistics.values import NO_VALUES, NoPromotion, greatest, java_key, promote, smallest


class RecordType(IntEnum):
    """The `type` field, for the partitions that we read and write."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTERS = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A name in a listing: its size in bytes (0 for partitions), or that it was deleted."""

    size: int
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class FilesRecord:
    """Partitions of the table, or files of one partition, by name."""

    key: str
    type: RecordType
    entries: Mapping[str, FileEntry]


@dataclass(frozen=True, slots=True)
class StatsRecord:
    """Statistics of one column in one file or partition. Sizes in bytes.

    `tight` says that the range was computed over all data, and so replaces an older range instead of widening it.
    """

    key: str
    type: RecordType
    file_name: str
    column: str
    bound: ColumnType
    minimum: Any
    maximum: Any
    value_count: int
    null_count: int
    total_size: int
    total_uncompressed_size: int
    deleted: bool = False
    tight: bool = False


@dataclass(frozen=True, slots=True)
class BloomRecord:
    """The bloom filter of a base file, `bits` as in its footer, and the instant that wrote it."""

    key: str
    type_code: str
    instant: str
    bits: bytes
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class LocationRecord:
    """The location of the record of `key`."""

    key: str
    location: Location


@dataclass(frozen=True, slots=True)
class SecondaryRecord:
    """A pair of secondary and record key, both in `key`."""

    key: str
    deleted: bool = False


Record = FilesRecord | StatsRecord | BloomRecord | LocationRecord | SecondaryRecord


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of a file group under one key: the base file's record, and the merged records of its log files.

    Hudi merges the log files among themselves first, and the result with the base file. So a key, or a file in a
    listing, that log files delete and write again is merged with the base file's record: the deletion is lost.
    """

    base: Record | None = None
    logs: Record | None = None
    is_deleted: bool = False
    """Whether the last block of the log files with the key deletes it; `logs` is None then."""

    def after(self, newer: Record) -> "Stored":
        """The content with one more record in the log files."""
        return Stored(self.base, newer if self.logs is None else merge_records(self.logs, newer))

    def forgotten(self) -> "Stored":
        """The content with one more delete block in the log files."""
        return Stored(self.base, None, is_deleted=True)

    @property
    def merged(self) -> Record | None:
        """The record that readers find; None for no record."""
        if self.base is None or self.is_deleted:
            return self.logs
        return self.base if self.logs is None else merge_records(self.base, self.logs)


def merge_records(older: Record, newer: Record) -> Record:
    """The merge of two records of one key. The result may be marked as deleted, which callers take for no record."""
    if isinstance(newer, FilesRecord) and isinstance(older, FilesRecord):
        return FilesRecord(newer.key, newer.type, _merge_entries(older.entries, newer.entries))
    if isinstance(newer, StatsRecord) and isinstance(older, StatsRecord):
        return newer if newer.deleted or older.deleted or newer.tight else _widen(older, newer)
    return newer


def _merge_entries(older: Mapping[str, FileEntry], newer: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
    merged = dict(older)
    for name, entry in newer.items():
        before = merged.get(name)
        if before is None or (entry.deleted and before.deleted):
            merged[name] = entry
        elif entry.deleted:
            # A deletion and its entry cancel out; without an older entry the deletion stays, for an entry below.
            del merged[name]
        else:
            merged[name] = FileEntry(max(before.size, entry.size))
    return merged


def _widen(older: StatsRecord, newer: StatsRecord) -> StatsRecord:
    bound = older.bound if newer.bound == NO_VALUES else newer.bound
    try:
        bounds = [promote(value, older.bound, bound) for value in (older.minimum, older.maximum)]
    except NoPromotion:
        # Hudi cannot merge them either; the newer range is at least right for the newer file.
        bounds = [None, None]
    return StatsRecord(
        key=newer.key,
        type=newer.type,
        file_name=newer.file_name,
        column=newer.column,
        bound=bound,
        minimum=smallest([bounds[0], newer.minimum], java_key),
        maximum=greatest([bounds[1], newer.maximum], java_key),
        value_count=older.value_count + newer.value_count,
        null_count=older.null_count + newer.null_count,
        total_size=older.total_size + newer.total_size,
        total_uncompressed_size=older.total_uncompressed_size + newer.total_uncompressed_size,
    )
