"""Ranges of whole data partitions after a commit: over its new files, and the live ones beside them."""

from collections.abc import Collection, Mapping, Sequence

from .keys import column_stats_key, column_stats_prefix
from .records import StatsRecord
from .stats import partition_record
from .table import MetadataTable


def partition_ranges(
    metadata: MetadataTable,
    source: str,
    partition: str,
    new: Mapping[str, Sequence[StatsRecord]],
    live: Collection[str],
) -> list[StatsRecord]:
    """The range of each column, as a partition_stats record.

    `new` are the records of new files by column, `live` the names of the other live files, whose records are in the
    metadata partition `source`.
    """
    columns = {column: list(records) for column, records in new.items()}
    described: set[str] = set()
    prefixes = {column_stats_prefix(column, partition): column for column in columns}
    wanted = {column_stats_key(column, partition, name) for column in columns for name in live}
    for prefix, records in metadata.reader(source).scan_prefixes(prefixes, wanted.__contains__):
        known = [r for r in records if isinstance(r, StatsRecord) and not r.deleted]
        columns[prefixes[prefix]] += known
        described |= {record.file_name for record in known}
    # A live file without any statistics was written by somebody else: then the older range must stay in. One that lacks
    # a single column has no values there (the column is younger), as Hudi takes it, too.
    tight = described.issuperset(live)
    return [partition_record(partition, column, files, tight=tight) for column, files in columns.items()]
