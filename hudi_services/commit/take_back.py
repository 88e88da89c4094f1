"""Whether a completed commit can be taken back without losing a row: what would become visible again must be there.

Source: BaseRollbackActionExecutor (savepoints, the order of commits). That the older files still exist, nobody in Hudi
checks: it leaves that to the operator who restores.
"""

from collections.abc import Collection

from ..errors import ConfigError, ConflictError
from ..files.names import parse_base_file
from ..handle import Table, pending_clusterings, pending_compactions
from ..metadata.table import MetadataLister
from ..model import BaseFile, CommitMetadata
from ..table.facts import TimelineFacts
from ..table.partitions import Files, StorageLister
from ..table.view import FileGroupId
from ..timeline.instant import Action, Instant


class OldFiles:
    """Base files of a table as they lie on storage and, when it has one, stand in its metadata table."""

    def __init__(self, table: Table) -> None:
        self._lister = StorageLister(table.storage)
        self._listed = MetadataLister(table.metadata) if table.metadata is not None else None
        self._facts = TimelineFacts(table.timeline)

    def stored(self, partition: str) -> Files:
        """What lies in the partition's folder."""
        return self._lister.files(partition)

    def newest(self, group: FileGroupId, before: str | None = None) -> BaseFile | None:
        """The newest committed base file of a file group (older than `before`); None when it has none any more."""
        partition, file_id = group
        parsed = (parse_base_file(partition, name, size) for name, size in self.stored(partition).items())
        found = [f for f in parsed if f and f.file_id == file_id and self._facts.is_committed(f.instant)]
        return max((f for f in found if before is None or f.instant < before), key=lambda f: f.instant, default=None)

    def is_listed(self, file: BaseFile) -> bool:
        """Whether the metadata table knows the file; True when the table has none."""
        return self._listed is None or file.name in self._listed.files(file.partition)


def check_not_savepointed(table: Table, ts: str) -> None:
    """Raise ConfigError when a savepoint, of the instant itself or of a later one, holds files of the instant."""
    held = [i.ts for i in table.timeline.instants if i.action is Action.SAVEPOINT and i.ts >= ts]
    if held:
        raise ConfigError(
            f"{table.storage.root}: the savepoint {held[0]} holds the files of {ts}",
            hint="delete the savepoint first, if nobody needs it any more",
        )


def check_is_newest(table: Table, target: Instant) -> None:
    """Raise ConflictError when later writes may build on the completed write `target`."""
    later = [i for i in table.timeline.instants if i.action.writes_data and i.ts > target.ts]
    planned = {i.ts for i in table.timeline.pending_clusterings()}
    for one in reversed(later):
        if one.is_completed or one.ts not in planned:
            raise ConflictError(
                f"{table.storage.root}: the {one.action.value} {one.ts} ({one.state.name.lower()}) is later than "
                f"{target.ts}, and its rows may build on it",
                hint=f"roll back {one.ts} first",
            )


def restored_files(table: Table, target: Instant, commit: CommitMetadata, old: OldFiles) -> list[BaseFile]:
    """The base files that readers see again when the completed `target` is gone.

    Raises ConflictError when one that is needed was cleaned, or a pending clean is about to delete it.
    """
    groups: dict[FileGroupId, None] = {}
    for partition, file_ids in (commit.replaced or {}).items():
        groups |= dict.fromkeys((partition, file_id) for file_id in file_ids)
    for partition, stats in commit.stats.items():
        groups |= dict.fromkeys((partition, stat.file_id) for stat in stats if stat.prev_commit != "null")
    found = []
    for group in groups:
        file = old.newest(group, before=target.ts)
        if file is None or not file.size or not old.is_listed(file):
            raise ConflictError(
                f"{table.storage.root}: the files of {group[1]} in {group[0] or 'the table'} from before {target.ts} "
                "were cleaned, so that their rows would be lost",
                hint="it cannot be taken back any more",
            )
        found.append(file)
    _check_prev_commits(table, commit, {(f.partition, f.file_id): f for f in found})
    check_not_being_cleaned(table, found)
    return found


def _check_prev_commits(table: Table, commit: CommitMetadata, found: dict[FileGroupId, BaseFile]) -> None:
    for partition, stats in commit.stats.items():
        for stat in stats:
            before = found.get((partition, stat.file_id))
            if before is not None and stat.prev_commit not in ("null", before.instant):
                raise ConflictError(
                    f"{table.storage.root}: the file of {stat.file_id} of {stat.prev_commit}, which the commit "
                    f"updated, was cleaned; the newest that is left is {before.name}",
                    hint="it cannot be taken back any more",
                )


def check_not_being_cleaned(table: Table, files: Collection[BaseFile]) -> None:
    """Raise ConflictError when a pending clean names one of `files`."""
    names = {(file.partition, file.name) for file in files}
    for clean in table.timeline.pending({Action.CLEAN}):
        plan = table.timeline.read_cleaner_plan(clean)
        planned = {(partition, path.rpartition("/")[2]) for partition, paths in plan.files.items() for path in paths}
        taken = next(iter(sorted(names & planned)), None)
        if taken is not None:
            raise ConflictError(
                f"{table.storage.root}: the pending clean {clean.ts} ({clean.file_name}) deletes {taken[1]}, which "
                "would be read again",
                hint="it cannot be taken back any more, unless that clean is rolled back before it deletes anything",
            )


def check_not_planned(table: Table, groups: Collection[FileGroupId], ts: str) -> None:
    """Raise ConflictError when a pending clustering or compaction is going to read one of `groups`."""
    for pending in (pending_clusterings(table), pending_compactions(table)):
        for group in groups:
            if pending.get(group, ts) != ts:
                raise ConflictError(
                    f"{table.storage.root}: the pending plan {pending[group]} reads {group[1]} in "
                    f"{group[0] or 'the table'}, which {ts} wrote",
                    hint=f"execute {pending[group]}, or roll it back first",
                )


def written_groups(commit: CommitMetadata) -> list[FileGroupId]:
    """The file groups that a commit wrote to."""
    return [(partition, stat.file_id) for partition, stats in commit.stats.items() for stat in stats]


def check_take_back(table: Table, target: Instant) -> list[BaseFile]:
    """All of it, for a completed commit of any kind; gives the base files that readers will see again."""
    check_not_savepointed(table, target.ts)
    check_is_newest(table, target)
    commit = table.timeline.read_commit(target)
    check_not_planned(table, written_groups(commit), target.ts)
    return restored_files(table, target, commit, OldFiles(table))
