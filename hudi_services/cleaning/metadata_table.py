"""Cleans of the metadata table: they delete the file slices that its compactions replaced, under Hudi's own rules.

    <T>.clean.requested    the plan
    <T>.clean.inflight     a copy of the plan
    the files go
    <T>.clean              what was deleted

On version 6, T is the last delta commit with a suffix; on later versions, a new time. A kill in between leaves nothing
that a reader needs; the next process, Hudi's writer or this tool, completes the plan. A plan of Hudi is left to Hudi.
Source: HoodieBackedTableMetadataWriter (performTableServices, cleanIfNecessary), HoodieMetadataWriteUtils of Apache
Hudi.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..clock import parse_instant
from ..codecs.clean_plan import CleanerPlan, CleanMetadata, encode_clean_metadata, encode_cleaner_plan
from ..errors import CheckFailed, ConflictError
from ..file_names import parse_data_file
from ..metadata.metadata_table import MetadataTable
from ..model import BaseFile
from ..options import Options, archive_keys, compaction_keys
from ..own_commands import own_command
from ..timeline.instant import Action, Instant, State
from .choice import Rules, choose
from .retention import Policy, Retention, horizon
from .scope import last_clean

_SUFFIX = "002"
"""What a clean of version 6 appends to the last delta commit."""
_READERS = 3
"""So many instants follow a compaction before a clean: readers that began before it still read its log files."""
_OURS = {"hudi.services.clean": "metadata"}
"""Extra metadata of our plans: no other process executes such a plan at this moment."""

_COMMITS, _TIMES = 20, 1.2
"""These cleans retain so many commits, and so many times more than those of the table."""
_VERSIONS = 2
"""The file slices that they keep where they do not follow the policy of the table's cleans."""


def metadata_retention(options: Options) -> Retention:
    """What cleans of the metadata table keep: more than those of the table.

    Unlike in Hudi, no more commits than its archival leaves: with fewer on the timeline, no clean would ever be due.
    Source: HoodieMetadataWriteUtils.createMetadataWriteConfig of Apache Hudi.
    """
    if not options[compaction_keys.METADATA_CLEANS_FOLLOW]:
        return Retention(policy=Policy.FILE_VERSIONS, versions=_VERSIONS)
    table = options.of(Retention)
    commits = max(_COMMITS, int(table.commits * _TIMES))
    return Retention(
        policy=table.policy,
        commits=max(table.commits, min(commits, options[archive_keys.ARCHIVE_LEAST])),
        hours=math.ceil(table.hours * _TIMES),
        versions=math.ceil(table.versions * _TIMES),
    )


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A completed clean: its instant, and the number of files that it deleted."""

    instant: str
    files: int


def clean_metadata(metadata: MetadataTable, retention: Retention, times: Callable[[], str]) -> Cleaned | None:
    """Clean the metadata table when `retention` lets a file go; None when it must not be cleaned now.

    The caller holds the table's lock, and has no write of its own in progress; `times` gives instants greater than all
    on both timelines. A plan that this tool left is completed instead of a new one. Raises CheckFailed,
    ConflictError, CorruptFile and StorageError; a plan then stays for the next call.
    """
    pending = metadata.timeline.pending()
    left = next((one for one in pending if _is_ours(metadata, one)), None)
    if left is not None:
        return _execute(metadata, left.ts, times)
    if pending or not _leaves_readers_alone(metadata):
        return None
    until = _horizon(metadata, retention)
    ts = metadata.log_naming.derived(metadata.timeline.completed({Action.DELTA_COMMIT})[-1].ts, _SUFFIX, times)
    if not _has_new_slices(metadata, retention, until) or metadata.timeline.find(ts, Action.CLEAN) is not None:
        return None
    plan = _plan(metadata, retention, until)
    if not plan.files:
        return None
    data = encode_cleaner_plan(plan, metadata.config.version.release)
    metadata.timeline.publish(ts, Action.CLEAN, State.REQUESTED, data)
    return _execute(metadata.reload(), ts, times)


def _is_ours(metadata: MetadataTable, instant: Instant) -> bool:
    return (
        instant.action is Action.CLEAN and _OURS.items() <= metadata.timeline.read_cleaner_plan(instant).extra.items()
    )


def _leaves_readers_alone(metadata: MetadataTable) -> bool:
    compaction = _compactions(metadata)[-1:]
    return bool(compaction) and sum(one.ts > compaction[0].ts for one in metadata.timeline.completed()) >= _READERS


def _compactions(metadata: MetadataTable) -> Sequence[Instant]:
    return metadata.timeline.completed({Action.COMMIT})


def _horizon(metadata: MetadataTable, retention: Retention) -> Instant | None:
    """The first instant whose files stay; None when nothing may go, or by file versions."""
    # Hours count back from the newest write of the table.
    now = parse_instant(metadata.data_timeline.completed()[-1].ts, metadata.timeline.zone)
    return horizon(metadata.timeline, retention, now, "").earliest if now else None


def _has_new_slices(metadata: MetadataTable, retention: Retention, until: Instant | None) -> bool:
    """Whether a compaction has replaced slices since the last clean; the timeline tells, without a listing."""
    compactions, last = _compactions(metadata), last_clean(metadata.timeline)
    if retention.policy is Policy.FILE_VERSIONS:
        return last is None or compactions[-1].ts > last.ts
    before = [one.ts for one in compactions if until and one.ts < until.ts]
    return bool(before) and (last is None or before[-1] >= last.earliest_to_retain)


def _plan(metadata: MetadataTable, retention: Retention, until: Instant | None) -> CleanerPlan:
    earliest = until.ts if until else ""
    rules = Rules(retention.policy, earliest, retention.versions)
    metadata.look_into(metadata.table_config.metadata_partitions)
    files: dict[str, tuple[str, ...]] = {}
    for partition in sorted(metadata.table_config.metadata_partitions):
        names = choose(partition, metadata.all_slices(partition), {}, rules).names
        if names:
            files[partition] = tuple(_full_path(metadata, partition, name) for name in names)
    return CleanerPlan(
        policy=retention.policy.value,
        earliest_to_retain=earliest,
        earliest_action=until.action.value if until else "",
        last_completed=metadata.timeline.completed_writes()[-1].ts,
        files=files,
        extra=_OURS,
    )


def _full_path(metadata: MetadataTable, partition: str, name: str) -> str:
    return metadata.storage.full_path(metadata.path(partition, name))


def _execute(metadata: MetadataTable, ts: str, times: Callable[[], str]) -> Cleaned:
    started, timeline, release = time.monotonic(), metadata.timeline, metadata.config.version.release
    pending = timeline.find(ts, Action.CLEAN)
    if pending is None:
        raise ConflictError(f"{metadata.storage.root}: another process took over the clean {ts} of the metadata table")
    plan = timeline.read_cleaner_plan(pending)
    # An index may have been dropped since.
    names = {partition: files for partition, files in plan.names.items() if partition in metadata.partitions}
    for partition, files in names.items():
        _check_superseded(metadata, partition, files)
    if pending.state is State.REQUESTED:
        # Hudi 0.15 and 1.0 also read the plan from the inflight file when they archive the clean.
        data = timeline.read_details(timeline.requested_name(pending))
        timeline.publish(ts, Action.CLEAN, State.INFLIGHT, data)
    paths = [metadata.path(partition, name) for partition, files in names.items() for name in files]
    metadata.storage.delete_all(paths, lambda done: None)
    done = CleanMetadata.of(plan, ts, names, time.monotonic() - started)
    timeline.publish(ts, Action.CLEAN, State.COMPLETED, encode_clean_metadata(done, release), times)
    return Cleaned(ts, len(paths))


def _check_superseded(metadata: MetadataTable, partition: str, names: Sequence[str]) -> None:
    """Raise CheckFailed unless a newer base file, which is there, takes the place of each of these files."""
    newest = {one.file_id: one for one in metadata.file_groups(partition)}
    for name in names:
        file = parse_data_file(partition, name, 0)
        slice_ = newest.get(file.file_id) if file else None
        base_now = slice_.base_file if slice_ else None
        is_newest = slice_ is None or any(one.name == name for one in slice_.files)
        if base_now is None or is_newest or (isinstance(file, BaseFile) and file.instant >= base_now.instant):
            raise CheckFailed(
                f"{_full_path(metadata, partition, name)} is to be deleted, and no newer base file takes its place",
                hint=f"nothing was deleted; find out what is wrong: {own_command('validate', metadata.storage.root)}",
            )
