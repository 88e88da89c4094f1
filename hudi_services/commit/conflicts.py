"""Conflicts with other writers: which are visibly at work, and whether one changed what we are about to replace."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from ..codecs.compaction_plan import COMPACT
from ..concurrency import at_once
from ..errors import ConflictError, CorruptFile, HudiServicesError, NeedsRecovery, NotFound
from ..file_names import parse_data_file
from ..metadata.metadata_table import being_built
from ..metadata.records.keys import FILES
from ..model import FileSlice
from ..own_commands import own_command
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from ..timeline.instant import Action, Instant, State
from .liveness import (
    Signs,
    age_millis,
    is_clustering,
    is_stale_rollback,
    last_written_millis,
    liveness,
    now_millis,
)
from .markers import read_markers
from .newest_files import check_newest
from .settings import TransactionSettings

NEW_PLAN = ""
"""In the place of the instant of a plan: no write in progress knows of the plan."""
_LARGEST_ADDED_TO = 240 << 20
"""Bytes of a base file from which on no writer adds rows to it: twice Hudi's largest file."""
_WRITTEN_AFTER_MILLIS = 5_000
"""On local storage Hudi creates a file before it writes the content. The inflight file of a bulk insert stays empty."""
_PLANNED = {Action.CLUSTERING, Action.REPLACE_COMMIT, Action.ROLLBACK, Action.CLEAN}
_WRITES = {Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT}


class WriterAtWork(ConflictError):
    """Another writer or service is at work, and excludes the action while it is."""


class StaleInput(ConflictError):
    """Another writer has rewritten, replaced or planned a file group that was chosen: it is to be chosen anew."""


class TakenOver(ConflictError):
    """Another process has begun our instant, or has rolled our attempt back: the instant is not ours any more."""


def recover_hint(table: Snapshot) -> str:
    """The hint for an operator whose table is blocked by an instant that no process will ever finish."""
    return f"run: {own_command('recover', table.storage.root)}"


def pending_writes(table: Snapshot) -> list[Instant]:
    """Pending ingestion writes, whether their writer is alive or dead; clusterings are not among them."""
    pending = table.timeline.pending(_WRITES)
    replacing = [instant for instant in pending if instant.action is Action.REPLACE_COMMIT]
    found = zip(replacing, at_once(lambda instant: is_clustering(table, instant), replacing), strict=True)
    clusterings = {instant for instant, is_one in found if is_one}
    return [instant for instant in pending if instant not in clusterings]


class Prospect(Enum):
    """What may become of a pending write of another writer."""

    NONE = "it ended, or knows of the plan"
    MAY_COMMIT = "its writer may be alive"
    ABANDONED = "abandoned: to be rolled back"


def prospect(
    table: Snapshot, write: Instant, settings: TransactionSettings, plan: str | None, listed: Signs | None = None
) -> Prospect:
    """Whether this pending write may still commit into the file groups that we replace.

    `plan` is the instant of our plan, "" for a plan that is still to be published, None where nothing is replaced. A
    write may commit until it is completed or rolled back; also a write that is only requested, because its writer may
    look up keys or compute rows for hours, and never reads a plan that came later. Age alone proves nothing: without a
    sign of life we do not continue either, but an operator should investigate.

    A write that was refused because of a pending plan leaves just a requested file, later than the plan: that file
    counts only while it is recent, or the plan would wait for it for ever. A live heartbeat counts at any age. `listed`
    as for `liveness`.
    """
    signs = liveness(table, write, settings, listed=listed)
    if _knows_of(table, write, plan):
        has_beat = signs.alive and signs.heartbeat_millis is not None
        return Prospect.MAY_COMMIT if has_beat or _is_recent(table, write, settings) else Prospect.NONE
    return Prospect.MAY_COMMIT if signs.alive else Prospect.ABANDONED


def _knows_of(table: Snapshot, write: Instant, plan: str | None) -> bool:
    """Whether a write avoids the file groups of `plan`, if its writer is at work at all.

    Writers read the timeline after they have created their requested file; the times of the store decide, because the
    clock of a writer may be ahead. Writers that replace whole partitions do not read pending plans.
    """
    if write.state is not State.REQUESTED:
        return False
    return plan is None or (_begun_after(table, write, plan) and write.action is not Action.REPLACE_COMMIT)


def _begun_after(table: Snapshot, write: Instant, plan: str) -> bool:
    """Whether the requested file of a write is later than a plan, by the clocks of the writers and of the store.

    The requested file of a plan may be written anew after its inflight file, see `late_plan`.
    """
    timeline = table.timeline
    plans = (timeline.files_of(plan, action) for action in (Action.CLUSTERING, Action.REPLACE_COMMIT))
    shown = [timeline.written[one.file_name] for of in plans for one in of if one.state is State.REQUESTED]
    return bool(shown) and write.ts > plan and timeline.begun[write.ts] > max(shown)


def _is_recent(table: Snapshot, write: Instant, settings: TransactionSettings) -> bool:
    return age_millis(table, write) < settings.patience_millis


def check_plans(table: Snapshot, settings: TransactionSettings) -> None:
    """Raise NeedsRecovery for a pending plan that cannot be read, because every writer would fail on it.

    Raises ConflictError while the plan is so young that a process may still be writing it.
    """
    for instant in (*table.timeline.pending(_PLANNED), *table.timeline.emptied_cleans()):
        try:
            _read_plan(table, instant)
        except CorruptFile as error:
            if age_millis(table, instant) < settings.heartbeat_expires_millis:
                raise ConflictError(error.message, hint="it may be being written: try again in a while") from error
            raise NeedsRecovery(error.message, hint=recover_hint(table)) from error


def _read_plan(table: Snapshot, instant: Instant) -> None:
    timeline = table.timeline
    if instant.action is Action.ROLLBACK:
        timeline.read_rollback_plan(instant)
    elif instant.action is Action.CLEAN:
        # A process that died while it wrote the plan leaves an empty file: the next clean drops it.
        if timeline.has_plan(instant):
            timeline.read_cleaner_plan(instant)
    else:
        timeline.read_requested(instant)


def refuse_beside_writers(
    table: Snapshot,
    settings: TransactionSettings,
    *,
    plan: str | None = None,
    own: str = "",
    repairs: str | None = None,
) -> None:
    """Raise ConflictError when another writer is visibly at work and excludes the caller's action.

    Without a shared lock, that is every write that may still commit (`prospect`, which explains `plan`), and every
    clean or index build until some time after its last sign of life: Hudi leaves a killed one to its next run. A write
    whose writer is dead raises NeedsRecovery. A caller that repairs the instant `repairs` ignores that instant and the
    other dead writes. `own` is the instant that the caller works at.

    With a lock, Hudi's writers check for conflicts themselves before they commit, but they do not count the file groups
    that a delete_partition replaces (ConcurrentOperation). Therefore a pending replacecommit counts even then when the
    caller replaces file groups: its files show neither its kind nor the file groups that it will replace, because the
    inflight file names at most the partitions of new rows.
    """
    locked, listed = settings.lock.is_shared, Signs(table.storage)
    for write in pending_writes(table):
        if write.ts in (repairs, own) or (locked and (plan is None or write.action is not Action.REPLACE_COMMIT)):
            continue
        chance = prospect(table, write, settings, plan, listed)
        if chance is Prospect.MAY_COMMIT:
            while_ = _a_while(settings) if _knows_of(table, write, plan) else "until it is completed or rolled back"
            raise _in_progress(table, write, while_, locked=locked)
        if chance is Prospect.ABANDONED and repairs is None:
            raise NeedsRecovery(
                f"{table.storage.root}: the {write.action.value} {write.ts} ({write.file_name}) was abandoned: "
                "its writer gives no sign of life",
                hint=recover_hint(table),
            )
    for service in () if locked else table.timeline.pending({Action.CLEAN, Action.INDEXING}):
        is_other = service.state is State.INFLIGHT and service.ts != own
        if is_other and liveness(table, service, settings).alive:
            raise _in_progress(table, service, _a_while(settings))


def refuse_beside_beginners(table: Snapshot, settings: TransactionSettings) -> None:
    """Raise WriterAtWork while a live write has just begun: it may update any file group, and does not say which.

    Its check for conflicts would fail, if its file groups were replaced now.
    """
    listed = Signs(table.storage)
    for write in pending_writes(table):
        if _tells_nothing_yet(table, write) and liveness(table, write, settings, listed=listed).alive:
            raise WriterAtWork(
                f"{table.storage.root}: the {write.action.value} {write.ts} of another writer has just begun "
                f"({write.file_name}), and does not tell yet which file groups it updates",
                hint="run again, or wait for longer: --lock-wait SECONDS. A write that Hudi has refused may stay so "
                "as long as its process lives: end that process, or use --publish first",
            )


def _tells_nothing_yet(table: Snapshot, write: Instant) -> bool:
    """Whether the write is requested, or its inflight file may still be empty because it is being written."""
    if write.state is State.REQUESTED:
        return True
    age = now_millis(table) - last_written_millis(table, write, (State.INFLIGHT,))
    return not table.timeline.sizes[write.file_name] and age < _WRITTEN_AFTER_MILLIS


def _a_while(settings: TransactionSettings) -> str:
    return f"for {settings.patience_millis / 60_000:g} minutes"


def _in_progress(table: Snapshot, instant: Instant, counts: str, *, locked: bool = False) -> ConflictError:
    why, way_out = "no lock provider is configured", ", or set hoodie.write.lock.provider for both"
    if locked:
        why, way_out = "it is not known which file groups it will replace", ""
    return WriterAtWork(
        f"{table.storage.root}: the {instant.action.value} {instant.ts} of another writer is in progress "
        f"({instant.file_name}), and {why}",
        hint=f"wait for it (it counts {counts}){way_out}; whether it is alive: "
        f"{own_command('recover', table.storage.root)}",
    )


def refuse_beside_index_builds(table: Snapshot) -> None:
    """Raise ConflictError while a Hudi indexer builds a partition of the metadata table that we cannot write to.

    Also raised while it builds a new metadata table: the indexer might not see what we commit meanwhile.
    """
    if table.metadata is not None:
        table.metadata.check_built()
    elif FILES in table.config.metadata_partitions_inflight:
        raise being_built(table.storage, FILES)


Problems = dict[FileGroupId, HudiServicesError]
"""Why file groups cannot be replaced, by file group."""


def raise_first(problems: Problems) -> None:
    for problem in problems.values():
        raise problem


def input_changes(table: Snapshot, inputs: Iterable[FileSlice]) -> Problems:
    """A StaleInput for each input that is no longer the whole newest slice of a live file group.

    The check covers every table version and every change: another writer updated the group, wrote log files to it,
    replaced it, or rolled back a file of the plan. Raises the errors of `check_newest` when the sources disagree or
    cannot be read.
    """
    wanted: dict[str, list[FileSlice]] = {}
    for one in inputs:
        wanted.setdefault(one.partition, []).append(one)
    check_newest(table, [(one.partition, one.file_id) for slices in wanted.values() for one in slices])
    found: Problems = {}
    for partition, slices in wanted.items():
        latest = {one.file_id: one for one in table.view.latest_slices(partition)}
        for one in slices:
            problem = _change(latest.get(one.file_id), one)
            if problem:
                found[partition, one.file_id] = StaleInput(
                    f"{table.storage.full_path(one.files[0].path)} {problem} since the plan was made",
                    hint="nothing was committed; schedule a new plan",
                )
    return found


def _change(current: FileSlice | None, planned: FileSlice) -> str:
    if current is None or (current.base_file is None and planned.base_file is not None):
        return "was replaced or removed"
    if current.base_file is not None and (
        planned.base_file is None or current.base_file.name != planned.base_file.name
    ):
        return f"was superseded by {current.base_file.name}"
    planned_logs, logs = ({log.name for log in one.log_files} for one in (planned, current))
    if logs - planned_logs:
        return "got log files"
    return "lost log files" if planned_logs - logs else ""


def ended_updates(
    table: Snapshot, inputs: Iterable[FileSlice], seen: Collection[str], *, compactions: bool = True
) -> Problems:
    """A StaleInput for each input that a write has changed which is completed, and not among the `seen` instants.

    `compactions`: whether compactions count.
    """
    groups = {(one.partition, one.file_id): one for one in inputs}
    ended = [write for write in table.timeline.completed_writes() if write.ts not in seen]
    found: Problems = {}
    for write, commit in zip(ended, at_once(table.timeline.read_commit, ended), strict=True):
        if commit.operation == COMPACT and not compactions:
            continue
        written = {(partition, stat.file_id) for partition, stats in commit.stats.items() for stat in stats}
        for group in sorted(written.intersection(groups)):
            found[group] = StaleInput(
                f"{table.storage.full_path(groups[group].files[0].path)} was updated by {write.ts} since it was read",
                hint="nothing was committed; schedule a new plan",
            )
    return found


def check_pending_rollbacks(table: Snapshot, inputs: Iterable[FileSlice], settings: TransactionSettings) -> None:
    """Raise the first of `pending_rollbacks`."""
    raise_first(pending_rollbacks(table, inputs, settings))


def pending_rollbacks(table: Snapshot, inputs: Iterable[FileSlice], settings: TransactionSettings) -> Problems:
    """A ConflictError for each input that a commit wrote whose rollback is pending: its rows must not stay.

    A NeedsRecovery when no process works at that rollback any more.
    """
    slices, found = list(inputs), Problems()
    for rollback in table.timeline.pending({Action.ROLLBACK}):
        target = table.timeline.read_rollback_plan(rollback).ts
        written = [one for one in slices if any(file.instant == target for file in one.files)]
        if not written:
            continue
        message = (
            f"{table.storage.root}: {rollback.file_name} rolls back {target}, which wrote input files of this plan"
        )
        problem = (
            NeedsRecovery(message, hint=recover_hint(table))
            if is_stale_rollback(table, rollback, settings)
            else ConflictError(message, hint="nothing was committed; wait until that rollback has ended")
        )
        found.update({(one.partition, one.file_id): problem for one in written})
    return found


def pending_updates(
    table: Snapshot, inputs: Iterable[FileSlice], settings: TransactionSettings, plan: str | None = None
) -> Problems:
    """A ConflictError for each input that a write in progress touches.

    A NeedsRecovery when the writer of that write is dead. A write that knows of the pending plan `plan` adds no rows to
    its file groups.
    """
    slices, found = list(inputs), Problems()
    for instant, touched in touches(table):
        adds = frozenset[str]() if plan is not None and _begun_after(table, instant, plan) else touched.adding
        groups = [
            (one.partition, one.file_id)
            for one in slices
            if (one.partition, one.file_id) in touched.groups
            or (one.partition in adds and one.base_bytes < _LARGEST_ADDED_TO)
        ]
        if not groups:
            continue
        may_commit = prospect(table, instant, settings, plan=None) is Prospect.MAY_COMMIT
        for group in groups:
            found.setdefault(group, _updates(table, instant, group, may_commit=may_commit))
    return found


@dataclass(frozen=True, slots=True)
class Touches:
    """What a write in progress changes, as far as its inflight file and its markers tell.

    `groups` are the file groups that it updates. `adding` are the partitions in which it inserts rows: a writer adds
    rows to small base files, and its inflight file does not name them; markers do, once the writer has begun the file.
    """

    groups: frozenset[FileGroupId]
    adding: frozenset[str]


def touches(table: Snapshot) -> list[tuple[Instant, Touches]]:
    """The inflight writes, each with what it touches."""
    begun = [instant for instant in pending_writes(table) if instant.state is State.INFLIGHT]
    found = at_once(lambda instant: _touches(table, instant), begun)
    return [(instant, one) for instant, one in zip(begun, found, strict=True) if one is not None]


def touched_groups(table: Snapshot) -> frozenset[FileGroupId]:
    """The file groups of `touches`."""
    return frozenset[FileGroupId]().union(*(one.groups for _, one in touches(table)))


def _touches(table: Snapshot, write: Instant) -> Touches | None:
    try:
        workload = table.timeline.read_commit(write)
        markers = read_markers(table.storage, write.ts)
    except (NotFound, CorruptFile) as error:
        if isinstance(error, CorruptFile) and table.storage.head(table.timeline.path(write.file_name)) is not None:
            raise
        # Completed or rolled back since the timeline was listed: then the newest slices decide.
        return None
    stats = [(partition, stat) for partition, some in workload.stats.items() for stat in some]
    groups = {(partition, stat.file_id) for partition, stat in stats if stat.file_id}
    for marker in markers:
        file = parse_data_file(marker.partition, marker.file_name, 0)
        if file is not None:
            groups.add((file.partition, file.file_id))
    adding = {partition for partition, stat in stats if not stat.file_id and stat.num_inserts}
    return Touches(frozenset(groups), frozenset(adding))


def _updates(table: Snapshot, write: Instant, group: FileGroupId, *, may_commit: bool) -> ConflictError | NeedsRecovery:
    partition, file_id = group
    where = f"{file_id} in {partition or 'the table'}, which this plan rewrites"
    if may_commit:
        return ConflictError(
            f"{table.storage.root}: the write {write.ts} in progress updates {where}",
            hint="nothing was committed; execute again when that write has ended",
        )
    return NeedsRecovery(
        f"{table.storage.root}: the write {write.ts}, which was abandoned, updates {where}", hint=recover_hint(table)
    )
