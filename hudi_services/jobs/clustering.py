"""The clustering job: schedule a plan, execute a plan, or both. Mirrors HoodieClusteringJob of Apache Hudi."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attempts.late_attempts import LateAttempt, late_attempts
from ..clock import parse_instant
from ..clustering.eligibility import WAITING, ClusteringReason
from ..clustering.plan import PlannedClustering, PlanRules, build, check_columns, check_order
from ..clustering.selection import Verdict
from ..codecs.clustering_plan import ClusteringPlan, encode_clustering_plan
from ..commit.conflicts import recover_hint
from ..commit.liveness import is_reserved
from ..computed_once import cached_property
from ..engine import Engine
from ..errors import NeedsRecovery, NothingToDo
from ..indexing.advice import rescale_advice
from ..options import clustering_keys
from ..recovery.findings import abandoned
from ..runs.report import InOut, Report
from ..runs.report_rows import ClusteringGroupRow, ClusteringSliceRow
from ..runs.request import ClusteringRequest, Mode
from ..runs.rewrite_tasks import warn_of_unfit
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.view import FileGroupId
from ..timeline.instant import Action, Instant
from ..units import counted
from . import planned_service
from .clustering_estimate import add_estimate
from .clustering_tasks import copying_that_sorts

if TYPE_CHECKING:
    from .plan_execution import PlanExecution

_LEFT = "file slices are left for the next plan"
_LISTED = "are listed, the others are counted alone: choose partitions to see theirs"
_IN_BUCKETS = "the file groups are the buckets of an index: each is rewritten by itself, and keeps its file id"


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


class Clustering(planned_service.PlannedService[ClusteringRequest, ClusteringPlan]):
    """One run of clustering."""

    name = "clustering"

    @property
    def action(self) -> Action:
        return self.run.table.timeline.layout.clustering_action

    @cached_property
    def rules(self) -> PlanRules:
        return self.run.options.of(PlanRules)

    def plan_now(self) -> ClusteringPlan:
        """Raises NeedsRecovery when an abandoned plan keeps its file slices out of every new plan."""
        execution = self.run.options[clustering_keys.EXECUTION_STRATEGY_CLASS]
        self.run.report.warnings += copying_that_sorts(execution, self.rules.sort)
        try:
            return super().plan_now()
        except NothingToDo as idle:
            table = self.run.table
            left = abandoned(table, table.timeline.pending_clusterings(), self.run.settings)
            if left is None:
                raise
            message = f"{table.storage.root}: {idle.message}; the clustering {left.ts} is still pending"
            raise NeedsRecovery(message, hint=recover_hint(table)) from None

    def why_not_due(self, table: Snapshot) -> str:
        """Too few commits have followed the last clustering.

        Source: ClusteringPlanActionExecutor of Apache Hudi.
        """
        keys = (clustering_keys.INLINE_MAX_COMMITS, clustering_keys.ASYNC_MAX_COMMITS)
        needed = max(self.run.options[key] or 0 for key in keys)
        last = table.timeline.last_clustering() if needed else None
        found = sum(instant.ts > (last.ts if last else "") for instant in table.timeline.completed_writes())
        if found >= needed:
            return ""
        pending = "" if last is None or last.is_completed else "pending "
        since = f"since the {pending}clustering {last.ts}" if last else "on the timeline"
        return f"{found} of {counted(needed, 'commit')} {since}"

    def check_settings(self) -> None:
        rules, table = self.rules, self.run.table
        check_order(rules.sort, rules.layout, table)
        if rules.columns:
            check_columns(f"{clustering_keys.PLAN_COLUMNS.key} column", rules.columns, table)

    def build(self, table: Snapshot) -> ClusteringPlan:
        planned = build(table, self.rules, explain=self.run.request.dry_run)
        _describe(planned, self.run.report)
        if planned.plan is None:
            raise NothingToDo(planned.why_empty)
        return planned.plan

    def groups(self, plan: ClusteringPlan) -> list[FileGroupId]:
        return [one.group for one in plan.slices]

    def look(self, plan: ClusteringPlan) -> None:
        self.run.report.warnings += [_beside(one) for one in late_attempts(self.run.table)]
        super().look(plan)
        add_estimate(self.run, plan)
        if self.run.request.mode is not Mode.EXECUTE:
            self.run.report.warnings += rescale_advice(self.run.table.metadata, self.run.options)

    def encode(self, table: Snapshot, plan: ClusteringPlan) -> bytes:
        return encode_clustering_plan(plan, table.config.version.release)

    def pending(self) -> Sequence[Instant]:
        """The pending clusterings that have a plan: not those whose instant is only reserved."""
        table = self.run.table
        return [one for one in table.timeline.pending_clusterings() if not is_reserved(table, one)]

    def is_own(self, instant: Instant) -> bool:
        return self.run.table.timeline.is_clustering(instant)

    def execution(self) -> "type[PlanExecution[ClusteringRequest]]":
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


def _beside(other: LateAttempt) -> str:
    if other.holder:
        return f"another clustering rewrites files of the table, and has not published its plan yet: {other.holder}"
    return f"a clustering was killed before it had published its plan, and has left files ({other.ts}): run recover"


def _describe(planned: PlannedClustering, report: Report) -> None:
    selection = planned.selection
    report.groups = len(selection.groups)
    report.files = InOut(planned.files, planned.outputs)
    report.bytes = InOut(planned.bytes, None)
    report.left_out = {reason: n for reason, n in selection.reasons.items() if reason != ClusteringReason.PICKED.value}
    if selection.verdicts is not None:
        report.show(
            ClusteringGroupRow,
            (
                ClusteringGroupRow(number, group.partition, len(group.slices), group.size, group.outputs)
                for number, group in enumerate(selection.groups)
            ),
        )
        report.show(ClusteringSliceRow, map(_verdict, selection.verdicts))
        slices = sum(selection.reasons.values())
        if len(selection.verdicts) < slices:
            report.warn([f"{len(selection.verdicts)} of {slices} file slices {_LISTED}"])
    # A plan that was made again under the lock replaces these warnings of the earlier plan.
    report.warnings = [warning for warning in report.warnings if _LEFT not in warning and warning != _IN_BUCKETS]
    if planned.in_buckets:
        report.warnings.append(_IN_BUCKETS)
    warn_of_unfit(report, selection.unfit)
    for reason in WAITING:
        if count := selection.reasons[reason.value]:
            report.warnings.append(f"{count} {_LEFT}: {reason.value}")


def _verdict(verdict: Verdict) -> ClusteringSliceRow:
    return ClusteringSliceRow(
        verdict.slice.partition,
        verdict.slice.file_id,
        verdict.slice.base_bytes,
        reason=verdict.reason,
        group=verdict.group,
    )
