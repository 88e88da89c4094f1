"""The clustering job: schedule a plan, execute a plan, or both. Mirrors HoodieClusteringJob of Apache Hudi."""

from ..clock import parse_instant
from ..commit.liveness import is_reserved
from ..engine import Engine
from ..recovery.unfit_plans import telling_way_out
from ..runs.opening import open_rewritable
from ..runs.report import Report
from ..runs.request import ClusteringRequest
from ..runs.running import check_engine
from ..snapshot import Snapshot
from ..storage import Storage
from ..timeline.instant import Instant
from .clustering_schedule import schedule_plan
from .plan_instants import choose_pending


def schedule(request: ClusteringRequest, storage: Storage | Snapshot | None = None) -> Report:
    """Plan a clustering and publish it, unless it is a dry run; starts no JVM.

    `storage` replaces that of `request.base_path`; or it is the table, as it is known.
    """
    run = open_rewritable(request, storage, Report.start(request))
    schedule_plan(run)
    return run.report


def execute(
    request: ClusteringRequest, storage: Storage | Snapshot | None = None, engine: Engine | None = None
) -> Report:
    """Execute the given or the earliest pending plan: as one Spark job, unless another `engine` is given."""
    # Only here: `schedule` does not need the modules that rewrite files.
    from .clustering_execution import execute_plan

    report = Report.start(request)
    check_engine(engine)
    run = open_rewritable(request, storage, report, engine)
    instant = _choose(run.table, request.instant)
    with telling_way_out(run.table, instant):
        return execute_plan(run, instant)


def schedule_and_execute(
    request: ClusteringRequest, storage: Storage | Snapshot | None = None, engine: Engine | None = None
) -> Report:
    """Plan and execute at once; or, with `retry_last_failed`, execute the last plan that was left unfinished."""
    # Only here: `schedule` does not need the modules that rewrite files.
    from .clustering_execution import execute_plan

    report = Report.start(request)
    check_engine(engine)
    run = open_rewritable(request, storage, report, engine)
    instant = _last_failed(request, run.table) if request.retry_last_failed else None
    if instant is None and request.publish_late and not request.dry_run:
        from .clustering_late import cluster_late

        return cluster_late(run)
    if instant is None:
        after = schedule_plan(run)
        if request.dry_run:
            return report
        if after.config is not run.table.config:
            run = open_rewritable(request, storage, report, engine)
        run = run.at(after)
        instant = _choose(run.table, report.instant)
    with telling_way_out(run.table, instant):
        return execute_plan(run, instant)


def _choose(table: Snapshot, ts: str | None) -> Instant:
    """The pending clustering `ts`, or the earliest one. Raises the errors of `choose_pending`."""
    timeline = table.timeline
    return choose_pending(table, ts, "clustering", _planned(table), timeline.is_clustering)


def _planned(table: Snapshot) -> list[Instant]:
    """The pending clusterings that have a plan: not those whose instant is only reserved."""
    return [one for one in table.timeline.pending_clusterings() if not is_reserved(table, one)]


def _last_failed(request: ClusteringRequest, table: Snapshot) -> Instant | None:
    # Also a plan that never began: the rollback of a failed attempt leaves such a plan.
    pending = _planned(table)
    if not pending:
        return None
    started = parse_instant(pending[-1].ts, table.timeline.zone)
    age = (table.clock.now() - started).total_seconds() * 1000 if started else float("inf")
    return pending[-1] if age >= request.max_processing_millis else None
