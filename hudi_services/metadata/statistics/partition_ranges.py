"""Ranges of whole data partitions after a commit: over its new files and the other live files."""

from collections.abc import Collection, Mapping, Sequence

from ..records.keys import column_stats_key, column_stats_prefix
from ..records.model import StatsRecord
from ..table import MetadataTable
from .column_stats import partition_record


def partition_ranges(
    metadata: MetadataTable,
    source: str,
    partition: str,
    new: Mapping[str, Sequence[StatsRecord]],
    names: Collection[str],
    live: Collection[str],
) -> list[StatsRecord]:
    """The range of each column, as a partition_stats record.

    `new` are the records of new files by column, `names` those of all new files; `live` are the names of the other live
    files, whose records are in the metadata partition `source`.
    """
    columns = {column: list(records) for column, records in new.items()}
    prefixes = {column_stats_prefix(column, partition): column for column in columns}
    wanted = {column_stats_key(column, partition, name) for column in columns for name in live}
    # Where no older file lives, there is nothing to look for in the records of the whole partition.
    stored = metadata.reader(source).scan_prefixes(prefixes, wanted.__contains__) if wanted else ()
    for prefix, records in stored:
        columns[prefixes[prefix]] += [r for r in records if isinstance(r, StatsRecord) and _tells_range(r)]
    # A file without a record may have the column all the same: then the older range must still count.
    files = frozenset(names).union(live)
    return [
        partition_record(partition, column, found, tight=files.issubset(record.file_name for record in found))
        for column, found in columns.items()
    ]


def _tells_range(record: StatsRecord) -> bool:
    """Whether a record has the range of its file, which may have no values. INT96 has none in records of Hudi 1.0.2."""
    return not record.deleted and (record.minimum is not None or record.null_count >= record.value_count)
