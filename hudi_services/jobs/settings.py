"""Turns options into the settings that each package takes."""

import math
import sys
from dataclasses import replace

from ..archival.archive import ArchivePlan
from ..archival.selection import ArchiveRules
from ..cleaning.plan import CleanRules
from ..cleaning.retention import Policy, Retention
from ..cleaning.scope import PartitionRules as CleanPartitions
from ..clock import process_zone
from ..clustering.partitions import PartitionFilter, PartitionRules
from ..clustering.plan import PlanRules
from ..clustering.selection import SizeRules
from ..commit.rolling_metadata import RollingMetadata
from ..commit.settings import TransactionSettings
from ..compaction.plan import CompactionRules, Trigger
from ..compaction.strategies import Limits
from ..errors import ConfigError
from ..files.bloom import BloomSettings
from ..indexing.sizing import GroupSizing
from ..locking.protocol import LockWait
from ..locking.registry import lock_provider
from ..metadata.creation import NewStatistics
from ..metadata.expression_index.times import Zone
from ..metadata.record_index.shards import Shards
from ..options import Options, keys, lock_keys, writing_keys
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

_METADATA_CLEAN_COMMITS, _METADATA_CLEANS_LESS = 20, 1.2
"""Cleans of the metadata table retain so many commits, and so many times more than those of the table."""
_BY_KEY = ("GLOBAL_SORT", "PARTITION_SORT")
"""The sort modes that sort by record key."""


def plan_rules(options: Options) -> PlanRules:
    """The rules of a clustering plan. Raises ConfigError when groups of several files meet an execution strategy for
    single files, as Hudi does."""
    layout, strategy = options[keys.LAYOUT_STRATEGY], options[keys.PLAN_STRATEGY_CLASS]
    execution = options[keys.EXECUTION_STRATEGY_CLASS]
    single_files = execution == keys.SINGLE_FILE_EXECUTION
    if single_files and strategy != "single_file":
        raise ConfigError(
            f"{keys.EXECUTION_STRATEGY_CLASS.key}={execution} rewrites each file by itself, and the plan strategy "
            f"{strategy} groups them",
            hint=f"set {keys.PLAN_STRATEGY_CLASS.key}=single_file",
        )
    return PlanRules(
        partitions=PartitionRules(
            mode=PartitionFilter(options[keys.PARTITION_FILTER_MODE]),
            selected=options[keys.PARTITIONS_SELECTED],
            pattern=options[keys.PARTITION_REGEX],
            begin=options[keys.BEGIN_PARTITION],
            end=options[keys.END_PARTITION],
            lookback=options[keys.LOOKBACK_PARTITIONS],
            skip_latest=options[keys.SKIP_FROM_LATEST],
        ),
        sizes=SizeRules(
            # One file remains one, however large: Hudi's class would refuse a group of more.
            target_file=sys.maxsize if single_files else options[keys.TARGET_FILE_BYTES],
            small_file_limit=options[keys.SMALL_FILE_LIMIT],
            max_group=options[keys.MAX_BYTES_PER_GROUP],
            max_groups=options[keys.MAX_NUM_GROUPS],
            single_group=options[keys.SINGLE_GROUP],
            by_gain=options[keys.PLAN_ORDER] == "GAIN",
            budget=options[keys.PLAN_BUDGET],
        ),
        sort=() if layout == keys.NO_LAYOUT else parse_sort_columns(options[keys.SORT_COLUMNS]),
        layout=layout,
        # Hudi (0.15.0 to 1.2.0) executes by its own option, and loads no class that a plan names. If that changes,
        # Hudi must have the class: the copying classes came after 1.0, and add nothing to the rest of a plan.
        execution_strategy=keys.SORT_AND_SIZE_EXECUTION if execution in keys.COPY_EXECUTIONS else execution,
        strategy=strategy,
        columns=options[keys.PLAN_COLUMNS],
        sort_by=options[keys.FILE_SLICES_SORT_BY],
        after=options[keys.EARLIEST_COMMIT],
        seed=options[keys.PLAN_SEED],
        options=options.texts(),
    )


def compaction_rules(options: Options) -> CompactionRules:
    """The rules of a compaction plan."""
    return CompactionRules(
        trigger=Trigger(
            kind=options[keys.COMPACTION_TRIGGER],
            commits=options[keys.COMPACTION_COMMITS],
            seconds=options[keys.COMPACTION_SECONDS],
        ),
        strategy=options[keys.COMPACTION_STRATEGY],
        limits=Limits(
            io_megabytes=options[keys.COMPACTION_IO],
            log_bytes=options[keys.COMPACTION_LOG_BYTES],
            log_files=options[keys.COMPACTION_LOG_FILES],
            days=options[keys.COMPACTION_DAYS],
        ),
    )


def commits_between(options: Options) -> int:
    """How many commits must follow the last clustering before another one is planned."""
    return max(options[keys.INLINE_MAX_COMMITS] or 0, options[keys.ASYNC_MAX_COMMITS] or 0)


def clean_rules(options: Options) -> CleanRules:
    """The rules of a clean. Raises ConfigError for a partition filter with incremental cleaning, as Hudi does."""
    partitions = CleanPartitions(
        incremental=options[keys.CLEAN_INCREMENTAL],
        pattern=options[keys.CLEAN_PARTITION_REGEX],
        selected=options[keys.CLEAN_PARTITIONS_SELECTED],
    )
    if partitions.incremental and (partitions.pattern or partitions.selected):
        key = keys.CLEAN_PARTITIONS_SELECTED if partitions.selected else keys.CLEAN_PARTITION_REGEX
        raise ConfigError(
            f"{key.key} cannot be used with {keys.CLEAN_INCREMENTAL.key}=true: partitions that it leaves out now "
            "would not be cleaned later",
            hint=f"set {keys.CLEAN_INCREMENTAL.key}=false",
        )
    hours = options[keys.EMPTY_CLEAN_HOURS]
    return CleanRules(
        retention=replace(_retention(options), most_commits=options[keys.CLEAN_MAX_COMMITS]),
        partitions=partitions,
        trigger_commits=options[keys.CLEAN_TRIGGER_COMMITS],
        empty_clean_hours=hours if hours > 0 else None,
    )


def _retention(options: Options) -> Retention:
    return Retention(
        policy=_clean_policy(options),
        commits=options[keys.CLEAN_COMMITS_RETAINED],
        hours=options[keys.CLEAN_HOURS_RETAINED],
        versions=options[keys.CLEAN_FILE_VERSIONS_RETAINED],
    )


def metadata_retention(options: Options) -> Retention:
    """What cleans of the metadata table keep: more than those of the table.

    Unlike in Hudi, no more commits than its archival leaves: with fewer on the timeline, no clean would ever be due.
    Source: HoodieMetadataWriteUtils.createMetadataWriteConfig of Apache Hudi.
    """
    table = _retention(options)
    commits = max(_METADATA_CLEAN_COMMITS, int(table.commits * _METADATA_CLEANS_LESS))
    return Retention(
        policy=table.policy,
        commits=max(table.commits, min(commits, options[keys.ARCHIVE_LEAST])),
        hours=math.ceil(table.hours * _METADATA_CLEANS_LESS),
        versions=math.ceil(table.versions * _METADATA_CLEANS_LESS),
    )


def archive_plan(options: Options, config: TableConfig) -> ArchivePlan:
    """The rules of an archival of a table with this `config`.

    Raises ConfigError when so few commits would start it that none could go.
    """
    table = archive_rules(options, config)
    if table.most <= table.least:
        raise ConfigError(
            f"{keys.ARCHIVE_MOST.key}={table.most} is not more than {keys.ARCHIVE_LEAST.key}={table.least}",
            hint=f"set {keys.ARCHIVE_MOST.key} to at least {table.least + 1}",
        )
    # As Hudi writes its metadata table.
    metadata = ArchiveRules(
        most=table.most + 1,
        least=table.least + 1,
        retention=metadata_retention(options),
        compaction_commits=options[keys.METADATA_COMPACT_COMMITS],
        beyond_checkpoint=True,
    )
    return ArchivePlan(table, metadata, options[keys.ARCHIVE_BATCH], options[keys.ARCHIVE_MERGED_FILES])


def archive_rules(options: Options, config: TableConfig) -> ArchiveRules:
    """The rules of an archival of a table with this `config`, as writers with these options have them."""
    counts = config.is_merge_on_read and options[keys.COMPACTION_TRIGGER] in ("NUM_COMMITS", "NUM_AND_TIME")
    return ArchiveRules(
        most=options[keys.ARCHIVE_MOST],
        least=options[keys.ARCHIVE_LEAST],
        retention=_retention(options),
        compaction_commits=options[keys.COMPACTION_COMMITS] if counts else None,
        beyond_savepoint=options[keys.ARCHIVE_BEYOND_SAVEPOINT],
        keeps_retained=options[keys.ARCHIVE_KEEPS_RETAINED],
        beyond_checkpoint=options[keys.ARCHIVE_BEYOND_CHECKPOINT],
        checkpoint_keys=options[keys.ROLLING_KEYS],
    )


def rolling_metadata(options: Options) -> RollingMetadata:
    """The extra metadata that commits take over from earlier ones."""
    return RollingMetadata(options[keys.ROLLING_KEYS], options[keys.ROLLING_LOOKBACK])


def failed_writes_are_ours(options: Options) -> bool:
    """Whether writers leave the rollback of failed writes to cleans: as set, and always with several writers."""
    several = options[lock_keys.CONCURRENCY_MODE] != lock_keys.CONCURRENCY_MODE.default
    return several or options[keys.CLEAN_FAILED_WRITES] == "LAZY"


def several_writers(options: Options) -> list[str]:
    """Warnings of a write about options under which another writer would take it for failed while it is in progress.

    Raises ConfigError where the options themselves say that writers roll one another back.
    """
    mode, policy, lock = lock_keys.CONCURRENCY_MODE, keys.CLEAN_FAILED_WRITES, lock_keys.LOCK_PROVIDER
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


_NUMBERS = {
    Policy.COMMITS: keys.CLEAN_COMMITS_RETAINED,
    Policy.HOURS: keys.CLEAN_HOURS_RETAINED,
    Policy.FILE_VERSIONS: keys.CLEAN_FILE_VERSIONS_RETAINED,
}


def _clean_policy(options: Options) -> Policy:
    """The policy that is set, else the policy of the one retention number that is set (HoodieCleanConfig)."""
    implied = [policy for policy, number in _NUMBERS.items() if options.is_set(number)]
    if not options.is_set(keys.CLEAN_POLICY) and len(implied) == 1:
        return implied[0]
    return Policy(options[keys.CLEAN_POLICY])


def group_sizing(options: Options) -> GroupSizing:
    """The sizing of a new record index. Raises ConfigError when its lower bound exceeds the upper bound."""
    sizing = GroupSizing(
        at_least=options[keys.RECORD_INDEX_MIN_GROUPS],
        at_most=options[keys.RECORD_INDEX_MAX_GROUPS],
        growth=options[keys.RECORD_INDEX_GROWTH],
        group_bytes=options[keys.RECORD_INDEX_GROUP_BYTES],
    )
    if sizing.at_least > sizing.at_most:
        raise ConfigError(
            f"{keys.RECORD_INDEX_MIN_GROUPS.key}={sizing.at_least} is more than "
            f"{keys.RECORD_INDEX_MAX_GROUPS.key}={sizing.at_most}"
        )
    return sizing


def transaction_settings(options: Options, storage: Storage) -> TransactionSettings:
    """The settings of transactions on the table in `storage`."""
    lock = lock_provider(options, storage)
    return TransactionSettings(
        lock=lock,
        lock_wait=LockWait(options[lock_keys.LOCK_WAIT_MILLIS], options[lock_keys.LOCK_RETRY_WAIT_MILLIS]),
        # As Hudi: without a lock there is one writer at a time, and no other clock to wait for.
        skew_millis=options[keys.CLOCK_SKEW_MILLIS] if lock.is_shared else 0,
        heartbeat_millis=options[keys.HEARTBEAT_INTERVAL_MILLIS],
        heartbeat_misses=options[keys.HEARTBEAT_TOLERABLE_MISSES],
        abandoned_millis=options[keys.ABANDONED_AFTER_MINUTES] * 60_000,
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
        range_file_groups=options[writing_keys.PARTITION_STATS_GROUPS],
    )


def file_settings(options: Options, config: TableConfig) -> FileSettings:
    wanted = config.populate_meta_fields and options[keys.PARQUET_BLOOM_ENABLED]
    return FileSettings(
        codec=options[keys.PARQUET_CODEC],
        file_bytes=options[keys.TARGET_FILE_BYTES],
        row_group_bytes=options[keys.PARQUET_BLOCK_BYTES],
        page_bytes=options[keys.PARQUET_PAGE_BYTES],
        bloom=bloom_settings(options) if wanted else None,
    )


def bloom_settings(options: Options) -> BloomSettings:
    return BloomSettings(
        entries=options[keys.BLOOM_ENTRIES],
        false_positive_rate=options[keys.BLOOM_FPP],
        max_entries=options[keys.BLOOM_MAX_ENTRIES],
        filter_type=options[keys.BLOOM_TYPE],
    )


def session_zone(options: Options) -> Zone:
    """The time zone of expression indexes: the one that is set, else this process's, as in Spark.

    Raises ConfigError for text that is not a time zone.
    """
    return Zone.parse(options[keys.SESSION_TIME_ZONE] or process_zone())
