"""The active timeline: an immutable snapshot of the folder of instants, and the publication of new instant files.

An instant has a file for each of its states; the highest state counts. Files are created whole or not at all, and only
inflight files may be rewritten, and the requested file of a late plan (`attempts.late_plan`), so a snapshot stays valid
for the files that it listed.
Sources: ActiveTimelineV1, ActiveTimelineV2, ClusteringUtils of Hudi.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from ..clock import Clock, next_instant, uptime
from ..codecs.clean_plan import CleanerPlan, CleanMetadata, decode_clean_metadata, decode_cleaner_plan
from ..codecs.clustering_plan import ClusteringPlan, RequestedReplace, decode_requested_replace
from ..codecs.compaction_plan import CompactionPlan, decode_compaction_plan
from ..codecs.rollback_plan import RollbackMetadata, RollbackPlan, decode_rollback_metadata, decode_rollback_plan
from ..codecs.savepoint import decode_savepoint
from ..computed_once import cached_property
from ..concurrency import at_once
from ..errors import ConflictError, CorruptFile, NotFound, Outdated
from ..file_cache import shared_cache
from ..file_names import instant_in
from ..model import CommitMetadata
from ..paths import bare_name
from ..schema.table_schema import TableSchema
from ..storage import FileInfo, Storage
from ..table_config import TableConfig
from .archived_instants import ArchivedInstants
from .instant import Action, Instant, State
from .layout import Layout, layout_for

_WITHOUT_REQUESTED = frozenset({Action.SAVEPOINT})
_CLUSTERING_LIKE = frozenset({Action.CLUSTERING, Action.REPLACE_COMMIT})
_MERGES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.COMMIT})
_ACTION_NAMES = frozenset(action.value for action in Action)
_COMMITS_AT_ONCE = 16
_WITHOUT_VERSION = frozenset({"CLUSTER", "LOG_COMPACT", "INDEX"})
"""Operations whose commits do not name the version of the schema; a compaction names that of the write before it."""
ANSWERS_HOLD_SECONDS = 1.0
"""For how long what was seen of other processes, or written by this one, stands where the next step needs it: a lease
outlives its last renewal by fifty."""
_ENDS_AS = {action.completed_as: action for action in Action if action is not action.completed_as}


@dataclass(frozen=True)
class Timeline:
    """The instants of one folder at one moment, in timeline order, each in its highest state."""

    storage: Storage
    layout: Layout
    folder: str
    zone: str
    instants: tuple[Instant, ...]
    sizes: Mapping[str, int]
    """Bytes of every instant file, lower states included, by file name."""
    begun: Mapping[str, int]
    """Modification time of the first file of each instant, by requested time: epoch milliseconds, from the listing."""
    written: Mapping[str, int] = field(default_factory=dict)
    """Modification time of each instant file, by file name, in the same unit."""
    history: str = ""
    """The folder of the archive."""
    files: Mapping[str, FileInfo] = field(default_factory=dict)
    """The listing entry of every instant file, by file name."""
    own: Mapping[str, bytes] = field(default_factory=dict)
    """The contents of the files that this process has published since the listing, by file name."""
    create_schema: str | None = None
    """The Avro schema (JSON) of the table's creation."""
    seen: float = field(default_factory=uptime, compare=False)
    """When it was listed, by `uptime` of the machine that did."""

    @classmethod
    def open(cls, storage: Storage, config: TableConfig, listed: Iterable[FileInfo] | None = None) -> "Timeline":
        """The timeline of the table (or metadata table) that has this configuration; `listed` as for `load`."""
        layout, folder = layout_for(config.version), config.timeline_path
        found = cls.load(storage, layout, folder, config.timeline_zone, config.history_path, listed)
        return replace(found, create_schema=config.create_schema)

    @classmethod
    def load(
        cls,
        storage: Storage,
        layout: Layout,
        folder: str,
        zone: str,
        history: str = "",
        listed: Iterable[FileInfo] | None = None,
    ) -> "Timeline":
        """List `folder`, unless its files are `listed` already.

        Files that are not instants are skipped; a missing folder gives an empty timeline.
        """
        seen = uptime()
        files: dict[str, FileInfo] = {}
        begun: dict[str, int] = {}
        highest: dict[tuple[str, Action], Instant] = {}
        for info in storage.list_dir(folder)[0] if listed is None else listed:
            instant = layout.parse(info.name, info.mtime_millis, zone)
            if instant is None:
                continue
            files[info.name] = info
            begun[instant.ts] = min(info.mtime_millis, begun.get(instant.ts, info.mtime_millis))
            key = (instant.ts, instant.action.completed_as)
            if key not in highest or _rank(instant) > _rank(highest[key]):
                highest[key] = instant
        ordered = tuple(sorted(highest.values(), key=lambda i: i.order))
        sizes = {name: info.size for name, info in files.items()}
        written = {name: info.mtime_millis for name, info in files.items()}
        return cls(storage, layout, folder, zone, ordered, sizes, begun, written, history, files, seen=seen)

    def reload(self) -> "Timeline":
        """A new snapshot of the same folder."""
        found = Timeline.load(self.storage, self.layout, self.folder, self.zone, self.history)
        return replace(found, create_schema=self.create_schema)

    def grown(self, instant: Instant, content: bytes) -> "Timeline":
        """This snapshot, and the file with this content that the caller has just published."""
        now = int(time.time() * 1000)
        files = [*self.files.values(), FileInfo(self.path(instant.file_name), len(content), now)]
        grown = Timeline.load(self.storage, self.layout, self.folder, self.zone, self.history, files)
        own = {**self.own, instant.file_name: content}
        return replace(grown, own=own, create_schema=self.create_schema, seen=self.seen)

    def saw_the_same(self, other: "Timeline") -> bool:
        """Whether both snapshots listed the same files, with the same sizes, modification times and tags."""
        return self._listing == other._listing

    @cached_property
    def archived(self) -> ArchivedInstants:
        """The instants that the archive records. Raises CorruptFile."""
        return self.layout.read_archive(self.storage, self.history)

    def completed(self, actions: Collection[Action] | None = None) -> tuple[Instant, ...]:
        """Completed instants, oldest first; `actions` are completed actions (COMMIT, not COMPACTION)."""
        return tuple(i for i in self._completed if actions is None or i.action in actions)

    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed commits, deltacommits and replacecommits."""
        return tuple(i for i in self.instants if i.is_completed and i.action.writes_data)

    def pending(self, actions: Collection[Action] | None = None) -> tuple[Instant, ...]:
        """Requested and inflight instants, oldest first."""
        return tuple(i for i in self._pending if actions is None or i.action in actions)

    def at(self, ts: str) -> tuple[Instant, ...]:
        """The instants requested at `ts`: one, and perhaps its savepoint, unless another process drew the same time."""
        return tuple(self._instants_at.get(ts, ()))

    @property
    def first_write(self) -> str:
        """The time of the first completed write, "" when there is none."""
        return next(iter(self._write_completions), "")

    def find(self, ts: str, action: Action | None = None) -> Instant | None:
        """The instant requested at `ts`; a savepoint only when `ts` has no other instant.

        `action` may be the pending or the completed action of the instant.
        """
        found = [
            i for i in self._instants_at.get(ts, ()) if action is None or i.action.completed_as is action.completed_as
        ]
        return min(found, key=lambda i: i.action is Action.SAVEPOINT, default=None)

    def files_of(self, ts: str, action: Action) -> tuple[Instant, ...]:
        """Every file of the instant of `ts`, lowest state first; `action` may be its pending or completed action."""
        parsed = (self.layout.parse(name, 0, self.zone) for name in self._names_at.get(ts, ()))
        found = [i for i in parsed if i and i.action.completed_as is action.completed_as]
        return tuple(sorted(found, key=_rank))

    def new_files(self, known: AbstractSet[str]) -> tuple[Instant, ...]:
        """The instant files, by name, that are in the folder now and are not `known`."""
        found = self.storage.list_new(self.folder, known)
        parsed = (self.layout.parse(file.name, file.mtime_millis, self.zone) for file in found)
        return tuple(instant for instant in parsed if instant is not None)

    def emptied_cleans(self) -> tuple[Instant, ...]:
        """Completed cleans whose file is empty: the process died while writing it. Hudi repeats them by their plan."""
        return tuple(i for i in self.completed({Action.CLEAN}) if not self.sizes[i.file_name])

    def pending_clusterings(self) -> tuple[Instant, ...]:
        """Pending instants whose requested file has a clustering plan. Raises CorruptFile for a broken file."""
        pending = self.pending(_CLUSTERING_LIKE)
        requested = at_once(self.read_requested, pending)
        return tuple(i for i, one in zip(pending, requested, strict=True) if one.is_clustering)

    def last_clustering(self) -> Instant | None:
        """The newest clustering, pending or completed."""
        replacing = (i for i in reversed(self.instants) if i.action in _CLUSTERING_LIKE)
        return next((i for i in replacing if self.read_requested(i).is_clustering), None)

    def is_clustering(self, instant: Instant) -> bool:
        """Whether the requested file of the instant has a clustering plan, which is how Hudi decides."""
        return instant.action in _CLUSTERING_LIKE and self.read_requested(instant).is_clustering

    def path(self, file_name: str) -> str:
        """The path of a file of this folder, relative to the storage."""
        return f"{self.folder}/{file_name}"

    def began_as(self, instant: Instant) -> Action:
        """The action that was requested. Only the requested file distinguishes a completed compaction from a commit."""
        planned = _ENDS_AS.get(instant.action, instant.action)
        name = self.layout.file_name(instant.ts, planned, State.REQUESTED)
        return planned if name in self.sizes else instant.action

    def requested_name(self, instant: Instant) -> str:
        """The name of the requested file of an instant in any state."""
        return self.layout.file_name(instant.ts, self.began_as(instant), State.REQUESTED)

    @cached_property
    def last_merge(self) -> str:
        """The time of the newest compaction or log compaction of a merge-on-read table, pending or not; else ""."""
        found = (i.ts for i in self.instants if {i.action, self.began_as(i)} & _MERGES)
        return max(found, default="")

    def has_plan(self, instant: Instant) -> bool:
        """Whether its requested file has content: it is empty when the process died while writing the plan."""
        return bool(self.sizes.get(self.requested_name(instant)))

    def read_details(self, file_name: str) -> bytes:
        """The content of one instant file. Raises NotFound, and Outdated when this snapshot has listed the file.

        The process keeps the content of listed files in its cache, except inflight files of pending instants: writers
        may rewrite those.
        """
        if file_name in self.own:
            return self.own[file_name]
        listed = self.files.get(file_name)
        try:
            if listed is None or self._may_change(file_name):
                return self.storage.read(self.path(file_name))
            return shared_cache().read(self.storage, listed)
        except NotFound as error:
            if file_name not in self.sizes:
                raise
            raise Outdated.of(error) from error

    def read_commit(self, instant: Instant) -> CommitMetadata:
        """The metadata of a commit, deltacommit or replacecommit; the forecast of an inflight one."""
        return self.layout.decode_commit(self.read_details(instant.file_name), self._full(instant.file_name))

    def read_commits(self, instants: Iterable[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Instants with their metadata, as `read_commit` gives it; a few are read at the same time."""
        left = iter(instants)
        while some := list(islice(left, _COMMITS_AT_ONCE)):
            yield from zip(some, at_once(self.read_commit, some), strict=True)

    @cached_property
    def schema(self) -> TableSchema | None:
        """The schema of the table, without meta columns: that of the newest completed write with a schema, else that of
        the table's creation, else None (TableSchemaResolver).

        Where the newest write names its version in the schema history, the schema is that of this write."""
        versioned = self._versioned_schema
        if versioned is not None:
            return versioned
        root, writes = self.storage.root, reversed(self.completed_writes())
        found = (TableSchema.of_commit(self.read_commit(instant).extra, root) for instant in writes)
        return next(filter(None, found), TableSchema(self.create_schema, root) if self.create_schema else None)

    @cached_property
    def _versioned_schema(self) -> TableSchema | None:
        """The schema of the newest write, where this names its version: those of table services may not name it."""
        for instant in reversed(self.completed_writes()):
            commit = self.read_commit(instant)
            if commit.operation not in _WITHOUT_VERSION:
                found = TableSchema.of_commit(commit.extra, self.storage.root)
                return found if found is not None and found.version else None
        return None

    def read_requested(self, instant: Instant) -> RequestedReplace:
        """The requested file of a replacecommit or clustering in any state.

        It has neither operation nor plan when it is absent or empty.
        """
        name = self.requested_name(instant)
        if not self.sizes.get(name):
            return RequestedReplace(operation=None, plan=None)
        return decode_requested_replace(self.read_details(name), self._full(name))

    def read_plan(self, instant: Instant) -> ClusteringPlan:
        """The plan of a clustering; raises CorruptFile when the requested file has none."""
        plan = self.read_requested(instant).plan
        if plan is None:
            raise CorruptFile(f"{self._full(self.requested_name(instant))} holds no clustering plan")
        return plan

    def read_compaction_plan(self, instant: Instant) -> CompactionPlan:
        """The plan of a compaction or log compaction."""
        name = self.requested_name(instant)
        return decode_compaction_plan(self.read_details(name), self._full(name))

    def read_rollback_plan(self, instant: Instant) -> RollbackPlan:
        """The plan of a rollback.

        Raises CorruptFile, also for a pending rollback that deletes files which its target cannot have written.
        """
        name = self.requested_name(instant)
        plan = decode_rollback_plan(self.read_details(name), self._full(name))
        if not instant.is_completed:
            _check_own_files(plan, self._full(name))
        return plan

    @cached_property
    def pending_rollbacks(self) -> Mapping[str, Instant]:
        """The first pending rollback of each target, by the time of the target; unreadable rollbacks are left out."""
        found: dict[str, Instant] = {}
        for instant in self.pending({Action.ROLLBACK}):
            # `recover` drops an unreadable rollback.
            with suppress(CorruptFile):
                found.setdefault(self.read_rollback_plan(instant).ts, instant)
        return found

    def read_rollback(self, instant: Instant) -> RollbackMetadata:
        return decode_rollback_metadata(self.read_details(instant.file_name), self._full(instant.file_name))

    def read_cleaner_plan(self, instant: Instant) -> CleanerPlan:
        name = self.requested_name(instant)
        return decode_cleaner_plan(self.read_details(name), self._full(name))

    def read_clean(self, instant: Instant) -> CleanMetadata:
        return decode_clean_metadata(self.read_details(instant.file_name), self._full(instant.file_name))

    def read_savepoint(self, instant: Instant) -> Mapping[str, tuple[str, ...]]:
        """The names of the files that a completed savepoint holds, by partition."""
        return decode_savepoint(self.read_details(instant.file_name), self._full(instant.file_name))

    def first_ts(self) -> str | None:
        """The time of the first completed write, where the timeline starts for readers.

        The write counts even if only a savepoint keeps it here (hoodie.archive.beyond.savepoint): Hudi intends to skip
        it, but searches for savepoints among the writes alone (HoodieDefaultTimeline.getFirstNonSavepointCommit).
        """
        return next((i.ts for i in self.completed_writes()), None)

    def archived_until(self) -> str | None:
        """The time of the first completed write without a savepoint; writes before it may have been archived.

        Archived writes after `first_ts` are hidden from readers and writers until the savepoint is deleted.
        """
        held = {i.ts for i in self.instants if i.action is Action.SAVEPOINT}
        return next((i.ts for i in self.completed_writes() if i.ts not in held), None)

    def completion_time(self, ts: str) -> str | None:
        """The completion time of the write of `ts`; None when the write is pending or archived."""
        return self._write_completions.get(ts)

    def latest_time(self) -> str:
        """The greatest of `times`, "" on an empty timeline."""
        return self._latest_time

    def publish(
        self,
        ts: str,
        action: Action,
        state: State,
        data: bytes = b"",
        completion_time: str | Callable[[], str] | None = None,
        *,
        looks: bool = True,
        beside: Callable[[], None] | None = None,
    ) -> Instant:
        """Create the file of an instant's next state, and return the instant; this snapshot does not change.

        A `completion_time` that is a function is drawn while the state before is looked at, and both are done once more
        when that took long: answers that came early are old then. Raises AlreadyExists when the file exists, and
        ConflictError when the file of the state before does not: another process has then rolled the instant back.
        Without `looks`, the caller looks for the files of all states later. `beside` is called while the state before
        is looked at.
        """
        asked: list[Callable[[], Any]] = []
        if looks and state is not State.REQUESTED and not (state is State.INFLIGHT and action in _WITHOUT_REQUESTED):
            before = self.layout.file_name(ts, action, State(state - 1))
            asked.append(partial(self._require, before))
        if beside is not None:
            asked.append(beside)
        if callable(completion_time):
            asked.append(completion_time)
        began = uptime()
        answers = at_once(lambda ask: ask(), asked)
        if callable(completion_time):
            if uptime() - began > ANSWERS_HOLD_SECONDS:
                answers = at_once(lambda ask: ask(), asked)
            completion_time = str(answers[-1])
        name = self.layout.file_name(ts, action, state, completion_time)
        self.storage.create(self.path(name), data)
        done = state is State.COMPLETED
        return Instant(ts, action.completed_as if done else action, state, completion_time if done else None, name)

    def _require(self, before: str) -> None:
        if self.storage.head(self.path(before)) is None:
            raise ConflictError(f"{self._full(before)} is gone: another process rolled this instant back")

    @property
    def _listing(self) -> dict[str, tuple[FileInfo, str]]:
        return {name: (info, info.tag) for name, info in self.files.items()}

    def _may_change(self, file_name: str) -> bool:
        instant = self.layout.parse(file_name, 0, self.zone)
        if instant is None:
            return True
        return instant.state is State.INFLIGHT and not any(one.is_completed for one in self.at(instant.ts))

    @cached_property
    def times(self) -> frozenset[str]:
        """All requested and completion times of the timeline.

        Modification times do not count where they stand in for completion times (layout 1): a store whose clock is
        ahead would push our instants, and with them the newest slices, beyond those of the next writer.
        """
        completed = (i.completion_time for i in self.instants if self.layout.completion_times)
        return frozenset((*(i.ts for i in self.instants), *filter(None, completed)))

    @cached_property
    def _latest_time(self) -> str:
        return max(self.times, default="")

    @cached_property
    def _completed(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if i.is_completed)

    @cached_property
    def _pending(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if not i.is_completed)

    @cached_property
    def _instants_at(self) -> Mapping[str, list[Instant]]:
        found = defaultdict(list)
        for instant in self.instants:
            found[instant.ts].append(instant)
        return found

    @cached_property
    def _names_at(self) -> Mapping[str, list[str]]:
        """The names of instant files by requested time."""
        found = defaultdict(list)
        for name in self.sizes:
            instant = self.layout.parse(name, 0, self.zone)
            if instant is not None:
                found[instant.ts].append(name)
        return found

    @cached_property
    def _write_completions(self) -> dict[str, str]:
        return {i.ts: i.completion_time or "" for i in self.completed_writes()}

    def _full(self, file_name: str) -> str:
        return self.storage.full_path(self.path(file_name))


def new_instant(timeline: Timeline, clock: Clock, *, after: str = "", skew_millis: int = 0) -> str:
    """A time greater than every requested and completion time of `timeline` and than `after`.

    The caller holds the table's lock. `skew_millis` is how far the clocks of writers may differ: the time is used only
    after that long, as Hudi does (hoodie.time.generator.max_expected_clock_skew_ms).
    """
    moment = clock.now()
    if skew_millis > 0:
        clock.sleep(skew_millis / 1000)
    return next_instant(moment, timeline.zone, max(timeline.latest_time(), after))


def _check_own_files(plan: RollbackPlan, source: str) -> None:
    """Raise CorruptFile when the target of a rollback is no instant, or a file to delete does not bear its time.

    An instant writes files that bear its time, and blocks in log files that do not. A plan of Hudi names later files
    only to restore a merge-on-read table of version 8 or 9 to before a compaction; Hudi must finish that restore
    (ListingBasedRollbackStrategy, listAllFilesSinceCommit).
    """
    if plan.action not in _ACTION_NAMES or not plan.ts.isdecimal():
        raise CorruptFile(f"{source} rolls back {plan.action!r} {plan.ts!r}, which is no instant")
    names = (bare_name(path) for request in plan.requests for path in request.files)
    foreign = next((name for name in names if instant_in(name) != plan.ts), None)
    if foreign is not None:
        raise CorruptFile(
            f"{source} deletes {foreign}, which does not bear the time of {plan.ts}, the instant that it rolls back",
            hint="do not run it, not even with Apache Hudi: hudi-services recover drops it",
        )


def _rank(instant: Instant) -> tuple[State, str]:
    # A clean may have several completed files of one time: the newest completion counts.
    return (instant.state, instant.completion_time or "")
