"""Compaction of the metadata table: every file slice with log files gets a new base file, under Hudi's own rules.

    <T>.compaction.requested    the plan: base file and log files of each file group
    <T>.compaction.inflight     empty
    one HFile per file group    by tasks (`merged_base`)
    <T>.commit                  what was written: from here on readers use the new slices

On version 6, T is the last delta commit with a suffix; on later versions, a new time. After a kill in between, readers
still merge the log files; the next process, Hudi's writer or this tool, completes the plan. A plan of Hudi is left to
Hudi, which from 1.1 on may execute it without the table's lock.
Source: HoodieBackedTableMetadataWriter (performTableServices, compactIfNecessary, validateCompactionScheduling),
ScheduleCompactionActionExecutor, BaseHoodieCompactionPlanGenerator, RunCompactionActionExecutor of Apache Hudi.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ...codecs.avro import load_schema
from ...codecs.compaction_plan import COMPACT, CompactionOperation, CompactionPlan, encode_compaction_plan
from ...concurrency import at_once
from ...errors import ConflictError, CorruptFile
from ...file_names import base_file_name, parse_base_file, parse_log_file
from ...model import CommitMetadata, FileSlice, LogCounts, MergedLogs, WriteStat, path_in
from ...paths import bare_name
from ...table.partitions import Files
from ...timeline.compaction_trigger import Trigger
from ...timeline.instant import Action, Instant, State
from ..metadata_table import MetadataTable
from ..statistics.indexed_columns import typed_among
from .merged_base import MergedBase, MergeTask

_SUFFIX = "001"
"""What a compaction of version 6 appends to the last delta commit."""
_OURS = {"hudi.services.compaction": "metadata"}
"""Extra metadata of our plans: no other process executes such a plan at this moment."""
_NO_TASK = "0-0-0"


@dataclass(frozen=True, slots=True)
class Compacted:
    """A completed compaction: its instant, the number of file groups, and of log files that readers no longer need."""

    instant: str
    file_groups: int
    log_files: int


def compact(
    metadata: MetadataTable,
    trigger: Trigger,
    now: datetime,
    times: Callable[[], str],
    run: Callable[[Sequence[MergeTask]], Sequence[MergedBase]],
) -> Compacted | None:
    """Compact when the `trigger` says so `now`; None when it must not run now.

    The caller holds the table's lock, and has no write of its own in progress; `times` gives instants greater than all
    on both timelines, `run` executes tasks. A plan that this tool left is completed instead of a new one. Raises what
    the tasks raise, ConflictError and StorageError; the plan then stays for the next call.
    """
    left = _left_by_us(metadata)
    if left is not None:
        return _execute(metadata, left.ts, times, run)
    ts = _instant(metadata, trigger, now, times)
    plan = CompactionPlan(tuple(_operations(metadata)), _OURS) if ts is not None else CompactionPlan()
    if ts is None or not plan.operations:
        return None
    data = encode_compaction_plan(plan, metadata.config.version.release)
    metadata.timeline.publish(ts, Action.COMPACTION, State.REQUESTED, data)
    return _execute(metadata.reload(), ts, times, run)


def _left_by_us(metadata: MetadataTable) -> Instant | None:
    pending = metadata.timeline.pending({Action.COMPACTION})
    return next((i for i in pending if _OURS.items() <= metadata.timeline.read_compaction_plan(i).extra.items()), None)


def _instant(metadata: MetadataTable, trigger: Trigger, now: datetime, times: Callable[[], str]) -> str | None:
    """The instant for a compaction now, None when there must be none.

    The base files must hold every completed change of the table, and no change that may still be rolled back: they
    cannot forget it. So the table must have no older pending instant, and the metadata table none at all.
    """
    timeline = metadata.timeline
    deltas = timeline.completed({Action.DELTA_COMMIT})
    if not deltas or timeline.pending() or _why_not_due(metadata, deltas, trigger, now):
        return None
    if metadata.table_config.metadata_partitions_inflight:
        return None
    ts = metadata.log_naming.derived(deltas[-1].ts, _SUFFIX, times)
    if any(i.ts < ts for i in metadata.data_timeline.pending()) or any(i.ts >= ts for i in timeline.completed_writes()):
        return None
    return ts


def _why_not_due(metadata: MetadataTable, deltas: Sequence[Instant], trigger: Trigger, now: datetime) -> str:
    """As `Trigger.why_not_due`, by the delta commits that were completed since the last compaction was planned.

    There must be one, whatever the time: otherwise no file group has log files.
    """
    last = next(reversed(metadata.timeline.completed({Action.COMMIT})), None)
    since = [i for i in deltas if last is None or metadata.log_naming.order(i) > last.ts]
    return trigger.why_not_due(metadata.timeline, since, last, now) if since else "there is no delta commit"


def _operations(metadata: MetadataTable) -> Iterator[CompactionOperation]:
    metadata.look_into(metadata.table_config.metadata_partitions)
    for partition in sorted(metadata.table_config.metadata_partitions):
        for group in metadata.file_groups(partition):
            if group.log_files:
                yield CompactionOperation.of(group)


def _execute(
    metadata: MetadataTable,
    ts: str,
    times: Callable[[], str],
    run: Callable[[Sequence[MergeTask]], Sequence[MergedBase]],
) -> Compacted:
    timeline, release = metadata.timeline, metadata.config.version.release
    pending = _pending(metadata, ts)
    plan = timeline.read_compaction_plan(pending)
    if pending.state is State.REQUESTED:
        timeline.publish(ts, Action.COMPACTION, State.INFLIGHT)
    tasks = list(_tasks(metadata, ts, plan))
    merged = run(tasks)
    written = [(task, base) for task, base in zip(tasks, merged, strict=True) if base.size]
    _settle(
        metadata, ts, {task.path: base.size for task, base in written}, {task.file_slice.partition for task in tasks}
    )
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for task, base in written:
        partition = task.file_slice.partition
        stats[partition] = (*stats.get(partition, ()), _stat(task, base))
    extra = {"schema": load_schema("HoodieMetadataRecord", release).text}
    done = CommitMetadata(COMPACT, stats, extra, compacted=True)
    data, completion = timeline.layout.encode_commit(done, release), times()
    # Checked again: the tasks may have taken long, and another process may have taken over the lock.
    _pending(metadata.reload(), ts)
    timeline.publish(ts, Action.COMPACTION, State.COMPLETED, data, completion)
    return Compacted(ts, len(written), sum(len(task.file_slice.log_files) for task, _ in written))


def _pending(metadata: MetadataTable, ts: str) -> Instant:
    found = metadata.timeline.find(ts, Action.COMPACTION)
    if found is None or found.is_completed:
        raise ConflictError(f"{metadata.storage.root}: another process took over the compaction {ts}")
    return found


def _tasks(metadata: MetadataTable, ts: str, plan: CompactionPlan) -> Iterator[MergeTask]:
    # An index may have been dropped since.
    operations = [one for one in plan.operations if one.partition in metadata.partitions]
    schema, typed = metadata.writer_schema.text, typed_among(metadata, {one.partition for one in operations})
    partitions = sorted({one.partition for one in operations})
    stored = dict(zip(partitions, at_once(metadata.stored_files, partitions), strict=True))
    for one in operations:
        path = metadata.path(one.partition, base_file_name(one.file_id, _NO_TASK, ts, ".hfile"))
        planned = _slice(metadata, one, stored[one.partition])
        yield MergeTask(
            metadata.storage,
            path,
            planned,
            metadata.blocks,
            metadata.committed.of_logs(planned.log_files),
            schema,
            one.partition in typed,
        )


def _slice(metadata: MetadataTable, operation: CompactionOperation, sizes: Files) -> FileSlice:
    """The slice of the files that the plan names, without log files that were written since."""
    try:
        base = (
            parse_base_file(operation.partition, operation.base_file, sizes[operation.base_file])
            if operation.base_file
            else None
        )
        logs = tuple(parse_log_file(operation.partition, name, sizes[name]) for name in operation.log_files)
    except KeyError as e:
        full_path = metadata.storage.full_path(metadata.path(operation.partition, e.args[0]))
        raise CorruptFile(f"{full_path} is missing, and the pending compaction needs it") from e
    return FileSlice(
        operation.partition, operation.file_id, operation.base_instant, base, tuple(log for log in logs if log)
    )


def _settle(metadata: MetadataTable, ts: str, written: Mapping[str, int], partitions: Iterable[str]) -> None:
    """Check that the written files (bytes by path) exist, and delete the files that other attempts of `ts` left."""
    missing = dict(written)
    ordered = sorted(partitions)
    for partition, files in zip(ordered, at_once(metadata.stored_files, ordered), strict=True):
        for name, size in files.items():
            base, path = parse_base_file(partition, name, size), metadata.path(partition, name)
            if missing.get(path) == size:
                del missing[path]
            elif base and base.instant == ts:
                metadata.storage.delete_output(path)
    if missing:
        raise ConflictError(f"{metadata.storage.full_path(min(missing))} was deleted while the table was compacted")


def _stat(task: MergeTask, base: MergedBase) -> WriteStat:
    """The write stat as Hudi writes it; entries that the log files changed are not counted."""
    one, name, gained = task.file_slice, bare_name(task.path), base.entries - base.entries_before
    stat = WriteStat.of_file(path_in(one.partition, name), base.size, base.entries, one.file_id)
    counts = LogCounts(base.blocks, base.records, base.entries)
    changed = replace(counts, inserts=max(gained, 0), deletes=max(-gained, 0))
    return stat.next_of(one, changed, MergedLogs.of(one, counts))
