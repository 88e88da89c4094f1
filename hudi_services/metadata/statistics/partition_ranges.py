"""Ranges of whole data partitions after a commit: over its new files and the other live files.

They are in partition_stats, over the records of column_stats, and in expression indexes, over the records there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..file_groups.reader import PartitionReader
from ..metadata_table import MetadataTable
from ..records.keys import (
    COLUMN_STATS,
    PARTITION_STATS,
    column_stats_key,
    column_stats_prefix,
    expression_range_key,
    partition_stats_key,
)
from ..records.model import StatsRecord
from .column_stats import partition_record, settled


def range_source(index: str) -> str:
    """The metadata partition with the records of files, of which `index` has the ranges of partitions."""
    return COLUMN_STATS if index == PARTITION_STATS else index


def range_key(index: str, column: str, partition: str) -> str:
    """The key of the range of a data partition in `index`."""
    key = partition_stats_key if index == PARTITION_STATS else expression_range_key
    return key(column, partition)


def partition_ranges(
    reader: PartitionReader,
    index: str,
    partition: str,
    live: Collection[str],
    new: Sequence[StatsRecord],
    names: Collection[str],
) -> list[StatsRecord]:
    """The range of each column of `new`, the records of new files, as a record of `index`.

    `names` are the names of all new files; `live` are the names of the other live files, whose records `reader` reads.
    """
    columns: dict[str, list[StatsRecord]] = {}
    for record in new:
        columns.setdefault(record.column, []).append(record)
    stored = live_records(reader, {partition: columns}, {partition: live})
    # A file without a record may have the column all the same: then the older range must still count.
    files = frozenset(names).union(live)
    found = {column: [*records, *stored.get((partition, column), ())] for column, records in columns.items()}
    return [
        whole_range(index, partition, column, records, tight=files.issubset(one.file_name for one in records))
        for column, records in found.items()
    ]


def live_records(
    reader: PartitionReader, columns: Mapping[str, Collection[str]], live: Mapping[str, Collection[str]]
) -> dict[tuple[str, str], list[StatsRecord]]:
    """The records of `live` files that tell a range, by data partition and column, of the `columns` of each partition.

    All are read at the same time: keys begin with the column.
    """
    prefixes = {column_stats_prefix(column, one): (one, column) for one, names in columns.items() for column in names}
    wanted = {
        column_stats_key(column, partition, name) for partition, column in prefixes.values() for name in live[partition]
    }
    found: dict[tuple[str, str], list[StatsRecord]] = {}
    # Where no older file lives, there is nothing to look for in the records of the whole partition.
    for prefix, records in reader.scan_prefixes(prefixes, wanted.__contains__) if wanted else ():
        told = [record for record in records if isinstance(record, StatsRecord) and _tells_range(record)]
        if told:
            found[prefixes[prefix]] = told
    return found


def whole_range(index: str, partition: str, column: str, files: Sequence[StatsRecord], *, tight: bool) -> StatsRecord:
    """The range over `files`, at least one, as a record of `index`."""
    record = partition_record(partition, column, files, tight=tight)
    return replace(record, key=range_key(index, column, partition))


def widening(metadata: MetadataTable, index: str, ranges: Sequence[StatsRecord]) -> list[StatsRecord]:
    """The ranges as they are written to widen what `index` has, and replace nothing."""
    return settled_in(metadata, index, [replace(record, tight=False) for record in ranges])


def settled_in(metadata: MetadataTable, index: str, ranges: Sequence[StatsRecord]) -> list[StatsRecord]:
    """The ranges as they are written above what `index` has, see `settled`."""
    stored = dict(metadata.reader(index).stored([record.key for record in ranges if not record.tight]))
    return [settled(record, stored.get(record.key)) for record in ranges]


def _tells_range(record: StatsRecord) -> bool:
    """Whether a record has the range of its file, which may have no values. INT96 has none in records of Hudi 1.0.2."""
    return not record.deleted and (record.minimum is not None or record.null_count >= record.value_count)
