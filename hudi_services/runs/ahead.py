"""What a command begins before its job does: Java, and the process that workers will be forked from.

Java takes two seconds to start, and what plans and tasks need takes half a second to load: where Spark will be needed,
Java starts before that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..clock import SystemClock
from ..errors import HudiServicesError
from ..options import file_keys
from ..process import is_this_machine, under_spark_submit, uses_spark_connect
from ..timeline.instant import Action
from ..urls import local_path
from .request import ClusteringRequest, FleetRequest, IndexBuildRequest, Mode, PlanRequest, Request, SparkRequest

if TYPE_CHECKING:
    from ..snapshot import Snapshot


@contextmanager
def java_ahead(request: Request) -> Iterator[int | None]:
    """A context in which Java starts, where a plan on a local disk waits, or will probably be made: the session of the
    job takes it, and it ends when there is none. Gives the number of the file by whose end Java ends.

    On a store the table is opened once, by the job.
    """
    if not isinstance(request, PlanRequest) or not _is_expected(request):
        yield None
        return
    # Imported here: a command without tasks does not load it.
    from ..spark.own_java import begun_ahead

    with begun_ahead(request.spark_master, request.spark_memory) as begun:
        yield begun.stdin if begun is not None else None


def get_ready(request: Request, not_inherited: int | None) -> None:
    """Fork the process of workers where tasks may come to this machine, while this process has no threads; without the
    file of that number."""
    if isinstance(request, SparkRequest) and _has_tasks(request) and (is_local(request) or _is_spark_here(request)):
        # Imported here: a command without tasks starts no process.
        from ..preloading import fork_ahead

        fork_ahead(not_inherited)


def is_local(request: SparkRequest) -> bool:
    """Whether processes of this machine run the tasks."""
    has_tasks_for_both = isinstance(request, PlanRequest | IndexBuildRequest | FleetRequest)
    return has_tasks_for_both and request.options[file_keys.ENGINE] == file_keys.LOCAL


def _has_tasks(request: Request) -> bool:
    if isinstance(request, FleetRequest):
        return request.apply
    if not isinstance(request, PlanRequest | IndexBuildRequest) or request.dry_run:
        return False
    return not isinstance(request, PlanRequest) or request.mode is not Mode.SCHEDULE


def _is_spark_here(request: SparkRequest) -> bool:
    return is_this_machine(request.spark_master) and not under_spark_submit() and not uses_spark_connect()


def _is_expected(request: PlanRequest) -> bool:
    """Whether Spark is to run here, and a plan is pending, or the table was written since the last one."""
    is_on_disk = local_path(request.base_path) is not None
    if not is_on_disk or not _has_tasks(request) or is_local(request) or not _is_spark_here(request):
        return False
    # Imported here: a wrong flag is told before tables can be read.
    from ..snapshot import open_snapshot
    from ..stores import open_storage

    try:
        table = open_snapshot(open_storage(request.base_path), SystemClock())
        is_clustering = isinstance(request, ClusteringRequest)
        plans = table.timeline.pending_clusterings() if is_clustering else table.timeline.pending({Action.COMPACTION})
        if plans or request.mode is Mode.EXECUTE:
            return bool(plans)
        return _was_written(table, is_clustering=is_clustering)
    except HudiServicesError:
        # The job tells what is wrong.
        return False


def _was_written(table: "Snapshot", *, is_clustering: bool) -> bool:
    writes = table.timeline.completed_writes()
    if is_clustering:
        last = table.timeline.last_clustering()
        return any(last is None or one.ts > last.ts for one in writes)
    return bool(writes) and max(writes, key=lambda one: one.ts).action is Action.DELTA_COMMIT
