"""Whether the indexes that keep a completed instant can be repaired after its rollback.

                         a clustering                           any other write
    files                the deleted files leave it             the same
    column_stats         those of restored files are put in;    the same
                         refused beside partition_stats
                         without those of their log files
    bloom_filters        the same                               the same
    partition_stats      hold as they are: the same rows        widened by the ranges of restored files;
                                                                refused for restored log files
    record_index         keys move back                         keys move back, or are removed: all keys are read
    secondary_index_*    hold as they are: the same pairs       refused
    expr_index_*         refused without records of restored    refused, unless no file is restored
                         files

A rollback is refused before anything is written. The operator drops the index with Apache Hudi, and creates it again
after the rollback.
"""

from collections.abc import Sequence
from typing import NoReturn

from ..base_files.slices import describe
from ..derived_indexes.expression_index.definitions import ExpressionIndex, expression_indexes
from ..errors import ConflictError, UnsupportedTable
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import (
    COLUMN_STATS,
    EXPRESSION_INDEX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    bloom_filter_key,
    column_stats_key,
)
from ..metadata_updates.rollback.lasting import lasting_in
from ..metadata_updates.rollback.restored_records import (
    columns_without_range,
    logs_without_statistics,
    without_record,
)
from ..model import CommitMetadata, DataFile, FileSlice
from ..snapshot import Snapshot
from ..timeline.instant import Instant
from .restored import changes_keys

_MOST_FILES = 10_000
_MOST_ROWS = 10_000_000
"""In live files whose keys are read, under the lock, to find which keys of deleted files other files also have."""


def check_indexes(
    table: Snapshot, target: Instant, restored: Sequence[FileSlice], written: CommitMetadata | None = None
) -> None:
    """Raise ConflictError when an index keeps the completed `target` and cannot be repaired.

    `restored` are the slices that readers see again; `written` is the commit metadata of `target`, None for a
    clustering, which does not change the rows. Raises UnsupportedTable for the definition of an expression index that
    is not supported, and CorruptFile.
    """
    metadata = table.metadata
    if metadata is None:
        return
    lasting = lasting_in(metadata, target.ts)
    expressions = {one.partition: one for one in expression_indexes(metadata)}
    for index in sorted(lasting):
        if index.startswith(SECONDARY_INDEX_PREFIX) and written is not None:
            _refuse(table, target, index, "pairs of values and keys cannot be taken out of it")
        elif index.startswith(EXPRESSION_INDEX):
            _check_expressions(table, metadata, target, expressions[index], restored, same_rows=written is None)
        elif index == COLUMN_STATS and PARTITION_STATS in metadata.partitions:
            _check_logs(table, metadata, target, restored)
        elif index == PARTITION_STATS and written is not None:
            _check_ranges(table, metadata, target, restored)
        elif index == RECORD_INDEX:
            _check_keys(table, metadata, target, restored, written)


def _check_expressions(
    table: Snapshot,
    metadata: MetadataTable,
    target: Instant,
    index: ExpressionIndex,
    restored: Sequence[FileSlice],
    *,
    same_rows: bool,
) -> None:
    def key(file: DataFile) -> str:
        if index.kind == COLUMN_STATS:
            return column_stats_key(index.column, file.partition, file.name)
        return bloom_filter_key(file.partition, file.name)

    only_bases = index.kind != COLUMN_STATS
    files = {key(file): file for one in restored for file in one.files if not (only_bases and file in one.log_files)}
    missing = without_record(metadata, index.partition, files)
    if missing:
        why = f"it has no record of {files[missing[0]].path}, which would be read again"
        _refuse(table, target, index.partition, why)
    if restored and not same_rows:
        _refuse(table, target, index.partition, "its ranges of partitions may not hold the rows that come back")


def _check_logs(table: Snapshot, metadata: MetadataTable, target: Instant, restored: Sequence[FileSlice]) -> None:
    """Hudi's next write makes ranges of partitions from these statistics: rows of a log file without any would hide."""
    missing = logs_without_statistics(metadata, restored)
    if missing:
        _refuse(table, target, COLUMN_STATS, f"it has no record of {missing[0]}, which would be read again")


def _check_ranges(table: Snapshot, metadata: MetadataTable, target: Instant, restored: Sequence[FileSlice]) -> None:
    logs = [log.path for one in restored for log in one.log_files]
    if logs:
        _refuse(table, target, PARTITION_STATS, f"the ranges of {logs[0]} are not known, which would be read again")
    unknown = columns_without_range(metadata, restored)
    if unknown:
        why = f"the files that would be read again do not tell the range of {unknown[0]}"
        _refuse(table, target, PARTITION_STATS, why)


def _check_keys(
    table: Snapshot,
    metadata: MetadataTable,
    target: Instant,
    restored: Sequence[FileSlice],
    written: CommitMetadata | None,
) -> None:
    shards = Shards.of_groups(metadata.file_groups(RECORD_INDEX))
    try:
        for partition in {one.partition for one in restored}:
            shards.of(partition)
    except UnsupportedTable as error:
        _refuse(table, target, RECORD_INDEX, error.message)
    if written is None:
        return
    scopes = written.stats.keys() if shards.is_partitioned else [None]
    live = [one for scope in scopes for one in table.view.live_slices(scope)] if changes_keys(written) else []
    try:
        # Log files that cannot be merged are found before anything is written.
        rows = sum(describe(table.slices, live, lambda _, facts: facts.rows)) if len(live) <= _MOST_FILES else None
        describe(table.slices, restored, lambda _, facts: facts.rows)
    except UnsupportedTable as error:
        _refuse(table, target, RECORD_INDEX, error.message)
    if rows is None or rows > _MOST_ROWS:
        _refuse(
            table, target, RECORD_INDEX, f"the keys of {len(live):,} files would have to be read to take its keys out"
        )


def _refuse(table: Snapshot, target: Instant, index: str, why: str) -> NoReturn:
    raise ConflictError(
        f"{table.storage.root}: the index {index} was built or repaired after {target.ts}: {why}",
        hint=f"drop {index} with Apache Hudi, roll {target.ts} back, and build the index again",
    )
