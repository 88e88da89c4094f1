"""The options of writes: what is asked for, and how large files get.

Sources: HoodieStorageConfig, HoodieCompactionConfig, HoodieWriteConfig and DataSourceOptions of Apache Hudi 0.15.0 to
1.2.0.
"""

from ..limits import MIB
from .option import ANY_VALUE, NEVER, Phase, Section, between
from .value_types import NO_NAMES, choice, integer, nothing, one_of, only, share, size

_BY_PATH = "PARTITION_PATH_REPARTITION"
_PARTITIONERS = "org.apache.hudi.execution.bulkinsert"
_MOST_BYTES = 8 << 30
"""Of a file that a table may ask for itself."""

WRITING = Section("Writing rows", Phase.INGEST, ANY_VALUE)
_AND_INDEX = Phase.INGEST | Phase.INDEX
"""A new metadata table is made by a write, or built for a table that is there."""
MAX_FILE_BYTES = WRITING(
    "hoodie.parquet.max.file.size",
    120 * MIB,
    "The size of new base files, in bytes; inserts fill small files up to it.",
    parse=size,
    phase=Phase.INGEST | Phase.PLAN,
    in_table=between(MIB, _MOST_BYTES),
)
SMALL_FILE_BYTES = WRITING(
    "hoodie.parquet.small.file.limit",
    100 * MIB,
    "Base files below this many bytes are small: inserts are added to them; 0 for none.",
    parse=integer(0),
    in_table=between(0, _MOST_BYTES),
)
INSERT_SPLIT_ROWS = WRITING(
    "hoodie.copyonwrite.insert.split.size",
    500_000,
    "The inserts for one new file, where they are not found from the average record size.",
    parse=integer(1),
    in_table=between(1_000, 1 << 40),
)
INSERT_AUTO_SPLIT = WRITING(
    "hoodie.copyonwrite.insert.auto.split",
    True,
    "Whether the inserts for one new file are found from the average record size.",
)
RECORD_BYTES_ESTIMATE = WRITING(
    "hoodie.copyonwrite.record.size.estimate",
    1024,
    "The average record size in bytes, until a commit tells it.",
    parse=integer(1),
    in_table=between(1, 1 << 30),
)
RECORD_BYTES_THRESHOLD = WRITING(
    "hoodie.record.size.estimation.threshold",
    1.0,
    "A commit tells the average record size when it wrote more bytes than this many times the small file limit.",
    parse=share,
    in_table=between(0, 1_000),
)
RECORD_BYTES_COMMITS = WRITING(
    "_hoodie.record.size.estimator.max.commits",
    5,
    "How many of the newest commits may tell the average record size, from table version 8 on.",
    parse=integer(1),
    in_table=between(1, 1_000),
)
FILE_METADATA_BYTES = WRITING(
    "hoodie.record.size.estimator.average.metadata.size",
    0,
    "The bytes of each base file that are not counted for the average record size, from table version 8 on.",
    parse=integer(0),
    in_table=between(0, 1 << 30),
)
NULLS_FOR_MISSING = WRITING(
    "hoodie.write.set.null.for.missing.columns",
    False,
    "Whether nullable columns of the table that the rows lack are filled with nulls.",
)
OPERATION = WRITING(
    "hoodie.datasource.write.operation",
    "UPSERT",
    "What `write` does, unless --operation says it: UPSERT, INSERT, BULK_INSERT, DELETE, INSERT_OVERWRITE, "
    "INSERT_OVERWRITE_TABLE or DELETE_PARTITION.",
    parse=choice(
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
    in_table=NEVER,
)
PARTITIONS_TO_DELETE = WRITING(
    "hoodie.datasource.write.partitions.to.delete",
    NO_NAMES,
    "The partition paths that delete_partition deletes; * stands for any text.",
    in_table=NEVER,
)
COMMIT_METADATA_PREFIX = WRITING(
    "hoodie.datasource.write.commitmeta.key.prefix",
    "_",
    "Given keys with this beginning, known or not, go into the extra metadata of the commit, for checkpoints; when it "
    "is empty, none do.",
    in_table=NEVER,
)
OVERWRITE_MODE = WRITING(
    "hoodie.datasource.overwrite.mode",
    "DYNAMIC",
    "Only DYNAMIC: insert_overwrite replaces the partitions of the rows.",
    parse=only("DYNAMIC"),
    in_table=NEVER,
)
INDEX_TYPE = WRITING(
    "hoodie.index.type",
    "SIMPLE",
    "How upserts and deletes find the rows that are there; where the table has no such index, RECORD_INDEX is "
    "GLOBAL_SIMPLE, and RECORD_LEVEL_INDEX is SIMPLE.",
    parse=choice(
        *("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"),
        *("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX", "BUCKET"),
        undone=dict.fromkeys(("HBASE", "INMEMORY", "FLINK_STATE"), "is an index that only Apache Hudi keeps"),
    ),
)
BUCKET_ENGINE = WRITING(
    "hoodie.index.bucket.engine",
    "SIMPLE",
    "By BUCKET: SIMPLE, each partition has a fixed number of buckets; CONSISTENT_HASHING, clusterings split and merge "
    "them (merge-on-read tables).",
    parse=choice("SIMPLE", "CONSISTENT_HASHING"),
    in_table=NEVER,
)
BUCKETS = WRITING(
    "hoodie.bucket.index.num.buckets",
    256,
    "By BUCKET, the number of buckets of each partition, which stays as it was in the first write.",
    parse=integer(1, 99_999),
)
BUCKET_FIELDS = WRITING(
    "hoodie.bucket.index.hash.field",
    NO_NAMES,
    "By BUCKET, the record key fields whose values decide the bucket; when empty, all of them.",
    phase=Phase.INGEST | Phase.CLUSTERING,
)
BUCKET_EXPRESSIONS = WRITING(
    "hoodie.bucket.index.partition.expressions",
    "",
    "Must be empty: all partitions have the same number of buckets.",
    parse=nothing,
    in_table=NEVER,
)
SIMPLE_MOVES_ROWS = WRITING(
    "hoodie.simple.index.update.partition.path",
    True,
    "By GLOBAL_SIMPLE, whether a row whose partition path has changed moves; otherwise it stays where its key is.",
)
BLOOM_MOVES_ROWS = WRITING(
    "hoodie.bloom.index.update.partition.path",
    True,
    "By GLOBAL_BLOOM, whether a row whose partition path has changed moves; otherwise it stays where its key is.",
)
RECORD_INDEX_MOVES_ROWS = WRITING(
    "hoodie.record.index.update.partition.path",
    False,
    "By RECORD_INDEX, whether a row whose partition path has changed moves; otherwise it stays where its key is.",
)
SMALL_FILE_CANDIDATES = WRITING(
    "hoodie.merge.small.file.group.candidates.limit",
    1,
    "Merge-on-read: how many small files of a partition inserts are added to; the smallest ones without log files.",
    parse=integer(1),
)
LOG_BLOCK_BYTES = WRITING(
    "hoodie.logfile.data.block.max.size",
    256 * MIB,
    "Merge-on-read, and change data capture: the size at which a data block of a log file is closed, in bytes.",
    parse=size,
    in_table=between(MIB, _MOST_BYTES),
)
LOG_FILE_BYTES = WRITING(
    "hoodie.logfile.max.size",
    1024 * MIB,
    "Change data capture: a log of changes that is larger is followed by another one, in bytes.",
    parse=size,
    in_table=between(MIB, _MOST_BYTES),
)
LOG_BLOCK_FORMAT = WRITING(
    "hoodie.logfile.data.block.format",
    "AVRO",
    "Merge-on-read: the format of the data blocks of log files.",
    parse=choice(
        *("AVRO", "PARQUET"),
        undone=dict.fromkeys(
            ("HFILE", "DELETE", "COMMAND", ":CORRUPTED", "CDC", "LANCE"), "is no form in which rows are written here"
        ),
    ),
)
# What is not done yet is refused, so that it is not ignored: these options have one value each.
COMBINE_BEFORE_UPSERT = WRITING(
    "hoodie.combine.before.upsert",
    "true",
    "Only true: of rows of one key an upsert writes the one that the merge rule prefers.",
    parse=only("true"),
    in_table=NEVER,
)
COMBINE_BEFORE_DELETE = WRITING(
    "hoodie.combine.before.delete",
    "true",
    "Only true: a delete takes a key that is given several times once.",
    parse=only("true"),
    in_table=NEVER,
)
COMBINE_BEFORE_INSERT = WRITING(
    "hoodie.combine.before.insert",
    False,
    "Whether of rows of one key an insert writes only the one that the merge rule prefers.",
)
ALLOW_DUPLICATES = WRITING(
    "hoodie.merge.allow.duplicate.on.inserts",
    "true",
    "Only true: an insert into a small file does not look for rows of the same key.",
    parse=only("true"),
    in_table=NEVER,
)
DUPLICATE_POLICY = WRITING(
    "hoodie.datasource.insert.dup.policy",
    "NONE",
    "What an insert does with a row whose key is there: NONE (write it), DROP (leave it out) or FAIL (write nothing).",
    parse=choice("NONE", "DROP", "FAIL"),
)
DROP_DUPLICATES = WRITING(
    "hoodie.datasource.write.insert.drop.duplicates",
    False,
    "The older name of hoodie.datasource.insert.dup.policy=DROP.",
)
SORT_MODE = WRITING(
    "hoodie.bulkinsert.sort.mode",
    "NONE",
    "GLOBAL_SORT and PARTITION_SORT: a bulk insert sorts the rows of each partition by record key; the others keep the "
    "order of the rows.",
    parse=choice("NONE", "GLOBAL_SORT", "PARTITION_SORT", _BY_PATH, f"{_BY_PATH}_AND_SORT"),
)
BULK_SORT_COLUMNS = WRITING(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    NO_NAMES,
    "A bulk insert sorts the rows of each partition by these columns, whatever the sort mode is.",
)
BULK_SORT_SUFFIX = WRITING(
    "hoodie.bulkinsert.sort.suffix.record_key",
    False,
    "Rows that are equal in the columns of the row above are sorted by record key.",
)
BULK_PARTITIONER = WRITING(
    "hoodie.bulkinsert.user.defined.partitioner.class",
    "",
    "Only Hudi's two partitioners that sort by the columns of hoodie.bulkinsert.user.defined.partitioner.sort.columns.",
    parse=one_of(
        {
            name: name
            for name in ("", *(f"{_PARTITIONERS}.{kind}CustomColumnsSortPartitioner" for kind in ("Row", "RDD")))
        },
        "cannot be run here: of Hudi's partitioners only the two that sort by "
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns are known",
    ),
    in_table=NEVER,
)
METADATA_ENABLE = WRITING(
    "hoodie.metadata.enable", True, "Whether the first write to a table makes its metadata table.", keeps="files"
)
COLUMN_STATS_ENABLE = WRITING(
    "hoodie.metadata.index.column.stats.enable",
    "",
    "Whether a new metadata table has column statistics; when empty, from table version 8 on.",
    parse=choice("", "TRUE", "FALSE"),
    in_table=NEVER,
    keeps="column_stats",
)
COLUMN_STATS_COLUMNS = WRITING(
    "hoodie.metadata.index.column.stats.column.list",
    NO_NAMES,
    "The columns with statistics in a new metadata table; when empty, the first columns.",
    phase=_AND_INDEX,
    in_table=NEVER,
)
COLUMN_STATS_MOST = WRITING(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    "How many columns have statistics in a new metadata table, when they are not listed.",
    parse=integer(1),
    phase=_AND_INDEX,
    in_table=NEVER,
)
COLUMN_STATS_GROUPS = WRITING(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    "The file groups of the column statistics in a new metadata table.",
    parse=integer(1, 1_000),
    phase=_AND_INDEX,
    in_table=NEVER,
)
PARTITION_STATS_ENABLE = WRITING(
    "hoodie.metadata.index.partition.stats.enable",
    True,
    "Whether a new metadata table with column statistics has partition statistics, too, from table version 8 on; the "
    "writers of Hudi 1.1 and later add them.",
    phase=_AND_INDEX,
    in_table=NEVER,
)
PARTITION_STATS_GROUPS = WRITING(
    "hoodie.metadata.index.partition.stats.file.group.count",
    1,
    "The file groups of the partition statistics in a new metadata table.",
    parse=integer(1, 1_000),
    phase=_AND_INDEX,
    in_table=NEVER,
)
TABLE_SERVICES = WRITING(
    "hoodie.table.services.enabled", True, "Whether table services run after a write, where the options below say so."
)
CLEAN_AUTOMATIC = WRITING("hoodie.clean.automatic", True, "Whether a write is followed by a clean.")
ARCHIVE_AUTOMATIC = WRITING(
    "hoodie.archive.automatic", True, "Whether a write is followed by an archival of the timeline."
)
COMPACT_INLINE = WRITING(
    "hoodie.compact.inline",
    False,
    "Whether a write to a merge-on-read table is followed by a compaction, when one is due.",
)
COMPACT_SCHEDULE_INLINE = WRITING(
    "hoodie.compact.schedule.inline",
    False,
    "Whether a write to a merge-on-read table is followed by the plan of a compaction, when one is due.",
)
CLUSTERING_INLINE = WRITING(
    "hoodie.clustering.inline",
    False,
    "Whether a write is followed by a clustering, every 4 commits or hoodie.clustering.inline.max.commits.",
    ("hoodie.datasource.clustering.inline.enable",),
)
CLUSTERING_ASYNC = WRITING(
    "hoodie.clustering.async.enabled",
    False,
    "Whether a write is followed by the plan of a clustering, every 4 commits or hoodie.clustering.async.max.commits.",
    ("hoodie.datasource.clustering.async.enable", "hoodie.clustering.schedule.inline"),
)
FAIL_WITH_SERVICES = WRITING(
    "hoodie.fail.writes.on.inline.table.service.exception",
    True,
    "Whether a failed table service after a write ends the run as partly done; otherwise it is a warning.",
    in_table=NEVER,
)
