"""Plans a clustering, and reports which file slices are in the plan and which are not."""

from functools import cached_property

from ..attempts.late_attempts import LateAttempt, late_attempts
from ..clustering.eligibility import WAITING, Reason
from ..clustering.plan import Planned, PlanRules, build, check_columns, check_order
from ..clustering.selection import Verdict
from ..codecs.clustering_plan import ClusteringPlan, encode_clustering_plan
from ..commit.conflicts import recover_hint
from ..errors import HudiServicesError, NeedsRecovery, NothingToDo
from ..options import clustering_keys
from ..recovery.findings import abandoned
from ..runs.report import InOut, Report
from ..runs.report_rows import ClusteringGroupRow, ClusteringSliceRow
from ..runs.request import ClusteringRequest
from ..runs.rewrite_tasks import warn_of_unfit
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from ..timeline.instant import Action
from .clustering_estimate import add_estimate
from .clustering_tasks import copying_that_sorts
from .planned_service import PlannedService

_LEFT = "file slices are left for the next plan"
_IN_BUCKETS = "the file groups are the buckets of an index: each is rewritten by itself, and keeps its file id"


class ClusteringPlanner(PlannedService[ClusteringRequest, Planned]):
    """The plan half of a clustering."""

    name = "clustering"

    @property
    def action(self) -> Action:
        return self.run.table.timeline.layout.clustering_action

    @cached_property
    def rules(self) -> PlanRules:
        return self.run.options.of(PlanRules)

    def plan_now(self) -> Planned:
        execution = self.run.options[clustering_keys.EXECUTION_STRATEGY_CLASS]
        self.run.report.warnings += copying_that_sorts(execution, self.rules.sort)
        return super().plan_now()

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
        return f"{found} of {needed} commits {since}"

    def check_settings(self) -> None:
        rules, table = self.rules, self.run.table
        check_order(rules.sort, rules.layout, table)
        if rules.columns:
            check_columns(f"{clustering_keys.PLAN_COLUMNS.key} column", rules.columns, table)

    def build(self, table: Snapshot) -> Planned:
        planned = build(table, self.rules, explain=self.run.request.dry_run)
        _describe(planned, self.run.report)
        return planned

    def why_empty(self, found: Planned) -> str:
        return found.why_empty if found.plan is None else ""

    def nothing_to_plan(self, why: str) -> HudiServicesError:
        """NothingToDo, or NeedsRecovery when an abandoned plan keeps its file slices out of every new plan."""
        table = self.run.table
        left = abandoned(table, table.timeline.pending_clusterings(), self.run.settings)
        if left is None:
            return NothingToDo(why)
        return NeedsRecovery(
            f"{table.storage.root}: {why}; the clustering {left.ts} is still pending", hint=recover_hint(table)
        )

    def groups(self, found: Planned) -> list[FileGroupId]:
        return [(one.partition, one.file_id) for group in plan_of(found).groups for one in group.slices]

    def look(self, found: Planned) -> None:
        self.run.report.warnings += [_beside(one) for one in late_attempts(self.run.table)]
        super().look(found)
        add_estimate(self.run, plan_of(found))

    def encode(self, table: Snapshot, found: Planned) -> bytes:
        return encode_clustering_plan(plan_of(found), table.config.version.release)


def plan_of(planned: Planned) -> ClusteringPlan:
    """The plan, where there is one."""
    assert planned.plan is not None, planned.why_empty
    return planned.plan


def _beside(other: LateAttempt) -> str:
    if other.holder:
        return f"another clustering rewrites files of the table, and has not published its plan yet: {other.holder}"
    return f"a clustering was killed before it had published its plan, and has left files ({other.ts}): run recover"


def _describe(planned: Planned, report: Report) -> None:
    selection = planned.selection
    report.groups = len(selection.groups)
    report.files = InOut(planned.files, planned.outputs)
    report.bytes = InOut(planned.bytes, None)
    report.left_out = {reason: n for reason, n in selection.reasons.items() if reason != Reason.PICKED.value}
    if selection.verdicts is not None:
        report.show(
            ClusteringGroupRow,
            (
                ClusteringGroupRow(number, group.partition, len(group.slices), group.size, group.outputs)
                for number, group in enumerate(selection.groups)
            ),
        )
        report.show(ClusteringSliceRow, map(_verdict, selection.verdicts))
    # A plan that was made again under the lock replaces these warnings of the earlier plan.
    report.warnings = [warning for warning in report.warnings if _LEFT not in warning and warning != _IN_BUCKETS]
    if planned.in_buckets:
        report.warnings.append(_IN_BUCKETS)
    warn_of_unfit(report, selection.unfit)
    for reason in WAITING:
        if count := selection.reasons[reason.value]:
            report.warnings.append(f"{count} {_LEFT}: {reason.value}")


def _verdict(one: Verdict) -> ClusteringSliceRow:
    return ClusteringSliceRow(
        one.slice.partition, one.slice.file_id, one.slice.base_bytes, reason=one.reason, group=one.group
    )
