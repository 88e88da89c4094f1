"""The clustering job: schedule a plan, execute a plan, or both. Mirrors HoodieClusteringJob of Apache Hudi."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..clock import parse_instant
from ..commit.liveness import is_reserved
from ..engine import Engine
from ..runs.report import Report
from ..runs.request import ClusteringRequest
from ..snapshot import Snapshot
from ..storage import Storage
from ..timeline.instant import Instant
from . import planned_service
from .clustering_schedule import ClusteringPlanner

if TYPE_CHECKING:
    from .plan_execution import Execution


def schedule(request: ClusteringRequest, storage: Storage | Snapshot | None = None) -> Report:
    """Plan a clustering and publish it, unless it is a dry run; starts no JVM.

    `storage` replaces that of `request.base_path`; or it is the table, as it is known.
    """
    return planned_service.schedule(Clustering, request, storage)


def execute(
    request: ClusteringRequest, storage: Storage | Snapshot | None = None, engine: Engine | None = None
) -> Report:
    """Execute the given or the earliest pending plan: as one Spark job, unless another `engine` is given."""
    return planned_service.execute(Clustering, request, storage, engine)


def schedule_and_execute(
    request: ClusteringRequest, storage: Storage | Snapshot | None = None, engine: Engine | None = None
) -> Report:
    """Plan and execute at once; or, with `retry_last_failed`, execute the last plan that was left unfinished."""
    return planned_service.schedule_and_execute(Clustering, request, storage, engine)


class Clustering(ClusteringPlanner):
    """One run of clustering."""

    def pending(self) -> Sequence[Instant]:
        """The pending clusterings that have a plan: not those whose instant is only reserved."""
        table = self.run.table
        return [one for one in table.timeline.pending_clusterings() if not is_reserved(table, one)]

    def is_own(self, instant: Instant) -> bool:
        return self.run.table.timeline.is_clustering(instant)

    def execution(self) -> "type[Execution[ClusteringRequest]]":
        from .clustering_execution import ClusteringExecution

        return ClusteringExecution

    def left(self) -> Instant | None:
        # Also a plan that never began: the rollback of a failed attempt leaves such a plan.
        pending = self.pending() if self.run.request.retry_last_failed else ()
        if not pending:
            return None
        table = self.run.table
        started = parse_instant(pending[-1].ts, table.timeline.zone)
        age = (table.clock.now() - started).total_seconds() * 1000 if started else float("inf")
        return pending[-1] if age >= self.run.request.max_processing_millis else None

    def without_plan(self) -> Report | None:
        if not self.run.request.publish_late or self.run.request.dry_run:
            return None
        from .clustering_late import cluster_late

        return cluster_late(self)
