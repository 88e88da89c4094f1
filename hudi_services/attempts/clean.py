"""Carrying out a clean, ours or Hudi's, from the beginning or from where its process died.

    .clean.inflight (a copy of the plan) -> delete the files -> lock: folders of emptied partitions, metadata table,
    .clean -> unlock

Once the plan is requested, each of its files may be present or deleted: every step may be repeated. Readers of the
newest state never open a file that a clean deletes. Source: CleanActionExecutor of Apache Hudi.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..codecs.clean_plan import CleanerPlan, CleanMetadata, encode_clean_metadata
from ..commit.drafts import TimesSource
from ..commit.expectations import Expectation, FilesSuperseded
from ..commit.liveness import is_clustering, lease_name, liveness
from ..commit.settings import TransactionSettings
from ..commit.timeline_copies import remove_instant
from ..commit.times import Times
from ..commit.transaction import Transaction, begin, complete
from ..computed_once import cached_property
from ..errors import (
    CheckFailed,
    ConflictError,
    LockBusy,
    NeedsRecovery,
    NothingToDo,
)
from ..file_names import is_partition_metafile
from ..model import path_in
from ..snapshot import Snapshot, live_names
from ..timeline.instant import Action, Instant, State

# A clean that finds nothing does without Arrow.
if TYPE_CHECKING:
    from ..metadata.records.model import StatsRecord
    from ..metadata_updates.delta_commit import Confirm

_MOST_PARTITIONS = 500
"""Whose ranges a clean mends."""


def pending_cleans(table: Snapshot) -> list[Instant]:
    """The cleans to finish, oldest first; also those with an empty completed file, whose process died writing it."""
    found = (*table.timeline.pending({Action.CLEAN}), *table.timeline.emptied_cleans())
    return sorted(found, key=lambda instant: instant.order)


def run_clean(
    table: Snapshot,
    pending: Instant,
    settings: TransactionSettings,
    progress: Callable[[int, int], None],
    *,
    is_own: bool = False,
) -> CleanMetadata | None:
    """Finish the requested clean `pending`; `progress` is called with (files deleted, files to delete).

    `is_own`: the caller has just planned it. If it must not be carried out any more, it is dropped, because the next
    writer of the table would carry it out, without a check. It begins without the lock: who publishes after the look
    finds the plan, and what was published before, the look finds.

    Returns None for an empty requested file, which a killed process may leave: the clean is dropped. Raises NothingToDo
    when the clean is completed already, CheckFailed for a plan that names files which readers need, ConflictError,
    LockBusy, CorruptFile and StorageError.
    """
    started, ts = time.monotonic(), pending.ts
    with Transaction(
        table, lease_name(pending), f"clean {ts}", settings, is_new=is_own, confirmed=False
    ) as transaction:
        section = transaction.section(f"begin clean {ts}", own=ts)
        with nullcontext(transaction.look(own=ts)) if is_own else section as current:
            found = _require_pending(current, ts)
            _refuse_live(current, found, transaction, settings)
            plan = _begin(current, found, settings, is_own)
            transaction.know(current)
        result = None if plan is None else _finish(transaction, current, found, plan, settings, progress, started)
        transaction.forget()
        return result


def _finish(
    transaction: Transaction,
    table: Snapshot,
    pending: Instant,
    plan: CleanerPlan,
    settings: TransactionSettings,
    progress: Callable[[int, int], None],
    started: float,
) -> CleanMetadata:
    ts = pending.ts
    # Without the lock: a record that widens a range is right, whatever is committed meanwhile.
    ranges = _narrow_ranges(table, plan)
    _delete_files(table, plan, progress)
    with transaction.section(f"finish clean {ts}", own=ts, completes=f"the clean {ts}") as current:
        instant = _require_pending(current, ts)
        gone = tuple(_emptied(current, plan.partitions_to_delete))
        draft = _CleanDraft(instant, plan, gone, ranges, started)
        complete(current, draft, Times(current, settings.skew_millis).next)
    return draft.result


@dataclass(frozen=True)
class _CleanDraft:
    """A clean whose files are deleted; `gone` are the partitions that were deleted as a whole."""

    instant: Instant
    plan: CleanerPlan
    gone: tuple[str, ...]
    ranges: "Mapping[str, Sequence[StatsRecord]]"
    """What mends the ranges of its partitions, by metadata partition."""
    started: float
    """By the monotonic clock, seconds."""
    expectations: Sequence[Expectation] = ()

    def sync(self, current: Snapshot, times: TimesSource) -> "Confirm | None":
        if current.metadata is None:
            return None
        from ..metadata_updates.sync import sync_clean

        return sync_clean(current.metadata, self.instant.ts, self.plan.names, self.gone, times, self.ranges)

    def content(self, current: Snapshot) -> bytes:
        return encode_clean_metadata(self.result, current.config.version.release)

    @cached_property
    def result(self) -> CleanMetadata:
        seconds = time.monotonic() - self.started
        return CleanMetadata.of(self.plan, self.instant.ts, self.plan.names, seconds, self.gone)


def _refuse_live(current: Snapshot, instant: Instant, transaction: Transaction, settings: TransactionSettings) -> None:
    """Raise LockBusy for a clean that a Hudi process may still carry out; for our own cleans the lease decides."""
    if instant.state is not State.INFLIGHT or not liveness(current, instant, settings, held=transaction.lease).alive:
        return
    # Our lease must not make the clean look like one of ours to the next run.
    transaction.forget()
    minutes = settings.patience_millis / 60_000
    raise LockBusy(
        f"{current.storage.root}: the clean {instant.ts} was begun by another process less than {minutes:g} minutes "
        "ago",
        hint="wait for it; after that time it counts as dead, and the next clean finishes it",
    )


def _begin(current: Snapshot, instant: Instant, settings: TransactionSettings, is_own: bool) -> CleanerPlan | None:
    timeline = current.timeline
    requested = timeline.requested_name(instant)
    current.check_held()
    if not timeline.sizes.get(requested):
        remove_instant(current, instant)
        return None
    plan = timeline.read_cleaner_plan(instant)
    try:
        FilesSuperseded(plan.names, settings).check(current)
    except (CheckFailed, ConflictError, NeedsRecovery):
        if is_own and instant.state is State.REQUESTED:
            remove_instant(current, instant)
        raise
    if instant.is_completed:
        current.storage.delete(timeline.path(instant.file_name))
    if timeline.layout.file_name(instant.ts, Action.CLEAN, State.INFLIGHT) not in timeline.sizes:
        # Hudi 0.15 and 1.0 also read the plan from the inflight file when they archive the clean.
        begin(current, instant, timeline.read_details(requested), looks=not is_own)
    return plan


def _require_pending(current: Snapshot, ts: str) -> Instant:
    found = current.timeline.find(ts, Action.CLEAN)
    if found is None:
        raise ConflictError(f"{current.storage.root}: the clean {ts} was taken away by another process")
    if found.is_completed and current.timeline.sizes[found.file_name]:
        raise NothingToDo(f"the clean {ts} is completed already")
    return found


def _delete_files(table: Snapshot, plan: CleanerPlan, progress: Callable[[int, int], None]) -> None:
    paths = [path_in(partition, name) for partition, names in plan.names.items() for name in names]
    deleted = 0

    def more(count: int) -> None:
        nonlocal deleted
        deleted += count
        progress(deleted, len(paths))

    table.storage.delete_all(paths, more)


def _narrow_ranges(table: Snapshot, plan: CleanerPlan) -> "Mapping[str, Sequence[StatsRecord]]":
    """What must widen ranges that another writer left too narrow, in the partitions of the plan.

    Of very many partitions nothing: a clean changes no live file, and this takes some milliseconds for each range.
    """
    from ..metadata_updates.narrow_ranges import keeps_ranges, narrow_ranges

    if table.metadata is None or not keeps_ranges(table.metadata) or len(plan.names) > _MOST_PARTITIONS:
        return {}
    return narrow_ranges(table.metadata, live_names(table, plan.names))


def _emptied(current: Snapshot, partitions: Iterable[str]) -> Iterable[str]:
    """Delete what is left of each partition and yield the deleted ones; a partition with data files again stays.

    All partitions stay while a write is pending, because not every store lists a file that is not closed yet.
    """
    wanted = [partition for partition in partitions if partition and current.config.partition_fields]
    if not wanted or any(i.action.writes_data and _may_write(current, i) for i in current.timeline.pending()):
        return
    # If this process was stopped for long, a writer that has begun since may have made the partition its own.
    current.check_held()
    for partition in wanted:
        files, folders = current.storage.list_dir(partition)
        if folders or any(not is_partition_metafile(file.name) for file in files if not file.name.endswith(".crc")):
            continue
        for file in files:
            current.storage.delete(file.path)
        current.storage.remove_empty_dirs(partition)
        yield partition


def _may_write(current: Snapshot, pending: Instant) -> bool:
    return pending.state is State.INFLIGHT or not is_clustering(current, pending)
