"""The ledger of files: what the instants of a timeline say about data files and file groups, each fact read once.

`KINDS` says what each kind of instant does to files, and nothing else does: a new kind is one row. A fact is read when
it is first asked for, and only from the instants that can tell it. The ledger knows the timeline alone: neither what is
stored, nor what the metadata table lists, nor what the archive has. Those who judge files compare these sources, each
with doubts of its own: the view, the check of the newest files, orphan files, the expected state, cleans.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from ..codecs.clean_plan import CleanerPlan
from ..codecs.clustering_plan import SliceInfo
from ..codecs.commit_metadata import UNKNOWN_OPERATION
from ..codecs.compaction_plan import CompactionOperation
from ..codecs.rollback_plan import RollbackMetadata, RollbackPlan
from ..computed_once import cached_property
from ..concurrency import at_once
from ..errors import CorruptFile, NotFound
from ..file_names import parse_data_file
from ..model import CommitMetadata, DataFile, WriteStat
from ..paths import bare_name
from ..timeline.active import Timeline
from ..timeline.instant import Action, Instant
from .facts import DatedFacts
from .view import FileGroupId

FileName = tuple[str, str]
"""(partition, bare name): plans have full paths, and the table may have another path now."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ActionEffect:
    """What the instants of an action do to data files; completed ones have their completed action.

    A commit adds the files that its metadata names: see `Action.writes_data`.
    """

    merges: Callable[[Timeline, Instant], Sequence[CompactionOperation]] | None = None
    """The slices that a pending one merges: they stay until then."""
    begins_slices: bool = False
    """Whether a slice of each of these file groups begins with its plan."""
    rewrites: Callable[[Timeline, Instant], Sequence[SliceInfo]] | None = None
    """The slices whose file groups a pending one is to replace: they stay until then."""
    replaces: Callable[[Timeline, Instant], Sequence[FileGroupId]] | None = None
    """The file groups that readers no longer see when it is completed."""
    cleans: Callable[[Timeline, Instant], CleanerPlan] | None = None
    """The files and partitions that it deletes, or has deleted."""
    undoes: Callable[[Timeline, Instant], RollbackPlan] | None = None
    """What a pending one undoes."""
    undid: Callable[[Timeline, Instant], RollbackMetadata] | None = None
    """What a completed one undid."""
    cancels: bool = False
    """Whether it writes blocks of its own time, which cancel those of its target."""
    holds: Callable[[Timeline, Instant], Sequence[FileName]] | None = None
    """The files that stay as long as the instant does."""
    is_repeated: bool = True
    """Whether it may be executed again, at the same instant, after it was rolled back."""


def _operations(timeline: Timeline, instant: Instant) -> Sequence[CompactionOperation]:
    return timeline.read_compaction_plan(instant).operations


def _clustered(timeline: Timeline, instant: Instant) -> Sequence[SliceInfo]:
    requested = timeline.read_requested(instant)
    return requested.plan.slices if requested.is_clustering and requested.plan is not None else ()


def _replaced(timeline: Timeline, instant: Instant) -> Sequence[FileGroupId]:
    return timeline.read_commit(instant).replaced_groups


def _held(timeline: Timeline, instant: Instant) -> Sequence[FileName]:
    # Hudi's inflight savepoints are empty.
    if not instant.is_completed and not timeline.sizes[instant.file_name]:
        return ()
    savepoint = timeline.read_savepoint(instant)
    return [(partition, name) for partition, names in savepoint.items() for name in names]


KINDS: Mapping[Action, ActionEffect] = {
    Action.COMMIT: ActionEffect(is_repeated=False),
    Action.DELTA_COMMIT: ActionEffect(is_repeated=False),
    Action.REPLACE_COMMIT: ActionEffect(rewrites=_clustered, replaces=_replaced),
    Action.CLUSTERING: ActionEffect(rewrites=_clustered),
    Action.COMPACTION: ActionEffect(merges=_operations, begins_slices=True),
    Action.LOG_COMPACTION: ActionEffect(merges=_operations),
    Action.CLEAN: ActionEffect(cleans=Timeline.read_cleaner_plan),
    Action.ROLLBACK: ActionEffect(undoes=Timeline.read_rollback_plan, undid=Timeline.read_rollback, cancels=True),
    # It deletes files by rollbacks of its own.
    Action.RESTORE: ActionEffect(cancels=True),
    Action.SAVEPOINT: ActionEffect(holds=_held),
    Action.INDEXING: ActionEffect(),
}
"""What each kind of instant does to data files."""

COMPACTIONS = frozenset(action for action, kind in KINDS.items() if kind.merges is not None)
"""Compactions and log compactions."""
NEVER_REPEATED = frozenset(action.value for action, kind in KINDS.items() if not kind.is_repeated)
"""The names of the actions that are not executed a second time at the same instant, once they were rolled back."""


class FileLedger:
    """The facts of one timeline about data files and file groups.

    Raises CorruptFile for a plan, a savepoint or a replacecommit that cannot be read, when a fact needs it.
    """

    def __init__(self, timeline: Timeline, replaced_by: Mapping[str, Sequence[FileGroupId]] | None = None) -> None:
        """`replaced_by`: what is known already of `replaced_by`."""
        self.timeline = timeline
        self._known = replaced_by or {}
        self._names: dict[str, frozenset[str] | None] = {}
        self.unreadable: dict[str, str] = {}
        """What is wrong with the writes that `names_of` could not read, by time."""

    def grown(self, timeline: Timeline) -> "FileLedger":
        """The ledger of this timeline with instants that the caller has published since."""
        return FileLedger(timeline, self.replaced_by)

    # ---- instants

    @cached_property
    def facts(self) -> DatedFacts:
        """Which instants are committed, which are hidden, and when they were completed."""
        return DatedFacts(self.timeline)

    @cached_property
    def writes(self) -> Mapping[str, Instant]:
        """The completed writes by time."""
        return {instant.ts: instant for instant in self.timeline.completed_writes()}

    @cached_property
    def pending(self) -> frozenset[str]:
        """The times of pending instants."""
        return frozenset(instant.ts for instant in self.timeline.pending())

    @cached_property
    def is_written_to(self) -> bool:
        """Whether a write is pending."""
        return any(instant.action.writes_data for instant in self.timeline.pending())

    @cached_property
    def begins_slices(self) -> frozenset[str]:
        """The times of the pending instants that begin slices of their own."""
        return frozenset(instant.ts for instant in self.timeline.pending() if KINDS[instant.action].begins_slices)

    @cached_property
    def cancels(self) -> frozenset[str]:
        """The times of the completed instants whose blocks cancel others."""
        return frozenset(instant.ts for instant in self.timeline.completed() if KINDS[instant.action].cancels)

    @cached_property
    def being_undone(self) -> frozenset[str]:
        """The times of the instants that pending rollbacks undo."""
        return frozenset(plan.ts for plan in self._rollbacks)

    @cached_property
    def rolled_back(self) -> Mapping[str, str]:
        """The instants that completed rollbacks undid: time to the name of the action."""
        done = self._read(self.timeline.completed(), lambda kind: kind.undid)
        return {one.target_ts: one.target_action for _, one in done}

    # ---- files

    def names_of(self, ts: str) -> frozenset[str] | None:
        """The names of the files that a completed write wrote; None when it does not tell, or is `unreadable`."""
        if ts not in self._names:
            try:
                self._names[ts] = written_names(self.timeline.read_commit(self.writes[ts]))
            except (CorruptFile, NotFound) as error:
                self._names[ts], self.unreadable[ts] = None, error.message
        return self._names[ts]

    def changes(self, instant: Instant) -> frozenset[str] | None:
        """The partitions in which an instant changes files; None when it does not tell."""
        kind = KINDS[instant.action]
        try:
            if kind.cleans is not None:
                plan = kind.cleans(self.timeline, instant)
                return frozenset((*plan.files, *plan.partitions_to_delete))
            if not instant.is_completed:
                return None if kind.undoes is not None or kind.cancels else frozenset()
            if kind.undid is not None:
                return frozenset(kind.undid(self.timeline, instant).partitions)
            if not instant.action.writes_data:
                return None if kind.cancels else frozenset()
            commit = self.timeline.read_commit(instant)
        except (CorruptFile, NotFound):
            return None
        return frozenset((*commit.stats, *(commit.replaced or ()))) if commit.stats or commit.replaced else None

    @cached_property
    def planned(self) -> frozenset[FileName]:
        """The files that pending plans read."""
        read: list[CompactionOperation | SliceInfo] = [one for _, one in self.merged]
        read += [one for _, one in self._rewritten]
        return frozenset((one.partition, name) for one in read for name in one.names)

    @cached_property
    def held(self) -> Mapping[FileName, str]:
        """The files that savepoints hold, each with the time of its first savepoint."""
        read = self._read(self.timeline.instants, lambda kind: kind.holds)
        return {file: savepoint.ts for savepoint, files in reversed(read) for file in files}

    @cached_property
    def going(self) -> frozenset[FileName]:
        """The files that unfinished cleans and pending rollbacks delete, or have deleted already."""
        plans: list[CleanerPlan | RollbackPlan] = [*self._cleans, *self._rollbacks]
        return frozenset().union(*(plan.named for plan in plans))

    @cached_property
    def going_partitions(self) -> frozenset[str]:
        """The partitions that unfinished cleans delete."""
        return frozenset(partition for plan in self._cleans for partition in plan.partitions_to_delete)

    @cached_property
    def cleaned(self) -> frozenset[FileName]:
        """The files that completed cleans were to delete, as far as their plans can be read."""
        found: set[FileName] = set()
        for instant in self.timeline.completed():
            if (cleans := KINDS[instant.action].cleans) is not None:
                with suppress(CorruptFile, NotFound):
                    found |= cleans(self.timeline, instant).named
        return frozenset(found)

    # ---- file groups

    @cached_property
    def replaced_by(self) -> Mapping[str, Sequence[FileGroupId]]:
        """The file groups that completed instants replaced, by time."""
        new = [one for one in self.timeline.completed() if one.ts not in self._known]
        found = {instant.ts: groups for instant, groups in self._read(new, lambda kind: kind.replaces)}
        return {**self._known, **found}

    @cached_property
    def replaced(self) -> Mapping[FileGroupId, str]:
        """Every file group that was replaced, with the time."""
        return self.replaced_without("")

    def replaced_without(self, ts: str) -> Mapping[FileGroupId, str]:
        """As `replaced`, without the instant of `ts`."""
        return {group: at for at, groups in self.replaced_by.items() if at != ts for group in groups}

    @cached_property
    def compacting(self) -> Mapping[FileGroupId, str]:
        """Every file group of which a pending compaction begins a slice, with its instant."""
        begun = self._pending(lambda kind: kind.merges if kind.begins_slices else None)
        return {one.group: instant.ts for instant, one in begun}

    @cached_property
    def merged(self) -> list[tuple[Instant, CompactionOperation]]:
        """The slices that pending compactions and log compactions merge, each with its instant."""
        return self._pending(lambda kind: kind.merges)

    @cached_property
    def groups_in_compactions(self) -> Mapping[FileGroupId, str]:
        """The file groups in a pending compaction or log compaction, with its instant."""
        return {one.group: instant.ts for instant, one in self.merged}

    def groups_in_clusterings(self, but: str = "") -> Mapping[FileGroupId, str]:
        """The file groups in a pending clustering, with its instant; not those of the clustering `but`."""
        return {one.group: instant.ts for instant, one in self._rewritten if instant.ts != but}

    # ---- what the instants say

    @cached_property
    def _rewritten(self) -> list[tuple[Instant, SliceInfo]]:
        return self._pending(lambda kind: kind.rewrites)

    @cached_property
    def _cleans(self) -> list[CleanerPlan]:
        """The plans of cleans that are to be finished; those without a plan are dropped when their turn comes."""
        unfinished = (*self.timeline.pending(), *self.timeline.emptied_cleans())
        return [plan for _, plan in self._read(filter(self.timeline.has_plan, unfinished), lambda kind: kind.cleans)]

    @cached_property
    def _rollbacks(self) -> list[RollbackPlan]:
        begun = filter(self.timeline.has_plan, self.timeline.pending())
        return [plan for _, plan in self._read(begun, lambda kind: kind.undoes)]

    def _pending(
        self, what: Callable[[ActionEffect], Callable[[Timeline, Instant], Sequence[T]] | None]
    ) -> list[tuple[Instant, T]]:
        return [(instant, one) for instant, slices in self._read(self.timeline.pending(), what) for one in slices]

    def _read(
        self, instants: Iterable[Instant], what: Callable[[ActionEffect], Callable[[Timeline, Instant], T] | None]
    ) -> list[tuple[Instant, T]]:
        """What the instants say, each with its instant; those whose kind says nothing of it are left out."""
        asked = [(one, read) for one in instants if (read := what(KINDS[one.action])) is not None]
        said = at_once(lambda one: one[1](self.timeline, one[0]), asked)
        return [(instant, one) for (instant, _), one in zip(asked, said, strict=True)]


def written_names(commit: CommitMetadata) -> frozenset[str] | None:
    """Names of the files in the metadata of a write, change-data files too; None when the metadata is empty."""
    if commit.operation == UNKNOWN_OPERATION and not commit.stats:
        return None
    stats = [stat for of_partition in commit.stats.values() for stat in of_partition]
    paths = (path for stat in stats for path in (*(path for path, _ in stat.files), *(stat.log_files or ())))
    return frozenset(bare_name(path) for path in paths)


def written_files(
    commit: CommitMetadata, partitions: Iterable[str] | None = None
) -> Iterator[tuple[WriteStat, DataFile]]:
    """The base and log files in the metadata of a write, in all `partitions` or in these.

    Each has the size that it had then, 0 where that is not known.
    """
    for partition in commit.stats if partitions is None else partitions:
        for stat in commit.stats.get(partition, ()):
            file = parse_data_file(partition, bare_name(stat.path), stat.file_size)
            if file is not None:
                yield stat, file
