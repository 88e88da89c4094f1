"""Executes a clustering plan: the tasks, the commit, and their part of the report."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..base_files.new_file import NewFile
from ..bucket_index.hashing_metadata import mark, store_next
from ..bucket_index.kept_rings import NewBucketsUnwritten, refuse_new_bucket_writes
from ..bucket_index.signs import has_buckets
from ..clustering.bucket_plan import rings_of
from ..clustering.planned_slices import is_ours, sized_slices
from ..codecs.clustering_plan import CLUSTER
from ..commit.commit_draft import CommitDraft
from ..commit.expectations import Expectation, FilesStored
from ..commit.planned_groups import InputsOfGroups, PlannedGroups
from ..commit.rolling_metadata import RollingMetadata
from ..computed_once import cached_property
from ..concurrency import at_once
from ..derived_indexes.expression_index.index import ComputedIndex
from ..metadata.record_index.log_writing import IndexDelta
from ..model import FileSlice
from ..rewriting.task import RewriteTask
from ..runs.report import InOut
from ..runs.report_rows import ClusteringGroupRow
from ..runs.request import ClusteringRequest
from ..runs.rewriting import Rewrite, add_dropped_groups
from ..runs.run import Run
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.support import check_group
from ..timeline.instant import Instant
from .clustering_estimate import add_estimate
from .clustering_tasks import copying_that_sorts, rewrite_tasks
from .plan_execution import PlanExecution


class ClusteringExecution(PlanExecution[ClusteringRequest]):
    """The execution of one plan of clustering."""

    name = "clustering"

    def __init__(self, run: Run[ClusteringRequest], instant: Instant) -> None:
        super().__init__(run, instant)
        table = run.table
        self._plan = table.timeline.read_plan(instant)
        source = table.storage.full_path(table.timeline.path(table.timeline.requested_name(instant)))
        self._groups: Sequence[Sequence[FileSlice]] = sized_slices(table, self._plan, source)
        self._tasks: Sequence[RewriteTask] = ()
        self._rings = rings_of(table, self._plan, instant.ts) if has_buckets(self._plan) else {}
        if self._rings:
            refuse_new_bucket_writes(table, self._plan, instant.ts)
        for group in self._groups if not self._rings else ():
            check_group(group, table.storage)

    @property
    def slices(self) -> Sequence[FileSlice]:
        return [one for group in self._groups for one in group]

    @cached_property
    def groups(self) -> PlannedGroups:
        """The groups of the plan, by number; those that are left out are dropped."""
        ts, run = self.instant.ts, self.run
        # All buckets of a partition change together.
        all_or_nothing = run.request.all_or_nothing or bool(self._rings)
        return PlannedGroups(self._groups, run.seen, run.settings, instant=ts, plan=ts, all_or_nothing=all_or_nothing)

    def open(self) -> None:
        if not is_ours(self._plan):
            self._groups = [tuple(at_once(self.run.table.slices.checked, group)) for group in self._groups]
        self._tasks = rewrite_tasks(self.run, self.instant.ts, self._plan, self._groups)
        sort = self._tasks[0].sort if self._tasks else ()
        self.run.report.warnings += copying_that_sorts(self._plan.strategy_class, sort)
        self.run.report.groups = len(self._groups)
        self.run.report.files = InOut(sum(map(len, self._groups)), None)

    def look(self) -> None:
        """Raises StaleInput for a plan whose files were changed."""
        table, report, planned = self.run.table, self.run.report, self.groups
        report.dry_run = True
        InputsOfGroups(planned).check(table)
        left = {number: planned.inputs([number]) for number in planned.kept}
        sizes = _live_sizes(table, {group[0].partition for group in left.values()})
        group_bytes = [sum(sizes[one.partition, one.file_id] for one in group) for group in left.values()]
        named = [group for group in self._plan.groups if group.slices]
        rows = [
            ClusteringGroupRow(number, group[0].partition, len(group), size, named[number].output_groups)
            for (number, group), size in zip(left.items(), group_bytes, strict=True)
        ]
        report.show(ClusteringGroupRow, rows)
        report.bytes = InOut(sum(group_bytes), None)
        if left:
            add_estimate(self.run, replace(self._plan, groups=tuple(named[number] for number in left)))
        if planned.dropped:
            add_dropped_groups(report, {n: planned.inputs([n]) for n in planned.dropped}, planned.dropped)

    def rewrite(self) -> Rewrite:
        facts = (self.run, self.instant, self.groups, self._tasks, self.run.table.storage)
        if not self._rings:
            return clustering_rewrite(*facts)
        found = clustering_rewrite(*facts, NewBucketsUnwritten(self._plan, self.instant.ts))
        return replace(found, begin=self._store_rings, end=self._mark_rings)

    def _store_rings(self) -> None:
        for _, ring in self._rings.values():
            store_next(self.run.table.storage, ring)

    def _mark_rings(self) -> None:
        mark(self.run.table.storage, self._rings, self.instant.ts)


def clustering_rewrite(
    run: Run[ClusteringRequest],
    instant: Instant,
    planned: PlannedGroups,
    tasks: Sequence[RewriteTask],
    output: Storage,
    *expectations: Expectation,
) -> Rewrite:
    """The rewrite of the groups of a clustering plan, one task for each group; `output` has the new files.

    `expectations` are those of the commit beside the ones of every clustering.
    """
    rolling, schema = run.options.of(RollingMetadata), run.table.versioned_schema(instant.ts)

    def draft(written: Sequence[NewFile], delta: IndexDelta | None, computed: tuple[ComputedIndex, ...]) -> CommitDraft:
        left = planned.inputs(planned.kept)
        expected = (planned, *expectations, FilesStored(output, [one.stat for one in written]))
        kept = [task.slices[0] for task in tasks if task.keeps_group and task.slices[0] in left]
        merged = frozenset(log.path for one in kept for log in one.log_files)
        replaced = _replaced(one for one in left if one not in kept)
        facts = (written, replaced, delta, computed, expected, merged, schema)
        return CommitDraft(instant, CLUSTER, *facts, rolling=rolling)

    unchanged = InputsOfGroups(planned)
    return Rewrite(
        "clustering", tasks, planned.dropped, unchanged, planned.leave_out, lambda _, new: new, draft, moves_keys=True
    )


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
