"""The options of clusterings: which file groups are rewritten, and in which order of rows.

Sources: HoodieClusteringConfig, HoodieLayoutConfig of Apache Hudi 0.15.0 to 1.2.0.
"""

from .option import ANY_VALUE, BUT_CODE, NEVER, Option, Phase, Section, between
from .value_types import NO_NAMES, choice, instant, integer, named, pattern, share, size, some_of

_PLAN_PACKAGE = "org.apache.hudi.client.clustering.plan.strategy"
_PLAN_CLASSES = {
    f"{_PLAN_PACKAGE}.SparkSizeBasedClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.JavaSizeBasedClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.FlinkSizeBasedClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.SparkStreamCopyClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.SparkSingleFileSortPlanStrategy": "single_file",
    "org.apache.hudi.table.action.cluster.strategy.CommitBasedClusteringPlanStrategy": "commit_time",
    # Taken by what the table is, whatever is named.
    f"{_PLAN_PACKAGE}.SparkConsistentBucketClusteringPlanStrategy": "size",
    f"{_PLAN_PACKAGE}.FlinkConsistentBucketClusteringPlanStrategy": "size",
}
_PLAN_NAMES = ("size", "commit_time", "key_range", "overlap", "random", "single_file")

_RUN_PACKAGE = "org.apache.hudi.client.clustering.run.strategy"
SORT_AND_SIZE_EXECUTION = f"{_RUN_PACKAGE}.SparkSortAndSizeExecutionStrategy"
SINGLE_FILE_EXECUTION = f"{_RUN_PACKAGE}.SparkSingleFileSortExecutionStrategy"
COPY_EXECUTIONS = (
    f"{_RUN_PACKAGE}.SparkStreamCopyClusteringExecutionStrategy",
    f"{_RUN_PACKAGE}.SparkBinaryCopyClusteringExecutionStrategy",
)
BUCKET_EXECUTIONS = (
    f"{_RUN_PACKAGE}.SparkConsistentBucketClusteringExecutionStrategy",
    f"{_RUN_PACKAGE}.SingleSparkJobConsistentHashingExecutionStrategy",
)
_EXECUTION_CLASSES = {
    **{name: name for name in (SORT_AND_SIZE_EXECUTION, SINGLE_FILE_EXECUTION, *COPY_EXECUTIONS)},
    f"{_RUN_PACKAGE}.JavaSortAndSizeExecutionStrategy": SORT_AND_SIZE_EXECUTION,
    # Those of a table with consistent hashing are in its plans, whatever is named.
    **dict.fromkeys(BUCKET_EXECUTIONS, SORT_AND_SIZE_EXECUTION),
}
_UNDONE_EXECUTIONS = {
    f"{_RUN_PACKAGE}.SparkExternalFileClusteringExecutionStrategy": "calls a program of the operator's, which only "
    "Apache Hudi does",
}

DEPRECATED_PLAN_FILTERS = {
    f"{_PLAN_PACKAGE}.SparkRecentDaysClusteringPlanStrategy": "RECENT_DAYS",
    f"{_PLAN_PACKAGE}.SparkSelectedPartitionsClusteringPlanStrategy": "SELECTED_PARTITIONS",
    f"{_PLAN_PACKAGE}.JavaRecentDaysClusteringPlanStrategy": "RECENT_DAYS",
}
"""Old plan strategies that mean the size-based strategy with this partition filter mode, whatever mode is set
(ClusteringPlanStrategy.checkAndGetClusteringPlanStrategy)."""


GROUPS = Section("Clustering: which file groups", Phase.PLAN, ANY_VALUE)
PLAN_STRATEGY_CLASS = GROUPS(
    "hoodie.clustering.plan.strategy.class",
    "size",
    "How file slices are put into groups: size, commit_time, key_range, overlap, random, single_file, Hudi's class for "
    "one of these, or package.module:Class.",
    parse=named(
        {name: name for name in _PLAN_NAMES} | _PLAN_CLASSES | dict.fromkeys(DEPRECATED_PLAN_FILTERS, "size"),
        "Class",
    ),
    in_table=BUT_CODE,
)
PLAN_COLUMNS = GROUPS(
    "hudi.services.clustering.plan.columns",
    NO_NAMES,
    "overlap: the columns whose values must overlap (comma list); when not set, the sort columns.",
)
EARLIEST_COMMIT = GROUPS(
    "hoodie.clustering.plan.strategy.earliest.commit.to.cluster",
    "",
    "commit_time: files of commits up to and including this instant are left out.",
    parse=instant,
)
PLAN_SEED = GROUPS("hudi.services.clustering.plan.seed", 0, "random: the seed of the random order.", parse=integer(0))
PLAN_ORDER = GROUPS(
    "hudi.services.clustering.plan.order",
    "PARTITION",
    "The order of groups: PARTITION, or GAIN (first the groups that save the most files for each rewritten byte).",
    parse=choice("PARTITION", "GAIN"),
)
PLAN_BUDGET: Option[int | None] = GROUPS(
    "hudi.services.clustering.plan.max.bytes",
    None,
    "Bytes of input for a whole plan; groups that do not fit are left for the next plan.",
    parse=size,
)
INLINE_MAX_COMMITS: Option[int | None] = GROUPS(
    "hoodie.clustering.inline.max.commits",
    None,
    "Write a plan only after this many commits since the last clustering; when not set, at every run.",
    parse=integer(0),
)
ASYNC_MAX_COMMITS: Option[int | None] = GROUPS(
    "hoodie.clustering.async.max.commits",
    None,
    "The same as hoodie.clustering.inline.max.commits; the larger number counts.",
    parse=integer(0),
)
MOST_BUCKETS: Option[int | None] = GROUPS(
    "hoodie.bucket.index.max.num.buckets",
    None,
    "On a table with consistent hashing: the most buckets of a partition; when not set, no bucket is split.",
    parse=integer(1, 100_000),
)
LEAST_BUCKETS: Option[int | None] = GROUPS(
    "hoodie.bucket.index.min.num.buckets",
    None,
    "On a table with consistent hashing: the fewest buckets of a partition; when not set, no buckets are merged.",
    parse=integer(1, 100_000),
)
SPLIT_THRESHOLD = GROUPS(
    "hoodie.bucket.index.split.threshold",
    2.0,
    "On a table with consistent hashing: a bucket is split when it has more than this many times "
    "hoodie.parquet.max.file.size.",
    parse=share,
)
MERGE_THRESHOLD = GROUPS(
    "hoodie.bucket.index.merge.threshold",
    0.2,
    "On a table with consistent hashing: neighbouring buckets are merged while they have at most this many times "
    "hoodie.parquet.max.file.size.",
    parse=share,
)
EXECUTION_STRATEGY_CLASS = GROUPS(
    "hoodie.clustering.execution.strategy.class",
    SORT_AND_SIZE_EXECUTION,
    "How groups are rewritten: Hudi's class for sorting and sizing, for single files, or for copying, which `execute` "
    "takes from the plan; or package.module:Class, which `execute` must be given.",
    parse=named(_EXECUTION_CLASSES, "Class", _UNDONE_EXECUTIONS),
    phase=Phase.CLUSTERING,
    in_table=BUT_CODE,
)
PARTITION_FILTER_MODE = GROUPS(
    "hoodie.clustering.plan.partition.filter.mode",
    "NONE",
    "Which partitions are clustered: NONE (all), RECENT_DAYS (the newest), SELECTED_PARTITIONS (a range), or "
    "DAY_ROLLING (one in 24, by the hour of the day).",
    parse=choice("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"),
)
PARTITIONS_SELECTED = GROUPS(
    "hoodie.clustering.plan.strategy.partition.selected",
    NO_NAMES,
    "Cluster these partitions (comma list) instead of all; the filter mode still applies.",
)
PARTITION_REGEX = GROUPS(
    "hoodie.clustering.plan.strategy.partition.regex.pattern",
    "",
    "Cluster the partitions whose whole path matches this regular expression.",
    parse=pattern,
    in_table=NEVER,
)
BEGIN_PARTITION = GROUPS(
    "hoodie.clustering.plan.strategy.cluster.begin.partition",
    "",
    "SELECTED_PARTITIONS: the first partition, by string order.",
)
END_PARTITION = GROUPS(
    "hoodie.clustering.plan.strategy.cluster.end.partition",
    "",
    "SELECTED_PARTITIONS: the last partition, by string order.",
)
LOOKBACK_PARTITIONS = GROUPS(
    "hoodie.clustering.plan.strategy.daybased.lookback.partitions",
    2,
    "RECENT_DAYS: the number of partitions.",
    parse=integer(0),
)
SKIP_FROM_LATEST = GROUPS(
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
    0,
    "RECENT_DAYS: the number of newest partitions to leave out first.",
    parse=integer(0),
)
SMALL_FILE_LIMIT = GROUPS(
    "hoodie.clustering.plan.strategy.small.file.limit",
    300 << 20,
    "Files below this many bytes are eligible.",
    parse=integer(0),
)
TARGET_FILE_BYTES = GROUPS(
    "hoodie.clustering.plan.strategy.target.file.max.bytes",
    1 << 30,
    "Bytes of input for each new file.",
    parse=size,
    in_table=between(1 << 20, 1 << 40),
)
MAX_BYTES_PER_GROUP = GROUPS(
    "hoodie.clustering.plan.strategy.max.bytes.per.group",
    2 << 30,
    "Bytes of input for each clustering group; a group takes at least one file.",
    parse=size,
)
MAX_NUM_GROUPS = GROUPS("hoodie.clustering.plan.strategy.max.num.groups", 30, "Groups in one plan.", parse=integer(1))
SINGLE_GROUP = GROUPS(
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
    True,
    "Whether a group of one file that becomes one file is rewritten.",
)
FILE_SLICES_SORT_BY: Option[tuple[str, ...]] = GROUPS(
    "hoodie.clustering.plan.strategy.file.slices.sort.by",
    ("SIZE",),
    "size: the order in which files are packed: SIZE (largest first), INSTANT_TIME (oldest first), or both (comma "
    "list).",
    parse=some_of("SIZE", "INSTANT_TIME"),
)

ORDER = Section("Clustering: the order of rows", Phase.PLAN, ANY_VALUE)
NO_LAYOUT = "NONE"
SORT_COLUMNS = ORDER(
    "hoodie.clustering.plan.strategy.sort.columns",
    "",
    "Comma list of columns, each with an optional asc or desc and nulls first or nulls last.",
)
GROUP_SCOPE, PARTITION_SCOPE = "GROUP", "PARTITION"
SORT_SCOPE = ORDER(
    "hudi.services.clustering.sort.scope",
    GROUP_SCOPE,
    "Which rows are sorted together: GROUP, or PARTITION: then the files of a partition are one group, however large.",
    parse=choice(GROUP_SCOPE, PARTITION_SCOPE),
)
LAYOUT_STRATEGY = ORDER(
    "hoodie.layout.optimize.strategy",
    "LINEAR",
    "How sort columns order rows: LINEAR, ZORDER, HILBERT, NONE (not at all), or package.module:Class. When not set, "
    "`execute` uses the layout of the plan.",
    parse=named({name: name for name in ("LINEAR", "ZORDER", "HILBERT", NO_LAYOUT)} | {"z-order": "ZORDER"}, "Class"),
    phase=Phase.CLUSTERING,
    in_table=BUT_CODE,
)
