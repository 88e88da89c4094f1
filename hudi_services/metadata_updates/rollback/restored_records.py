"""Records of the files that readers see again after a rollback, for indexes that may not have them.

    column_stats, bloom_filters    of each file that has no record
    partition_stats                the range of the files, which widens the stored one; not when the rows stay the same
    record_index                   the keys (`log_writing.IndexDelta`)

An index that was built, or repaired, after the instant may never have seen these files (`lasting`).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ...base_files.new_file import NewFile
from ...base_files.slices import SliceFacts, describe
from ...errors import CorruptFile, UnsupportedTable
from ...metadata.bloom_filters import bloom_record
from ...metadata.metadata_table import MetadataTable
from ...metadata.record_index.log_writing import IndexDelta
from ...metadata.records.keys import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    PARTITION_STATS,
    column_stats_key,
)
from ...metadata.records.model import Record, StatsRecord
from ...metadata.statistics.column_stats import column_records, partition_record, untold_columns
from ...metadata.statistics.indexed_columns import IndexColumns, described_columns, index_columns
from ...metadata.statistics.text_ranges import in_both_orders
from ...model import FileSlice
from ..repair_plan import RepairPlan, plan_repair


@dataclass(frozen=True, slots=True)
class Restored:
    """The file slices that readers see again, and whether their rows differ from the rows that are rolled back.

    `keys` are the keys to write to the record index; None for no keys.
    """

    slices: tuple[FileSlice, ...]
    other_rows: bool
    keys: IndexDelta | None


@dataclass(frozen=True, slots=True)
class _Described:
    file: NewFile
    bloom: Record | None


def restored_records(metadata: MetadataTable, restored: Restored, lasting: Collection[str]) -> RepairPlan:
    """The records to write to partitions of `lasting` that lack one for a file. Raises CorruptFile and StorageError."""
    wanted = {COLUMN_STATS, BLOOM_FILTERS} | ({PARTITION_STATS} if restored.other_rows else set())
    wanted &= set(lasting)
    if not wanted or not restored.slices:
        return RepairPlan()
    described = _described(metadata, restored.slices)
    records: dict[str, dict[str, Record | None]] = {}
    indexed = _indexed(metadata, described)
    stats = [one for each in described if each.file.rows for one in _stats(each.file, indexed)]
    if COLUMN_STATS in wanted:
        records[COLUMN_STATS] = _missing(metadata, COLUMN_STATS, stats)
    if BLOOM_FILTERS in wanted:
        blooms = [one.bloom for one in described if one.bloom is not None]
        records[BLOOM_FILTERS] = _missing(metadata, BLOOM_FILTERS, blooms)
    if PARTITION_STATS in wanted:
        partitions = {each.file.name: each.file.partition for each in described}
        ranges = _ranges((partitions[one.file_name], one) for one in stats)
        records[PARTITION_STATS] = {one.key: one for one in ranges}
    return plan_repair(metadata, records)


def columns_without_range(metadata: MetadataTable, slices: Sequence[FileSlice]) -> list[str]:
    """Indexed columns whose range in some file is unknown: a range of the partition cannot be made to hold them."""
    described = _described(metadata, slices)
    indexed = _indexed(metadata, described)
    return sorted({column for one in described if one.file.rows for column in _untold(one, indexed)})


def logs_without_statistics(metadata: MetadataTable, slices: Sequence[FileSlice]) -> list[str]:
    """Paths of the log files of slices for which column_stats has no record at all."""
    columns = described_columns(metadata)
    keys = {
        column_stats_key(column, log.partition, log.name): log.path
        for one in slices
        for log in one.log_files
        for column in columns
    }
    missing = set(without_record(metadata, COLUMN_STATS, keys))
    return sorted({keys[key] for key in missing} - {keys[key] for key in keys.keys() - missing})


def _described(metadata: MetadataTable, slices: Sequence[FileSlice]) -> list[_Described]:
    """The facts of the base files, with ranges from the values of indexed columns where a footer does not have them."""
    bases = [FileSlice.of_base(one.base_file) for one in slices if one.base_file is not None]
    found = describe(metadata.slices, bases, _of_facts)
    indexed = _indexed(metadata, found)
    return [_with_values(metadata, described, one, indexed) for described, one in zip(found, bases, strict=True)]


def _of_facts(file_slice: FileSlice, facts: SliceFacts) -> _Described:
    assert file_slice.base_file is not None, "only base files are described"
    file = file_slice.base_file
    bloom = bloom_record(file_slice, facts.bloom, file.instant)
    return _Described(NewFile.of(file.path, file.size, facts.rows, facts.columns), bloom)


def _untold(described: _Described, indexed: IndexColumns) -> list[str]:
    return untold_columns(described.file, indexed.columns, typed=indexed.typed)


def _with_values(
    metadata: MetadataTable, described: _Described, file_slice: FileSlice, indexed: IndexColumns
) -> _Described:
    untold = _untold(described, indexed) if described.file.rows else []
    if not untold:
        return described
    try:
        columns = metadata.slices.open(file_slice).column_stats(complete=untold)
    except (CorruptFile, UnsupportedTable):
        return described
    return replace(described, file=replace(described.file, columns=columns))


def _indexed(metadata: MetadataTable, described: Sequence[_Described]) -> IndexColumns:
    if COLUMN_STATS not in metadata.partitions:
        return IndexColumns(frozenset(), typed=False)
    candidates = {stats.column: stats for one in described for stats in one.file.columns}
    return index_columns(metadata, list(candidates.values()))


def _stats(file: NewFile, indexed: IndexColumns) -> list[StatsRecord]:
    return [in_both_orders(record) for record in column_records(file, indexed.columns, typed=indexed.typed)]


def _missing(metadata: MetadataTable, index: str, records: Iterable[Record]) -> dict[str, Record | None]:
    """The records that readers do not find, by key."""
    expected = {record.key: record for record in records}
    found: dict[str, Record | None] = {}
    for key, stored in metadata.reader(index).stored(expected):
        if stored.merged is None or getattr(stored.merged, "deleted", False):
            found[key] = expected[key]
    return found


def _ranges(stats: Iterable[tuple[str, StatsRecord]]) -> list[StatsRecord]:
    columns: dict[tuple[str, str], list[StatsRecord]] = {}
    for partition, record in stats:
        columns.setdefault((partition, record.column), []).append(record)
    return [
        partition_record(partition, column, records, tight=False) for (partition, column), records in columns.items()
    ]


def without_record(metadata: MetadataTable, index: str, keys: Collection[str]) -> list[str]:
    """The keys without a record in `index`."""
    return [key for key, stored in metadata.reader(index).stored(keys) if stored.merged is None]
