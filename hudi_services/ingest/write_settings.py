"""What the options ask of one write: what becomes of known keys, the order of rows, extra metadata, other writers."""

from ..base_files.slices import RECORD_KEY
from ..bucket_index.signs import has_rings
from ..errors import ConfigError, UnsupportedTable
from ..options import Options, clean_keys, lock_keys, writing_keys
from ..rows.sort_order import SortColumn
from ..runs.request import WriteOperation, WriteRequest
from ..snapshot import Snapshot
from ..writing.assignment import DuplicatePolicy
from ..writing.write_index import is_consistent

_BY_KEY = ("GLOBAL_SORT", "PARTITION_SORT")
"""The sort modes that sort by record key."""


def known_keys(options: Options, operation: WriteOperation) -> DuplicatePolicy | None:
    """What a write does with rows whose keys are there; None where keys make no difference."""
    if operation.looks_up:
        return DuplicatePolicy.MERGE
    if operation is WriteOperation.INSERT and is_consistent(options):
        # As in Hudi: each row goes to its bucket, as an update of whatever is there.
        return DuplicatePolicy.MERGE
    policy = options[writing_keys.DUPLICATE_POLICY]
    if options[writing_keys.DROP_DUPLICATES] and policy == "NONE":
        policy = "DROP"
    if operation is WriteOperation.INSERT and policy != "NONE":
        return DuplicatePolicy[policy]
    combines = options[writing_keys.COMBINE_BEFORE_INSERT] and operation.needs_rows
    return DuplicatePolicy.WRITE if combines else None


def check_rings(table: Snapshot, request: WriteRequest, *, has_index: bool) -> None:
    """Raise UnsupportedTable for a write by another index to a table with consistent hashing, and for an operation
    whose new file groups would be none of its buckets; `has_index`: whether the write is by consistent hashing."""
    if not has_index:
        if has_rings(table):
            raise UnsupportedTable(
                f"{table.storage.root} has a bucket index with consistent hashing (.hoodie/.bucket_index), and "
                "the write is by another index",
                hint=f"set {writing_keys.INDEX_TYPE.key}=BUCKET and "
                f"{writing_keys.BUCKET_ENGINE.key}=CONSISTENT_HASHING",
            )
        return
    if table.timeline.first_write and not has_rings(table):
        raise UnsupportedTable(
            f"{table.storage.root} has rows in file groups that are no buckets of consistent hashing",
            hint=f"leave {writing_keys.BUCKET_ENGINE.key} out, or write to a new table",
        )
    options = request.options
    looks = options[writing_keys.DUPLICATE_POLICY] != "NONE" or options[writing_keys.DROP_DUPLICATES]
    if request.operation is WriteOperation.INSERT and looks:
        raise ConfigError(
            "by consistent hashing an insert is an upsert, and keys that are there are not looked for",
            hint=f"leave {writing_keys.DUPLICATE_POLICY.key} and {writing_keys.DROP_DUPLICATES.key} out",
        )
    if request.operation not in (WriteOperation.INSERT, WriteOperation.UPSERT, WriteOperation.DELETE):
        raise UnsupportedTable(
            f"{request.operation.value} is not done on a table with consistent hashing: Apache Hudi fails beside the "
            "file groups that are there, or loses the rows of later writes",
            hint="upsert the rows, or delete them by their keys",
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
        names = (*names, RECORD_KEY)
    return tuple(map(SortColumn, names))


def bulk_shuffles(options: Options) -> bool:
    """Whether a bulk insert brings all rows of a partition path into one task."""
    stays = ("NONE", "PARTITION_SORT")
    return bool(options[writing_keys.BULK_SORT_COLUMNS]) or options[writing_keys.SORT_MODE] not in stays


def commit_metadata(options: Options) -> dict[str, str]:
    """The options that a write puts into its commit, as HoodieSparkSqlWriter does; never those of the table."""
    prefix = options[writing_keys.COMMIT_METADATA_PREFIX]
    return {key: options.given(key)[1] for key in options.given_keys(prefix)} if prefix else {}


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
