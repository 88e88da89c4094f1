"""The job behind `undo`: roll back a completed clustering, ours or Hudi's."""

from collections.abc import Sequence

from ..model import FileSlice
from ..rollback.undo_clustering import check_undo, completed_clustering
from ..runs.report import Report
from ..runs.request import RepairRequest
from ..runs.run import Run
from ..storage import Storage
from ..timeline.instant import Instant
from .rolling_back import roll_back_instant


def undo(request: RepairRequest, storage: Storage | None = None) -> Report:
    """Undo a completed clustering, or finish an undo that was begun.

    `storage` replaces the storage of `request.base_path`. Raises ConfigError, ConflictError and CheckFailed for a
    clustering that cannot be undone, LockBusy while another process undoes it, NothingToDo when it was undone already.
    """
    return roll_back_instant(request, storage, _choose)


def _choose(run: Run[RepairRequest]) -> tuple[Instant, Sequence[FileSlice]]:
    target = completed_clustering(run.table, run.request.instant)
    return target, check_undo(run.table, target)
