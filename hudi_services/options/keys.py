"""Every option that the services honour, with its key and default.

Sources: HoodieClusteringConfig, HoodieLayoutConfig, HoodieStorageConfig, HoodieIndexConfig, HoodieLockConfig,
HoodieWriteConfig, HoodieTimeGeneratorConfig and HoodieMetadataConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

from typing import Any

from ..limits import LEAST_BLOOM_RATE, MOST_BLOOM_ENTRIES
from . import creation_keys, lock_keys, writing_keys
from .option import (
    ANY_VALUE,
    BUT_CODE,
    Option,
    Phase,
    between,
    boolean,
    choice,
    factor,
    fraction,
    function_name,
    instant,
    integer,
    memory,
    named,
    names,
    one_of,
    pattern,
    size,
    some_of,
    text,
)

_PLAN_PACKAGE = "org.apache.hudi.client.clustering.plan.strategy"
_PLAN_CLASSES = {
    f"{_PLAN_PACKAGE}.SparkSizeBasedClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.JavaSizeBasedClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.FlinkSizeBasedClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.SparkStreamCopyClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.SparkSingleFileSortPlanStrategy": "single_file",
    "org.apache.hudi.table.action.cluster.strategy.CommitBasedClusteringPlanStrategy": "commit_time",
}
_PLAN_NAMES = ("size", "commit_time", "key_range", "overlap", "random", "single_file")

_RUN_PACKAGE = "org.apache.hudi.client.clustering.run.strategy"
SORT_AND_SIZE_EXECUTION = f"{_RUN_PACKAGE}.SparkSortAndSizeExecutionStrategy"
SINGLE_FILE_EXECUTION = f"{_RUN_PACKAGE}.SparkSingleFileSortExecutionStrategy"
COPY_EXECUTIONS = (
    f"{_RUN_PACKAGE}.SparkStreamCopyClusteringExecutionStrategy",
    f"{_RUN_PACKAGE}.SparkBinaryCopyClusteringExecutionStrategy",
)
_EXECUTION_CLASSES = {
    **{name: name for name in (SORT_AND_SIZE_EXECUTION, SINGLE_FILE_EXECUTION, *COPY_EXECUTIONS)},
    f"{_RUN_PACKAGE}.JavaSortAndSizeExecutionStrategy": SORT_AND_SIZE_EXECUTION,
}
_OF_BUCKETS = "splits and merges the buckets of an index, which only Apache Hudi does"
_UNDONE_EXECUTIONS = {
    f"{_RUN_PACKAGE}.SparkConsistentBucketClusteringExecutionStrategy": _OF_BUCKETS,
    f"{_RUN_PACKAGE}.SingleSparkJobConsistentHashingExecutionStrategy": _OF_BUCKETS,
    f"{_RUN_PACKAGE}.SparkExternalFileClusteringExecutionStrategy": "calls a program of the operator's, which only "
    "Apache Hudi does",
}
_UNDONE_PLANS = dict.fromkeys(
    (f"{_PLAN_PACKAGE}.{engine}ConsistentBucketClusteringPlanStrategy" for engine in ("Spark", "Flink")),
    _OF_BUCKETS,
)

_COMPACTION_PACKAGE = "org.apache.hudi.table.action.compact.strategy"
_COMPACTION_NAMES = {
    "log_file_size": "LogFileSizeBased",
    "log_file_number": "LogFileNumBased",
    "bounded_io": "BoundedIO",
    "unbounded": "UnBounded",
    "day_based": "DayBased",
}
_COMPACTION_CLASSES = {name: name for name in _COMPACTION_NAMES} | {
    f"{_COMPACTION_PACKAGE}.{of_class}CompactionStrategy": name for name, of_class in _COMPACTION_NAMES.items()
}

DEPRECATED_PLAN_FILTERS = {
    f"{_PLAN_PACKAGE}.SparkRecentDaysClusteringPlanStrategy": "RECENT_DAYS",
    f"{_PLAN_PACKAGE}.SparkSelectedPartitionsClusteringPlanStrategy": "SELECTED_PARTITIONS",
    f"{_PLAN_PACKAGE}.JavaRecentDaysClusteringPlanStrategy": "RECENT_DAYS",
}
"""Old plan strategies that mean the size-based strategy with this partition filter mode, whatever mode is set
(ClusteringPlanStrategy.checkAndGetClusteringPlanStrategy)."""

TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME")
"""The names of CompactionTriggerStrategy."""

_HOURS = 876_000
_MINUTES = 60 * _HOURS
"""A century: a larger value is a mistake, and beyond the range of times."""
_DAY_MILLIS = 86_400_000

_PARQUET_CODECS = {
    "": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
}


def _codec(value: str) -> str:
    if value.lower() not in _PARQUET_CODECS:
        known = ", ".join(sorted(filter(None, _PARQUET_CODECS)))
        raise ValueError(f"is no codec that every Hudi reader has: the choice is {known}")
    return _PARQUET_CODECS[value.lower()]


def _compaction(value: str) -> str:
    if "," in value:
        raise ValueError("are several strategies one after the other, which only Apache Hudi takes: name one")
    return _one_compaction(value)


_one_compaction = one_of(
    _COMPACTION_CLASSES,
    f"is none of {', '.join(_COMPACTION_NAMES)}, and no class of Hudi's for one of these",
    {
        f"{_COMPACTION_PACKAGE}.{name}CompactionStrategy": "chooses partitions by a rule that only Apache Hudi has: "
        "use day_based"
        for name in ("BoundedPartitionAware", "UnBoundedPartitionAware", "PartitionRegexBased")
    },
)


def _execution(value: str) -> str:
    if value in _UNDONE_EXECUTIONS:
        raise ValueError(_UNDONE_EXECUTIONS[value])
    if value not in _EXECUTION_CLASSES:
        raise ValueError(f"is an execution strategy that is not supported: use {SORT_AND_SIZE_EXECUTION}")
    return _EXECUTION_CLASSES[value]


# Which file groups: the plan.

PLAN_STRATEGY_CLASS = Option(
    "hoodie.clustering.plan.strategy.class",
    named(
        {name: name for name in _PLAN_NAMES} | _PLAN_CLASSES | dict.fromkeys(DEPRECATED_PLAN_FILTERS, "size"),
        "Class",
        _UNDONE_PLANS,
    ),
    "size",
    Phase.PLAN,
    "How file slices are put into groups: size, commit_time, key_range, overlap, random, single_file, Hudi's class for "
    "one of these, or package.module:Class.",
    in_table=BUT_CODE,
)
PLAN_COLUMNS: Option[tuple[str, ...]] = Option(
    "hudi.services.clustering.plan.columns",
    names,
    (),
    Phase.PLAN,
    "overlap: the columns whose values must overlap (comma list); when not set, the sort columns.",
    in_table=ANY_VALUE,
)
EARLIEST_COMMIT = Option(
    "hoodie.clustering.plan.strategy.earliest.commit.to.cluster",
    instant,
    "",
    Phase.PLAN,
    "commit_time: files of commits up to and including this instant are left out.",
    in_table=ANY_VALUE,
)
PLAN_SEED = Option(
    "hudi.services.clustering.plan.seed",
    integer(0),
    0,
    Phase.PLAN,
    "random: the seed of the random order.",
    in_table=ANY_VALUE,
)
PLAN_ORDER = Option(
    "hudi.services.clustering.plan.order",
    choice("PARTITION", "GAIN"),
    "PARTITION",
    Phase.PLAN,
    "The order of groups: PARTITION, or GAIN (first the groups that save the most files for each rewritten byte).",
    in_table=ANY_VALUE,
)
PLAN_BUDGET: Option[int | None] = Option(
    "hudi.services.clustering.plan.max.bytes",
    size,
    None,
    Phase.PLAN,
    "Bytes of input for a whole plan; groups that do not fit are left for the next plan.",
    in_table=ANY_VALUE,
)
INLINE_MAX_COMMITS: Option[int | None] = Option(
    "hoodie.clustering.inline.max.commits",
    integer(0),
    None,
    Phase.PLAN,
    "Write a plan only after this many commits since the last clustering; when not set, at every run.",
    in_table=ANY_VALUE,
)
ASYNC_MAX_COMMITS: Option[int | None] = Option(
    "hoodie.clustering.async.max.commits",
    integer(0),
    None,
    Phase.PLAN,
    "The same as hoodie.clustering.inline.max.commits; the larger number counts.",
    in_table=ANY_VALUE,
)
EXECUTION_STRATEGY_CLASS = Option(
    "hoodie.clustering.execution.strategy.class",
    _execution,
    SORT_AND_SIZE_EXECUTION,
    Phase.PLAN,
    "How groups are rewritten: Hudi's class for sorting and sizing, for single files, or for copying.",
    in_table=ANY_VALUE,
)
PARTITION_FILTER_MODE = Option(
    "hoodie.clustering.plan.partition.filter.mode",
    choice("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"),
    "NONE",
    Phase.PLAN,
    "Which partitions are clustered: NONE (all), RECENT_DAYS (the newest), SELECTED_PARTITIONS (a range), or "
    "DAY_ROLLING (one in 24, by the hour of the day).",
    in_table=ANY_VALUE,
)
PARTITIONS_SELECTED: Option[tuple[str, ...]] = Option(
    "hoodie.clustering.plan.strategy.partition.selected",
    names,
    (),
    Phase.PLAN,
    "Cluster these partitions (comma list) instead of all; the filter mode still applies.",
    in_table=ANY_VALUE,
)
PARTITION_REGEX = Option(
    "hoodie.clustering.plan.strategy.partition.regex.pattern",
    pattern,
    "",
    Phase.PLAN,
    "Cluster the partitions whose whole path matches this regular expression.",
)
BEGIN_PARTITION = Option(
    "hoodie.clustering.plan.strategy.cluster.begin.partition",
    text,
    "",
    Phase.PLAN,
    "SELECTED_PARTITIONS: the first partition, by string order.",
    in_table=ANY_VALUE,
)
END_PARTITION = Option(
    "hoodie.clustering.plan.strategy.cluster.end.partition",
    text,
    "",
    Phase.PLAN,
    "SELECTED_PARTITIONS: the last partition, by string order.",
    in_table=ANY_VALUE,
)
LOOKBACK_PARTITIONS = Option(
    "hoodie.clustering.plan.strategy.daybased.lookback.partitions",
    integer(0),
    2,
    Phase.PLAN,
    "RECENT_DAYS: the number of partitions.",
    in_table=ANY_VALUE,
)
SKIP_FROM_LATEST = Option(
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
    integer(0),
    0,
    Phase.PLAN,
    "RECENT_DAYS: the number of newest partitions to leave out first.",
    in_table=ANY_VALUE,
)
SMALL_FILE_LIMIT = Option(
    "hoodie.clustering.plan.strategy.small.file.limit",
    integer(0),
    300 << 20,
    Phase.PLAN,
    "Files below this many bytes are eligible.",
    in_table=ANY_VALUE,
)
TARGET_FILE_BYTES = Option(
    "hoodie.clustering.plan.strategy.target.file.max.bytes",
    size,
    1 << 30,
    Phase.PLAN,
    "Bytes of input for each new file.",
    in_table=between(1 << 20, 1 << 40),
)
MAX_BYTES_PER_GROUP = Option(
    "hoodie.clustering.plan.strategy.max.bytes.per.group",
    size,
    2 << 30,
    Phase.PLAN,
    "Bytes of input for each clustering group; a group takes at least one file.",
    in_table=ANY_VALUE,
)
MAX_NUM_GROUPS = Option(
    "hoodie.clustering.plan.strategy.max.num.groups",
    integer(1),
    30,
    Phase.PLAN,
    "Groups in one plan.",
    in_table=ANY_VALUE,
)
SINGLE_GROUP = Option(
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
    boolean,
    True,
    Phase.PLAN,
    "Whether a group of one file that becomes one file is rewritten.",
    in_table=ANY_VALUE,
)
FILE_SLICES_SORT_BY: Option[tuple[str, ...]] = Option(
    "hoodie.clustering.plan.strategy.file.slices.sort.by",
    some_of("SIZE", "INSTANT_TIME"),
    ("SIZE",),
    Phase.PLAN,
    "size: the order in which files are packed: SIZE (largest first), INSTANT_TIME (oldest first), or both (comma "
    "list).",
    in_table=ANY_VALUE,
)

# The order of rows.

SORT_COLUMNS = Option(
    "hoodie.clustering.plan.strategy.sort.columns",
    text,
    "",
    Phase.PLAN,
    "Comma list of columns, each with an optional asc or desc and nulls first or nulls last.",
    in_table=ANY_VALUE,
)
NO_LAYOUT = "NONE"
LAYOUT_STRATEGY = Option(
    "hoodie.layout.optimize.strategy",
    named({name: name for name in ("LINEAR", "ZORDER", "HILBERT", NO_LAYOUT)} | {"z-order": "ZORDER"}, "Class"),
    "LINEAR",
    Phase.CLUSTERING,
    "How sort columns order rows: LINEAR, ZORDER, HILBERT, NONE (not at all), or package.module:Class. When not set, "
    "`execute` uses the layout of the plan.",
    in_table=BUT_CODE,
)

# New base files.

MAX_PARALLELISM: Option[int | None] = Option(
    "hoodie.clustering.max.parallelism",
    integer(1, 1_000_000),
    None,
    Phase.WRITE | Phase.INDEX,
    "The largest number of groups, or of tasks of an index build, that run at once; when not set, no limit.",
)
MEMORY_PER_TASK: Option[int | None] = Option(
    "hudi.services.memory.per.task",
    memory,
    None,
    Phase.CLUSTERING | Phase.INGEST,
    "Memory for the data of one task, for example 512m or 4g; when not set, the memory that Spark's settings leave for "
    "Python.",
)
PARQUET_CODEC = Option(
    "hoodie.parquet.compression.codec",
    _codec,
    "zstd",
    Phase.WRITE | Phase.INGEST,
    "Codec of new files: uncompressed, snappy, gzip or zstd.",
    in_table=ANY_VALUE,
)
PARQUET_BLOCK_BYTES = Option(
    "hoodie.parquet.block.size",
    size,
    120 << 20,
    Phase.WRITE | Phase.INGEST,
    "Bytes of a row group; in unsorted groups, row groups of a sixteenth (on average) to twice this size are copied, "
    "not decoded.",
    in_table=between(1 << 20, 1 << 30),
)
PARQUET_PAGE_BYTES = Option(
    "hoodie.parquet.page.size",
    size,
    1 << 20,
    Phase.WRITE | Phase.INGEST,
    "Bytes of a page; copied pages keep their size.",
    in_table=between(1 << 10, 64 << 20),
)
PARQUET_BLOOM_ENABLED = Option(
    "hoodie.parquet.bloom.filter.enabled",
    boolean,
    True,
    Phase.WRITE | Phase.INGEST,
    "Whether footers carry Hudi's bloom filter.",
    in_table=ANY_VALUE,
)
BLOOM_ENTRIES = Option(
    "hoodie.index.bloom.num_entries",
    integer(1, (1 << 31) - 1),
    60_000,
    Phase.WRITE | Phase.INGEST,
    "The number of keys that the bloom filter is sized for.",
    in_table=between(1_000, MOST_BLOOM_ENTRIES),
)
BLOOM_FPP = Option(
    "hoodie.index.bloom.fpp",
    fraction,
    1e-9,
    Phase.WRITE | Phase.INGEST,
    "False-positive rate of the bloom filter.",
    in_table=between(LEAST_BLOOM_RATE, 1),
)
BLOOM_MAX_ENTRIES = Option(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    integer(1, (1 << 31) - 1),
    100_000,
    Phase.WRITE | Phase.INGEST,
    "The number of keys up to which a dynamic bloom filter grows.",
    in_table=between(1_000, MOST_BLOOM_ENTRIES),
)
BLOOM_TYPE = Option(
    "hoodie.bloom.index.filter.type",
    choice("SIMPLE", "DYNAMIC_V0"),
    "DYNAMIC_V0",
    Phase.WRITE | Phase.INGEST,
    "Kind of bloom filter.",
    in_table=ANY_VALUE,
)

SESSION_TIME_ZONE = Option(
    "spark.sql.session.timeZone",
    text,
    "",
    Phase.CLUSTERING | Phase.REPAIR | Phase.INGEST,
    "Time zone in which the writers' Spark sessions compute expression indexes; when empty, the zone of this process.",
)

# The metadata table.

METADATA_COMPACT_COMMITS = Option(
    "hoodie.metadata.compact.max.delta.commits",
    integer(1),
    10,
    Phase.WRITE | Phase.INGEST | Phase.ARCHIVE,
    "`execute` and `compact` compact the metadata table after this many delta commits since its last compaction.",
    in_table=ANY_VALUE,
)
METADATA_COMPACT_TRIGGER = Option(
    "hoodie.metadata.compact.trigger.strategy",
    choice(*TRIGGERS),
    "NUM_COMMITS",
    Phase.WRITE | Phase.INGEST | Phase.ARCHIVE,
    "When the metadata table is compacted: after delta commits, after a time, or after one of them or both.",
    in_table=ANY_VALUE,
)
METADATA_COMPACT_SECONDS = Option(
    "hoodie.metadata.compact.max.delta.seconds",
    integer(1),
    7_200,
    Phase.WRITE | Phase.INGEST,
    "TIME_ELAPSED, NUM_OR_TIME, NUM_AND_TIME: the metadata table is compacted only after this many seconds since its "
    "last compaction.",
    in_table=ANY_VALUE,
)
METADATA_CLEANS_FOLLOW = Option(
    "hoodie.metadata.derive.from.datatable.clean.policy",
    boolean,
    True,
    Phase.WRITE | Phase.INGEST | Phase.ARCHIVE,
    "Whether the metadata table is cleaned by the policy of the table's cleans; otherwise two file slices of each file "
    "group are kept.",
    in_table=ANY_VALUE,
)

# Compaction.

COMPACTION_STRATEGY = Option(
    "hoodie.compaction.strategy",
    _compaction,
    "log_file_size",
    Phase.COMPACTION,
    "Which file groups are compacted: log_file_size (those with the most log bytes first), log_file_number, "
    "bounded_io, unbounded, day_based, or Hudi's class for one of these.",
    in_table=ANY_VALUE,
)
COMPACTION_TRIGGER = Option(
    "hoodie.compact.inline.trigger.strategy",
    choice(*TRIGGERS),
    "NUM_COMMITS",
    Phase.COMPACTION | Phase.ARCHIVE,
    "When a plan is written: after delta commits, after a time, or after one of them or both.",
    in_table=ANY_VALUE,
)
COMPACTION_COMMITS = Option(
    "hoodie.compact.inline.max.delta.commits",
    integer(1),
    5,
    Phase.COMPACTION | Phase.ARCHIVE,
    "Write a plan only after this many delta commits since the last compaction.",
    in_table=ANY_VALUE,
)
COMPACTION_SECONDS = Option(
    "hoodie.compact.inline.max.delta.seconds",
    integer(1),
    3600,
    Phase.COMPACTION,
    "TIME_ELAPSED, NUM_OR_TIME, NUM_AND_TIME: write a plan only after this many seconds since the last compaction.",
    in_table=ANY_VALUE,
)
COMPACTION_IO = Option(
    "hoodie.compaction.target.io",
    integer(0),
    500 * 1024,
    Phase.COMPACTION,
    "log_file_size, log_file_number, bounded_io: megabytes that one compaction reads and writes.",
    in_table=ANY_VALUE,
)
COMPACTION_LOG_BYTES = Option(
    "hoodie.compaction.logfile.size.threshold",
    integer(0),
    0,
    Phase.COMPACTION,
    "log_file_size: the least bytes of log files of a file group.",
    in_table=ANY_VALUE,
)
COMPACTION_LOG_FILES = Option(
    "hoodie.compaction.logfile.num.threshold",
    integer(0),
    0,
    Phase.COMPACTION,
    "log_file_number: the least number of log files of a file group.",
    in_table=ANY_VALUE,
)
COMPACTION_DAYS = Option(
    "hoodie.compaction.daybased.target.partitions",
    integer(1),
    10,
    Phase.COMPACTION,
    "day_based: the number of newest partitions.",
    in_table=ANY_VALUE,
)

# Cleaning.

CLEAN_POLICY = Option(
    "hoodie.clean.policy",
    choice("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    "KEEP_LATEST_COMMITS",
    Phase.CLEAN | Phase.ARCHIVE | Phase.WRITE | Phase.INGEST,
    "The cleaning policy; when it is not set, and only one of the three numbers below is set, the policy of that "
    "number.",
    ("hoodie.cleaner.policy",),
    in_table=ANY_VALUE,
)
CLEAN_COMMITS_RETAINED = Option(
    "hoodie.clean.commits.retained",
    integer(1),
    10,
    Phase.CLEAN | Phase.ARCHIVE | Phase.WRITE | Phase.INGEST,
    "KEEP_LATEST_COMMITS: the number of latest commits that keep all their files.",
    ("hoodie.cleaner.commits.retained",),
    in_table=ANY_VALUE,
)
CLEAN_HOURS_RETAINED = Option(
    "hoodie.clean.hours.retained",
    integer(1, _HOURS),
    24,
    Phase.CLEAN | Phase.ARCHIVE | Phase.WRITE | Phase.INGEST,
    "KEEP_LATEST_BY_HOURS: the number of hours, back from now; commits that began since then keep all their files.",
    ("hoodie.cleaner.hours.retained",),
    in_table=ANY_VALUE,
)
CLEAN_FILE_VERSIONS_RETAINED = Option(
    "hoodie.clean.fileversions.retained",
    integer(1),
    3,
    Phase.CLEAN | Phase.ARCHIVE | Phase.WRITE | Phase.INGEST,
    "KEEP_LATEST_FILE_VERSIONS: the number of file slices kept in each file group.",
    ("hoodie.cleaner.fileversions.retained",),
    in_table=ANY_VALUE,
)
CLEAN_INCREMENTAL = Option(
    "hoodie.clean.incremental.enabled",
    boolean,
    True,
    Phase.CLEAN,
    "Plan only for partitions that changed since the last clean.",
    ("hoodie.cleaner.incremental.mode",),
    in_table=ANY_VALUE,
)
CLEAN_TRIGGER_STRATEGY = Option(
    "hoodie.clean.trigger.strategy",
    choice("NUM_COMMITS"),
    "NUM_COMMITS",
    Phase.CLEAN,
    "What a new plan waits for; NUM_COMMITS, a number of commits, is the only choice.",
    in_table=ANY_VALUE,
)
CLEAN_TRIGGER_COMMITS = Option(
    "hoodie.clean.trigger.max.commits",
    integer(0),
    1,
    Phase.CLEAN,
    "The number of completed commits since the last clean that a new clean needs.",
    ("hoodie.clean.max.commits",),
    in_table=ANY_VALUE,
)
CLEAN_MULTIPLE = Option(
    "hoodie.clean.multiple.enabled",
    boolean,
    False,
    Phase.CLEAN,
    "Plan a new clean even when a clean is pending; otherwise only the pending clean is finished.",
    ("hoodie.clean.allow.multiple",),
    in_table=ANY_VALUE,
)
CLEAN_FAILED_WRITES = Option(
    "hoodie.clean.failed.writes.policy",
    choice("EAGER", "LAZY", "NEVER"),
    "EAGER",
    Phase.CLEAN | Phase.INGEST,
    "LAZY: a clean first rolls back writes whose heartbeat has ended; with several writers it always does so. A write "
    "rolls them back before it begins, unless this is NEVER; with a lock provider it refuses EAGER.",
    ("hoodie.cleaner.policy.failed.writes",),
    in_table=ANY_VALUE,
)
CLUSTERING_EXPIRES = Option(
    "hoodie.clustering.enable.expirations",
    boolean,
    False,
    Phase.CLEAN,
    "Whether a clean that rolls failed writes back does so with pending clusterings, too, plan and all, when they give "
    "no sign of life.",
    in_table=ANY_VALUE,
)
CLUSTERING_EXPIRY_MINUTES = Option(
    "hoodie.clustering.expiration.threshold.mins",
    integer(0, _MINUTES),
    60,
    Phase.CLEAN,
    "The least age of a clustering that is rolled back in this way, in minutes.",
    in_table=between(1, 10_080),
)
CLEAN_MAX_COMMITS: Option[int | None] = Option(
    "hoodie.clean.max.commits.to.clean",
    integer(1),
    None,
    Phase.CLEAN,
    "The number of commits by which one clean may advance the earliest commit to retain; when not set, no limit.",
    in_table=ANY_VALUE,
)
CLEAN_PARTITION_REGEX = Option(
    "hoodie.clean.partition.filter.regex",
    pattern,
    "",
    Phase.CLEAN,
    "With incremental cleaning off: clean only partitions whose whole path matches this regular expression.",
    ("hoodie.cleaner.partition.filter.regex",),
)
CLEAN_PARTITIONS_SELECTED: Option[tuple[str, ...]] = Option(
    "hoodie.clean.partition.filter.selected",
    names,
    (),
    Phase.CLEAN,
    "With incremental cleaning off: clean only these partitions (comma list); overrides the regular expression.",
    ("hoodie.cleaner.partition.filter.selected",),
    in_table=ANY_VALUE,
)
EMPTY_CLEAN_HOURS = Option(
    "hoodie.write.empty.clean.interval.hours",
    integer(-1, _HOURS),
    -1,
    Phase.CLEAN,
    "Above 0: when nothing can be deleted and the last clean is more than this many hours ago, write a clean without "
    "files, so that the next clean lists less.",
    in_table=ANY_VALUE,
)

# Archival of the timeline.

ARCHIVE_MOST = Option(
    "hoodie.keep.max.commits",
    integer(1),
    30,
    Phase.ARCHIVE,
    "Commits are archived when more than this many are on the timeline; raised by as much as the next number.",
    in_table=ANY_VALUE,
)
ARCHIVE_LEAST = Option(
    "hoodie.keep.min.commits",
    integer(1),
    20,
    Phase.ARCHIVE | Phase.WRITE | Phase.INGEST,
    "Archival leaves this many commits on the timeline, and more where cleans by the options above retain more.",
    in_table=ANY_VALUE,
)
ARCHIVE_BATCH = Option(
    "hoodie.commits.archival.batch",
    integer(1, 10_000),
    10,
    Phase.ARCHIVE,
    "Table version 6: the entries of one block of an archive file.",
    in_table=ANY_VALUE,
)
ARCHIVE_BEYOND_SAVEPOINT = Option(
    "hoodie.archive.beyond.savepoint",
    boolean,
    False,
    Phase.ARCHIVE,
    "Whether commits after a savepoint are archived, too; readers do not see them until the savepoint is deleted.",
    in_table=ANY_VALUE,
)
ARCHIVE_KEEPS_RETAINED = Option(
    "hoodie.archive.block.on.latest.clean.ectr",
    boolean,
    False,
    Phase.ARCHIVE,
    "Whether commits stay on the timeline from the earliest one that the last clean retains.",
    in_table=ANY_VALUE,
)
ARCHIVE_BEYOND_CHECKPOINT = Option(
    "hudi.services.archive.beyond.checkpoint",
    boolean,
    False,
    Phase.ARCHIVE,
    "Whether the last checkpoint of a stream is archived, too; the stream, when it starts again, does not find it.",
    in_table=ANY_VALUE,
)
ARCHIVE_MERGED_FILES = Option(
    "hoodie.timeline.compaction.batch.size",
    integer(2, 10_000),
    10,
    Phase.ARCHIVE,
    "Table versions 8 and 9: so many archive files of one level are merged into one of the next.",
    in_table=ANY_VALUE,
)
ARCHIVE_FILE_BYTES = Option(
    "hoodie.timeline.compaction.target.file.max.bytes",
    size,
    64 << 20,
    Phase.ARCHIVE,
    "Table versions 8 and 9: archive files of this many bytes are merged no more; 64 MiB is the most that counts.",
    in_table=ANY_VALUE,
)
ARCHIVE_MANIFESTS = Option(
    "hoodie.timeline.manifest.retained.versions",
    integer(1, 10_000),
    3,
    Phase.ARCHIVE,
    "Table versions 8 and 9: the number of newest manifests of the archive that are kept, for readers that have begun.",
    in_table=between(2, 1_000),
)

# Extra metadata of commits.

ROLLING_KEYS: Option[tuple[str, ...]] = Option(
    "hoodie.write.rolling.metadata.keys",
    names,
    (),
    Phase.WRITE | Phase.INGEST | Phase.ARCHIVE | Phase.REPAIR,
    "Keys of the extra metadata of commits (comma list) that each commit takes over from the commits before it, for "
    "example the checkpoint of a stream.",
    in_table=ANY_VALUE,
)
ROLLING_LOOKBACK = Option(
    "hoodie.write.rolling.metadata.timeline.lookback.commits",
    integer(1),
    10,
    Phase.WRITE | Phase.INGEST,
    "How many commits are searched for these keys, the one that was completed last first.",
    in_table=between(1, 10_000),
)

# Living with other writers.

HEARTBEAT_INTERVAL_MILLIS = Option(
    "hoodie.client.heartbeat.interval_in_ms",
    integer(1, _DAY_MILLIS),
    60_000,
    Phase.ANY,
    "Milliseconds between two heartbeats of another writer.",
    in_table=between(1_000, 3_600_000),
)
HEARTBEAT_TOLERABLE_MISSES = Option(
    "hoodie.client.heartbeat.tolerable.misses",
    integer(0, 100_000),
    2,
    Phase.ANY,
    "The number of heartbeats that a writer may miss before it counts as dead.",
    in_table=between(0, 100),
)
CLOCK_SKEW_MILLIS = Option(
    "hoodie.time.generator.max_expected_clock_skew_ms",
    integer(0, 3_600_000),
    200,
    Phase.ANY,
    "The largest expected difference between the clocks of two writers, in milliseconds.",
    in_table=between(0, 10_000),
)

ABANDONED_AFTER_MINUTES = Option(
    "hudi.services.abandoned.after.minutes",
    integer(0, _MINUTES),
    60,
    Phase.ANY,
    "Minutes without a sign of life after which a write without a heartbeat counts as abandoned.",
    in_table=between(0, 10_080),
)

PUBLISH_LATE = Option(
    "hudi.services.publish.late",
    choice("AUTO", "STAGED", "RESERVED"),
    "AUTO",
    Phase.CLUSTERING,
    "How --publish late gets its instant: STAGED (at the commit; new files wait in a staging folder), RESERVED (at the "
    "beginning; Hudi's writers must not cluster), or AUTO: STAGED where a file can be renamed, or where Hudi clusters.",
)

# Repairs.

ROLLBACK_USING_MARKERS = Option(
    "hoodie.rollback.using.markers",
    boolean,
    True,
    Phase.REPAIR,
    "Whether a rollback of a failed write finds the files by markers; when false, by listing every partition.",
    in_table=ANY_VALUE,
)

# The record index.

RECORD_INDEX_MIN_GROUPS = Option(
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    integer(1, 10_000),
    10,
    Phase.INDEX,
    "The smallest number of file groups of a new record index.",
    ("hoodie.metadata.record.index.min.filegroup.count",),
    in_table=ANY_VALUE,
)
RECORD_INDEX_MAX_GROUPS = Option(
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    integer(1, 10_000),
    10_000,
    Phase.INDEX,
    "The largest number of file groups of a new record index.",
    ("hoodie.metadata.record.index.max.filegroup.count",),
    in_table=ANY_VALUE,
)
RECORD_INDEX_GROWTH = Option(
    "hoodie.metadata.record.index.growth.factor",
    factor,
    2.0,
    Phase.INDEX,
    "A new record index has room for this many times the present number of keys.",
    in_table=between(1, 100),
)
RECORD_INDEX_GROUP_BYTES = Option(
    "hoodie.metadata.record.index.max.filegroup.size",
    size,
    1 << 30,
    Phase.INDEX,
    "Bytes that a file group of the record index should not exceed, counted as 48 bytes for each key.",
    in_table=between(1 << 20, 1 << 40),
)
INDEX_HASH = Option(
    "hudi.services.index.hash",
    function_name("hudi"),
    "hudi",
    Phase.INDEX,
    "The function that maps keys to file groups: Hudi's function (hudi), or package.module:function, which must return "
    "the same values.",
)

LOOKUP_ACCESS = Option(
    "hudi.services.index.lookup.access",
    one_of({"auto": "auto", "scan": "scan", "seek": "seek"}, "is none of auto, scan and seek"),
    "auto",
    Phase.LOOKUP,
    "How an HFile is read: all blocks (scan), only the blocks that may hold a wanted key (seek), or by the share of "
    "wanted keys (auto).",
)
LOOKUP_SCAN_SHARE = Option(
    "hudi.services.index.lookup.scan.share",
    fraction,
    0.01,
    Phase.LOOKUP,
    "With auto: the share of wanted keys from which on all blocks of an HFile are read.",
)

ALL: tuple[Option[Any], ...] = (
    *(value for value in list(globals().values()) if isinstance(value, Option)),
    *lock_keys.ALL,
    *creation_keys.ALL,
    *writing_keys.ALL,
)
