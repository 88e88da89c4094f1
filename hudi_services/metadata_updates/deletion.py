"""Deletions in the metadata table after a clean, or the rollback of a compacted commit, has deleted files of the table.

    files           per data partition: the names, isDeleted, size 0; under `__all_partitions__`: deleted partitions.
                    Twice where both the base file and the log files have the name: one deletion would only take back
                    what the log files add (`repair_plan`). Hudi writes one, and lists such partitions on
    column_stats    the keys of those files, for every column that may have a record
    bloom_filters   the keys of those files
    expr_index_*    the keys of those files, of the kind of the index

Ranges of whole partitions (partition_stats, and those in expression indexes) stay: after a clean, and after the
rollback of a clustering, they are at most wider than necessary, which is harmless.
Source: HoodieTableMetadataUtil.convertMetadataToRecords for cleans, of Apache Hudi 0.15.0 to 1.2.0.
"""

from collections.abc import Collection, Mapping, Sequence

from ..derived_indexes.expression_index.definitions import expression_indexes
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import (
    ALL_PARTITIONS_KEY,
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    bloom_filter_key,
    column_stats_key,
    partition_id,
)
from ..metadata.records.model import FileEntry, FilesRecord, Record, RecordType
from ..metadata.statistics.indexed_columns import described_columns
from .repair_plan import plan_repair

_GONE = FileEntry(0, deleted=True)


def deletion_records(
    metadata: MetadataTable, deleted: Mapping[str, Collection[str]], gone_partitions: Collection[str] = ()
) -> tuple[dict[str, Sequence[Record]], dict[str, Sequence[str]]]:
    """Records and deleted keys, each by metadata partition, for `delta_commit.write_delta_commit`.

    `deleted` are bare file names by data partition; `gone_partitions` are the data partitions to remove from the list.
    Raises CorruptFile for broken index definitions.
    """
    listings: list[FilesRecord] = [
        FilesRecord(partition_id(partition), RecordType.FILES, dict.fromkeys(names, _GONE))
        for partition, names in deleted.items()
        if names
    ]
    if gone_partitions:
        entries = dict.fromkeys(map(partition_id, gone_partitions), _GONE)
        listings.append(FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, entries))
    records = plan_repair(metadata, {FILES: {one.key: one for one in listings}}).records[FILES]
    files = [(partition, name) for partition, names in deleted.items() for name in names]
    keys: dict[str, Sequence[str]] = {}
    if files and COLUMN_STATS in metadata.partitions:
        columns = described_columns(metadata)
        keys[COLUMN_STATS] = [column_stats_key(column, *file) for file in files for column in columns]
    if files and BLOOM_FILTERS in metadata.partitions:
        keys[BLOOM_FILTERS] = [bloom_filter_key(*file) for file in files]
    for index in expression_indexes(metadata) if files else ():
        keys[index.partition] = [
            column_stats_key(index.column, *file) if index.kind == COLUMN_STATS else bloom_filter_key(*file)
            for file in files
        ]
    return {FILES: records}, keys
