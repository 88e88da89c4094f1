"""The options of writes: what is asked for, and how large files get.

Sources: HoodieStorageConfig, HoodieCompactionConfig, HoodieWriteConfig and DataSourceOptions of Apache Hudi 0.15.0 to
1.2.0.
"""

from typing import Any

from .option import (
    ANY_VALUE,
    Option,
    Phase,
    between,
    boolean,
    choice,
    integer,
    names,
    nothing,
    one_of,
    only,
    share,
    size,
    text,
)

_NO_NAMES: tuple[str, ...] = ()
_BY_PATH = "PARTITION_PATH_REPARTITION"
_PARTITIONERS = "org.apache.hudi.execution.bulkinsert"
_MIB = 1 << 20
_MOST_BYTES = 8 << 30
"""Of a file that a table may ask for itself."""

MAX_FILE_BYTES = Option(
    "hoodie.parquet.max.file.size",
    size,
    120 * _MIB,
    Phase.INGEST,
    "The size of new base files, in bytes; inserts fill small files up to it.",
    in_table=between(_MIB, _MOST_BYTES),
)
SMALL_FILE_BYTES = Option(
    "hoodie.parquet.small.file.limit",
    integer(0),
    100 * _MIB,
    Phase.INGEST,
    "Base files below this many bytes are small: inserts are added to them; 0 for none.",
    in_table=between(0, _MOST_BYTES),
)
INSERT_SPLIT_ROWS = Option(
    "hoodie.copyonwrite.insert.split.size",
    integer(1),
    500_000,
    Phase.INGEST,
    "The inserts for one new file, where they are not found from the average record size.",
    in_table=between(1_000, 1 << 40),
)
INSERT_AUTO_SPLIT = Option(
    "hoodie.copyonwrite.insert.auto.split",
    boolean,
    True,
    Phase.INGEST,
    "Whether the inserts for one new file are found from the average record size.",
    in_table=ANY_VALUE,
)
RECORD_BYTES_ESTIMATE = Option(
    "hoodie.copyonwrite.record.size.estimate",
    integer(1),
    1024,
    Phase.INGEST,
    "The average record size in bytes, until a commit tells it.",
    in_table=between(1, 1 << 30),
)
RECORD_BYTES_THRESHOLD = Option(
    "hoodie.record.size.estimation.threshold",
    share,
    1.0,
    Phase.INGEST,
    "A commit tells the average record size when it wrote more bytes than this many times the small file limit.",
    in_table=between(0, 1_000),
)
RECORD_BYTES_COMMITS = Option(
    "_hoodie.record.size.estimator.max.commits",
    integer(1),
    5,
    Phase.INGEST,
    "How many of the newest commits may tell the average record size, from table version 8 on.",
    in_table=between(1, 1_000),
)
FILE_METADATA_BYTES = Option(
    "hoodie.record.size.estimator.average.metadata.size",
    integer(0),
    0,
    Phase.INGEST,
    "The bytes of each base file that are not counted for the average record size, from table version 8 on.",
    in_table=between(0, 1 << 30),
)

NULLS_FOR_MISSING = Option(
    "hoodie.write.set.null.for.missing.columns",
    boolean,
    False,
    Phase.INGEST,
    "Whether nullable columns of the table that the rows lack are filled with nulls.",
    in_table=ANY_VALUE,
)
OPERATION = Option(
    "hoodie.datasource.write.operation",
    choice(
        *("UPSERT", "INSERT", "BULK_INSERT", "DELETE"),
        *("INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"),
        undone={
            **dict.fromkeys(("CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"), "is a table service: run its own command"),
            **dict.fromkeys(
                (
                    *("INSERT_PREPPED", "UPSERT_PREPPED", "BULK_INSERT_PREPPED", "DELETE_PREPPED", "BOOTSTRAP"),
                    *("ALTER_SCHEMA", "BUCKET_RESCALE", "UNKNOWN"),
                ),
                "is an operation that only Apache Hudi has",
            ),
        },
    ),
    "UPSERT",
    Phase.INGEST,
    "What `write` does, unless --operation says it: UPSERT, INSERT, BULK_INSERT, DELETE, INSERT_OVERWRITE, "
    "INSERT_OVERWRITE_TABLE or DELETE_PARTITION.",
)
PARTITIONS_TO_DELETE = Option(
    "hoodie.datasource.write.partitions.to.delete",
    names,
    _NO_NAMES,
    Phase.INGEST,
    "The partition paths that delete_partition deletes; * stands for any text.",
)
COMMIT_METADATA_PREFIX = Option(
    "hoodie.datasource.write.commitmeta.key.prefix",
    text,
    "_",
    Phase.INGEST,
    "Given keys with this beginning, known or not, go into the extra metadata of the commit, for checkpoints; when it "
    "is empty, none do.",
)
OVERWRITE_MODE = Option(
    "hoodie.datasource.overwrite.mode",
    only("DYNAMIC"),
    "DYNAMIC",
    Phase.INGEST,
    "Only DYNAMIC: insert_overwrite replaces the partitions of the rows.",
)
INDEX_TYPE = Option(
    "hoodie.index.type",
    choice(
        *("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"),
        *("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX", "BUCKET"),
        undone=dict.fromkeys(("HBASE", "INMEMORY", "FLINK_STATE"), "is an index that only Apache Hudi keeps"),
    ),
    "SIMPLE",
    Phase.INGEST,
    "How upserts and deletes find the rows that are there; where the table has no such index, RECORD_INDEX is "
    "GLOBAL_SIMPLE, and RECORD_LEVEL_INDEX is SIMPLE.",
    in_table=ANY_VALUE,
)
BUCKET_ENGINE = Option(
    "hoodie.index.bucket.engine",
    only("SIMPLE"),
    "SIMPLE",
    Phase.INGEST,
    "Only SIMPLE: by BUCKET, each partition has a fixed number of buckets.",
)
BUCKETS = Option(
    "hoodie.bucket.index.num.buckets",
    integer(1, 99_999),
    256,
    Phase.INGEST,
    "By BUCKET, the number of buckets of each partition, which stays as it was in the first write.",
    in_table=ANY_VALUE,
)
BUCKET_FIELDS = Option(
    "hoodie.bucket.index.hash.field",
    names,
    _NO_NAMES,
    Phase.INGEST,
    "By BUCKET, the record key fields whose values decide the bucket; when empty, all of them.",
    in_table=ANY_VALUE,
)
BUCKET_EXPRESSIONS = Option(
    "hoodie.bucket.index.partition.expressions",
    nothing,
    "",
    Phase.INGEST,
    "Must be empty: all partitions have the same number of buckets.",
)
SIMPLE_MOVES_ROWS = Option(
    "hoodie.simple.index.update.partition.path",
    boolean,
    True,
    Phase.INGEST,
    "By GLOBAL_SIMPLE, whether a row whose partition path has changed moves; otherwise it stays where its key is.",
    in_table=ANY_VALUE,
)
BLOOM_MOVES_ROWS = Option(
    "hoodie.bloom.index.update.partition.path",
    boolean,
    True,
    Phase.INGEST,
    "By GLOBAL_BLOOM, whether a row whose partition path has changed moves; otherwise it stays where its key is.",
    in_table=ANY_VALUE,
)
RECORD_INDEX_MOVES_ROWS = Option(
    "hoodie.record.index.update.partition.path",
    boolean,
    False,
    Phase.INGEST,
    "By RECORD_INDEX, whether a row whose partition path has changed moves; otherwise it stays where its key is.",
    in_table=ANY_VALUE,
)
SMALL_FILE_CANDIDATES = Option(
    "hoodie.merge.small.file.group.candidates.limit",
    integer(1),
    1,
    Phase.INGEST,
    "Merge-on-read: how many small files of a partition inserts are added to; the smallest ones without log files.",
    in_table=ANY_VALUE,
)
LOG_BLOCK_BYTES = Option(
    "hoodie.logfile.data.block.max.size",
    size,
    256 * _MIB,
    Phase.INGEST,
    "Merge-on-read: the size at which a data block of a log file is closed, in bytes.",
    in_table=between(_MIB, _MOST_BYTES),
)
LOG_BLOCK_FORMAT = Option(
    "hoodie.logfile.data.block.format",
    choice(
        *("AVRO", "PARQUET"),
        undone=dict.fromkeys(
            ("HFILE", "DELETE", "COMMAND", ":CORRUPTED", "CDC", "LANCE"), "is no form in which rows are written here"
        ),
    ),
    "AVRO",
    Phase.INGEST,
    "Merge-on-read: the format of the data blocks of log files.",
    in_table=ANY_VALUE,
)
PARTITION_INDEX_GROUPS = Option(
    "hoodie.metadata.record.level.index.min.filegroup.count",
    integer(1, 10_000),
    1,
    Phase.INGEST,
    "The file groups that a record index of each partition gets for a new partition.",
    ("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
    in_table=between(1, 1_000),
)
# What is not done yet is refused, so that it is not ignored: these options have one value each.
COMBINE_BEFORE_UPSERT = Option(
    "hoodie.combine.before.upsert",
    only("true"),
    "true",
    Phase.INGEST,
    "Only true: of rows of one key an upsert writes the one that the merge rule prefers.",
)
COMBINE_BEFORE_DELETE = Option(
    "hoodie.combine.before.delete",
    only("true"),
    "true",
    Phase.INGEST,
    "Only true: a delete takes a key that is given several times once.",
)
COMBINE_BEFORE_INSERT = Option(
    "hoodie.combine.before.insert",
    boolean,
    False,
    Phase.INGEST,
    "Whether of rows of one key an insert writes only the one that the merge rule prefers.",
    in_table=ANY_VALUE,
)
ALLOW_DUPLICATES = Option(
    "hoodie.merge.allow.duplicate.on.inserts",
    only("true"),
    "true",
    Phase.INGEST,
    "Only true: an insert into a small file does not look for rows of the same key.",
)
DUPLICATE_POLICY = Option(
    "hoodie.datasource.insert.dup.policy",
    choice("NONE", "DROP", "FAIL"),
    "NONE",
    Phase.INGEST,
    "What an insert does with a row whose key is there: NONE (write it), DROP (leave it out) or FAIL (write nothing).",
    in_table=ANY_VALUE,
)
DROP_DUPLICATES = Option(
    "hoodie.datasource.write.insert.drop.duplicates",
    boolean,
    False,
    Phase.INGEST,
    "The older name of hoodie.datasource.insert.dup.policy=DROP.",
    in_table=ANY_VALUE,
)
SORT_MODE = Option(
    "hoodie.bulkinsert.sort.mode",
    choice("NONE", "GLOBAL_SORT", "PARTITION_SORT", _BY_PATH, f"{_BY_PATH}_AND_SORT"),
    "NONE",
    Phase.INGEST,
    "GLOBAL_SORT and PARTITION_SORT: a bulk insert sorts the rows of each partition by record key; the others keep the "
    "order of the rows.",
    in_table=ANY_VALUE,
)
BULK_SORT_COLUMNS = Option(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    names,
    _NO_NAMES,
    Phase.INGEST,
    "A bulk insert sorts the rows of each partition by these columns, whatever the sort mode is.",
    in_table=ANY_VALUE,
)
BULK_SORT_SUFFIX = Option(
    "hoodie.bulkinsert.sort.suffix.record_key",
    boolean,
    False,
    Phase.INGEST,
    "Rows that are equal in the columns of the row above are sorted by record key.",
    in_table=ANY_VALUE,
)
BULK_PARTITIONER = Option(
    "hoodie.bulkinsert.user.defined.partitioner.class",
    one_of(
        {
            name: name
            for name in ("", *(f"{_PARTITIONERS}.{kind}CustomColumnsSortPartitioner" for kind in ("Row", "RDD")))
        },
        "cannot be run here: of Hudi's partitioners only the two that sort by "
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns are known",
    ),
    "",
    Phase.INGEST,
    "Only Hudi's two partitioners that sort by the columns of hoodie.bulkinsert.user.defined.partitioner.sort.columns.",
)

METADATA_ENABLE = Option(
    "hoodie.metadata.enable",
    boolean,
    True,
    Phase.INGEST,
    "Whether the first write to a table makes its metadata table.",
    in_table=ANY_VALUE,
)
COLUMN_STATS_ENABLE = Option(
    "hoodie.metadata.index.column.stats.enable",
    choice("", "TRUE", "FALSE"),
    "",
    Phase.INGEST,
    "Whether a new metadata table has column statistics; when empty, from table version 8 on.",
)
COLUMN_STATS_COLUMNS = Option(
    "hoodie.metadata.index.column.stats.column.list",
    names,
    _NO_NAMES,
    Phase.INGEST,
    "The columns with statistics in a new metadata table; when empty, the first columns.",
)
COLUMN_STATS_MOST = Option(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    integer(1),
    32,
    Phase.INGEST,
    "How many columns have statistics in a new metadata table, when they are not listed.",
)
COLUMN_STATS_GROUPS = Option(
    "hoodie.metadata.index.column.stats.file.group.count",
    integer(1, 1_000),
    2,
    Phase.INGEST,
    "The file groups of the column statistics in a new metadata table.",
)
PARTITION_STATS_ENABLE = Option(
    "hoodie.metadata.index.partition.stats.enable",
    boolean,
    True,
    Phase.INGEST,
    "Whether a new metadata table with column statistics has partition statistics, too, from table version 8 on; the "
    "writers of Hudi 1.1 and later add them.",
)
PARTITION_STATS_GROUPS = Option(
    "hoodie.metadata.index.partition.stats.file.group.count",
    integer(1, 1_000),
    1,
    Phase.INGEST,
    "The file groups of the partition statistics in a new metadata table.",
)

TABLE_SERVICES = Option(
    "hoodie.table.services.enabled",
    boolean,
    True,
    Phase.INGEST,
    "Whether table services run after a write, where the options below say so.",
    in_table=ANY_VALUE,
)
CLEAN_AUTOMATIC = Option(
    "hoodie.clean.automatic",
    boolean,
    True,
    Phase.INGEST,
    "Whether a write is followed by a clean.",
    in_table=ANY_VALUE,
)
ARCHIVE_AUTOMATIC = Option(
    "hoodie.archive.automatic",
    boolean,
    True,
    Phase.INGEST,
    "Whether a write is followed by an archival of the timeline.",
    in_table=ANY_VALUE,
)
COMPACT_INLINE = Option(
    "hoodie.compact.inline",
    boolean,
    False,
    Phase.INGEST,
    "Whether a write to a merge-on-read table is followed by a compaction, when one is due.",
    in_table=ANY_VALUE,
)
COMPACT_SCHEDULE_INLINE = Option(
    "hoodie.compact.schedule.inline",
    boolean,
    False,
    Phase.INGEST,
    "Whether a write to a merge-on-read table is followed by the plan of a compaction, when one is due.",
    in_table=ANY_VALUE,
)
CLUSTERING_INLINE = Option(
    "hoodie.clustering.inline",
    boolean,
    False,
    Phase.INGEST,
    "Whether a write is followed by a clustering, every 4 commits or hoodie.clustering.inline.max.commits.",
    ("hoodie.datasource.clustering.inline.enable",),
    in_table=ANY_VALUE,
)
CLUSTERING_ASYNC = Option(
    "hoodie.clustering.async.enabled",
    boolean,
    False,
    Phase.INGEST,
    "Whether a write is followed by the plan of a clustering, every 4 commits or hoodie.clustering.async.max.commits.",
    ("hoodie.datasource.clustering.async.enable", "hoodie.clustering.schedule.inline"),
    in_table=ANY_VALUE,
)
FAIL_WITH_SERVICES = Option(
    "hoodie.fail.writes.on.inline.table.service.exception",
    boolean,
    True,
    Phase.INGEST,
    "Whether a failed table service after a write ends the run as partly done; otherwise it is a warning.",
)

ALL: tuple[Option[Any], ...] = tuple(value for value in list(globals().values()) if isinstance(value, Option))
