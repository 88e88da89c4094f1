"""Ranges of data partitions that are narrower than their live files, in partition_stats and in expression indexes.

Hudi 1.0.2 takes the newest log files for the whole partition while a compaction is pending. Readers take the records of
later instants for the newer ones; so the range that the compaction writes, whose instant is older, does not count, and
neither does that of a write which ends after a later one. The true range must come at an instant of its own, as a
repair, which widens the range that is there: so it holds for rows of other writers, too, before the commit, and after a
rollback.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from ..derived_indexes.expression_index.definitions import expression_indexes
from ..metadata.file_groups.reader import PartitionReader
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import COLUMN_STATS, EXPRESSION_INDEX, PARTITION_STATS
from ..metadata.records.model import Record, StatsRecord, merge_records
from ..metadata.statistics.column_stats import SIDES, covers_bound, holds_nulls
from ..metadata.statistics.indexed_columns import described_columns, typed_among
from ..metadata.statistics.partition_ranges import live_records, range_key, range_source, whole_range, widening
from ..packing import pack
from .altered_columns import altered_columns, is_altered

_RECORDS_AT_ONCE = 50_000
"""Records of files that are in memory together."""


def hidden_ranges(
    metadata: MetadataTable, index: str, instant: str, ranges: Sequence[StatsRecord]
) -> list[StatsRecord]:
    """Of the `ranges` that the commit `instant` writes to `index`, those that narrower ones of later instants hide.

    The result is to be written at an instant after them all.
    """
    groups = [
        replace(group, base_file=None, log_files=tuple(log for log in group.log_files if log.instant > instant))
        for group in metadata.file_groups(index)
    ]
    if not any(group.log_files for group in groups):
        return []
    later = PartitionReader(lambda: [metadata.open_group(group) for group in groups])
    written = {record.key: record for record in ranges}
    above = ((written[key], stored) for key, stored in later.stored(written))
    hidden = [
        record
        for record, stored in above
        if (stored.logs is not None or stored.is_deleted) and not _holds(stored.logs, record, None)
    ]
    return widening(metadata, index, hidden)


def keeps_ranges(metadata: MetadataTable) -> bool:
    """Whether the metadata table has ranges of whole data partitions."""
    return any(one == PARTITION_STATS or one.startswith(EXPRESSION_INDEX) for one in metadata.partitions)


def narrow_ranges(metadata: MetadataTable, live: Mapping[str, Collection[str]]) -> dict[str, list[StatsRecord]]:
    """What widens the ranges of the data partitions of `live` where they are too narrow, by metadata partition.

    `live` are the names of all live files by data partition. Files without statistics do not count: what they hold is
    not known. Empty when nothing is too narrow.
    """
    found: dict[str, list[StatsRecord]] = {}
    if {PARTITION_STATS, COLUMN_STATS}.issubset(metadata.partitions):
        found[PARTITION_STATS] = narrow_in(metadata, PARTITION_STATS, described_columns(metadata), live)
    for index in expression_indexes(metadata):
        if index.kind == COLUMN_STATS:
            found[index.partition] = narrow_in(metadata, index.partition, [index.column], live)
    return {index: records for index, records in found.items() if records}


def narrow_in(
    metadata: MetadataTable,
    index: str,
    columns: Collection[str],
    live: Mapping[str, Collection[str]],
    *,
    but: Collection[str] = (),
) -> list[StatsRecord]:
    """As `narrow_ranges`, of `columns` and in one metadata partition; the keys `but` are left alone, and so are columns
    that were altered since some of the files were written."""
    reader, ranges = metadata.reader(range_source(index)), metadata.reader(index)
    altered = altered_columns(metadata, live) if index == PARTITION_STATS else {}
    typed = bool(typed_among(metadata, [index]))
    asked = {
        partition: [
            column
            for column in columns
            if range_key(index, column, partition) not in but and not is_altered(altered, partition, column)
        ]
        for partition in live
    }
    narrow: list[StatsRecord] = []
    for some in pack(live, lambda one: len(asked[one]) * len(live[one]), _RECORDS_AT_ONCE):
        wanted: dict[str, StatsRecord] = {}
        merged: dict[str, Record] = {}
        found = live_records(reader, {one: asked[one] for one in some}, live)
        for (partition, column), records in found.items():
            whole = whole_range(index, partition, column, records, tight=False)
            wanted[whole.key] = whole
            if typed and isinstance(whole.minimum, bytes):
                merged[whole.key] = reduce(merge_records, list[Record](records))
        stored = ranges.stored(wanted)
        narrow += (wanted[key] for key, one in stored if not _holds(one.merged, wanted[key], merged.get(key)))
    return widening(metadata, index, narrow)


def _holds(stored: Record | None, files: StatsRecord, merged: Record | None) -> bool:
    """Whether readers that go by `stored` skip nothing of `files`, which Hudi merges to `merged`."""
    if not isinstance(stored, StatsRecord) or stored.deleted:
        return False
    return holds_nulls(stored, files) and all(covers_bound(stored, files, merged, side) for side in SIDES)
