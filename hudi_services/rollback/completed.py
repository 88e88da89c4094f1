"""Whether a completed commit can be rolled back without losing a row: the files that become visible again must exist.

Sources: BaseRollbackActionExecutor (savepoints, the order of commits), validateRollback of
HoodieBackedTableMetadataWriter. Hudi does not check that the older files still exist: it leaves that to the operator
who restores.
"""

from collections.abc import Collection, Iterable, Mapping

from ..commit.conflicts import Prospect, pending_writes, prospect, recover_hint
from ..commit.settings import TransactionSettings
from ..errors import (
    ConfigError,
    ConflictError,
    CorruptFile,
    NeedsRecovery,
    NotFound,
)
from ..file_names import parse_data_file
from ..metadata_updates.rollback.lasting import may_be_merged
from ..model import CommitMetadata, FileSlice
from ..paths import bare_name
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from ..timeline.instant import Action, Instant
from .earlier import Earlier
from .later_indexes import check_indexes
from .requests import says_nothing
from .restored import is_log

_TOO_LATE = "it cannot be rolled back any more"
_KEEPS_ITS_PLAN = "restore the table to a savepoint with Apache Hudi: the plan of a compaction cannot be taken back"


def check_not_savepointed(table: Snapshot, ts: str) -> None:
    """Raise ConfigError when a savepoint of the instant or of a later instant exists: it holds files of the instant."""
    held = [i.ts for i in table.timeline.instants if i.action is Action.SAVEPOINT and i.ts >= ts]
    if held:
        raise ConfigError(
            f"{table.storage.root}: the savepoint {held[0]} holds the files of {ts}",
            hint="delete the savepoint first, if it is no longer needed",
        )


def check_is_newest(table: Snapshot, target: Instant) -> None:
    """Raise ConflictError when later writes may build on the completed write `target`."""
    later = [i for i in table.timeline.instants if i.action.writes_data and i.ts > target.ts]
    planned = {i.ts for i in table.timeline.pending_clusterings()}
    for one in reversed(later):
        if one.is_completed or one.ts not in planned:
            is_compaction = table.timeline.began_as(one) is Action.COMPACTION
            raise ConflictError(
                f"{table.storage.root}: the {one.action.value} {one.ts} ({one.state.name.lower()}) is later than "
                f"{target.ts}, and its rows may build on it",
                hint=_KEEPS_ITS_PLAN if is_compaction else f"roll back {one.ts} first",
            )


def check_not_first(table: Snapshot, target: Instant) -> None:
    """Raise ConflictError when the active timeline begins with the completed write `target`.

    Without its completed file the timeline begins later, and as long as the files of `target` exist, Hudi takes them
    for files of an archived commit.
    """
    if table.timeline.first_ts() == target.ts:
        raise ConflictError(
            f"{table.storage.root}: the active timeline begins with {target.ts} ({target.file_name}), and readers "
            "would take its files for those of an archived commit until the last of them is deleted",
            hint=_TOO_LATE,
        )


def refuse_other_writers(table: Snapshot, target: Instant, settings: TransactionSettings) -> None:
    """Raise ConflictError while another write is pending, because it may build on the completed `target`.

    Raises NeedsRecovery for an abandoned write: age alone does not prove that its writer will not come back. A lock
    does not help: Hudi's conflict check before a commit does not consider rollbacks, so that a write that read files of
    `target` would complete, with their rows (TransactionUtils.resolveWriteConflictIfAny).
    """
    for write in pending_writes(table):
        if write.ts == target.ts:
            continue
        if prospect(table, write, settings, plan="") is Prospect.MAY_COMMIT:
            raise ConflictError(
                f"{table.storage.root}: the {write.action.value} {write.ts} of another writer is in progress "
                f"({write.file_name}), and may build on {target.ts}",
                hint="wait until it is completed or rolled back, and keep writers away meanwhile: a lock does not help",
            )
        raise NeedsRecovery(
            f"{table.storage.root}: the {write.action.value} {write.ts} ({write.file_name}) was abandoned: its writer "
            f"gives no sign of life, and it may build on {target.ts}",
            hint=recover_hint(table),
        )


def restored_slices(table: Snapshot, target: Instant, commit: CommitMetadata) -> list[FileSlice]:
    """The slices that readers see again when the completed `target`, not a clustering, is rolled back.

    Raises ConflictError when a file of one of them was or may have been cleaned, or when a pending clean is about to
    delete it. File groups to which the target only appended log files are not among them: readers see them all the
    time.
    """
    replaced = commit.replaced_groups
    rewritten = [
        (partition, stat.file_id)
        for partition, stats in commit.stats.items()
        for stat in stats
        if stat.prev_commit != "null" and not is_log(stat)
    ]
    if table.timeline.began_as(target) is Action.COMPACTION:
        # Of a file group without a base file, too.
        rewritten = commit.written_groups
    groups = dict.fromkeys((*replaced, *rewritten))
    old = Earlier(table, target, sorted({partition for partition, _ in groups}))
    found: dict[FileGroupId, FileSlice] = {}
    for group in groups:
        one = old.slices.get(group)
        if one is None or not all(old.has(file.partition, file.name) for file in one.files):
            raise _cleaned(table, target, group)
        found[group] = one
    _check_prev_commits(table, target, commit, found)
    _check_compacted(table, target, found)
    if replaced:
        _check_cleans(table, target, {group: found[group] for group in replaced})
    check_not_being_cleaned(table, found.values())
    return list(found.values())


def _cleaned(table: Snapshot, target: Instant, group: FileGroupId) -> ConflictError:
    return ConflictError(
        f"{table.storage.root}: the files of {group[1]} in {group[0] or 'the table'} from before {target.ts} "
        "were cleaned, so that their rows would be lost",
        hint=_TOO_LATE,
    )


def _check_compacted(table: Snapshot, target: Instant, slices: Mapping[FileGroupId, FileSlice]) -> None:
    """Raise ConflictError unless all files exist that the completed compaction `target` merged."""
    if table.timeline.began_as(target) is not Action.COMPACTION:
        return
    for one in table.timeline.read_compaction_plan(target).operations:
        names = {file.name for file in slices[one.group].files} if one.group in slices else set()
        if not names.issuperset(one.names):
            raise _cleaned(table, target, one.group)


def _check_cleans(table: Snapshot, target: Instant, newest: Mapping[FileGroupId, FileSlice]) -> None:
    """Raise ConflictError when a clean since `target` deleted a newer file of a replaced group than the newest left.

    A commit does not record the files that it replaces, and a savepoint may have kept an older file. The plan of a
    clean decides what it deleted: a clean that was resumed records files that were deleted before as failed.
    """
    for clean in table.timeline.completed({Action.CLEAN}):
        if clean.ts < target.ts:
            continue
        try:
            plan = table.timeline.read_cleaner_plan(clean)
        except (CorruptFile, NotFound) as error:
            raise ConflictError(
                f"{table.storage.root}: the plan of the clean {clean.ts} cannot be read, so that it is not known "
                f"whether it took files that {target.ts} replaced: {error.message}",
                hint=_TOO_LATE,
            ) from error
        for partition, paths in plan.files.items():
            for path in paths:
                gone = parse_data_file(partition, bare_name(path), 0)
                if gone is None:
                    continue
                left = newest.get((partition, gone.file_id))
                if left is not None and gone.instant > left.base_instant:
                    raise ConflictError(
                        f"{table.storage.root}: the clean {clean.ts} took {gone.path}, which {target.ts} replaced; the "
                        f"newest that is left is {left.files[0].name}",
                        hint=_TOO_LATE,
                    )


def _check_prev_commits(
    table: Snapshot, target: Instant, commit: CommitMetadata, slices: Mapping[FileGroupId, FileSlice]
) -> None:
    for partition, stats in commit.stats.items():
        for stat in stats:
            before = slices.get((partition, stat.file_id))
            if before is None or stat.prev_commit == "null" or is_log(stat):
                continue
            if before.base_file is None:
                raise _cleaned(table, target, (partition, stat.file_id))
            if stat.prev_commit != before.base_file.instant:
                raise ConflictError(
                    f"{table.storage.root}: the file of {stat.file_id} of {stat.prev_commit}, which the commit "
                    f"updated, was cleaned; the newest that is left is {before.base_file.name}",
                    hint=_TOO_LATE,
                )


def check_not_being_cleaned(table: Snapshot, slices: Iterable[FileSlice]) -> None:
    """Raise ConflictError when a pending clean names a file of one of `slices`."""
    names = {(file.partition, file.name) for one in slices for file in one.files}
    for clean in table.timeline.pending({Action.CLEAN}):
        plan = table.timeline.read_cleaner_plan(clean)
        taken = next(iter(sorted(names & plan.named)), None)
        if taken is not None:
            raise ConflictError(
                f"{table.storage.root}: the pending clean {clean.ts} ({clean.file_name}) deletes {taken[1]}, which "
                "would be read again",
                hint=f"{_TOO_LATE}, unless that clean is rolled back before it deletes anything",
            )


def check_not_planned(table: Snapshot, groups: Collection[FileGroupId], ts: str) -> None:
    """Raise ConflictError when a pending clustering or compaction is going to read what `ts` wrote to one of `groups`.

    A compaction does not read what was written to the file group after it was planned.
    """
    compactions = {group: planned for group, planned in table.ledger.groups_in_compactions.items() if planned > ts}
    for pending in (table.ledger.groups_in_clusterings(), compactions):
        for group in groups:
            if pending.get(group, ts) != ts:
                raise ConflictError(
                    f"{table.storage.root}: the pending plan {pending[group]} reads {group[1]} in "
                    f"{group[0] or 'the table'}, which {ts} wrote",
                    hint=f"execute {pending[group]}, or roll it back first",
                )


def check_completed_rollback(table: Snapshot, target: Instant) -> list[FileSlice]:
    """Check that a completed commit, not a clustering, can be rolled back; return the slices that readers see again.

    Raises ConfigError for a savepoint, ConflictError for any other obstacle, and the errors of `check_indexes`.
    """
    check_not_savepointed(table, target.ts)
    check_is_newest(table, target)
    check_not_first(table, target)
    commit = table.timeline.read_commit(target)
    if says_nothing(commit):
        raise ConflictError(
            f"{table.storage.root}: {target.file_name} is empty, so that it is not known "
            "which files would be read again",
            hint="restore the table to a savepoint with Apache Hudi, or put the file back from a copy",
        )
    _check_not_merged(table, target)
    check_not_planned(table, commit.written_groups, target.ts)
    restored = restored_slices(table, target, commit)
    check_indexes(table, target, restored, commit)
    return restored


def _check_not_merged(table: Snapshot, target: Instant) -> None:
    """Raise ConflictError when the metadata table cannot roll `target` back any more.

    Its ranges of whole partitions include the changes of `target`, and would hide rows that are read again.
    """
    if table.metadata is None or not may_be_merged(table.metadata, target.ts):
        return
    is_there = table.metadata.timeline.find(target.ts, Action.DELTA_COMMIT) is not None
    what = f"may have compacted {target.ts}" if is_there else f"was built after {target.ts}, or has archived it"
    raise ConflictError(
        f"{table.storage.root}: the metadata table {what}, and cannot forget it any more",
        hint="delete the metadata table (metadata delete of hudi-cli), roll the commit back, and let Apache Hudi "
        "build it anew",
    )
