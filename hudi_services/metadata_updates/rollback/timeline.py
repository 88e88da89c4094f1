"""Rollbacks of delta commits of the metadata table: of killed writers, of repeated attempts, of rolled back commits.

    <R>.rollback.requested    a plan: the delta commit T, and its log files
    <R>.rollback.inflight     empty
    T's completed file is deleted first: from here on its blocks do not count
    version 6                 a command block in a new log file of each file group that T wrote to
    versions 8, 9             T's log files are deleted
    T's inflight and requested files are deleted
    <R>.rollback              what was done

A killed rollback is resumed by its plan; every step may be repeated. Rollbacks of anything but delta commits (of a
compaction) are left to Hudi. Source: BaseRollbackActionExecutor, ListingBasedRollbackStrategy of Apache Hudi.
"""

from collections.abc import Callable, Iterable
from functools import partial

from ...codecs.rollback_plan import (
    PartitionRollback,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from ...concurrency import at_once
from ...file_names import parse_data_file
from ...log_files.log_writer import encode_rollback_command
from ...metadata.metadata_table import MetadataTable
from ...model import WriteStat
from ...paths import bare_name
from ...storage import FileInfo
from ...table.log_naming import INITIALISATION, INSTANT_DIGITS
from ...timeline.instant import Action, Instant, State


def resume_rollbacks(metadata: MetadataTable, times: Callable[[], str]) -> MetadataTable:
    """Finish rollbacks of delta commits that a killed writer left; returns a new snapshot when there were any."""
    pending = metadata.timeline.pending({Action.ROLLBACK})
    plans = [(instant, metadata.timeline.read_rollback_plan(instant)) for instant in pending]
    unfinished = [(instant.ts, plan) for instant, plan in plans if plan.action == Action.DELTA_COMMIT.value]
    for ts, plan in unfinished:
        metadata = _execute(metadata, ts, plan, times).reload()
    return metadata


def undo_pending(metadata: MetadataTable, times: Callable[[], str]) -> MetadataTable:
    """Roll back the repairs that were killed, and on version 6 every delta commit that a killed writer left incomplete.

    On version 6 a reader stops at a block that is newer than the newest completed instant, whatever follows it. Delta
    commits that build a partition (their instants have more digits) are left to Hudi.
    """
    left = metadata.timeline.pending({Action.DELTA_COMMIT})
    repairs = repairs_among(metadata, left)
    for instant in left:
        if instant in repairs or metadata.log_naming.halts_readers(instant.ts):
            metadata = undo(metadata, instant, times(), times)
    return metadata


def repairs_among(metadata: MetadataTable, instants: Iterable[Instant]) -> list[Instant]:
    """The instants of repairs of the metadata table, or of writes that are gone: the table does not have their time."""
    unknown = [i for i in instants if not i.ts.startswith(INITIALISATION)]
    if unknown:
        unknown = [i for i in unknown if metadata.data_timeline.find(i.ts[:INSTANT_DIGITS]) is None]
    if unknown:
        # Reloaded: a writer begins its instant in the table before it begins the delta commit here.
        known = metadata.data_timeline.reload()
        unknown = [i for i in unknown if known.find(i.ts[:INSTANT_DIGITS]) is None]
    return unknown


def undo(metadata: MetadataTable, target: Instant, ts: str, times: Callable[[], str]) -> MetadataTable:
    """Roll back the delta commit `target`, in any state, by a rollback at `ts`; returns a new snapshot."""
    return take_out(metadata, target, ts, times).reload()


def take_out(metadata: MetadataTable, target: Instant, ts: str, times: Callable[[], str]) -> MetadataTable:
    """As `undo`, but returns the same snapshot without the blocks of `target`, see `MetadataTable.handed_on`."""
    plan = RollbackPlan(target.ts, Action.DELTA_COMMIT.value, _requests(metadata, target))
    data = encode_rollback_plan(plan, metadata.config.version.release)
    metadata.timeline.publish(ts, Action.ROLLBACK, State.REQUESTED, data)
    return _execute(metadata, ts, plan, times)


def _requests(metadata: MetadataTable, target: Instant) -> tuple[PartitionRollback, ...]:
    return metadata.log_naming.taken_out(
        cancel=lambda: _blocks_to_cancel(metadata, target), delete=lambda: _files_to_delete(metadata, target)
    )


def _files_to_delete(metadata: MetadataTable, target: Instant) -> tuple[PartitionRollback, ...]:
    return tuple(
        PartitionRollback(partition, (metadata.storage.full_path(metadata.path(partition, name)),))
        for partition, names in _files_of(metadata, target.ts).items()
        for name in names
    )


def _blocks_to_cancel(metadata: MetadataTable, target: Instant) -> tuple[PartitionRollback, ...]:
    if not metadata.timeline.sizes.get(target.file_name):
        # Only requested, or the empty inflight file of a bulk insert: no log file has a block of the target.
        return ()
    commit = metadata.timeline.read_commit(target)
    return tuple(
        PartitionRollback(
            partition=partition,
            files=(),
            file_id=stat.file_id,
            base_instant=stat.prev_commit,
            # Hudi stores the size of the cancelled log file, and 1 where the size is not known.
            log_blocks={_full_path(metadata, stat): stat.file_size or 1},
        )
        for partition, stats in commit.stats.items()
        for stat in stats
        if stat.file_id
    )


def _full_path(metadata: MetadataTable, stat: WriteStat) -> str:
    """The path of the log file; a forecast does not name it yet, so the id of its file group takes its place."""
    name = bare_name(stat.path) or stat.file_id
    return metadata.storage.full_path(metadata.path(stat.partition, name))


def _files_of(metadata: MetadataTable, ts: str) -> dict[str, list[str]]:
    """The names of the files that the instant wrote, by partition. On versions 8 and 9 a name has its instant."""
    return dict(zip(metadata.partitions, at_once(partial(_written, metadata, ts), metadata.partitions), strict=True))


def _written(metadata: MetadataTable, ts: str, partition: str) -> list[str]:
    # Listed now: a writer that died may have written after this snapshot.
    parsed = (parse_data_file(partition, name, 0) for name in metadata.names_now(partition) if ts in name)
    return sorted(file.name for file in parsed if file and file.instant == ts)


def _execute(metadata: MetadataTable, ts: str, plan: RollbackPlan, times: Callable[[], str]) -> MetadataTable:
    timeline, layout = metadata.timeline, metadata.timeline.layout
    inflight = layout.file_name(ts, Action.ROLLBACK, State.INFLIGHT)
    if inflight not in timeline.sizes:
        timeline.publish(ts, Action.ROLLBACK, State.INFLIGHT)
    target = timeline.find(plan.ts, Action.DELTA_COMMIT)
    if target and target.is_completed:
        metadata.storage.delete(timeline.path(target.file_name))
    done = metadata.log_naming.taken_out(
        cancel=lambda: _cancel(metadata, ts, plan), delete=lambda: _delete(metadata, plan)
    )
    for state in (State.INFLIGHT, State.REQUESTED):
        metadata.storage.delete(timeline.path(layout.file_name(plan.ts, Action.DELTA_COMMIT, state)))
    report = RollbackMetadata(ts, plan.ts, plan.action, done)
    data = encode_rollback_metadata(report, metadata.config.version.release)
    timeline.publish(ts, Action.ROLLBACK, State.COMPLETED, data, times)
    logs = [(name, path, size) for name, one in done.items() for path, size in one.command_logs.items()]
    written = [FileInfo(_path(metadata, name, path), size, 0) for name, path, size in logs]
    return metadata.handed_on(written, [_path(metadata, name, path) for name in done for path in done[name].deleted])


def _path(metadata: MetadataTable, partition: str, full_path: str) -> str:
    return metadata.path(partition, bare_name(full_path))


def _delete(metadata: MetadataTable, plan: RollbackPlan) -> dict[str, RollbackPartition]:
    done = {}
    for partition, names in _files_of(metadata, plan.ts).items():
        paths = [metadata.path(partition, name) for name in names]
        at_once(metadata.storage.delete, paths)
        if paths:
            done[partition] = RollbackPartition(deleted=tuple(map(metadata.storage.full_path, paths)))
    return done


def _cancel(metadata: MetadataTable, ts: str, plan: RollbackPlan) -> dict[str, RollbackPartition]:
    done: dict[str, RollbackPartition] = {}
    data = encode_rollback_command(ts, plan.ts)
    for partition in sorted({request.partition for request in plan.requests if request.log_blocks}):
        names = metadata.log_names(partition, ts)
        groups = {group.file_id: group for group in metadata.file_groups(partition)}
        written: dict[str, int] = {}
        for request in plan.requests:
            if request.partition == partition and request.file_id in groups:
                path = metadata.path(partition, names.next(groups[request.file_id]).name)
                metadata.storage.create(path, data)
                written[metadata.storage.full_path(path)] = len(data)
        done[partition] = RollbackPartition(command_logs=written)
    return done
