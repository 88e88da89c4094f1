"""The slices and keys that readers see again after a rollback, for indexes that keep the instant's changes.

`metadata.rollback.lasting` finds those indexes.
"""

from collections.abc import Collection, Iterator

from ...codecs.rollback_plan import RollbackPlan
from ...concurrency import at_once
from ...files.names import parse_base_file
from ...metadata.records.keys import RECORD_INDEX
from ...metadata.rollback.lasting import lasting_in
from ...metadata.rollback.restored import Restored
from ...model import CommitMetadata, FileSlice, path_in
from ...snapshot import Snapshot
from ...table.view import FileGroupId
from ...timeline.instant import Action, Instant
from .restored_keys import restored_keys


def touched_groups(commit: CommitMetadata) -> set[FileGroupId]:
    """The file groups that a commit wrote to or replaced."""
    written = {(partition, stat.file_id) for partition, stats in commit.stats.items() for stat in stats}
    return written | {(partition, file_id) for partition, ids in (commit.replaced or {}).items() for file_id in ids}


def adds_keys(commit: CommitMetadata) -> bool:
    """Whether the files of a commit may have keys that the files before them do not have."""
    return any(stat.num_inserts or stat.prev_commit == "null" for stats in commit.stats.values() for stat in stats)


def restored(table: Snapshot, rollback: str, plan: RollbackPlan, commit: CommitMetadata | None) -> Restored | None:
    """The changes that the indexes need after the rollback at `rollback`; None without any.

    To be called when the target is pending again, before its files are deleted. `commit` is the target's commit
    metadata from when it was completed, None if it never was. Raises CorruptFile and StorageError.
    """
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
        groups = touched_groups(commit)
        if adds_keys(commit):
            gone = tuple(_slices_that_go(table, plan))
    else:
        return None
    slices = tuple(_live(table, groups))
    keys = restored_keys(table, rollback, slices, gone) if RECORD_INDEX in lasting else None
    return Restored(slices, other_rows=clustering is None, keys=keys)


def _is_told(table: Snapshot, rollback: str) -> bool:
    """Whether an earlier attempt of this rollback has written to the metadata table."""
    assert table.metadata is not None
    found = table.metadata.timeline.find(rollback, Action.DELTA_COMMIT)
    return found is not None and found.is_completed


def _inputs(table: Snapshot, clustering: Instant) -> set[FileGroupId]:
    return {
        (one.partition, one.file_id) for group in table.timeline.read_plan(clustering).groups for one in group.slices
    }


def _live(table: Snapshot, groups: Collection[FileGroupId]) -> Iterator[FileSlice]:
    """The newest slices of the file groups in `groups` that readers see; without those that have no base file."""
    for partition in sorted({partition for partition, _ in groups}):
        for one in table.view.latest_slices(partition):
            if (partition, one.file_id) in groups and one.base_file is not None:
                yield one


def _slices_that_go(table: Snapshot, plan: RollbackPlan) -> Iterator[FileSlice]:
    """A slice for each base file of the plan that still exists."""
    files = [(request.partition, path.rpartition("/")[2]) for request in plan.requests for path in request.files]
    found = at_once(lambda file: table.storage.head(path_in(*file)), files)
    for (partition, name), info in zip(files, found, strict=True):
        file = parse_base_file(partition, name, info.size) if info is not None else None
        if file is not None:
            yield FileSlice.of_base(file)
