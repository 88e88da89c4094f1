"""Turns options into the settings that each package takes."""

import sys

from ..base_files.bloom import BloomSettings
from ..clock import process_zone
from ..clustering.partitions import PartitionFilter, PartitionRules
from ..clustering.plan import PlanRules
from ..clustering.selection import SizeRules
from ..commit.rolling_metadata import RollingMetadata
from ..commit.settings import TransactionSettings
from ..derived_indexes.expression_index.times import Zone
from ..errors import ConfigError
from ..indexing.sizing import GroupSizing
from ..locking.protocol import LockWait
from ..locking.registry import lock_provider
from ..metadata.record_index.shards import Shards
from ..metadata_updates.creation import NewStatistics
from ..options import Options, clean_keys, clustering_keys, commit_keys, file_keys, index_keys, lock_keys, writing_keys
from ..rows.output import RECORD_KEY_FIELD
from ..rows.settings import FileSettings
from ..rows.sort_order import SortColumn, parse_sort_columns
from ..storage import Storage
from ..table_config import TableConfig
from ..writing.assignment import KnownKeys
from ..writing.buckets import Buckets
from ..writing.index import Index, IndexType
from ..writing.sizing import SizingRules
from .request import WriteOperation

_BY_KEY = ("GLOBAL_SORT", "PARTITION_SORT")
"""The sort modes that sort by record key."""


def plan_rules(options: Options) -> PlanRules:
    """The rules of a clustering plan. Raises ConfigError when groups of several files meet an execution strategy for
    single files, as Hudi does."""
    layout, strategy = options[clustering_keys.LAYOUT_STRATEGY], options[clustering_keys.PLAN_STRATEGY_CLASS]
    execution = options[clustering_keys.EXECUTION_STRATEGY_CLASS]
    single_files = execution == clustering_keys.SINGLE_FILE_EXECUTION
    if single_files and strategy != "single_file":
        raise ConfigError(
            f"{clustering_keys.EXECUTION_STRATEGY_CLASS.key}={execution} rewrites each file by itself, and the plan "
            f"strategy {strategy} groups them",
            hint=f"set {clustering_keys.PLAN_STRATEGY_CLASS.key}=single_file",
        )
    return PlanRules(
        partitions=PartitionRules(
            mode=PartitionFilter(options[clustering_keys.PARTITION_FILTER_MODE]),
            selected=options[clustering_keys.PARTITIONS_SELECTED],
            pattern=options[clustering_keys.PARTITION_REGEX],
            begin=options[clustering_keys.BEGIN_PARTITION],
            end=options[clustering_keys.END_PARTITION],
            lookback=options[clustering_keys.LOOKBACK_PARTITIONS],
            skip_latest=options[clustering_keys.SKIP_FROM_LATEST],
        ),
        sizes=SizeRules(
            # One file remains one, however large: Hudi's class would refuse a group of more.
            target_file=sys.maxsize if single_files else options[clustering_keys.TARGET_FILE_BYTES],
            small_file_limit=options[clustering_keys.SMALL_FILE_LIMIT],
            max_group=options[clustering_keys.MAX_BYTES_PER_GROUP],
            max_groups=options[clustering_keys.MAX_NUM_GROUPS],
            single_group=options[clustering_keys.SINGLE_GROUP],
            by_gain=options[clustering_keys.PLAN_ORDER] == "GAIN",
            budget=options[clustering_keys.PLAN_BUDGET],
        ),
        sort=() if layout == clustering_keys.NO_LAYOUT else parse_sort_columns(options[clustering_keys.SORT_COLUMNS]),
        layout=layout,
        # Hudi (0.15.0 to 1.2.0) executes by its own option, and loads no class that a plan names. If that changes,
        # Hudi must have the class: the copying classes came after 1.0, and add nothing to the rest of a plan.
        execution_strategy=clustering_keys.SORT_AND_SIZE_EXECUTION
        if execution in clustering_keys.COPY_EXECUTIONS
        else execution,
        strategy=strategy,
        columns=options[clustering_keys.PLAN_COLUMNS],
        sort_by=options[clustering_keys.FILE_SLICES_SORT_BY],
        after=options[clustering_keys.EARLIEST_COMMIT],
        seed=options[clustering_keys.PLAN_SEED],
        options=options.texts(),
    )


def commits_between(options: Options) -> int:
    """How many commits must follow the last clustering before another one is planned."""
    return max(options[clustering_keys.INLINE_MAX_COMMITS] or 0, options[clustering_keys.ASYNC_MAX_COMMITS] or 0)


def commit_metadata(options: Options) -> dict[str, str]:
    """The options that a write puts into its commit, as HoodieSparkSqlWriter does; never those of the table."""
    prefix = options[writing_keys.COMMIT_METADATA_PREFIX]
    return {key: options.given(key)[1] for key in options.given_keys(prefix)} if prefix else {}


def rolling_metadata(options: Options) -> RollingMetadata:
    """The extra metadata that commits take over from earlier ones."""
    return RollingMetadata(options[commit_keys.ROLLING_KEYS], options[commit_keys.ROLLING_LOOKBACK])


def failed_writes_are_ours(options: Options) -> bool:
    """Whether writers leave the rollback of failed writes to cleans: as set, and always with several writers."""
    several = options[lock_keys.CONCURRENCY_MODE] != lock_keys.CONCURRENCY_MODE.default
    return several or options[clean_keys.CLEAN_FAILED_WRITES] == "LAZY"


def several_writers(options: Options) -> list[str]:
    """Warnings of a write about options under which another writer would take it for failed while it is in progress.

    Raises ConfigError where the options themselves say that writers roll one another back.
    """
    mode, policy, lock = lock_keys.CONCURRENCY_MODE, clean_keys.CLEAN_FAILED_WRITES, lock_keys.LOCK_PROVIDER
    is_single = options[mode] == mode.default
    if options.is_set(policy) and options[policy] == "EAGER" and (options[lock] or not is_single):
        raise ConfigError(
            f"{policy.key}=EAGER (from {options.source(policy)}) does not fit {lock.key}, which is set: a writer that "
            "cleans failed writes eagerly rolls back what the others are writing",
            hint=f"set {policy.key}=LAZY here and in all other writers",
        )
    if not options[lock] or not is_single:
        return []
    return [
        f"{lock.key} is set, but {mode.key} is not: a writer of Hudi with such options takes this write for a failed "
        f"one while it is in progress, and rolls it back; set {mode.key}=OPTIMISTIC_CONCURRENCY_CONTROL in all writers"
    ]


def group_sizing(options: Options) -> GroupSizing:
    """The sizing of a new record index. Raises ConfigError when its lower bound exceeds the upper bound."""
    sizing = GroupSizing(
        at_least=options[index_keys.RECORD_INDEX_MIN_GROUPS],
        at_most=options[index_keys.RECORD_INDEX_MAX_GROUPS],
        growth=options[index_keys.RECORD_INDEX_GROWTH],
        group_bytes=options[index_keys.RECORD_INDEX_GROUP_BYTES],
    )
    if sizing.at_least > sizing.at_most:
        raise ConfigError(
            f"{index_keys.RECORD_INDEX_MIN_GROUPS.key}={sizing.at_least} is more than "
            f"{index_keys.RECORD_INDEX_MAX_GROUPS.key}={sizing.at_most}"
        )
    return sizing


def transaction_settings(options: Options, storage: Storage) -> TransactionSettings:
    """The settings of transactions on the table in `storage`."""
    lock = lock_provider(options, storage)
    return TransactionSettings(
        lock=lock,
        lock_wait=LockWait(options[lock_keys.LOCK_WAIT_MILLIS], options[lock_keys.LOCK_RETRY_WAIT_MILLIS]),
        # As Hudi: without a lock there is one writer at a time, and no other clock to wait for.
        skew_millis=options[commit_keys.CLOCK_SKEW_MILLIS] if lock.is_shared else 0,
        heartbeat_millis=options[commit_keys.HEARTBEAT_INTERVAL_MILLIS],
        heartbeat_misses=options[commit_keys.HEARTBEAT_TOLERABLE_MISSES],
        abandoned_millis=options[commit_keys.ABANDONED_AFTER_MINUTES] * 60_000,
    )


def sizing_rules(options: Options, *, merge_on_read: bool) -> SizingRules:
    """The rules of file sizing for a write."""
    return SizingRules(
        max_file=options[writing_keys.MAX_FILE_BYTES],
        small_file=options[writing_keys.SMALL_FILE_BYTES],
        split_rows=options[writing_keys.INSERT_SPLIT_ROWS],
        auto_split=options[writing_keys.INSERT_AUTO_SPLIT],
        record_estimate=options[writing_keys.RECORD_BYTES_ESTIMATE],
        threshold=options[writing_keys.RECORD_BYTES_THRESHOLD],
        file_overhead=options[writing_keys.FILE_METADATA_BYTES],
        candidates=options[writing_keys.SMALL_FILE_CANDIDATES] if merge_on_read else None,
    )


def bulk_sort(options: Options, operation: WriteOperation) -> tuple[SortColumn, ...]:
    """What a write sorts the rows of each partition by; () when they keep their order.

    Raises ConfigError when columns are named twice, or asked for and not named.
    """
    if operation is not WriteOperation.BULK_INSERT:
        return ()
    names = options[writing_keys.BULK_SORT_COLUMNS]
    if options[writing_keys.BULK_PARTITIONER] and not names:
        raise ConfigError(
            f"{writing_keys.BULK_PARTITIONER.key} sorts by columns, and none is named",
            hint=f"name them with {writing_keys.BULK_SORT_COLUMNS.key}",
        )
    if len(set(names)) < len(names):
        raise ConfigError(f"{writing_keys.BULK_SORT_COLUMNS.key}={','.join(names)} names a column twice")
    if options[writing_keys.BULK_SORT_SUFFIX] if names else options[writing_keys.SORT_MODE] in _BY_KEY:
        names = (*names, RECORD_KEY_FIELD)
    return tuple(map(SortColumn, names))


def bulk_shuffles(options: Options) -> bool:
    """Whether a bulk insert brings all rows of a partition path into one task."""
    return bool(options[writing_keys.BULK_SORT_COLUMNS]) or options[writing_keys.SORT_MODE] not in (
        "NONE",
        "PARTITION_SORT",
    )


def known_keys(options: Options, operation: WriteOperation) -> KnownKeys | None:
    """What a write does with rows whose keys are there; None where keys make no difference."""
    if operation.looks_up:
        return KnownKeys.MERGE
    policy = options[writing_keys.DUPLICATE_POLICY]
    if options[writing_keys.DROP_DUPLICATES] and policy == "NONE":
        policy = "DROP"
    if operation is WriteOperation.INSERT and policy != "NONE":
        return KnownKeys[policy]
    combines = options[writing_keys.COMBINE_BEFORE_INSERT] and operation.needs_rows
    return KnownKeys.WRITE if combines else None


def bucket_index(options: Options, config: TableConfig) -> Buckets | None:
    """The buckets of a write by a bucket index; None by any other index. Raises as `Buckets.of_table`."""
    if index_type(options) is not IndexType.BUCKET:
        return None
    hashed = options[writing_keys.BUCKET_FIELDS]
    return Buckets.of_table(config, options[writing_keys.BUCKETS], hashed)


def index_type(options: Options) -> IndexType:
    """The index that is asked for."""
    return IndexType(options[writing_keys.INDEX_TYPE].replace("GLOBAL_RECORD_LEVEL_INDEX", "RECORD_INDEX"))


_WITHOUT_INDEX = {
    IndexType.RECORD_INDEX: IndexType.GLOBAL_SIMPLE,
    IndexType.RECORD_LEVEL_INDEX: IndexType.SIMPLE,
}
"""The index that takes the place of a record index where the table has none, as in Hudi."""


def write_index(options: Options, config: TableConfig, shards: Shards | None) -> Index:
    """The index of an upsert or delete of a table with these shards of its record index, if any.

    Raises ConfigError for a record index of the other kind, and as `bucket_index`.
    """
    kind = index_type(options)
    if shards is None:
        kind = _WITHOUT_INDEX.get(kind, kind)
    elif kind in _WITHOUT_INDEX and (kind is IndexType.RECORD_LEVEL_INDEX) is not shards.is_partitioned:
        which, other = "the whole table", IndexType.RECORD_INDEX
        if shards.is_partitioned:
            which, other = "each partition", IndexType.RECORD_LEVEL_INDEX
        raise ConfigError(
            f"{writing_keys.INDEX_TYPE.key}={kind.value}, and the table {config.name} has a record index of {which}",
            hint=f"set {writing_keys.INDEX_TYPE.key}={other.value}",
        )
    moves = {
        IndexType.GLOBAL_SIMPLE: writing_keys.SIMPLE_MOVES_ROWS,
        IndexType.GLOBAL_BLOOM: writing_keys.BLOOM_MOVES_ROWS,
        IndexType.RECORD_INDEX: writing_keys.RECORD_INDEX_MOVES_ROWS,
    }
    return Index(kind, kind in moves and options[moves[kind]], bucket_index(options, config))


def new_statistics(options: Options) -> NewStatistics:
    """The statistics of a new metadata table."""
    asked = options[writing_keys.COLUMN_STATS_ENABLE]
    return NewStatistics(
        enable=None if not asked else asked == "TRUE",
        columns=options[writing_keys.COLUMN_STATS_COLUMNS],
        most_columns=options[writing_keys.COLUMN_STATS_MOST],
        file_groups=options[writing_keys.COLUMN_STATS_GROUPS],
        ranges=options[writing_keys.PARTITION_STATS_ENABLE],
        range_file_groups=options[writing_keys.PARTITION_STATS_GROUPS],
    )


def file_settings(options: Options, config: TableConfig) -> FileSettings:
    wanted = config.populate_meta_fields and options[file_keys.PARQUET_BLOOM_ENABLED]
    return FileSettings(
        codec=options[file_keys.PARQUET_CODEC],
        file_bytes=options[clustering_keys.TARGET_FILE_BYTES],
        row_group_bytes=options[file_keys.PARQUET_BLOCK_BYTES],
        page_bytes=options[file_keys.PARQUET_PAGE_BYTES],
        bloom=bloom_settings(options) if wanted else None,
    )


def bloom_settings(options: Options) -> BloomSettings:
    return BloomSettings(
        entries=options[file_keys.BLOOM_ENTRIES],
        false_positive_rate=options[file_keys.BLOOM_FPP],
        max_entries=options[file_keys.BLOOM_MAX_ENTRIES],
        filter_type=options[file_keys.BLOOM_TYPE],
    )


def session_zone(options: Options) -> Zone:
    """The time zone of expression indexes: the one that is set, else this process's, as in Spark.

    Raises ConfigError for text that is not a time zone.
    """
    return Zone.parse(options[file_keys.SESSION_TIME_ZONE] or process_zone())
