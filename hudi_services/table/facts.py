"""The facts of a timeline that decide about files: which instants are committed, which file groups were replaced."""

from collections.abc import Collection, Iterator

from ..codecs.commit_metadata import UNKNOWN_OPERATION
from ..codecs.compaction_plan import CompactionOperation
from ..concurrency import at_once
from ..model import CommitMetadata
from ..timeline.active import Timeline
from ..timeline.archived import ArchivedTimes
from ..timeline.instant import Action, Instant
from .view import FileGroupId

COMPACTIONS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})


class TimelineFacts:
    """`view.InstantFacts` from an active timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._completed = {i.ts: i.completion_time for i in timeline.completed_writes()}
        self._pending = {i.ts for i in timeline.pending()}
        self._first = timeline.first_ts()
        self._archived_until = timeline.archived_until()

    def is_committed(self, instant: str) -> bool:
        if instant in self._completed:
            return True
        # A table whose very first write failed has a pending instant that is older than the first completed one.
        return self._first is not None and instant < self._first and instant not in self._pending

    def completion_time(self, instant: str) -> str | None:
        return self._completed.get(instant)

    @property
    def hides(self) -> bool:
        return self._first != self._archived_until

    def is_hidden(self, instant: str) -> bool:
        if instant in self._completed or instant in self._pending:
            return False
        return (self._first or "") < instant < (self._archived_until or "")


class DatedFacts(TimelineFacts):
    """As `TimelineFacts`, with completion times from the archive: they place the log files of archived instants."""

    def __init__(self, timeline: Timeline, archived: ArchivedTimes) -> None:
        super().__init__(timeline)
        self._archived = archived

    def completion_time(self, instant: str) -> str | None:
        known = super().completion_time(instant)
        if known is not None or not self.is_committed(instant):
            return known
        return self._archived.completion_time(instant)


class AssumedFacts(DatedFacts):
    """As `DatedFacts`, if the instant `ts` were pending, or had been completed last."""

    def __init__(self, timeline: Timeline, archived: ArchivedTimes, ts: str, *, is_completed: bool) -> None:
        super().__init__(timeline, archived)
        self._ts = ts
        self._is_completed = is_completed

    def is_committed(self, instant: str) -> bool:
        return self._is_completed if instant == self._ts else super().is_committed(instant)

    def completion_time(self, instant: str) -> str | None:
        return None if instant == self._ts else super().completion_time(instant)


def replaced_file_groups(timeline: Timeline, *, without: str = "") -> dict[FileGroupId, str]:
    """Every file group that a completed replacecommit of the active timeline replaced, with the commit's time.

    The replacecommit of `without` does not count.
    """
    replaced: dict[FileGroupId, str] = {}
    instants = [one for one in timeline.completed({Action.REPLACE_COMMIT}) if one.ts != without]
    for instant, commit in zip(instants, at_once(timeline.read_commit, instants), strict=True):
        for partition, file_ids in (commit.replaced or {}).items():
            replaced |= {(partition, file_id): instant.ts for file_id in file_ids}
    return replaced


def pending_operations(
    timeline: Timeline, actions: Collection[Action]
) -> Iterator[tuple[Instant, CompactionOperation]]:
    """The operations of pending compactions, each with its instant; `actions`: compactions, log compactions or both."""
    for instant in timeline.pending(actions):
        for operation in timeline.read_compaction_plan(instant).operations:
            yield instant, operation


def compacted_file_groups(
    timeline: Timeline, actions: Collection[Action] = (Action.COMPACTION,)
) -> dict[FileGroupId, str]:
    """Every file group that a pending compaction merges, with its instant; `actions` as for `pending_operations`."""
    return {(one.partition, one.file_id): instant.ts for instant, one in pending_operations(timeline, actions)}


def planned_files(timeline: Timeline) -> frozenset[tuple[str, str]]:
    """Partition and name of each file that a pending compaction, log compaction or clustering reads."""
    merged = [(one.partition, (one.base_file, *one.log_files)) for _, one in pending_operations(timeline, COMPACTIONS)]
    plans = (timeline.read_plan(instant) for instant in timeline.pending_clusterings())
    slices = (one for plan in plans for group in plan.groups for one in group.slices)
    rewritten = [(one.partition, (one.data_file, *one.log_files)) for one in slices]
    named = ((partition, path) for partition, paths in (*merged, *rewritten) for path in paths if path)
    return frozenset((partition, path.rpartition("/")[2]) for partition, path in named)


def written_names(commit: CommitMetadata) -> frozenset[str] | None:
    """Names of the files in the metadata of a write, change-data files too; None when the metadata is empty."""
    if commit.operation == UNKNOWN_OPERATION and not commit.stats:
        return None
    stats = [stat for of_partition in commit.stats.values() for stat in of_partition]
    paths = [path for stat in stats for path in (stat.path, *(stat.log_files or ()), *stat.cdc_files)]
    return frozenset(path.rpartition("/")[2] for path in paths)
