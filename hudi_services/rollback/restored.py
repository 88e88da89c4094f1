"""The slices and keys that readers see again after a rollback, for indexes that keep the instant's changes.

`metadata_updates.rollback.lasting` finds those indexes.
"""

from collections.abc import Collection, Iterator

from ..codecs.rollback_plan import RollbackPlan
from ..file_names import parse_log_file
from ..metadata.records.keys import RECORD_INDEX
from ..metadata_updates.rollback.lasting import lasting_in
from ..metadata_updates.rollback.restored_records import Restored
from ..model import CommitMetadata, FileSlice, WriteStat
from ..paths import bare_name
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from ..timeline.instant import Action, Instant
from .earlier import slices_with
from .restored_keys import restored_keys


def changes_keys(commit: CommitMetadata) -> bool:
    """Whether the files of a commit may have other keys than the files before them: log files may delete keys, and a
    compaction forgets which keys were deleted."""
    stats = (stat for of_partition in commit.stats.values() for stat in of_partition)
    return commit.compacted or any(stat.num_inserts or stat.prev_commit == "null" or is_log(stat) for stat in stats)


def is_log(stat: WriteStat) -> bool:
    """Whether the stat is that of a log file, by its name."""
    return parse_log_file("", bare_name(stat.path), 0) is not None


def restored(table: Snapshot, rollback: str, plan: RollbackPlan, commit: CommitMetadata | None) -> Restored | None:
    """The changes that the indexes need after the rollback at `rollback`; None without any.

    To be called when the target is pending again, before its files are deleted. `commit` is the target's commit
    metadata from when it was completed, None if it never was. Raises CorruptFile and StorageError.
    """
    if commit is None and Action(plan.action).completed_as is not Action.REPLACE_COMMIT:
        return None
    if table.metadata is None or _is_told(table, rollback):
        return None
    lasting = lasting_in(table.metadata, plan.ts, rollback=rollback, was_completed=commit is not None)
    if not lasting:
        return None
    clustering = next((one for one in table.timeline.pending_clusterings() if one.ts == plan.ts), None)
    gone: tuple[FileSlice, ...] = ()
    if clustering is not None:
        groups = _inputs(table, clustering)
    elif commit is not None:
        groups = commit.touched_groups
        if changes_keys(commit):
            gone = tuple(slices_with(table, plan.ts, set(commit.written_groups)))
    else:
        return None
    slices = tuple(_live(table, groups))
    source = table.slices.counting(plan.ts)
    keys = restored_keys(table, rollback, slices, gone, source) if RECORD_INDEX in lasting else None
    return Restored(slices, other_rows=clustering is None, keys=keys)


def _is_told(table: Snapshot, rollback: str) -> bool:
    """Whether an earlier attempt of this rollback has written to the metadata table."""
    assert table.metadata is not None
    found = table.metadata.timeline.find(rollback, Action.DELTA_COMMIT)
    return found is not None and found.is_completed


def _inputs(table: Snapshot, clustering: Instant) -> set[FileGroupId]:
    return {one.group for one in table.timeline.read_plan(clustering).slices}


def _live(table: Snapshot, groups: Collection[FileGroupId]) -> Iterator[FileSlice]:
    """The newest slices of the file groups in `groups` that readers see."""
    for partition in sorted({partition for partition, _ in groups}):
        for one in table.view.latest_slices(partition):
            if (partition, one.file_id) in groups:
                yield one
