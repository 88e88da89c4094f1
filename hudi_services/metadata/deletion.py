"""What the metadata table must forget when files of the table go: by a clean, or by the rollback of a compacted commit.

    files           per data partition: the names, isDeleted, size 0; under `__all_partitions__`: partitions that go
    column_stats    the keys of those files, for every column that may have a record

Ranges of whole partitions (partition_stats) stay: after a clean, and after the rollback of a clustering, they are at
most wider than need be, which harms no reader.
Source: HoodieTableMetadataUtil.convertMetadataToRecords for cleans, of Apache Hudi 0.15.0 to 1.2.0.
"""

from collections.abc import Collection, Mapping, Sequence

from .index_columns import described_columns
from .keys import ALL_PARTITIONS_KEY, COLUMN_STATS, FILES, column_stats_key, partition_id
from .records import FileEntry, FilesRecord, Record, RecordType
from .table import MetadataTable

_GONE = FileEntry(0, deleted=True)


def deletion_records(
    metadata: MetadataTable, deleted: Mapping[str, Collection[str]], gone_partitions: Collection[str] = ()
) -> tuple[dict[str, Sequence[Record]], dict[str, Sequence[str]]]:
    """Records and deleted keys, each by metadata partition, for `delta_commit.write_delta_commit`.

    `deleted` are bare file names by data partition; `gone_partitions` are those that readers shall not list any more.
    Raises CorruptFile for broken index definitions.
    """
    listings: list[Record] = [
        FilesRecord(partition_id(partition), RecordType.FILES, dict.fromkeys(names, _GONE))
        for partition, names in deleted.items()
        if names
    ]
    if gone_partitions:
        entries = dict.fromkeys(map(partition_id, gone_partitions), _GONE)
        listings.append(FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, entries))
    if COLUMN_STATS not in metadata.partitions or not any(deleted.values()):
        return {FILES: listings}, {}
    columns = described_columns(metadata)
    keys = [
        column_stats_key(column, partition, name)
        for partition, names in deleted.items()
        for name in names
        for column in columns
    ]
    return {FILES: listings}, {COLUMN_STATS: keys}
