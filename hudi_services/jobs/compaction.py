"""The compaction job: schedule a plan, execute a plan, or both. Mirrors HoodieCompactor of Apache Hudi."""

from ..engine import Engine
from ..recovery.unfit_plans import telling_way_out
from ..runs.opening import open_rewritable
from ..runs.report import Report
from ..runs.request import CompactionRequest
from ..runs.running import check_engine
from ..snapshot import Snapshot
from ..storage import Storage
from ..timeline.instant import Action, Instant
from .compaction_schedule import schedule_plan
from .plan_instants import choose_pending


def schedule(request: CompactionRequest, storage: Storage | Snapshot | None = None) -> Report:
    """Plan a compaction and publish it, unless it is a dry run; starts no JVM.

    `storage` replaces that of `request.base_path`; or it is the table, as it is known.
    """
    run = open_rewritable(request, storage, Report.start(request))
    schedule_plan(run)
    return run.report


def execute(
    request: CompactionRequest, storage: Storage | Snapshot | None = None, engine: Engine | None = None
) -> Report:
    """Execute the given or the earliest pending plan: as one Spark job, unless another `engine` is given."""
    # Only here: `schedule` does not need the modules that rewrite files.
    from .compaction_execution import execute_plan

    report = Report.start(request)
    check_engine(engine)
    run = open_rewritable(request, storage, report, engine)
    instant = _choose(run.table, request.instant)
    with telling_way_out(run.table, instant):
        return execute_plan(run, instant)


def schedule_and_execute(
    request: CompactionRequest, storage: Storage | Snapshot | None = None, engine: Engine | None = None
) -> Report:
    """Plan a compaction and execute it at once."""
    # Only here: `schedule` does not need the modules that rewrite files.
    from .compaction_execution import execute_plan

    report = Report.start(request)
    check_engine(engine)
    run = open_rewritable(request, storage, report, engine)
    if not (request.executes_pending and run.table.timeline.pending({Action.COMPACTION})):
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
    """The pending compaction `ts`, or the earliest one. Raises the errors of `choose_pending`."""
    timeline = table.timeline

    def is_compaction(instant: Instant) -> bool:
        return timeline.began_as(instant) is Action.COMPACTION

    return choose_pending(table, ts, "compaction", timeline.pending({Action.COMPACTION}), is_compaction)
