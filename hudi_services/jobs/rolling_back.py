"""The common part of `rollback` and `undo`: under the lock, decide what to roll back, report it, and roll it back."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

from ..codecs.rollback_plan import RollbackPlan
from ..commit.conflicts import refuse_beside_index_builds
from ..commit.critical_section import critical_section
from ..commit.liveness import is_stale_rollback
from ..commit.settings import TransactionSettings
from ..commit.timeline_copies import remove_instant
from ..commit.times import Times
from ..errors import ConflictError, LockBusy, NothingToDo
from ..model import FileSlice
from ..options import commit_keys
from ..paths import bare_name
from ..rollback.completed import refuse_other_writers
from ..rollback.execution import (
    clear_traces,
    is_still_completed,
    pending_rollback,
    plan_rollback,
    resume_rollback,
    roll_back,
)
from ..rollback.requests import unfit_markers
from ..runs.opening import open_supported
from ..runs.report import Report
from ..runs.report_rows import PartitionRow, RollbackRow, VisibleAgainRow
from ..runs.request import RepairRequest
from ..runs.run import Run
from ..snapshot import Snapshot, refresh
from ..storage import Storage
from ..table.partitions import StorageLister
from ..timeline.instant import Action, Instant
from ..timeline.stream_checkpoints import last_checkpoint

P = TypeVar("P", bound=PartitionRow)

_DRY_RUN = "dry run: nothing was changed"


@dataclass(frozen=True, slots=True)
class _Decided:
    """The decision about `table`, as it is now: finish the rollback `begun`, or roll back `target`."""

    table: Snapshot
    plan: RollbackPlan
    begun: Instant | None = None
    target: Instant | None = None
    restored: tuple[FileSlice, ...] = ()
    """File slices that readers will see again."""


Choose: TypeAlias = Callable[[Run[RepairRequest]], tuple[Instant, Sequence[FileSlice]]]
"""Returns the instant to roll back and the file slices that readers will see again, or raises why that is refused."""


def roll_back_instant(request: RepairRequest, storage: Storage | None, choose: Choose) -> Report:
    """Roll back the instant that `choose` returns, or finish a rollback of it that was begun.

    `storage` replaces the storage of `request.base_path`. Raises LockBusy while another process carries out that
    rollback, ConflictError for a completed instant while another writer is at work.
    """
    report = Report.start(request)
    run = open_supported(request, storage, report)
    action = f"{request.service} {request.instant}"
    if request.dry_run:
        with report.phase("plan"):
            decided = _decide(run, choose)
            _describe(decided, report)
        return report.looked(_DRY_RUN, decided.plan.ts)
    with critical_section(run.table, action, run.settings, repairs=request.instant) as current:
        with report.phase("plan"):
            try:
                decided = _decide(run.at(current), choose)
            except NothingToDo:
                # The process that rolled it back may have died before the last step.
                clear_traces(current, request.instant)
                raise
            _describe(decided, report)
        with report.phase("roll back"):
            done = _carry_out(run, decided)
    report.show(RollbackRow, [RollbackRow(done, of=decided.plan.ts, action=decided.plan.action)])
    return report.completed(decided.plan.ts)


def _decide(run: Run[RepairRequest], choose: Choose) -> _Decided:
    """Decide what to do about the instant of the request.

    Raises what `choose` raises, LockBusy, ConflictError, and NothingToDo when the instant was rolled back already.
    """
    table, ts = run.table, run.request.instant
    begun = pending_rollback(table, ts) or _rollback_named(table, ts)
    if begun is None:
        decided = _judge(run, choose)
        _warn_of_markers(run, decided)
        _warn_of_checkpoint(run, decided)
        return decided
    _refuse_live(table, begun, run.settings)
    plan = table.timeline.read_rollback_plan(begun)
    if not is_still_completed(table, plan):
        return _Decided(table, plan, begun)
    # This rollback has done nothing, and readers and writers have used its target since: decide as if it did not exist.
    run = replace(run, request=replace(run.request, instant=plan.ts))
    if run.request.dry_run:
        return _judge(run, choose)
    remove_instant(table, begun)
    dropped = f"the rollback {begun.ts} of {plan.ts} had not started to delete anything: it was dropped"
    run.report.warnings.append(dropped)
    return _decide(run.at(refresh(table)), choose)


def _judge(run: Run[RepairRequest], choose: Choose) -> _Decided:
    """Decide about an instant whose rollback was not begun."""
    table, ts = run.table, run.request.instant
    if table.timeline.find(ts) is None:
        _refuse_done(table, ts)
    target, restored = choose(run)
    if target.is_completed:
        refuse_other_writers(table, target, run.settings)
        refuse_beside_index_builds(table)
    plan = plan_rollback(table, target, using_markers=run.options[commit_keys.ROLLBACK_USING_MARKERS])
    return _Decided(table, plan, None, target, tuple(restored))


def _warn_of_markers(run: Run[RepairRequest], decided: _Decided) -> None:
    if decided.target is not None and run.options[commit_keys.ROLLBACK_USING_MARKERS]:
        problem, _ = unfit_markers(decided.table, decided.target)
        run.report.warnings += [f"{problem}: the files to delete were found by listing"] if problem else []


def _warn_of_checkpoint(run: Run[RepairRequest], decided: _Decided) -> None:
    """Say which stream will find no checkpoint any more: commits may have taken it over from archived ones."""
    if decided.target is not None and decided.target.is_completed:
        named = run.options[commit_keys.ROLLING_KEYS]
        last = last_checkpoint(decided.table.timeline, [decided.target], named)
        if last is not None:
            run.report.warnings.append(
                f"no other commit on the timeline has a checkpoint of {last.stream.reader} ({last.stream.key}): after "
                "this, the stream begins anew when it starts again"
            )


def _refuse_live(table: Snapshot, begun: Instant, settings: TransactionSettings) -> None:
    """Raise LockBusy while another process may be carrying out the rollback: Hudi does so without the lock."""
    if not is_stale_rollback(table, begun, settings):
        raise LockBusy(
            f"{table.storage.root}: another process is at work on the rollback {begun.ts} ({begun.file_name})"
            f", or was until less than {settings.heartbeat_expires_millis / 1000:g} seconds ago",
            hint="wait for it; without a sign of life for that long it counts as dead "
            "(hoodie.client.heartbeat.interval_in_ms, hoodie.client.heartbeat.tolerable.misses)",
        )


def _rollback_named(table: Snapshot, ts: str) -> Instant | None:
    """The pending rollback whose own instant is `ts`: the list of pending instants shows it, too."""
    return next((one for one in table.timeline.pending({Action.ROLLBACK}) if one.ts == ts), None)


def _refuse_done(table: Snapshot, ts: str) -> None:
    """Raise NothingToDo when the instant was rolled back already."""
    for done in reversed(table.timeline.completed({Action.ROLLBACK})):
        if table.timeline.read_rollback(done).target_ts == ts:
            raise NothingToDo(f"{ts} was rolled back already, by {done.ts}")


def _carry_out(run: Run[RepairRequest], decided: _Decided) -> str:
    """Carry out the decision; return the instant of the rollback."""
    times, progress = Times(decided.table, run.settings.skew_millis), run.progress("delete")
    if decided.begun is not None:
        return resume_rollback(decided.table, decided.begun, times, progress=progress)
    assert decided.target is not None, "without a rollback that was begun there is an instant to roll back"
    target = decided.target
    checked = partial(_refuse_news, decided.table, target) if target.is_completed else None
    return roll_back(
        decided.table, target, times, keep_plan=False, plan=decided.plan, checked=checked, progress=progress
    )


def _refuse_news(decided: Snapshot, target: Instant, now: Snapshot) -> None:
    """Raise ConflictError when anything was begun or completed since it was `decided` to roll back a completed write.

    It may build on the files of the write: Hudi before 1.1 begins writes without the lock, and no writer looks at
    rollbacks. Other rollbacks take nothing from it.
    """
    known = {one.file_name for one in decided.timeline.instants}
    for one in now.timeline.instants:
        if one.file_name not in known and one.action is not Action.ROLLBACK:
            raise ConflictError(
                f"{now.storage.root}: {one.file_name} is new since it was decided to roll back {target.ts}",
                hint="nothing was changed; run again when it has ended",
            )


def _describe(decided: _Decided, report: Report) -> None:
    lister = StorageLister(decided.table.storage)
    lister.load(sorted({request.partition for request in decided.plan.requests}))
    gone = [
        (request.partition, lister.files(request.partition).get(bare_name(path), 0))
        for request in decided.plan.requests
        for path in request.files
    ]
    report.show(PartitionRow, _by_partition(PartitionRow, gone))
    seen = ((one.partition, file.size) for one in decided.restored for file in one.files)
    report.show(VisibleAgainRow, _by_partition(VisibleAgainRow, seen))


def _by_partition(kind: type[P], files: Iterable[tuple[str, int]]) -> list[P]:
    """A row of the report for each partition, from the (partition, bytes) of each file."""
    sizes: dict[str, list[int]] = {}
    for partition, size in files:
        sizes.setdefault(partition, []).append(size)
    return [kind(name, len(found), sum(found)) for name, found in sorted(sizes.items())]
