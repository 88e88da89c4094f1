"""Executes a clustering plan: the tasks, the commit, and their part of the report."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..attempts.attempt import Attempt
from ..base_files.new_file import NewFile
from ..clustering.plan import is_ours, sized_slices
from ..codecs.clustering_plan import CLUSTER, ClusteringPlan
from ..commit.drafts import CommitDraft
from ..commit.expectations import FilesStored
from ..commit.planned_groups import InputsOfGroups, PlannedGroups
from ..commit.rolling_metadata import RollingMetadata
from ..commit.times import refuse_ahead
from ..concurrency import at_once
from ..derived_indexes.expression_index.index import ComputedIndex
from ..metadata.record_index.log_writing import MovedKeys
from ..model import FileSlice
from ..rewriting.task import RewriteTask
from ..runs.report import InOut, Report
from ..runs.report_rows import ClusteringGroupRow
from ..runs.request import ClusteringRequest
from ..runs.rewriting import Rewrite, add_dropped_groups, carry_out
from ..runs.run import Run
from ..runs.running import Running, started
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.support import check_group
from ..timeline.instant import Instant, State
from .clustering_estimate import add_estimate
from .clustering_tasks import copying_that_sorts, rewrite_tasks


def execute_plan(run: Run[ClusteringRequest], instant: Instant) -> Report:
    """Execute the plan of the pending clustering `instant`, or say what that would do."""
    table, report = run.table, run.report
    report.instant = instant.ts
    refuse_ahead(table, instant.ts)
    with report.phase("open"):
        plan = table.timeline.read_plan(instant)
        source = table.storage.full_path(table.timeline.path(table.timeline.requested_name(instant)))
        groups = sized_slices(table, plan, source)
        for group in groups:
            check_group(group, table.storage)
    with started("clustering", groups, run) as running:
        return _execute(run, instant, plan, groups, running)


def _execute(
    run: Run[ClusteringRequest],
    instant: Instant,
    plan: ClusteringPlan,
    groups: Sequence[Sequence[FileSlice]],
    running: Running,
) -> Report:
    table, report = run.table, run.report
    with report.phase("open"):
        if not is_ours(plan):
            groups = [tuple(at_once(table.slices.checked, group)) for group in groups]
        tasks = rewrite_tasks(run, instant.ts, plan, groups)
        report.warnings += copying_that_sorts(plan.strategy_class, tasks[0].sort if tasks else ())
    inputs = [one for group in groups for one in group]
    report.groups = len(groups)
    report.files = InOut(len(inputs), None)
    seen = frozenset(write.ts for write in table.timeline.completed_writes())
    planned = PlannedGroups(
        groups,
        seen,
        run.settings,
        instant=instant.ts,
        plan=instant.ts,
        all_or_nothing=run.request.all_or_nothing,
    )
    if run.request.dry_run:
        return _dry_run(run, instant, plan, planned)

    rewrite = clustering_rewrite(instant, planned, tasks, table.storage, run.options.of(RollingMetadata))
    attempt = Attempt(table, instant, rewrite.operation, [rewrite.unchanged], run.settings)
    return carry_out(rewrite, attempt, run, running)


def clustering_rewrite(
    instant: Instant,
    planned: PlannedGroups,
    tasks: Sequence[RewriteTask],
    output: Storage,
    rolling: RollingMetadata,
) -> Rewrite:
    """The rewrite of the groups of a clustering plan, one task for each group; `output` has the new files."""

    def draft(written: Sequence[NewFile], moved: MovedKeys | None, computed: tuple[ComputedIndex, ...]) -> CommitDraft:
        left = planned.inputs(planned.kept)
        expected = (planned, FilesStored(output, [one.stat for one in written]))
        kept = [task.slices[0] for task in tasks if task.keeps_group and task.slices[0] in left]
        merged = frozenset(log.path for one in kept for log in one.log_files)
        replaced = _replaced(one for one in left if one not in kept)
        return CommitDraft(instant, CLUSTER, written, replaced, moved, computed, expected, merged, rolling=rolling)

    unchanged = InputsOfGroups(planned)
    return Rewrite("clustering", tasks, planned.dropped, unchanged, lambda _, new: new, draft, moves_keys=True)


def _dry_run(run: Run[ClusteringRequest], instant: Instant, plan: ClusteringPlan, planned: PlannedGroups) -> Report:
    """Report what executing the plan would do. Raises StaleInput for a plan whose files were changed."""
    table, report = run.table, run.report
    report.dry_run = True
    InputsOfGroups(planned).check(table)
    left = {number: planned.inputs([number]) for number in planned.kept}
    sizes = _live_sizes(table, {group[0].partition for group in left.values()})
    group_bytes = [sum(sizes[one.partition, one.file_id] for one in group) for group in left.values()]
    named = [group for group in plan.groups if group.slices]
    report.show(
        ClusteringGroupRow,
        (
            ClusteringGroupRow(number, group[0].partition, len(group), size, named[number].output_groups)
            for (number, group), size in zip(left.items(), group_bytes, strict=True)
        ),
    )
    report.bytes = InOut(sum(group_bytes), None)
    if left:
        add_estimate(run, replace(plan, groups=tuple(named[number] for number in left)))
    if planned.dropped:
        add_dropped_groups(report, {n: planned.inputs([n]) for n in planned.dropped}, planned.dropped)
    if instant.state is State.INFLIGHT:
        report.warnings.append(
            "an earlier attempt at this plan is not finished: the next run continues it, or rolls it back"
        )
    return report.looked("dry run: the plan was not executed", instant.ts)


def _live_sizes(table: Snapshot, partitions: Iterable[str]) -> dict[tuple[str, str], int]:
    """Bytes of the newest base file by (partition, file id): a plan does not record them."""
    return {
        (partition, one.file_id): one.base_bytes
        for partition in partitions
        for one in table.view.latest_slices(partition)
    }


def _replaced(inputs: Iterable[FileSlice]) -> dict[str, list[str]]:
    replaced: dict[str, list[str]] = {}
    for one in inputs:
        replaced.setdefault(one.partition, []).append(one.file_id)
    return replaced
