"""Executes a clustering plan: the tasks, the commit, and their part of the report."""

from collections.abc import Iterable, Sequence

from ..clustering.plan import input_slices
from ..codecs.clustering_plan import CLUSTER, ClusteringPlan
from ..commit.drafts import CommitDraft, WrittenFile
from ..commit.expectations import (
    Expectation,
    FilesStored,
    InputsStayCommitted,
    InputsUnchanged,
    NobodyUpdated,
    NobodyUpdates,
)
from ..commit.settings import TransactionSettings
from ..commit.times import refuse_ahead
from ..concurrency import at_once
from ..engine import Engine
from ..metadata.expression_index.index import Computation, ComputedIndex
from ..metadata.record_index.log_writing import MovedKeys
from ..model import FileSlice, WriteStat
from ..snapshot import Snapshot
from ..table.support import are_buckets, check_group
from ..timeline.instant import Instant, State
from .clustering_estimate import add_estimate
from .clustering_tasks import copying_that_sorts, rewrite_tasks
from .report import InOut, Report
from .request import ClusteringRequest
from .rewriting import Rewrite, carry_out, stat_of
from .running import Running, started
from .settings import transaction_settings


def execute_plan(
    wanted: ClusteringRequest,
    table: Snapshot,
    instant: Instant,
    expressions: tuple[Computation, ...],
    report: Report,
    engine: Engine | None,
) -> Report:
    """Execute the plan of the pending clustering `instant`, or say what that would do."""
    report.instant = instant.ts
    refuse_ahead(table, instant.ts)
    with report.phase("open"):
        plan = table.timeline.read_plan(instant)
        source = table.storage.full_path(table.timeline.path(table.timeline.requested_name(instant)))
        groups = input_slices(plan, source)
        for group in groups:
            check_group(group, table.storage)
    with started("clustering", groups, wanted, report, engine) as running:
        return _execute(wanted, table, instant, plan, groups, expressions, report, running)


def _execute(
    wanted: ClusteringRequest,
    table: Snapshot,
    instant: Instant,
    plan: ClusteringPlan,
    groups: Sequence[Sequence[FileSlice]],
    expressions: tuple[Computation, ...],
    report: Report,
    running: Running,
) -> Report:
    settings = transaction_settings(wanted.options, table.storage)
    with report.phase("open"):
        at_once(table.slices.check, [one for group in groups for one in group if one.log_files])
        tasks = rewrite_tasks(wanted, table, instant.ts, plan, groups)
        report.warnings += copying_that_sorts(plan.strategy_class, tasks[0].sort if tasks else ())
    inputs = [one for group in groups for one in group]
    report.groups = len(groups)
    report.files = InOut(len(inputs), None)
    if wanted.dry_run:
        return _dry_run(wanted, table, instant, plan, groups, report)
    seen = frozenset(write.ts for write in table.timeline.completed_writes())

    def draft(
        written: Sequence[WrittenFile], moved: MovedKeys | None, computed: tuple[ComputedIndex, ...]
    ) -> CommitDraft:
        expected = _expectations(inputs, seen, [one.stat for one in written], settings)
        kept = [group[0] for group in groups if are_buckets(group)]
        merged = frozenset(log.path for one in kept for log in one.log_files)
        replaced = _replaced(one for one in inputs if one not in kept)
        return CommitDraft(instant, CLUSTER, written, replaced, moved, computed, expected, merged)

    rewrite = Rewrite("clustering", instant, inputs, tasks, InputsUnchanged(inputs), stat_of, draft, moves_keys=True)
    return carry_out(rewrite, wanted, table, expressions, settings, report, running)


def _dry_run(
    wanted: ClusteringRequest,
    table: Snapshot,
    instant: Instant,
    plan: ClusteringPlan,
    groups: Sequence[Sequence[FileSlice]],
    report: Report,
) -> Report:
    """Report what executing the plan would do. Raises StaleInput for a plan whose files were changed."""
    report.dry_run = True
    pairs = [(planned, group) for planned, group in zip(plan.groups, groups, strict=True) if group]
    InputsUnchanged([one for _, group in pairs for one in group]).check(table)
    sizes = _live_sizes(table, {group[0].partition for _, group in pairs})
    group_bytes = [sum(sizes[one.partition, one.file_id] for one in group) for _, group in pairs]
    report.tables["clustering_groups"] = [
        {
            "group": number,
            "partition": group[0].partition,
            "files": len(group),
            "bytes": size,
            "new_files": planned.output_groups,
        }
        for number, ((planned, group), size) in enumerate(zip(pairs, group_bytes, strict=True))
    ]
    report.bytes = InOut(sum(group_bytes), None)
    if pairs:
        add_estimate(wanted, table, plan, report)
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


def _expectations(
    inputs: Sequence[FileSlice], seen: frozenset[str], stats: Sequence[WriteStat], settings: TransactionSettings
) -> tuple[Expectation, ...]:
    return (
        InputsUnchanged(inputs),
        NobodyUpdated(inputs, seen),
        NobodyUpdates(inputs, settings),
        InputsStayCommitted(inputs, settings),
        FilesStored(stats),
    )


def _replaced(inputs: Iterable[FileSlice]) -> dict[str, list[str]]:
    replaced: dict[str, list[str]] = {}
    for one in inputs:
        replaced.setdefault(one.partition, []).append(one.file_id)
    return replaced
