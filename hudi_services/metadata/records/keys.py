"""Keys of the metadata table's records, its partitions and file groups.

    files             `__all_partitions__`, or the data partition ("." for the root)
    column_stats      H64(column) + H64(partition) + H128(file name)
    partition_stats   H64(column) + H64(partition)
    bloom_filters     H64(partition) + H128(base file name)
    record_index      the record key
    secondary_index_* value and record key: `secondary_index`
    expr_index_*      as column_stats or as bloom_filters, by the kind of the index; and for the ranges of whole
                      partitions H64(column) + H64("__partition_stat__") + H64(partition)

H64 and H128 are `codecs.hashing.xxh64_key` and `md5_key`. A record is in the file group number
`file_group_index(key, count)` of its partition, file groups in the order of their file ids (`group_id`).
Source: HoodieTableMetadataUtil, MetadataPartitionType of Apache Hudi.
"""

from ...codecs.hashing import md5_key, xxh64_key

FILES = "files"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"
SECONDARY_INDEX_PREFIX = "secondary_index_"
EXPRESSION_INDEX = "expr_index_"
"""The prefix of the names of expression indexes."""

_RANGE = "__partition_stat__"
ALL_PARTITIONS_KEY = "__all_partitions__"
ROOT_PARTITION = "."


_GROUP_PREFIXES = {
    FILES: "files",
    COLUMN_STATS: "col-stats",
    PARTITION_STATS: "partition-stats",
    RECORD_INDEX: "record-index",
}


def group_id(partition: str, number: int) -> str:
    """The file id of a file group of a partition; of a record index, a global one."""
    # Source for indexes with a name of their own: HoodieTableMetadataUtil.getFileIDForFileGroup.
    prefix = _GROUP_PREFIXES.get(partition) or partition.replace("_", "-")
    return f"{prefix}-{number:04d}-0"


def partition_id(partition: str) -> str:
    """The name of a data partition in keys: "." stands for the table's own folder."""
    return partition or ROOT_PARTITION


def partition_of(identifier: str) -> str:
    """The data partition of a key or list entry of the `files` partition."""
    return "" if identifier == ROOT_PARTITION else identifier


def column_stats_prefix(column: str, partition: str) -> str:
    """The prefix of the keys of all files of a data partition, for one column. Also the key in partition_stats."""
    return xxh64_key(column) + xxh64_key(partition_id(partition))


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    return column_stats_prefix(column, partition) + md5_key(file_name)


def partition_stats_key(column: str, partition: str) -> str:
    return column_stats_prefix(column, partition)


def expression_range_key(column: str, partition: str) -> str:
    """The key of the range of a whole data partition, in the partition of the expression index itself."""
    return xxh64_key(column) + xxh64_key(_RANGE) + xxh64_key(partition_id(partition))


def bloom_filter_key(partition: str, file_name: str) -> str:
    return xxh64_key(partition_id(partition)) + md5_key(file_name)
