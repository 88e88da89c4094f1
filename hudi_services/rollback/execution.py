"""Rolling back an instant as Hudi would: an instant of its own, with plan and result.

    .rollback.requested (which files) -> .rollback.inflight
    -> look again: what has begun meanwhile may build on a completed target; a pending one may be completed by now
    -> a completed target becomes inflight again: readers forget it with this one deletion
    -> its checkpoints -> runs of keys, for an index that keeps the target -> its files -> metadata table
    -> its inflight and requested file, when the plan is deleted too; never that of a compaction, because on version 6
       log files are named after it (HoodieTable.rollbackInflightCompaction)
    -> .rollback -> (its inflight file) -> markers, heartbeat

Copies of the deleted timeline files are kept. After a kill at any step, the next rollback of the same instant finds the
plan and resumes it, but not while the target is completed: then nothing of the target was deleted, by us or by Hudi,
and other writers may have built on it since the rollback began.
Sources: BaseRollbackActionExecutor, CopyOnWriteRollbackActionExecutor, ActiveTimelineV2.revertToInflight,
BaseHoodieTableServiceClient.rollbackInflightClustering.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from ..bucket_index.kept_rings import forget_rings
from ..codecs.rollback_plan import (
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from ..commit.checkpoints import delete_checkpoints
from ..commit.conflicts import recover_hint
from ..commit.drafts import TimesSource
from ..commit.expectations import Expectation
from ..commit.heartbeat import heartbeat_path
from ..commit.liveness import rollback_lease_name
from ..commit.markers import delete_markers, read_markers
from ..commit.timeline_copies import keep_copies, kept_commit, remove_instant
from ..commit.times import Times
from ..commit.transaction import Transaction, begin, complete
from ..concurrency import at_once
from ..errors import AlreadyExists, CheckFailed, ConflictError, HudiServicesError
from ..file_names import parse_log_file
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import RECORD_INDEX
from ..model import CommitMetadata, path_in
from ..own_commands import own_command
from ..paths import bare_name
from ..snapshot import Snapshot, live_names, refresh
from ..table.partitions import StorageLister
from ..timeline.instant import Action, Instant, State
from .command_blocks import LogsBySlice, cancel_blocks
from .requests import BlockInstants, FoundFiles, rollback_requests
from .watch import Watch

# Whoever rolls nothing back does without Arrow.
if TYPE_CHECKING:
    from ..metadata_updates.rollback.restored_records import Restored

Progress = Callable[[int, int], None]
"""Called with the number of files deleted, and the number of files to delete."""
Check: TypeAlias = Callable[[Snapshot], None]
"""Raises ConflictError when a target must not be rolled back in this table."""


def _unseen(done: int, total: int) -> None:
    """Ignore the progress."""


class Rollbacks:
    """Rollbacks of instants, one after another, under the lock under which `table` was opened.

    The table is not opened again for each: no rollback of a pending instant changes what another one needs, but for
    the metadata table, which is handed on. Not to be used any more when one of them has raised an error.
    """

    def __init__(self, table: Snapshot, times: Times, blocks: BlockInstants | None = None) -> None:
        """`blocks` serves the rollbacks under several locks."""
        self._table = table
        self._times = times
        self._watch = Watch(table.timeline)
        self._found = FoundFiles(table, blocks)
        self._logs = LogsBySlice(table.storage)
        self._is_first = True
        self._true_ranges = frozenset[str]()
        """The data partitions whose ranges were made true: rollbacks of pending instants leave them so."""

    def plan(self, target: Instant, *, using_markers: bool = True) -> RollbackPlan:
        """As `plan_rollback`; what lies in the table is listed and read for many targets."""
        return plan_rollback(self._table, target, using_markers=using_markers, files=self._found)

    def roll_back(
        self,
        target: Instant,
        *,
        keep_plan: bool,
        plan: RollbackPlan | None = None,
        checked: Check | None = None,
        progress: Progress = _unseen,
    ) -> str:
        """Roll `target` back and return the rollback's instant.

        `keep_plan` keeps the requested file, so that the action can be executed again; that of a compaction always
        stays. `plan` is the plan, if the caller has it already; a rollback that was begun uses its own one. Raises
        ConflictError for a completed target, unless no rollback of it was begun and the caller has checked, under this
        lock, that it may be rolled back: `checked` is called when the rollback is shown, right before its first step.
        When it raises, the rollback is dropped, and nothing was changed.
        """
        table = self._table
        rollback = pending_rollback(table, target.ts)
        if rollback is not None:
            return self.resume(rollback, keep_plan=keep_plan, progress=progress)
        plan = plan or self.plan(target)
        if checked is None:
            _refuse_completed(table, plan)
        ts = self._times.next()
        with _at_work(table, ts):
            data = encode_rollback_plan(plan, table.config.version.release)
            table.check_held()
            rollback = table.timeline.publish(ts, Action.ROLLBACK, State.REQUESTED, data)
            return self._finish(rollback, plan, keep_plan, progress, partial(self._look_again, plan, checked))

    def resume(self, rollback: Instant, *, keep_plan: bool, progress: Progress = _unseen) -> str:
        """Finish a rollback whose process died. Raises ConflictError when the target is still completed."""
        plan = self._table.timeline.read_rollback_plan(rollback)
        _refuse_completed(self._table, plan, rollback)
        with _at_work(self._table, rollback.ts):
            return self._finish(rollback, plan, keep_plan, progress)

    def new_files_at(self, ts: str) -> tuple[Instant, ...]:
        """The files that the instants of `ts` have got since the table was opened, see `watch`."""
        return self._watch.new_files_at(ts)

    def _look_again(self, plan: RollbackPlan, check: Check | None) -> None:
        """Raise ConflictError when a pending target has got new files, or what `check` raises."""
        if check is not None:
            check(refresh(self._table))
            return
        new = self.new_files_at(plan.ts)
        if any(one.is_completed and one.action is not Action.SAVEPOINT for one in new):
            raise _is_completed(self._table, plan)
        if new:
            raise ConflictError(
                f"{self._table.storage.root}: {new[0].file_name} is new since it was decided to roll back {plan.ts}",
                hint="nothing was changed; run again: when its writer is at work, it counts as alive",
            )

    def _finish(
        self,
        rollback: Instant,
        plan: RollbackPlan,
        keep_plan: bool,
        progress: Progress,
        look_again: Callable[[], None] | None = None,
    ) -> str:
        """`look_again` is called before anything is taken back by a rollback that has just begun."""
        started, table = time.monotonic(), self._table
        timeline = table.timeline
        action = Action(plan.action)
        keep_plan = keep_plan or any(one.action is Action.COMPACTION for one in timeline.files_of(plan.ts, action))
        states = (State.INFLIGHT, State.COMPLETED) if keep_plan else tuple(State)
        keep_copies(table, rollback.ts, _files(table, plan.ts, action, *states))
        table.check_held()
        if rollback.state is State.REQUESTED:
            begin(table, rollback)
        if look_again is not None:
            try:
                look_again()
            except HudiServicesError:
                remove_instant(refresh(table), rollback)
                raise
        if _unpublish(table, plan.ts, action):
            table, self._is_first, self._true_ranges = refresh(table), True, frozenset()
            self._found = FoundFiles(table, self._found.blocks)
        # Before the files of the checkpoints, so that no attempt takes up deleted files.
        delete_checkpoints(table.storage, plan.ts)
        # Before the files are deleted, because this may read their keys.
        commit = kept_commit(table, rollback.ts, plan.ts, action)
        from .restored import restored

        again = restored(table, rollback.ts, plan, commit)
        table.check_held()
        done = _take_away(table, rollback.ts, plan, self._logs, progress, is_new=look_again is not None)
        draft = _RollbackDraft(
            rollback, plan, keep_plan, done, again, commit, started, self._is_first, self._true_ranges
        )
        complete(table, draft, self._times.next)
        if keep_plan:
            _drop(table, plan.ts, action, State.INFLIGHT)
        clear_traces(table, plan.ts)
        self._table, self._is_first = replace(table, metadata=draft.metadata), False
        self._true_ranges |= draft.changed
        return rollback.ts


def roll_back(
    table: Snapshot,
    target: Instant,
    times: Times,
    *,
    keep_plan: bool,
    plan: RollbackPlan | None = None,
    checked: Check | None = None,
    progress: Progress = _unseen,
) -> str:
    """As `Rollbacks.roll_back`, for one instant; the caller holds the lock."""
    rollbacks = Rollbacks(table, times)
    return rollbacks.roll_back(target, keep_plan=keep_plan, plan=plan, checked=checked, progress=progress)


def plan_rollback(
    table: Snapshot, target: Instant, *, using_markers: bool = True, files: FoundFiles | None = None
) -> RollbackPlan:
    """The plan to roll `target` back.

    Raises SymbolicLink when a file of the plan is behind a link, and ConflictError for a pending target when a write
    with the same time is completed: the two share their files.
    """
    twin = "" if target.is_completed else completed_twin(table, target.ts)
    if twin:
        raise ConflictError(
            f"{table.storage.root}: {target.file_name} cannot be rolled back: {twin}, and has the files of that time",
            hint=f"{recover_hint(table)}, which drops what lies beside it",
        )
    requests = rollback_requests(table, target, using_markers=using_markers, files=files)
    table.storage.check_paths(
        path_in(request.partition, bare_name(path)) for request in requests for path in request.files
    )
    return RollbackPlan(target.ts, target.action.value, requests)


def resume_rollback(table: Snapshot, rollback: Instant, times: Times, *, progress: Progress = _unseen) -> str:
    """Finish a rollback whose process died, and return its instant; the requested file of its target is deleted, too.

    Raises ConflictError when the target is still completed.
    """
    return Rollbacks(table, times).resume(rollback, keep_plan=False, progress=progress)


def is_still_completed(table: Snapshot, plan: RollbackPlan) -> bool:
    """Whether the target of `plan` is a completed instant, of any action: then nothing of it was deleted yet."""
    return bool(_completed_at(table, plan.ts))


def completed_twin(table: Snapshot, ts: str) -> str:
    """Describe the completed write with the time `ts`, in words that begin a sentence; "" without such a write.

    An archived write counts, too: an instant that old cannot be pending, or the write would not have been archived.
    Raises CorruptFile when the archive cannot be read.
    """
    found = _completed_at(table, ts)
    if found:
        return f"{found} is completed"
    if ts < table.timeline.first_write:
        archived = table.timeline.archived.completed
        if ts in archived:
            return f"the {archived[ts]} {ts} is completed and archived"
    return ""


def _completed_at(table: Snapshot, ts: str) -> str:
    """The file name of the completed instant of this time, else ""; skips a savepoint, which has its commit's time."""
    found = (one for one in table.timeline.at(ts) if one.is_completed and one.action is not Action.SAVEPOINT)
    return next((one.file_name for one in found), "")


def without_target(table: Snapshot, plan: RollbackPlan) -> str:
    """The path of a file that `plan` deletes and readers take for committed, when the timeline lacks its time; else "".

    A rollback deletes the files of its target before it deletes the instant: such a file belongs to an archived commit.
    """
    facts = table.ledger.facts
    if table.timeline.at(plan.ts) or not (facts.is_committed(plan.ts) or facts.is_hidden(plan.ts)):
        return ""
    lister = StorageLister(table.storage)
    lister.load(sorted({request.partition for request in plan.requests}))
    named = ((request.partition, bare_name(path)) for request in plan.requests for path in request.files)
    return next((path_in(partition, name) for partition, name in named if name in lister.files(partition)), "")


def pending_rollback(table: Snapshot, ts: str) -> Instant | None:
    """The pending rollback of the instant `ts`; None without one."""
    return table.timeline.pending_rollbacks.get(ts)


def drop_requested(table: Snapshot, target: Instant) -> None:
    """Delete the plan of an instant that was never started; a copy is kept."""
    forget_rings(table, target.ts, target.action.value)
    keep_copies(table, target.ts, _files(table, target.ts, target.action, State.REQUESTED))
    _drop(table, target.ts, target.action, State.REQUESTED)


def drop_attempt(table: Snapshot, target: Instant) -> None:
    """Take back an attempt whose files no reader sees and that has not reached the metadata table.

    Without a rollback instant: it would write to the metadata table, where another writer may be at work. The caller
    holds the lock. After a kill, it may be repeated.
    """
    table.check_held()
    forget_rings(table, target.ts, target.action.value)
    delete_checkpoints(table.storage, target.ts)
    at_once(table.storage.delete_output, [one.path for one in read_markers(table.storage, target.ts)])
    for state in (State.INFLIGHT, State.REQUESTED):
        _drop(table, target.ts, target.action, state)
    clear_traces(table, target.ts)


def clear_traces(table: Snapshot, ts: str) -> None:
    """Delete the markers and heartbeat of an instant that is rolled back; a folder in the heartbeat's place stays."""
    delete_markers(table.storage, ts)
    table.storage.delete(heartbeat_path(ts))


def _refuse_completed(table: Snapshot, plan: RollbackPlan, begun: Instant | None = None) -> None:
    committed = without_target(table, plan) if begun else ""
    if committed:
        raise CheckFailed(
            f"{table.storage.root}: a rollback is to delete {committed}, and no instant {plan.ts} is on the timeline",
            hint=f"{recover_hint(table)}, which drops the plan",
        )
    if is_still_completed(table, plan):
        raise _is_completed(table, plan, begun)


def _is_completed(table: Snapshot, plan: RollbackPlan, begun: Instant | None = None) -> ConflictError:
    by = f", although {begun.file_name} is to roll it back" if begun else ""
    command = own_command("rollback", table.storage.root, f"--instant {plan.ts} --completed")
    return ConflictError(
        f"{table.storage.root}: the {plan.action} {plan.ts} is completed{by}",
        hint=f"if it is to go all the same: {command}, or undo",
    )


@contextmanager
def _at_work(table: Snapshot, ts: str) -> Iterator[None]:
    """Hold the lease of the rollback at `ts`: if this process dies, the lease shows that no process works at it."""
    with Transaction(table, rollback_lease_name(ts), f"rollback {ts}") as transaction:
        yield
        transaction.forget()


@dataclass(slots=True)
class _RollbackDraft:
    """A rollback that has deleted the files of its plan (`done`), but not yet the timeline files of its target."""

    instant: Instant
    plan: RollbackPlan
    keep_plan: bool
    done: Mapping[str, RollbackPartition]
    restored: "Restored | None"
    commit: CommitMetadata | None
    """That of a target that was completed."""
    started: float
    """By the monotonic clock, seconds."""
    is_first: bool
    """Whether no other rollback has handed the metadata table on."""
    true_ranges: frozenset[str]
    """The data partitions whose ranges need no look."""
    expectations: Sequence[Expectation] = ()
    metadata: MetadataTable | None = None
    """The metadata table for the next rollback, after `sync`."""

    @property
    def changed(self) -> frozenset[str]:
        """The data partitions that the target changed, as far as readers may have seen it."""
        commit = self.commit
        return frozenset(self.done if commit is None else {*self.done, *commit.stats, *(commit.replaced or {})})

    def sync(self, current: Snapshot, times: TimesSource) -> None:
        self.metadata = current.metadata and self._sync(current, current.metadata, times)
        # Another process can finish the rollback after these deletions: copies are kept, and the rollback has its plan.
        current.check_held()
        if not self.keep_plan:
            _drop(current, self.plan.ts, Action(self.plan.action), State.INFLIGHT)
            _drop(current, self.plan.ts, Action(self.plan.action), State.REQUESTED)

    def _sync(self, current: Snapshot, metadata: MetadataTable, times: TimesSource) -> MetadataTable:
        from ..metadata_updates.narrow_ranges import keeps_ranges
        from ..metadata_updates.sync import sync_rollback

        deleted = {partition: [bare_name(path) for path in one.deleted] for partition, one in self.done.items()}
        appended = {
            partition: {
                bare_name(path): size
                for logs in (one.failed_commit_logs, one.command_logs)
                for path, size in logs.items()
            }
            for partition, one in self.done.items()
            if one.command_logs
        }
        untrue = self.changed - self.true_ranges if self.commit is None else self.changed
        live = live_names(current, untrue) if keeps_ranges(metadata) else {}
        synced = sync_rollback(
            metadata,
            self.plan.ts,
            self.instant.ts,
            times,
            appended,
            deleted,
            self.restored,
            was_completed=self.commit is not None,
            live=live,
            is_first=self.is_first,
        )
        if RECORD_INDEX in metadata.partitions:
            delete_markers(current.storage, self.instant.ts)
        return synced

    def content(self, current: Snapshot) -> bytes:
        millis = round((time.monotonic() - self.started) * 1000)
        metadata = RollbackMetadata(self.instant.ts, self.plan.ts, self.plan.action, dict(self.done), millis)
        return encode_rollback_metadata(metadata, current.config.version.release)


def _files(table: Snapshot, ts: str, action: Action, *states: State) -> list[str]:
    return [one.file_name for one in table.timeline.files_of(ts, action) if one.state in states]


def _unpublish(table: Snapshot, ts: str, action: Action) -> bool:
    """Make a completed instant inflight again; return whether it was completed.

    The files of its lower states exist as a rule; where they do not, empty ones are created, or the instant would be
    taken for an archived one.
    """
    files = table.timeline.files_of(ts, action)
    completed = [one for one in files if one.state is State.COMPLETED]
    if not completed:
        return False
    lower = [one for one in files if one.state is not State.COMPLETED]
    began_as = lower[0].action if lower else action
    for state in (State.REQUESTED, State.INFLIGHT):
        name = table.timeline.layout.file_name(ts, began_as, state)
        if name not in table.timeline.sizes:
            with suppress(AlreadyExists):
                table.storage.create(table.timeline.path(name), b"")
    for one in completed:
        table.storage.delete(table.timeline.path(one.file_name))
    return True


def _drop(table: Snapshot, ts: str, action: Action, state: State) -> None:
    for name in _files(table, ts, action, state):
        table.storage.delete(table.timeline.path(name))


def _take_away(
    table: Snapshot, rollback: str, plan: RollbackPlan, logs: LogsBySlice, progress: Progress, *, is_new: bool
) -> dict[str, RollbackPartition]:
    """Delete the files of the plan and cancel its log blocks; return what was done, by partition.

    `is_new`: no earlier attempt of the rollback has cancelled any.
    """
    done = {request.partition: RollbackPartition() for request in plan.requests}
    for partition, paths in _delete_files(table, plan, progress).items():
        done[partition] = RollbackPartition(tuple(paths))
    for request in plan.requests:
        if request.log_blocks:
            log = cancel_blocks(table, rollback, plan.ts, request, logs, is_new=is_new)
            before = done[request.partition]
            # A plan that was made without markers names the file group only.
            known = {path: size for path, size in request.log_blocks.items() if _is_log(path)}
            done[request.partition] = replace(
                before,
                command_logs={**before.command_logs, table.storage.full_path(log.path): log.size},
                failed_commit_logs={**before.failed_commit_logs, **known},
            )
    return done


def _delete_files(table: Snapshot, plan: RollbackPlan, progress: Progress) -> dict[str, list[str]]:
    forget_rings(table, plan.ts, plan.action)
    wanted = [(request.partition, full_path) for request in plan.requests for full_path in request.files]
    numbers, telling = count(1), Lock()

    def delete(file: tuple[str, str]) -> None:
        # By partition and name: the plan has full paths, and the table may have another path now.
        partition, name = file[0], bare_name(file[1])
        table.storage.delete_output(path_in(partition, name))
        with telling:
            progress(next(numbers), len(wanted))

    at_once(delete, wanted)
    deleted: dict[str, list[str]] = defaultdict(list)
    for partition, full_path in wanted:
        deleted[partition].append(full_path)
    return deleted


def _is_log(path: str) -> bool:
    return parse_log_file("", bare_name(path), 0) is not None
