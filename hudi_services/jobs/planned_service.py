"""Services whose plans rewrite file slices: what all of them do alike.

A service is one class of the parts that differ, and is listed in `services`. `plan_execution` executes its plans.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..commit.conflicts import refuse_beside_index_builds, refuse_beside_writers
from ..commit.newest_files import check_newest, read_ahead
from ..engine import Engine
from ..errors import NothingToDo
from ..options import commit_keys
from ..recovery.unfit_plans import telling_way_out
from ..runs.opening import open_rewritable
from ..runs.report import Report
from ..runs.request import PlanRequest
from ..runs.running import check_engine
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.view import FileGroupId
from ..timeline.instant import Instant
from .plan_instants import check_new_instant, choose_pending, zone_warnings
from .planning import Plan, Planner

if TYPE_CHECKING:
    from .plan_execution import PlanExecution

P = TypeVar("P", bound=PlanRequest)


class PlannedService(Planner[P, Plan]):
    """One run of a service whose plans rewrite file slices."""

    def check_settings(self) -> None:
        """Raise ConfigError for settings of the plan that do not fit the table."""

    @abstractmethod
    def groups(self, plan: Plan) -> list[FileGroupId]:
        """The file groups of the plan."""

    def look(self, plan: Plan) -> None:
        """Check the plan of a dry run, and add to the report what executing it would do."""
        self.check(self.run.table, plan)

    @abstractmethod
    def pending(self) -> Sequence[Instant]:
        """The plans that can be executed, the earliest first."""

    @abstractmethod
    def is_own(self, instant: Instant) -> bool:
        """Whether a completed instant is one of the service."""

    @abstractmethod
    def execution(self) -> "type[PlanExecution[P]]":
        """How a plan is executed. Imported here: to plan, the modules that rewrite files are not needed."""

    def left(self) -> Instant | None:
        """The plan of an earlier run, when that is to be executed in place of a new one."""
        return None

    def without_plan(self) -> Report | None:
        """Do all in one, where no plan is to be published first."""
        return None

    def check(self, table: Snapshot, plan: Plan) -> None:
        check_newest(table, self.groups(plan))

    def plan_now(self) -> Plan:
        """The plan of the table as it is, without a lock. Raises NothingToDo."""
        run = self.run
        if run.request.instant is not None:
            check_new_instant(run.request.instant, run.table, run.options[commit_keys.CLOCK_SKEW_MILLIS])
        if waiting := self.why_not_due(run.table):
            raise NothingToDo(waiting)
        with run.report.phase("plan"):
            self.check_settings()
            return self.build(run.table)

    def schedule(self) -> Snapshot:
        """Plan and publish, and tell the report; returns the table with the plan, or of a dry run as it is."""
        run, report, given = self.run, self.run.report, self.run.request.instant
        report.dry_run = run.request.dry_run
        plan = self.plan_now()
        if run.request.dry_run:
            self.look(plan)
            report.looked("dry run: no plan was written")
            return run.table
        refuse_beside_writers(run.table, run.settings, plan="")
        refuse_beside_index_builds(run.table)
        read_ahead(run.table, self.groups(plan))
        ts, after = self.publish(plan, given)
        report.warnings += zone_warnings(given, run.table)
        report.requested(ts)
        return after

    def choose(self, ts: str | None) -> Instant:
        """The pending plan of `ts`, or the earliest one. Raises the errors of `choose_pending`."""
        return choose_pending(self.run.table, ts, self.name, self.pending(), self.is_own)

    def execute(self, instant: Instant) -> Report:
        """Execute a pending plan, or say what that would do."""
        with telling_way_out(self.run.table, instant):
            return self.execution().execute(self.run, instant)


def schedule(service: type[PlannedService[P, Any]], given: P, storage: Storage | Snapshot | None) -> Report:
    """Plan and publish, unless it is a dry run; starts no JVM."""
    run = open_rewritable(given, storage, Report.start(given))
    service(run).schedule()
    return run.report


def execute(
    service: type[PlannedService[P, Any]], given: P, storage: Storage | Snapshot | None, engine: Engine | None
) -> Report:
    """Execute the given or the earliest pending plan."""
    report = Report.start(given)
    check_engine(given, engine)
    opened = service(open_rewritable(given, storage, report, engine))
    return opened.execute(opened.choose(given.instant))


def schedule_and_execute(
    service: type[PlannedService[P, Any]], given: P, storage: Storage | Snapshot | None, engine: Engine | None
) -> Report:
    """Plan and execute at once, unless a plan that is `left` comes first."""
    report = Report.start(given)
    check_engine(given, engine)
    run = open_rewritable(given, storage, report, engine)
    opened = service(run)
    if left := opened.left():
        return opened.execute(left)
    if done := opened.without_plan():
        return done
    after = opened.schedule()
    if given.dry_run:
        return report
    if after.config is not run.table.config:
        run = open_rewritable(given, storage, report, engine)
    planned = service(run.at(after))
    return planned.execute(planned.choose(report.instant))
