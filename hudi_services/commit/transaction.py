"""The one way to execute a requested action: begun and finished under the table's lock, with the work in between.

request    .requested with the plan (`critical_section`)
begin      take an earlier attempt up that left groups done, or roll it back; heartbeat, .inflight
(work)     a marker, then the file, for every new file; a note for every group that is done
finish     lock, conflicts, files of dead task attempts, metadata table, completed file (the atomic step), unlock
clean-up   markers, heartbeat, notes
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from ..clock import duration
from ..errors import (
    CheckFailed,
    ConflictError,
    HudiServicesError,
    JobLost,
    LockBusy,
    NothingToDo,
    PartlyDone,
    StorageError,
)
from ..files.column_stats import ColumnStats
from ..files.names import parse_base_file
from ..metadata.expression_index.index import ComputedIndex
from ..metadata.record_index.log_writing import MovedKeys
from ..metadata.statistics.column_stats import NewFile
from ..metadata.sync import Change, sync_commit
from ..metadata.table import MetadataTable
from ..model import CommitMetadata, FileSlice, WriteStat
from ..snapshot import Snapshot, current_schema, reopen
from ..table.partitions import StorageLister
from ..timeline.instant import Action, Instant, State
from .checkpoints import checkpointed_files, checkpoints, delete_checkpoints
from .conflicts import (
    StaleInput,
    check_inputs,
    check_pending_rollbacks,
    check_pending_writes,
    rollbacks_of,
)
from .critical_section import critical_section
from .heartbeat import Heartbeat
from .lease import Lease
from .liveness import lease_name, liveness, now_millis, rollback_liveness
from .markers import delete_markers, read_markers
from .rollback.execution import drop_requested, pending_rollback, roll_back
from .settings import TransactionSettings
from .times import Times


@dataclass(frozen=True, slots=True)
class WrittenBaseFile:
    """A new base file with the statistics of its columns."""

    stat: WriteStat
    columns: tuple[ColumnStats, ...]


class Attempt:
    """One execution of a requested action, between `begin` and `finish`; a context manager that cleans up.

    Leaving it by an error rolls the attempt back, so that the table is as before; a plan whose inputs are stale is
    dropped with it, because nobody could ever execute it. When the job was lost or interrupted and groups are done, it
    is left as it is, and the next one takes it up.
    """

    def __init__(
        self, table: Snapshot, instant: Instant, inputs: Sequence[FileSlice], settings: TransactionSettings
    ) -> None:
        self.table = table
        self.instant = instant
        self._inputs = tuple(inputs)
        self._settings = settings
        self._lease = Lease(table.storage, lease_name(instant), f"execute {instant.ts}")
        self._heartbeat = Heartbeat(table.storage, instant.ts, settings.heartbeat_millis / 1000)
        self._begun = False
        self._rollbacks: frozenset[str] = frozenset()
        """Those that the timeline had when this attempt began."""
        self._files: frozenset[str] = frozenset()
        """Paths of the new files, as soon as they are known."""
        self.taken_up = False
        """Whether this goes on with an earlier attempt: tasks may find that their groups are done."""
        self.rolled_back: list[str] = []
        """Rollback instants that this attempt made."""

    def __enter__(self) -> "Attempt":
        self._lease.__enter__()
        try:
            self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._lease_held(error):
            try:
                if error is not None and self._begun:
                    self._undo_or_leave(error)
            finally:
                self._heartbeat.stop()
                if error is not None:
                    # One that is left counts as dead soon; the error is what the operator must read.
                    with suppress(StorageError):
                        self._heartbeat.remove()

    @contextmanager
    def _lease_held(self, error: BaseException | None) -> Iterator[None]:
        try:
            yield
        finally:
            self._lease.__exit__(type(error) if error else None, error, None)

    def finish(
        self,
        files: Sequence[WrittenBaseFile],
        replaced: Mapping[str, Sequence[str]],
        operation: str,
        moved: MovedKeys | None = None,
        expressions: tuple[ComputedIndex, ...] = (),
        afterwards: Callable[[MetadataTable, Callable[[], str]], None] | None = None,
    ) -> None:
        """Make the new files visible and the replaced file groups invisible, in one atomic step.

        `moved` are the keys of the new files, for the record index; `expressions` their records in expression indexes.
        `afterwards` is called after that step under the same lock, with the metadata table as it was before and a
        source of instants.
        Raises ConflictError, StaleInput, CheckFailed and StorageError, and PartlyDone for what goes wrong after it.
        """
        self._files = frozenset(one.stat.path for one in files)
        ts = self.instant.ts
        with critical_section(
            self.table, f"commit {ts}", self._settings, plan=ts, lease=self._lease, completes=f"the clustering {ts}"
        ) as current:
            times = Times(current, self._settings.skew_millis)
            self._commit(current, files, replaced, operation, moved, expressions, times)
            if afterwards is not None and current.metadata is not None:
                afterwards(current.metadata, times.next)
        self._lease.forget()

    def _commit(
        self,
        current: Snapshot,
        files: Sequence[WrittenBaseFile],
        replaced: Mapping[str, Sequence[str]],
        operation: str,
        moved: MovedKeys | None,
        expressions: tuple[ComputedIndex, ...],
        times: Times,
    ) -> None:
        self._require_ours(current)
        check_inputs(current, self._inputs)
        groups = {(one.partition, one.file_id) for one in self._inputs}
        check_pending_writes(current, groups, self._settings)
        check_pending_rollbacks(current, self._inputs, self._settings)
        # What goes now may be another attempt's, if this one was stopped for so long that somebody took it over.
        current.check_held()
        _remove_strays(current, self.instant.ts, {one.stat.path for one in files})
        _check_stored(current, files)
        if current.metadata is not None:
            change = replace(_change(current, self.instant.ts, files, replaced), moved=moved, expressions=expressions)
            sync_commit(current.metadata, change, times.next)
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for one in files:
            stats[one.stat.partition] = (*stats.get(one.stat.partition, ()), one.stat)
        schema = current_schema(current)
        metadata = CommitMetadata(
            operation,
            stats,
            {"schema": schema} if schema else {},
            {partition: tuple(ids) for partition, ids in replaced.items()},
        )
        data = current.timeline.layout.encode_commit(metadata, current.config.version.release)
        # Looks at the lease, too: whoever takes it from a process that was stopped for long begins by deleting files.
        completion = times.next()
        current.timeline.publish(self.instant.ts, self.instant.action, State.COMPLETED, data, completion)
        self._begun = False

    def clean_up(self) -> None:
        """Remove what the attempt needed; readers do not see it, so that a failure here harms nothing."""
        self._heartbeat.stop()
        self._heartbeat.remove()
        delete_markers(self.table.storage, self.instant.ts)
        delete_checkpoints(self.table.storage, self.instant.ts)

    def _begin(self) -> None:
        ts = self.instant.ts
        with critical_section(self.table, f"begin {ts}", self._settings, plan=ts, lease=self._lease) as current:
            found = self._require_pending(current)
            # A rollback left pending would be finished by the next Hudi writer, whatever became of the plan by then.
            begun_rollback = pending_rollback(current, found.ts)
            done: frozenset[str] = frozenset()
            if found.state is State.INFLIGHT or begun_rollback is not None:
                self._refuse_live(current, found, begun_rollback)
                if begun_rollback is None:
                    done = self._done_before(current, found)
                if not done:
                    self.rolled_back.append(
                        roll_back(current, found, Times(current, self._settings.skew_millis), keep_plan=True)
                    )
                    current = reopen(current)
            try:
                check_inputs(current, self._inputs)
            except StaleInput as stale:
                current.check_held()
                drop_requested(current, self.instant)
                raise _dropped(stale, self.instant.ts) from stale
            self.taken_up = bool(done)
            current.check_held()
            if not done:
                delete_checkpoints(current.storage, self.instant.ts)
            # A task that outlived the process of an earlier attempt may have written after its rollback.
            _remove_strays(current, self.instant.ts, done)
            if not done:
                delete_markers(current.storage, self.instant.ts)
            self._rollbacks = frozenset(i.ts for i in current.timeline.instants if i.action is Action.ROLLBACK)
            self._heartbeat.start()
            if not done:
                current.timeline.publish(self.instant.ts, self.instant.action, State.INFLIGHT)
            self._begun = True
            self.table = current

    def _done_before(self, current: Snapshot, dead: Instant) -> frozenset[str]:
        """Files of the groups that a dead attempt has left done; none when no attempt can be completed any more."""
        try:
            check_inputs(current, self._inputs)
        except StaleInput:
            return frozenset()
        return _done_files(current, dead)

    def _refuse_live(self, current: Snapshot, found: Instant, rollback: Instant | None) -> None:
        """An attempt of Hudi's that may be alive is not ours to roll back, nor is a rollback of Hudi's ours to finish.

        Our own are told by their leases.
        """
        if rollback is not None:
            life, what = rollback_liveness(current, rollback, self._settings, held=self._lease), "rolled back"
        else:
            life, what = liveness(current, found, self._settings, held=self._lease), "executed"
        if not life.alive:
            return
        # Our lease must not make this attempt look like one of ours to the next run.
        self._lease.forget()
        silence = duration(now_millis(current) - life.last_sign_millis)
        raise LockBusy(
            f"{current.storage.root}: the clustering {found.ts} is being {what} by another process, which gave a sign "
            f"of life {silence} ago",
            hint="wait for it; without a sign for two minutes where it gives a heartbeat, else for "
            "hudi.services.abandoned.after.minutes, it counts as dead",
        )

    def _require_pending(self, current: Snapshot) -> Instant:
        found = current.timeline.find(self.instant.ts, self.instant.action)
        if found is None:
            raise ConflictError(
                f"{current.storage.root}: the clustering {self.instant.ts} was rolled back by another process"
            )
        if found.is_completed:
            raise NothingToDo(f"the clustering {self.instant.ts} is completed already")
        return found

    def _require_ours(self, current: Snapshot) -> Instant:
        """The inflight instant, if it is still the one that this attempt began.

        Otherwise the new files are deleted, but for those that whoever has the plan now has taken over: they bear its
        time, and readers would take them for its own.
        """
        try:
            self._lease.check()
            found = self._require_pending(current)
            taken = rollbacks_of(current, self.instant.ts, self._rollbacks)
            if taken or found.state is not State.INFLIGHT:
                raise ConflictError(
                    f"{current.storage.root}: the clustering {self.instant.ts} was rolled back by another process",
                    hint="nothing was committed; execute again when that process has ended",
                )
            return found
        except (ConflictError, NothingToDo):
            for path in sorted(self._files - _claimed_files(current, self.instant)):
                current.storage.delete_output(path)
            raise

    def _is_published(self, current: Snapshot) -> bool:
        """Whether the completed instant is that of this attempt."""
        found = current.timeline.find(self.instant.ts, self.instant.action)
        if found is None or not found.is_completed or not self._files:
            return False
        return self._files == _committed_files(current, found)

    def _undo_or_leave(self, error: BaseException) -> None:
        """Roll the attempt back, unless it was lost or interrupted, and the next one can go on with it."""
        kept = self._count_done() if isinstance(error, JobLost | KeyboardInterrupt) else 0
        if not kept:
            self._undo(error)
        elif isinstance(error, JobLost):
            raise JobLost(
                f"{error.message}; {kept} finished groups are kept",
                hint=f"{error.hint}; the next execute does the rest",
            ) from error

    def _count_done(self) -> int:
        """How many groups of this attempt are done and noted; 0 when the store does not tell."""
        try:
            current = reopen(self.table)
            return len(checkpoints(current, self._require_pending(current)))
        except HudiServicesError:
            return 0

    def _undo(self, error: BaseException) -> None:
        stale = isinstance(error, StaleInput)
        published = False
        try:
            with critical_section(
                self.table, f"undo {self.instant.ts}", self._settings, lease=self._lease, repairs=self.instant.ts
            ) as current:
                published = self._is_published(current)
                found = self._require_ours(current)
                times = Times(current, self._settings.skew_millis)
                self.rolled_back.append(roll_back(current, found, times, keep_plan=not stale))
        except HudiServicesError:
            # The first error is what the operator must read; the next execute rolls this attempt back.
            if published:
                # The store told of a failure after it had taken the file.
                raise PartlyDone(f"the clustering {self.instant.ts} is complete, in spite of: {error}") from error
            return
        if stale:
            raise _dropped(error, self.instant.ts) from error


def _dropped(stale: BaseException, ts: str) -> StaleInput:
    return StaleInput(
        f"{stale}: the plan {ts} cannot be executed any more and was dropped",
        hint="no row was touched; schedule a new plan",
    )


def _done_files(table: Snapshot, attempt: Instant) -> frozenset[str]:
    return frozenset(file.path for group in checkpoints(table, attempt) for file in group.files)


def _committed_files(table: Snapshot, completed: Instant) -> frozenset[str]:
    stats = table.timeline.read_commit(completed).stats
    return frozenset(stat.path for of_partition in stats.values() for stat in of_partition)


def _claimed_files(table: Snapshot, instant: Instant) -> frozenset[str]:
    """Base files that are in the commit of the instant, or, before there is one, may be in that of another attempt.

    As of now, whatever `table` says: its reader may have been stopped for long. Notes first: whoever completes the
    instant forgets them after that, so that no moment lies between the two looks.
    """
    noted = checkpointed_files(table.storage, instant.ts)
    current = reopen(table)
    found = current.timeline.find(instant.ts, instant.action)
    return _committed_files(current, found) if found is not None and found.is_completed else noted


def _remove_strays(table: Snapshot, ts: str, paths: Collection[str]) -> None:
    """Delete base files of the instant but those at `paths`: readers that list would see the rows of others twice.

    Their markers tell of those of repeated tasks. Those of earlier attempts, written after their rollback by tasks that
    outlived their driver, have none any more: they are found beside the new files.
    """
    found = {(marker.partition, marker.file_name) for marker in read_markers(table.storage, ts)}
    lister = StorageLister(table.storage)
    for partition in {path.rpartition("/")[0] for path in paths}:
        found |= {(partition, name) for name in lister.files(partition)}
    bases = (parse_base_file(partition, name, 0) for partition, name in found)
    for path in sorted(base.path for base in bases if base and base.instant == ts and base.path not in paths):
        table.storage.delete_output(path)


def _check_stored(table: Snapshot, files: Sequence[WrittenBaseFile]) -> None:
    """Raise CheckFailed unless every new file is there: nobody may have rolled it back while it was written."""
    for one in files:
        stored = table.storage.head(one.stat.path)
        if stored is None or stored.size != one.stat.file_size:
            raise CheckFailed(
                f"{table.storage.full_path(one.stat.path)} is not there as it was written",
                hint="nothing was committed; execute again",
            )


def _change(
    table: Snapshot, ts: str, files: Sequence[WrittenBaseFile], replaced: Mapping[str, Sequence[str]]
) -> Change:
    """What the metadata table must learn; live files are those that stay beside the new ones."""
    live: dict[str, list[str]] = {}
    for partition in {one.stat.partition for one in files}:
        gone = set(replaced.get(partition, ()))
        live[partition] = [
            file.name for one in table.view.latest_slices(partition) if one.file_id not in gone for file in one.files
        ]
    new = tuple(
        NewFile(one.stat.partition, one.stat.path.rpartition("/")[2], one.stat.file_size, one.columns) for one in files
    )
    return Change(ts, new, live)
