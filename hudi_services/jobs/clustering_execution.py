"""Executes a clustering plan: the tasks, the commit, and their part of the report."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace

from ..clustering.data_skipping import skipping
from ..clustering.eligibility import base_size
from ..clustering.plan import input_slices
from ..clustering.resume import rewrite_once
from ..clustering.rewrite import RewriteResult
from ..clustering.task import RewriteTask
from ..codecs.clustering_plan import CLUSTER, ClusteringPlan
from ..commit.attempt import Attempt
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
from ..engine import Engine, LocalEngine
from ..errors import HudiServicesError
from ..indexing.expressions import computed_indexes
from ..indexing.keys import moved_keys, record_shards
from ..metadata.expression_index.index import Computation
from ..model import FileSlice, WriteStat
from ..options import keys
from ..rows.conservation import Checksum
from ..rows.memory import TaskMemory
from ..snapshot import Snapshot
from ..table.support import check_slices
from ..timeline.instant import Instant, State
from .clustering_estimate import add_estimate
from .clustering_tasks import copying_that_sorts, memory_row, rewrite_tasks
from .metadata_compaction import compaction_afterwards
from .report import Check, CheckResult, InOut, Report, Row
from .request import ClusteringRequest
from .running import running
from .settings import transaction_settings


def execute_plan(
    wanted: ClusteringRequest,
    table: Snapshot,
    instant: Instant,
    expressions: tuple[Computation, ...],
    report: Report,
    engine: Engine | None,
) -> Report:
    settings = transaction_settings(wanted.options, table.storage)
    report.instant = instant.ts
    refuse_ahead(table, instant.ts)
    with report.phase("open"):
        plan = table.timeline.read_plan(instant)
        source = table.storage.full_path(table.timeline.path(table.timeline.requested_name(instant)))
        groups = input_slices(plan, source)
        for group in groups:
            check_slices(group, table.storage)
        at_once(table.slices.check, [one for group in groups for one in group if one.log_files])
        tasks = rewrite_tasks(wanted, table, instant.ts, plan, groups)
        report.warnings += copying_that_sorts(plan.strategy_class, tasks[0].sort if tasks else ())
    inputs = [one for group in groups for one in group]
    report.groups = len(groups)
    report.files = InOut(len(inputs), None)
    if wanted.dry_run:
        return _dry_run(wanted, table, instant, plan, groups, report)
    attempt = Attempt(table, instant, "clustering", [InputsUnchanged(inputs)], settings)
    with attempt, _running(wanted, tasks, report, engine) as runner:
        shards = record_shards(table)
        results = _run(runner, tasks, wanted, report)
        written = [file for result in results for file in _stats(result)]
        _account(report, results, written)
        report.resumed_groups = sum(result.taken_over for result in results) if attempt.taken_up else 0
        stats = [one.stat for one in written]
        moved = None
        if shards is not None:
            with report.phase("read keys"):
                moved = moved_keys(runner, table, shards, instant.ts, stats)
        with report.phase("compute expressions") if expressions else nullcontext():
            computed = computed_indexes(runner, table, expressions, instant.ts, stats, inputs)
        with report.phase("commit"):
            compaction = compaction_afterwards(runner, wanted, report)
            seen = frozenset(write.ts for write in table.timeline.completed_writes())
            expected = _expectations(inputs, seen, stats, settings)
            draft = CommitDraft(instant, CLUSTER, written, _replaced(inputs), moved, computed, expected)
            attempt.finish(draft, compaction)
    report.completed(instant.ts)
    if attempt.rolled_back:
        report.warnings.append(f"an earlier attempt was rolled back ({', '.join(attempt.rolled_back)})")
    if report.resumed_groups:
        report.warnings.append(
            f"{report.resumed_groups} of {len(results)} groups were taken over from an earlier attempt"
        )
    with report.phase("clean up"):
        try:
            attempt.clean_up()
        except HudiServicesError as error:
            return report.partly_done(f"the clustering is complete, but its markers could not be deleted: {error}")
    return report


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
        (partition, one.file_id): base_size(one)
        for partition in partitions
        for one in table.view.latest_slices(partition)
    }


def _running(
    wanted: ClusteringRequest, tasks: list[RewriteTask], report: Report, engine: Engine | None
) -> AbstractContextManager[Engine]:
    """The engine that runs the tasks, until the commit is made; a plan without tasks needs no Spark."""
    if not tasks:
        engine = LocalEngine()
    return running(f"hudi_services clustering {report.instant}", wanted, report, engine)


def _run(engine: Engine, tasks: list[RewriteTask], wanted: ClusteringRequest, report: Report) -> list[RewriteResult]:
    memory = TaskMemory(wanted.options[keys.MEMORY_PER_TASK] or engine.task_memory)
    with report.phase("rewrite"):
        results = engine.map(
            rewrite_once,
            [replace(task, memory=memory) for task in tasks],
            "rewrite clustering groups",
            lambda done, total: wanted.progress("rewrite", done, total),
        )
    if results:
        # Groups that were taken over have no peak.
        peak = max(result.peak for result in results) or None
        spilled = [result.spilled for result in results if result.spilled]
        report.tables["memory"] = [memory_row(memory, peak, len(spilled), sum(spilled))]
    return results


def _stats(result: RewriteResult) -> list[WrittenFile]:
    return [
        WrittenFile(
            WriteStat(
                partition=result.partition,
                file_id=new.file_id,
                path=new.file.path,
                num_writes=new.file.rows,
                num_inserts=new.file.rows,
                total_write_bytes=new.file.size,
                file_size=new.file.size,
                create_millis=new.millis,
            ),
            new.file.columns,
        )
        for new in result.files
    ]


def _account(report: Report, results: Sequence[RewriteResult], written: Sequence[WrittenFile]) -> None:
    report.files = replace(report.files, after=len(written))
    report.bytes = InOut(sum(r.bytes_in for r in results), sum(one.stat.file_size for one in written))
    report.rows = InOut(sum(r.rows_in for r in results), sum(one.stat.num_writes for one in written))
    report.decoded = dict(Counter(r.decoded for r in results if r.decoded is not None))
    if written:
        report.tables["new_files"] = [_evenness([one.stat.file_size for one in written])]
    gains = skipping(result.bounds for result in results)
    if gains:
        report.tables["skipping"] = [asdict(gain) for gain in gains]
    # Summed over tasks that run side by side, so these may exceed the wall clock of the rewrite.
    phases = sorted({phase for result in results for phase in result.seconds})
    spent = {phase: sum(result.seconds.get(phase, 0.0) for result in results) for phase in phases}
    report.seconds |= {f"tasks: {phase}": seconds for phase, seconds in spent.items()}
    before = sum((result.before for result in results), start=Checksum())
    after = sum((result.after for result in results), start=Checksum())
    cost = spent.get("proof", 0.0) / (sum(spent.values()) or 1.0)
    detail = f"{before} read from the old files, {after} read back from the new ones; {cost:.0%} of the tasks' time"
    report.checks.append(Check("row conservation", CheckResult.PASSED, detail))


def _evenness(sizes: Sequence[int]) -> Row:
    ordered, mean = sorted(sizes), statistics.fmean(sizes)
    return {
        "files": len(sizes),
        "p50_bytes": ordered[(len(sizes) - 1) // 2],
        "p95_bytes": ordered[math.ceil(len(sizes) * 0.95) - 1],
        "max_bytes": ordered[-1],
        "variation": round(statistics.pstdev(sizes) / mean, 3),
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


def _replaced(inputs: Sequence[FileSlice]) -> dict[str, list[str]]:
    replaced: dict[str, list[str]] = {}
    for one in inputs:
        replaced.setdefault(one.partition, []).append(one.file_id)
    return replaced
