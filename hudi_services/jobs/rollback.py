"""The job behind `rollback`: roll back a write that failed, or the newest completed write."""

from collections.abc import Sequence

from ..commit.liveness import liveness
from ..errors import ConfigError, LockBusy
from ..model import FileSlice
from ..own_commands import own_command
from ..rollback.completed import check_completed_rollback, check_is_newest
from ..rollback.undo_clustering import check_undo
from ..runs.report import Report
from ..runs.request import RepairRequest
from ..runs.run import Run
from ..storage import Storage
from ..table.support import Operation, check_support
from ..timeline.instant import Action, Instant, State
from .rolling_back import roll_back_instant


def rollback(request: RepairRequest, storage: Storage | None = None) -> Report:
    """Roll back a failed write, or with `completed` the newest completed write; finish a rollback that was begun.

    `storage` replaces the storage of `request.base_path`. Raises ConfigError, ConflictError and LockBusy for an instant
    that must not be rolled back, CheckFailed as `undo`, NothingToDo when it was rolled back already.
    """
    return roll_back_instant(request, storage, _choose)


def _choose(run: Run[RepairRequest]) -> tuple[Instant, Sequence[FileSlice]]:
    table, target = run.table, _written(run)
    if not target.is_completed:
        return target, ()
    # It brings rows back, as undo does.
    check_support(Operation.UNDO, table)
    if table.timeline.is_clustering(target):
        # The plan of a clustering names exactly the files that it replaced.
        check_is_newest(table, target)
        return target, check_undo(table, target)
    return target, check_completed_rollback(table, target)


def _written(run: Run[RepairRequest]) -> Instant:
    """The write to roll back. Raises ConfigError when it may not be rolled back, LockBusy while its writer is alive."""
    table, ts = run.table, run.request.instant
    root = table.storage.root
    found = table.timeline.find(ts)
    if found is None:
        known = ", ".join(f"{one.ts} ({one.action.value})" for one in table.timeline.pending()) or "none"
        raise ConfigError(f"{root} has no instant {ts} in its active timeline", hint=f"pending are: {known}")
    if not found.action.writes_data:
        raise ConfigError(
            f"{root}: {found.file_name} is a {found.action.value}, and only writes can be rolled back",
            hint=f"see what is pending: {own_command('recover', root)}",
        )
    if found.action is Action.COMPACTION and found.state is State.REQUESTED:
        raise ConfigError(
            f"{root}: {found.file_name} is the plan of a compaction, and nothing of it was begun",
            hint="execute it with hudi-services compact: log files may be named after it, so that the plan must stay",
        )
    if found.is_completed and not run.request.completed:
        raise ConfigError(
            f"{root}: the {found.action.value} {ts} is completed, and a rollback would delete its rows",
            hint="add --completed to delete these rows; for a clustering, use undo",
        )
    signs = liveness(table, found, run.settings) if not found.is_completed else None
    if signs is not None and signs.alive:
        who = f": {signs.holder}" if signs.holder else ", or was a short time ago"
        raise LockBusy(
            f"{root}: another process is at work on the {found.action.value} {ts} ({found.file_name}){who}",
            hint="wait for it; hudi.services.abandoned.after.minutes says when a write without a heartbeat is dead, "
            "hoodie.client.heartbeat.interval_in_ms when one with a heartbeat is",
        )
    return found
