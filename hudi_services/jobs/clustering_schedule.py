"""Plans a clustering, publishes the plan, and reports which file slices are in it and which are not."""

import logging

from ..attempts.late_attempts import LateAttempt, late_attempts
from ..clustering.eligibility import WAITING, Reason
from ..clustering.plan import Planned, PlanRules, build, check_columns, check_order
from ..clustering.selection import Verdict
from ..codecs.clustering_plan import ClusteringPlan, encode_clustering_plan
from ..commit.conflicts import recover_hint, refuse_beside_index_builds, refuse_beside_writers
from ..commit.critical_section import request
from ..commit.newest_files import check_newest, read_ahead
from ..commit.settings import TransactionSettings
from ..errors import HudiServicesError, NeedsRecovery, NothingToDo
from ..options import Options, clustering_keys, commit_keys
from ..recovery.findings import abandoned
from ..runs.report import InOut, Report
from ..runs.report_rows import ClusteringGroupRow, ClusteringSliceRow
from ..runs.request import ClusteringRequest
from ..runs.rewrite_tasks import warn_of_unfit
from ..runs.run import Run
from ..snapshot import Snapshot, is_unchanged
from ..table.view import FileGroupId
from .clustering_estimate import add_estimate
from .clustering_tasks import copying_that_sorts
from .plan_instants import check_new_instant, zone_warnings

_log = logging.getLogger(__name__)

_DRY_RUN = "dry run: no plan was written"
_LEFT = "file slices are left for the next plan"
_IN_BUCKETS = "the file groups are the buckets of an index: each is rewritten by itself, and keeps its file id"


def schedule_plan(run: Run[ClusteringRequest]) -> Snapshot:
    """Plan and publish, and tell the report; returns the table with the plan, or of a dry run as it is."""
    table, report, settings = run.table, run.report, run.settings
    report.dry_run = run.request.dry_run
    planned = plan_now(run)
    if run.request.dry_run:
        report.warnings += [_beside(one) for one in late_attempts(table)]
        _check_inputs(table, planned)
        add_estimate(run, planned)
        report.looked(_DRY_RUN)
        return table
    refuse_beside_writers(table, settings, plan="")
    refuse_beside_index_builds(table)
    read_ahead(table, _groups_of(planned))
    with report.phase("publish"):
        action = table.timeline.layout.clustering_action

        def plan(current: Snapshot) -> bytes:
            if waiting := _wait_for_commits(run.options, current):
                raise NothingToDo(waiting)
            # Planning may take long, and the lock is held: plan again only when the table has changed.
            if is_unchanged(current, table):
                return _encode(table, planned)
            again = build(current, run.options.of(PlanRules))
            _describe(again, report)
            if again.plan is None:
                raise NothingToDo(again.why_empty)
            return _encode(current, again.plan)

        ts, after = request(table, action, "schedule", plan, settings, rewrites=True, ts=run.request.instant)
    report.warnings += zone_warnings(run.request.instant, table)
    _log.info("scheduled the clustering %s", ts)
    report.requested(ts)
    return after


def plan_now(run: Run[ClusteringRequest]) -> ClusteringPlan:
    """The plan of the table as it is, without a lock: an idle or wrong call leaves no trace. Raises NothingToDo."""
    table, report, rules = run.table, run.report, run.options.of(PlanRules)
    report.warnings += copying_that_sorts(run.options[clustering_keys.EXECUTION_STRATEGY_CLASS], rules.sort)
    if run.request.instant is not None:
        check_new_instant(run.request.instant, table, run.options[commit_keys.CLOCK_SKEW_MILLIS])
    waiting = _wait_for_commits(run.options, table)
    if waiting:
        raise _nothing_to_plan(table, waiting, run.settings)
    with report.phase("plan"):
        check_order(rules.sort, rules.layout, table)
        if rules.columns:
            check_columns(f"{clustering_keys.PLAN_COLUMNS.key} column", rules.columns, table)
        planned = build(table, rules, explain=run.request.dry_run)
        _describe(planned, report)
        if planned.plan is None:
            raise _nothing_to_plan(table, planned.why_empty, run.settings)
    return planned.plan


def _beside(other: LateAttempt) -> str:
    if other.holder:
        return f"another clustering rewrites files of the table, and has not published its plan yet: {other.holder}"
    return f"a clustering was killed before it had published its plan, and has left files ({other.ts}): run recover"


def _wait_for_commits(options: Options, table: Snapshot) -> str:
    """The reason to wait when too few commits have followed the last clustering, else "".

    Source: ClusteringPlanActionExecutor of Apache Hudi.
    """
    keys = (clustering_keys.INLINE_MAX_COMMITS, clustering_keys.ASYNC_MAX_COMMITS)
    needed = max(options[key] or 0 for key in keys)
    last = table.timeline.last_clustering() if needed else None
    found = sum(instant.ts > (last.ts if last else "") for instant in table.timeline.completed_writes())
    if found >= needed:
        return ""
    pending = "" if last is None or last.is_completed else "pending "
    return f"{found} of {needed} commits " + (f"since the {pending}clustering {last.ts}" if last else "on the timeline")


def _nothing_to_plan(table: Snapshot, why: str, settings: TransactionSettings) -> HudiServicesError:
    """NothingToDo, or NeedsRecovery when an abandoned plan keeps its file slices out of every new plan."""
    left = abandoned(table, table.timeline.pending_clusterings(), settings)
    if left is None:
        return NothingToDo(why)
    return NeedsRecovery(
        f"{table.storage.root}: {why}; the clustering {left.ts} is still pending", hint=recover_hint(table)
    )


def _encode(table: Snapshot, plan: ClusteringPlan) -> bytes:
    """The plan as bytes, after a check that all sources agree on its slices."""
    _check_inputs(table, plan)
    return encode_clustering_plan(plan, table.config.version.release)


def _check_inputs(table: Snapshot, plan: ClusteringPlan) -> None:
    """Raise CheckFailed when not all sources agree that the plan's slices are the newest."""
    check_newest(table, _groups_of(plan))


def _groups_of(plan: ClusteringPlan) -> list[FileGroupId]:
    return [(one.partition, one.file_id) for group in plan.groups for one in group.slices]


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
