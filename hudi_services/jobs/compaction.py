"""The compaction job: schedule a plan, execute a plan, or both. Mirrors HoodieCompactor of Apache Hudi."""

from ..engine import Engine
from ..errors import ConfigError, NothingToDo
from ..metadata.expression_index.index import Computation
from ..snapshot import Snapshot
from ..storage import Storage
from ..timeline.instant import Action, Instant
from .compaction_schedule import schedule_plan
from .opening import open_rewritable
from .report import Report
from .request import CompactionRequest
from .running import check_engine


def schedule(wanted: CompactionRequest, storage: Storage | None = None) -> Report:
    """Plan a compaction and publish it, unless it is a dry run; starts no JVM.

    `storage` replaces the storage of `wanted.base_path`.
    """
    report = Report.start(wanted)
    table, wanted, _ = open_rewritable(wanted, storage, report)
    return schedule_plan(wanted, table, report)


def execute(wanted: CompactionRequest, storage: Storage | None = None, engine: Engine | None = None) -> Report:
    """Execute the given or the earliest pending plan: as one Spark job, unless another `engine` is given."""
    report = Report.start(wanted)
    check_engine(engine)
    table, wanted, expressions = open_rewritable(wanted, storage, report)
    return _execute(wanted, table, _choose(table, wanted.instant), expressions, report, engine)


def schedule_and_execute(
    wanted: CompactionRequest, storage: Storage | None = None, engine: Engine | None = None
) -> Report:
    """Plan a compaction and execute it at once."""
    report = Report.start(wanted)
    check_engine(engine)
    table, over_table, expressions = open_rewritable(wanted, storage, report)
    if not (wanted.executes_pending and table.timeline.pending({Action.COMPACTION})):
        schedule_plan(over_table, table, report)
        if wanted.dry_run:
            return report
        table, over_table, expressions = open_rewritable(wanted, storage, report)
    return _execute(over_table, table, _choose(table, report.instant), expressions, report, engine)


def _execute(
    wanted: CompactionRequest,
    table: Snapshot,
    instant: Instant,
    expressions: tuple[Computation, ...],
    report: Report,
    engine: Engine | None,
) -> Report:
    # Only here: `schedule` does not need the modules that rewrite files.
    from .compaction_execution import execute_plan

    return execute_plan(wanted, table, instant, expressions, report, engine)


def _choose(table: Snapshot, ts: str | None) -> Instant:
    """The pending compaction `ts`, or the earliest one.

    Raises NothingToDo when none is pending or `ts` is completed, and ConfigError for any other `ts`.
    """
    pending = table.timeline.pending({Action.COMPACTION})
    if ts is None:
        if not pending:
            raise NothingToDo("there is no pending compaction plan")
        return pending[0]
    found = table.timeline.find(ts, Action.COMPACTION)
    if found is None or (found.is_completed and table.timeline.began_as(found) is not Action.COMPACTION):
        known = ", ".join(instant.ts for instant in pending) or "none"
        raise ConfigError(
            f"there is no pending compaction with the instant {ts} in {table.storage.root}",
            hint=f"pending are: {known}",
        )
    if found.is_completed:
        raise NothingToDo(f"the compaction {ts} is completed already")
    return found
