"""Keeping the metadata table in step with the table: its side of a commit, of a clean and of a rollback, and repairs.

Each function runs under the table's lock, before the action is completed on the table's own timeline: until then no
reader uses what the function wrote. A repair belongs to the metadata table alone, and is read as soon as it is complete
there. Each function first cleans up after killed writers, and may be called again after a kill.
Source: HoodieBackedTableMetadataWriter (update, commitInternal), HoodieTableMetadataUtil.convertMetadataToRecords.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ..base_files.new_file import NewFile
from ..derived_indexes.expression_index.definitions import ExpressionIndex, expression_indexes
from ..derived_indexes.expression_index.index import ComputedIndex
from ..errors import CheckFailed, HudiServicesError, UnsupportedTable
from ..metadata.bloom_filters import bloom_records
from ..metadata.file_groups.committed_files import REPAIRED_LOGS
from ..metadata.metadata_table import MetadataTable
from ..metadata.record_index.log_writing import IndexDelta
from ..metadata.records.keys import (
    ALL_PARTITIONS_KEY,
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    partition_id,
)
from ..metadata.records.model import FileEntry, FilesRecord, Record, RecordType, StatsRecord
from ..metadata.statistics.column_stats import column_records, untold_columns
from ..metadata.statistics.indexed_columns import (
    NO_COLUMNS,
    IndexColumns,
    define_columns,
    described_columns,
    index_columns,
    new_index_columns,
)
from ..metadata.statistics.partition_ranges import partition_ranges, range_source, settled_in, widening
from ..metadata.statistics.text_ranges import in_both_orders
from ..paths import bare_name
from ..schema.table_schema import TableSchema
from ..table.support import unsupported_partitions
from ..timeline.instant import Action
from .altered_columns import altered_columns, is_altered, ranges_to_delete
from .deletion import deletion_records
from .delta_commit import Confirm, write_delta_commit
from .narrow_ranges import hidden_ranges, narrow_in, narrow_ranges
from .repair_plan import Wanted, plan_repair
from .rollback.lasting import lasting_in, may_be_merged
from .rollback.restored_records import Restored, restored_records
from .rollback.timeline import resume_rollbacks, take_out, undo, undo_pending

_ROLLBACK_SUFFIX = "006"
"""What a rollback of version 6 appends to its instant on the metadata table's timeline."""

_REPAIR_SUFFIX = "010"
"""What a repair of version 6 appends to its instant: Hudi 0.15 takes a delta commit with this suffix for the build of a
partition, and so reads it although the table has no such instant (HoodieTableMetadataUtil.isValidInstant)."""


@dataclass(frozen=True, slots=True)
class Change:
    """The result of the commit `instant`: base files that it added, and the live files that it left.

    `live_files` holds, for each data partition with new or replaced files, the names of all base and log files of the
    newest slices of the file groups that were neither written nor replaced; only the ranges of whole partitions need
    them.
    """

    instant: str
    new_files: tuple[NewFile, ...]
    live_files: Mapping[str, Collection[str]]
    index_delta: IndexDelta | None = None
    """All record keys of the new files, when the table has a record index."""
    secondary_deltas: tuple[IndexDelta, ...] | None = None
    """The keys that came to each secondary index, and those that went; None when all rows stay as they are."""
    expressions: tuple[ComputedIndex, ...] = ()
    """The records of the new files in each expression index."""
    keys_stay: bool = False
    """Whether all keys stay in their file groups, as in a compaction: the record index needs no change."""
    replaces: bool = False
    """Whether it replaces file groups, without new files, too."""
    beside_writes: bool = False
    """Whether other writes are in progress: readers order records by instants, so that ranges which replace older ones
    would hide what a write with an earlier instant adds when it ends."""
    schema: TableSchema | None = None
    """That of the commit; None for that of the table."""


def sync_commit(metadata: MetadataTable, change: Change, times: Callable[[], str]) -> Confirm:
    """Write the metadata table's delta commit for a commit, before the commit is completed.

    `metadata` was opened under the lock; `times` gives instants that are greater than all on both timelines, a new one
    at each call. A delta commit of the same instant, complete or not, is rolled back first. Raises UnsupportedTable,
    before it writes, for a table with metadata partitions that we cannot keep in step. The result is that of
    `write_delta_commit`.
    """
    metadata = _without(_ready(metadata, times), change.instant, times)
    records, added = _records_of(metadata, change)
    if BLOOM_FILTERS in metadata.partitions:
        records[BLOOM_FILTERS] = bloom_records(metadata.slices, change.new_files, change.instant)
    moved = [*([change.index_delta] if change.index_delta is not None else []), *(change.secondary_deltas or ())]
    _require_keys(metadata, change, {one.index for one in moved})
    define_columns(metadata, added)
    # Before the commit: a kill in between leaves a range that is at most wider than necessary.
    _write_ranges(metadata, _hidden(metadata, change.instant, records), times)
    gone = _forgotten_ranges(metadata, change)
    return write_delta_commit(metadata, change.instant, records, times, deletes=gone, deltas=moved)


def rehearse_commit(metadata: MetadataTable, change: Change) -> None:
    """Read all that `sync_commit` needs of the metadata table, before the lock is taken.

    What does not change meanwhile is not read again then. Nothing is written, and errors are left to `sync_commit`.
    """
    with suppress(HudiServicesError):
        metadata.read_ahead(one for one in (COLUMN_STATS, PARTITION_STATS) if one in metadata.partitions)
        records, _ = _records_of(metadata, change)
        _hidden(metadata, change.instant, records)


def _records_of(metadata: MetadataTable, change: Change) -> tuple[dict[str, Sequence[Record]], list[str]]:
    """The records of a change by metadata partition, but for bloom filters; and the columns to be indexed from now on.

    Raises CheckFailed for what the commit does not know.
    """
    metadata.look_into(metadata.partitions)
    candidates = change.new_files[0].columns if change.new_files else ()
    indexed, added = NO_COLUMNS, list[str]()
    if COLUMN_STATS in metadata.partitions:
        indexed = index_columns(metadata, candidates)
        added = new_index_columns(metadata, indexed, change.schema) if change.new_files else []
        indexed = replace(indexed, columns=indexed.columns.union(added))
    _require_ranges(metadata, change, indexed)
    records: dict[str, Sequence[Record]] = {FILES: _files_records(change.new_files, metadata.listed_partitions())}
    # Under the lock, and many: computed once for both indexes.
    ranges = {file.path: _column_records(file, indexed) for file in change.new_files}
    if COLUMN_STATS in metadata.partitions:
        records[COLUMN_STATS] = [record for some in ranges.values() for record in some]
    if PARTITION_STATS in metadata.partitions:
        told, partitions = [record for some in ranges.values() for record in some], _partitions(change)
        altered = altered_columns(metadata, change.live_files)
        kept = [one for one in told if not is_altered(altered, partitions[one.file_name], one.column)]
        records[PARTITION_STATS] = _ranges(metadata, change, PARTITION_STATS, kept, indexed.columns)
    for index in expression_indexes(metadata):
        if change.new_files and all(one.index != index for one in change.expressions):
            raise CheckFailed(f"{metadata.storage.root} has {index.partition} now, and the commit does not know it")
        records[index.partition] = _expression_records(metadata, change, index)
    return records, added


def sync_clean(
    metadata: MetadataTable,
    instant: str,
    deleted: Mapping[str, Collection[str]],
    gone_partitions: Collection[str],
    times: Callable[[], str],
    ranges: Mapping[str, Sequence[StatsRecord]] | None = None,
) -> Confirm:
    """Write the metadata table's delta commit for a clean, before the clean is completed; otherwise as `sync_commit`.

    `deleted` are bare file names by data partition; `gone_partitions` are the data partitions that are deleted;
    `ranges` are the `narrow_ranges` of the partitions, which the clean mends.
    """
    metadata = _without(_ready(metadata, times), instant, times)
    _write_ranges(metadata, ranges or {}, times)
    records, deletes = deletion_records(metadata, deleted, gone_partitions)
    return write_delta_commit(metadata, instant, records, times, deletes=deletes)


def sync_rollback(
    metadata: MetadataTable,
    target: str,
    rollback: str,
    times: Callable[[], str],
    appended: Mapping[str, Mapping[str, int]] | None = None,
    deleted: Mapping[str, Collection[str]] | None = None,
    restored: Restored | None = None,
    *,
    was_completed: bool = False,
    live: Mapping[str, Collection[str]] | None = None,
    is_first: bool = True,
) -> MetadataTable:
    """The metadata table's side of the rollback at `rollback` of the table's instant `target`.

    Call it when the target's data files and its completed file are deleted, but its inflight and requested files still
    exist. `appended` are log files with their sizes, by data partition, that the rollback wrote or cancelled
    (merge-on-read, version 6); `deleted` are the names of the deleted files; `restored` are the slices that readers see
    again; `was_completed` says that readers had seen the target; `live` are the names of the files that readers see
    then, of each data partition that the target changed.

    The delta commit of the target is rolled back. Partitions that keep its records all the same (`lasting_in`) are
    repaired by a delta commit at the rollback's instant: it removes the deleted files, and adds what readers see again.
    Secondary and expression indexes stay as they are: the caller has checked that they may.

    Returns the metadata table for the next rollback under the same lock, which is not the first: what killed writers
    left is cleaned up. Its timeline may be the one before this rollback.
    """
    if is_first:
        metadata = undo_pending(resume_rollbacks(metadata, times), times)
    merged = may_be_merged(metadata, target, was_completed=was_completed)
    lasting = lasting_in(metadata, target, rollback=rollback, was_completed=was_completed)
    records, deletes = deletion_records(metadata, deleted or {}) if lasting else ({FILES: []}, {})
    listing = [_listing(partition, files) for partition, files in (appended or {}).items()]
    again = restored_records(metadata, restored, lasting).records if restored is not None else {}
    everything = {**records, **again, FILES: [*records[FILES], *listing]}
    keys = restored.keys if restored is not None and RECORD_INDEX in lasting else None
    moved = [] if keys is None else [keys]
    writes = any(everything.values()) or any(deletes.values()) or bool(moved)
    has_own = writes or metadata.config.version.mdt_rollback_is_delta_commit
    if has_own:
        metadata = _undo_half(metadata, rollback, times)
        if metadata.timeline.find(rollback, Action.DELTA_COMMIT) is None:
            commit = write_delta_commit(
                metadata, rollback, everything, times, deletes=deletes, deltas=moved, hands_on=True
            )
            # Below, ranges are compared with what readers find then.
            metadata = commit().reload() if live and writes else commit()
    failed = metadata.timeline.find(target, Action.DELTA_COMMIT)
    if failed is not None and not merged:
        own = times() if has_own else rollback
        ts = metadata.log_naming.derived(rollback, _ROLLBACK_SUFFIX, lambda: own)
        metadata = take_out(metadata, failed, ts, times)
    # What the target had made true is as it was before; its own records do not count while it is pending.
    return _write_ranges(metadata, narrow_ranges(metadata, live or {}), times)


def sync_repair(
    metadata: MetadataTable,
    expected: Wanted,
    times: Callable[[], str],
    delta: IndexDelta | None = None,
    damaged: Sequence[str] = (),
) -> tuple[str, Mapping[str, int]]:
    """Write a delta commit after which readers find `expected`, as far as possible; otherwise as `sync_commit`.

    `delta` are the keys to write to the record index. `damaged` are the log files whose losses are repaired: our
    readers no longer refuse them.

    Returns the instant of the repair, which the table's timeline does not have, and the numbers of keys written by
    metadata partition: no partition when nothing can be repaired.
    """
    metadata = _ready(metadata, times)
    plan = plan_repair(metadata, expected)
    drawn = times()
    instant = metadata.log_naming.derived(drawn, _REPAIR_SUFFIX, lambda: drawn)
    written = dict.fromkeys((path.partition("/")[0] for path in damaged), 0) | plan.count
    written |= {} if delta is None else {RECORD_INDEX: sum(delta.counts().values())}
    if written:
        extra = {REPAIRED_LOGS: ",".join(damaged)} if damaged else {}
        keys = [] if delta is None else [delta]
        write_delta_commit(metadata, instant, plan.records, times, deletes=plan.deletes, deltas=keys, extra=extra)()
    return instant, written


def _ready(metadata: MetadataTable, times: Callable[[], str]) -> MetadataTable:
    """The metadata table, after the cleanup of what killed writers left."""
    _require_supported(metadata)
    return undo_pending(resume_rollbacks(metadata, times), times)


def _without(metadata: MetadataTable, instant: str, times: Callable[[], str]) -> MetadataTable:
    """The metadata table after a rollback of the delta commit of `instant`, if it has one."""
    repeated = metadata.timeline.find(instant, Action.DELTA_COMMIT)
    return metadata if repeated is None else undo(metadata, repeated, times(), times)


def _undo_half(metadata: MetadataTable, ts: str, times: Callable[[], str]) -> MetadataTable:
    """Roll back the delta commit of `ts` when it was begun and not completed."""
    begun = metadata.timeline.find(ts, Action.DELTA_COMMIT)
    return metadata if begun is None or begun.is_completed else undo(metadata, begun, times(), times)


def _require_supported(metadata: MetadataTable) -> None:
    unknown = unsupported_partitions(metadata.table_config)
    if unknown:
        raise UnsupportedTable(
            f"{metadata.storage.root} has the metadata partition {unknown[0]}, which this version cannot keep in step",
            hint="write to it with Apache Hudi and the index switched on, or drop the index first",
        )


def _require_ranges(metadata: MetadataTable, change: Change, indexed: IndexColumns) -> None:
    """Raise CheckFailed when an indexed column has no known range: Hudi takes a file without a record for empty."""
    for file in change.new_files:
        for column in untold_columns(file, indexed.columns, typed=indexed.typed):
            raise CheckFailed(
                f"{metadata.storage.root} has statistics of the column {column} now, and its range in "
                f"{file.path} is not known",
                hint="run the command again: it then writes the new files with these statistics",
            )


def _require_keys(metadata: MetadataTable, change: Change, known: Collection[str]) -> None:
    """Raise CheckFailed when a key index was built while the rows were written: their keys were not read for it."""
    needed = [
        one
        for one in metadata.partitions
        if one.startswith(SECONDARY_INDEX_PREFIX) and change.secondary_deltas is not None
    ]
    if RECORD_INDEX in metadata.partitions and not change.keys_stay:
        needed.append(RECORD_INDEX)
    unknown = {*needed}.difference(known)
    if unknown and (change.new_files or change.replaces):
        raise CheckFailed(
            f"{metadata.storage.root} has the metadata partition {min(unknown)} now, and the commit does not know its "
            "keys",
            hint="run the command again: it then reads them",
        )


def _hidden(
    metadata: MetadataTable, instant: str, records: Mapping[str, Sequence[Record]]
) -> dict[str, list[StatsRecord]]:
    ranges = {
        index: [one for one in some if isinstance(one, StatsRecord) and one.type is RecordType.PARTITION_STATS]
        for index, some in records.items()
    }
    return {index: hidden_ranges(metadata, index, instant, some) for index, some in ranges.items() if some}


def _write_ranges(
    metadata: MetadataTable, ranges: Mapping[str, Sequence[StatsRecord]], times: Callable[[], str]
) -> MetadataTable:
    """Write ranges that count as soon as they are written, as a repair does; return the metadata table after it."""
    return write_delta_commit(metadata, times(), ranges, times, hands_on=True)() if any(ranges.values()) else metadata


def _files_records(files: Iterable[NewFile], listed: Collection[str]) -> list[Record]:
    """The listings of new files, and the data partitions that are not `listed` yet.

    Hudi lists each partition again. In log files, the deletion of a partition takes back no more than that, so that a
    partition which the base file lists, too, would never go.
    """
    listings: dict[str, dict[str, int]] = {}
    for file in files:
        listings.setdefault(file.partition, {}).update((bare_name(path), size) for path, size in file.stat.files)
    new = {partition_id(partition): FileEntry(0) for partition in listings if partition not in listed}
    everything = FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, new)
    return [everything, *(_listing(partition, sizes) for partition, sizes in listings.items())]


def _listing(partition: str, sizes: Mapping[str, int]) -> FilesRecord:
    entries = {name: FileEntry(size) for name, size in sizes.items()}
    return FilesRecord(partition_id(partition), RecordType.FILES, entries)


def _ranges(
    metadata: MetadataTable, change: Change, index: str, of_files: Sequence[StatsRecord], columns: Collection[str]
) -> list[StatsRecord]:
    """The ranges of the partitions that the commit changes, over its new and live files; `of_files` are the records of
    the new files. Where these tell nothing of one of `columns`, as those of deletes, what is there stays, if it is
    true."""
    partitions = _partitions(change)
    new: dict[str, list[StatsRecord]] = {}
    for record in of_files:
        new.setdefault(partitions[record.file_name], []).append(record)
    names: dict[str, set[str]] = {}
    # In the index of an expression, a file without rows has no record.
    for name in partitions if index == PARTITION_STATS else (record.file_name for record in of_files):
        names.setdefault(partitions[name], set()).add(name)
    reader = metadata.reader(range_source(index))
    ranges = [
        one
        for partition, records in new.items()
        for one in partition_ranges(
            reader, index, partition, change.live_files.get(partition, ()), records, names[partition]
        )
    ]
    settle = widening if change.beside_writes else settled_in
    others = narrow_in(metadata, index, columns, change.live_files, but={record.key for record in ranges})
    return [*settle(metadata, index, ranges), *others]


def _partitions(change: Change) -> dict[str, str]:
    """The data partitions of the new files, by name."""
    return {file.name: file.partition for file in change.new_files}


def _forgotten_ranges(metadata: MetadataTable, change: Change) -> dict[str, list[str]]:
    """The keys of ranges that would hide rows of live files, in whose names ALTER TABLE has changed the columns."""
    altered = altered_columns(metadata, change.live_files) if PARTITION_STATS in metadata.partitions else {}
    keys = ranges_to_delete(metadata, altered, described_columns(metadata)) if altered else []
    return {PARTITION_STATS: keys} if keys else {}


def _column_records(file: NewFile, indexed: IndexColumns) -> list[StatsRecord]:
    return [in_both_orders(record) for record in column_records(file, indexed.columns, typed=indexed.typed)]


def _expression_records(metadata: MetadataTable, change: Change, index: ExpressionIndex) -> list[Record]:
    """The records of new files in an expression index; with an index of ranges, also the ranges of the partitions that
    the commit changes."""
    computed = next((one.records for one in change.expressions if one.index == index), ())
    if index.kind != COLUMN_STATS:
        return [*computed]
    told = [record for record in computed if isinstance(record, StatsRecord)]
    return [*told, *_ranges(metadata, change, index.partition, told, [index.column])]
