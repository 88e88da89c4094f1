"""From options to the settings that each room takes."""

from ..clustering.plan import PlanRules
from ..clustering.settings import BloomSettings, FileSettings
from ..clustering.sort_order import parse_sort_columns
from ..clustering.strategies import PartitionFilter, PartitionRules, SizeRules
from ..commit.lock import LockSettings
from ..commit.settings import TransactionSettings
from ..options import Options, keys
from ..storage import ObjectStorage
from ..table_config import TableConfig


def plan_rules(options: Options) -> PlanRules:
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
            target_file=options[keys.TARGET_FILE_BYTES],
            small_file_limit=options[keys.SMALL_FILE_LIMIT],
            max_group=options[keys.MAX_BYTES_PER_GROUP],
            max_groups=options[keys.MAX_NUM_GROUPS],
            single_group=options[keys.SINGLE_GROUP],
        ),
        sort=parse_sort_columns(options[keys.SORT_COLUMNS]),
        execution_strategy=options[keys.EXECUTION_STRATEGY_CLASS],
    )


def transaction_settings(options: Options) -> TransactionSettings:
    folder = options[keys.LOCK_FOLDER]
    lock = LockSettings(
        file_system=bool(options[keys.LOCK_PROVIDER]),
        expire_minutes=options[keys.LOCK_EXPIRE_MINUTES],
        wait_millis=options[keys.LOCK_WAIT_MILLIS],
        retry_wait_millis=options[keys.LOCK_RETRY_WAIT_MILLIS],
    )
    return TransactionSettings(
        lock=lock,
        lock_storage=ObjectStorage(folder) if folder else None,
        skew_millis=options[keys.CLOCK_SKEW_MILLIS],
        heartbeat_millis=options[keys.HEARTBEAT_INTERVAL_MILLIS],
        heartbeat_misses=options[keys.HEARTBEAT_TOLERABLE_MISSES],
        abandoned_millis=options[keys.ABANDONED_AFTER_MINUTES] * 60_000,
    )


def file_settings(options: Options, config: TableConfig) -> FileSettings:
    bloom = BloomSettings(
        entries=options[keys.BLOOM_ENTRIES],
        false_positive_rate=options[keys.BLOOM_FPP],
        max_entries=options[keys.BLOOM_MAX_ENTRIES],
        filter_type=options[keys.BLOOM_TYPE],
    )
    wanted = config.populate_meta_fields and options[keys.PARQUET_BLOOM_ENABLED]
    return FileSettings(
        codec=options[keys.PARQUET_CODEC],
        row_group_bytes=options[keys.PARQUET_BLOCK_BYTES],
        page_bytes=options[keys.PARQUET_PAGE_BYTES],
        bloom=bloom if wanted else None,
    )
