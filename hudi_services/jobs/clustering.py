"""The clustering job: schedule a plan, execute a plan, or both. Mirrors HoodieClusteringJob of Apache Hudi."""

import logging
import math
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from datetime import timedelta

from ..clock import parse_instant
from ..clustering.eligibility import WAITING, Reason, base_size
from ..clustering.memory import TaskMemory
from ..clustering.output import RewriteTask
from ..clustering.plan import Planned, build, check_columns, check_order, dropped_columns, input_files
from ..clustering.proof import Checksum
from ..clustering.resume import rewrite_once
from ..clustering.rewrite import RewriteResult
from ..clustering.selection import Verdict
from ..clustering.skipping import skipping
from ..clustering.sort_order import SortColumn, from_strategy_params, layout_of
from ..codecs.clustering_plan import CLUSTER, ClusteringPlan, encode_clustering_plan
from ..commit.conflicts import recover_hint, refuse_beside_writers
from ..commit.settings import TransactionSettings
from ..commit.transaction import Attempt, WrittenBaseFile, request
from ..engine import Engine, LocalEngine
from ..errors import ConfigError, HudiServicesError, Idle, NeedsRecovery
from ..files.names import new_file_id
from ..handle import Table, current_schema, is_unchanged
from ..indexing.expressions import computed_indexes
from ..indexing.keys import moved_keys, record_buckets
from ..metadata.expression_index import Computation, computations, expression_indexes
from ..model import BaseFile, WriteStat
from ..options import keys
from ..recovery.findings import abandoned
from ..storage import Storage
from ..table.support import check_rewritable
from ..timeline.instant import Action, Instant
from .metadata_compaction import compaction_afterwards
from .opening import open_supported
from .report import Check, CheckResult, InOut, Report, Row
from .request import ClusteringRequest
from .running import running
from .settings import bloom_settings, commits_between, file_settings, plan_rules, session_zone, transaction_settings

_log = logging.getLogger(__name__)

_DRY_RUN = "dry run: no plan was written"
_LEFT = "file slices are left for the next plan"
_INSTANT_DIGITS = (14, 17)
_FARTHEST = timedelta(days=1)
"""How far ahead an instant may lie: the zones of two writers of one table may differ."""


def schedule(wanted: ClusteringRequest, storage: Storage | None = None) -> Report:
    """Plan a clustering and publish it, unless it is a dry run; starts no JVM.

    `storage` stands in for the one of `wanted.base_path`.
    """
    report = Report.start(wanted)
    table, wanted = _open_rewritable(wanted, storage, report)
    return _schedule(wanted, table, report)


def execute(wanted: ClusteringRequest, storage: Storage | None = None, engine: Engine | None = None) -> Report:
    """Execute the given or the earliest pending plan: as one Spark job, unless another `engine` is given."""
    report = Report.start(wanted)
    table, wanted = _open_rewritable(wanted, storage, report)
    return _execute(wanted, table, _choose(table, wanted.instant), report, engine)


def schedule_and_execute(
    wanted: ClusteringRequest, storage: Storage | None = None, engine: Engine | None = None
) -> Report:
    """Plan and execute at once; or, with `retry_last_failed`, execute the last plan that was left unfinished."""
    report = Report.start(wanted)
    table, over_table = _open_rewritable(wanted, storage, report)
    instant = _last_failed(wanted, table) if wanted.retry_last_failed else None
    if instant is None:
        _schedule(over_table, table, report)
        table, over_table = _open_rewritable(wanted, storage, report)
        instant = _choose(table, report.instant)
    return _execute(over_table, table, instant, report, engine)


def _open_rewritable(
    wanted: ClusteringRequest, storage: Storage | None, report: Report
) -> tuple[Table, ClusteringRequest]:
    table, wanted = open_supported(wanted, storage, report)
    check_rewritable(table.config, table.timeline, table.storage)
    _computations(wanted, table)
    return table, wanted


def _computations(wanted: ClusteringRequest, table: Table) -> tuple[Computation, ...]:
    """How the table's expression indexes are computed. Raises UnsupportedTable where we cannot."""
    if table.metadata is None or not expression_indexes(table.metadata):
        return ()
    options = wanted.options
    return computations(table.metadata, current_schema(table), session_zone(options), bloom_settings(options))


def _schedule(wanted: ClusteringRequest, table: Table, report: Report) -> Report:
    report.dry_run = wanted.dry_run
    settings = transaction_settings(wanted.options)
    rules = plan_rules(wanted.options)
    report.warnings += _copying_that_sorts(wanted.options[keys.EXECUTION_STRATEGY_CLASS], rules.sort)
    if wanted.instant is not None:
        _check_new_instant(wanted.instant, table)
    waiting = _wait_for_commits(wanted, table)
    if waiting:
        raise _nothing_to_plan(table, waiting, settings)
    with report.phase("plan"):
        check_order(rules.sort, rules.layout, table)
        if rules.columns:
            check_columns(f"{keys.PLAN_COLUMNS.key} column", rules.columns, table)
        # First without the lock: an idle or wrong call leaves no trace, and locks are held for no longer than needed.
        planned = build(table, rules, explain=wanted.dry_run)
        _describe(planned, report)
        if planned.plan is None:
            raise _nothing_to_plan(table, planned.why_empty, settings)
        if wanted.dry_run:
            return report.looked(_DRY_RUN)
        if not settings.lock.file_system:
            refuse_beside_writers(table, settings)
    with report.phase("publish"):
        action = table.timeline.layout.clustering_action

        def plan(current: Table) -> bytes:
            if waiting := _wait_for_commits(wanted, current):
                raise Idle(waiting)
            # Planning may take long, and the lock is held: again only when it may come to something else.
            return _encode(current, planned if is_unchanged(current, table) else build(current, rules), report)

        ts = request(table, action, plan, settings, wanted.instant)
    _log.info("scheduled the clustering %s", ts)
    return report.requested(ts)


def _copying_that_sorts(execution: str, sort: Sequence[SortColumn]) -> list[str]:
    """A warning where a class for copying was asked for and rows are sorted: Hudi then falls back to that, too."""
    if not sort or execution not in keys.COPY_EXECUTIONS:
        return []
    name = execution.rpartition(".")[2]
    return [f"{name} copies only what is not sorted: there are sort columns, and rows are sorted by them, as in Hudi"]


def _wait_for_commits(wanted: ClusteringRequest, table: Table) -> str:
    """What is missing until enough commits have followed the last clustering (ClusteringPlanActionExecutor)."""
    needed = commits_between(wanted.options)
    last = table.timeline.last_clustering() if needed else None
    found = sum(instant.ts > (last.ts if last else "") for instant in table.timeline.completed_writes())
    if found >= needed:
        return ""
    pending = "" if last is None or last.is_completed else "pending "
    return f"{found} of {needed} commits " + (f"since the {pending}clustering {last.ts}" if last else "on the timeline")


def _nothing_to_plan(table: Table, why: str, settings: TransactionSettings) -> HudiServicesError:
    """Idle, unless an old plan that nobody executes keeps its file slices from every new one."""
    left = abandoned(table, table.timeline.pending_clusterings(), settings)
    if left is None:
        return Idle(why)
    return NeedsRecovery(f"{table.storage.root}: {why}; the clustering {left.ts} was left", hint=recover_hint(table))


def _check_new_instant(ts: str, table: Table) -> None:
    """Raise ConfigError for a text that is no instant, and for one so late that it would hide what is written next."""
    moment = parse_instant(ts, table.timeline.zone)
    if moment is None or len(ts) not in _INSTANT_DIGITS:
        raise ConfigError(f"--instant-time {ts} is no instant", hint="write it as yyyyMMddHHmmssSSS, or leave it out")
    if moment - table.clock.now() > _FARTHEST:
        raise ConfigError(
            f"--instant-time {ts} lies in the future: readers would prefer its files to those of all writes until then",
            hint="leave --instant-time out",
        )


def _encode(current: Table, planned: Planned, report: Report) -> bytes:
    _describe(planned, report)
    if planned.plan is None:
        raise Idle(planned.why_empty)
    return encode_clustering_plan(planned.plan, current.config.version.release)


def _describe(planned: Planned, report: Report) -> None:
    selection = planned.selection
    report.groups = len(selection.groups)
    report.files = InOut(planned.files, planned.outputs)
    report.bytes = InOut(planned.bytes, None)
    report.left_out = {reason: n for reason, n in selection.reasons.items() if reason != Reason.PICKED.value}
    if selection.verdicts is not None:
        report.tables["clustering_groups"] = [
            {
                "group": number,
                "partition": group.partition,
                "files": len(group.slices),
                "bytes": group.size,
                "new_files": group.outputs,
            }
            for number, group in enumerate(selection.groups)
        ]
        report.tables["file_slices"] = [_verdict(one) for one in selection.verdicts]
    # A plan that was made again under the lock has the last word.
    report.warnings = [warning for warning in report.warnings if _LEFT not in warning]
    for reason in WAITING:
        if count := selection.reasons[reason.value]:
            report.warnings.append(f"{count} {_LEFT}: {reason.value}")


def _verdict(one: Verdict) -> Row:
    return {
        "partition": one.slice.partition,
        "file_id": one.slice.file_id,
        "bytes": base_size(one.slice),
        "reason": one.reason,
        "group": one.group,
    }


def _choose(table: Table, ts: str | None) -> Instant:
    """The pending clustering `ts`, or the earliest one. Raises Idle, or ConfigError for an instant that is none."""
    pending = table.timeline.pending_clusterings()
    if ts is None:
        if not pending:
            raise Idle("there is no pending clustering plan")
        return pending[0]
    found = next((instant for instant in pending if instant.ts == ts), None)
    if found is not None:
        return found
    done = table.timeline.find(ts, Action.REPLACE_COMMIT)
    if done is not None and done.is_completed:
        raise Idle(f"the clustering {ts} is completed already")
    known = ", ".join(instant.ts for instant in pending) or "none"
    raise ConfigError(
        f"there is no pending clustering with the instant {ts} in {table.storage.root}", hint=f"pending are: {known}"
    )


def _last_failed(wanted: ClusteringRequest, table: Table) -> Instant | None:
    # Also a plan that never began: after a failed try, that is what the rollback left.
    pending = table.timeline.pending_clusterings()
    if not pending:
        return None
    started = parse_instant(pending[-1].ts, table.timeline.zone)
    age = (table.clock.now() - started).total_seconds() * 1000 if started else float("inf")
    return pending[-1] if age >= wanted.max_processing_millis else None


def _execute(
    wanted: ClusteringRequest, table: Table, instant: Instant, report: Report, engine: Engine | None
) -> Report:
    settings = transaction_settings(wanted.options)
    report.instant = instant.ts
    with report.phase("open"):
        plan = table.timeline.read_plan(instant)
        source = table.storage.full_path(table.timeline.path(table.timeline.requested_name(instant)))
        groups = input_files(plan, source)
        tasks = _tasks(wanted, table, instant, plan, groups)
        report.warnings += _copying_that_sorts(plan.strategy_class, tasks[0].sort if tasks else ())
        expressions = _computations(wanted, table)
    inputs = [file for group in groups for file in group]
    report.groups = len(groups)
    report.files = InOut(len(inputs), None)
    with Attempt(table, instant, inputs, settings) as attempt, _running(wanted, tasks, report, engine) as runner:
        buckets = record_buckets(table)
        results = _run(runner, tasks, wanted, report)
        written = [file for result in results for file in _stats(result)]
        _account(report, results, written)
        report.resumed_groups = sum(result.taken_over for result in results) if attempt.taken_up else 0
        stats = [one.stat for one in written]
        moved = None
        if buckets is not None:
            with report.phase("read keys"):
                moved = moved_keys(runner, table, buckets, instant.ts, stats)
        with report.phase("compute expressions") if expressions else nullcontext():
            computed = computed_indexes(runner, table, expressions, instant.ts, stats, inputs)
        with report.phase("commit"):
            compaction = compaction_afterwards(runner, wanted, report)
            attempt.finish(written, _replaced(inputs), CLUSTER, moved, computed, compaction)
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
            return report.partly_done(f"the clustering is complete, but its markers are left: {error}")
    return report


def _tasks(
    wanted: ClusteringRequest,
    table: Table,
    instant: Instant,
    plan: ClusteringPlan,
    groups: Sequence[Sequence[BaseFile]],
) -> list[RewriteTask]:
    schema = current_schema(table)
    layout = layout_of(plan.strategy_params)
    if wanted.options.is_set(keys.LAYOUT_STRATEGY):
        layout = wanted.options[keys.LAYOUT_STRATEGY]
    sort = () if layout == keys.NO_LAYOUT else from_strategy_params(plan.strategy_params)
    check_order(sort, layout, table)
    files = file_settings(wanted.options, table.config)
    if plan.strategy_class == keys.SINGLE_FILE_EXECUTION:
        files = replace(files, file_bytes=sys.maxsize)
    return [
        RewriteTask(
            storage=table.storage,
            instant=instant.ts,
            partition=group[0].partition,
            inputs=tuple(file.path for file in sorted(group, key=lambda file: file.instant, reverse=True)),
            file_ids=tuple(new_file_id() for _ in range(max(1, planned.output_groups))),
            sort=sort,
            layout=layout,
            table_schema=schema,
            dropped_columns=dropped_columns(table.config),
            meta_fields=table.config.populate_meta_fields,
            settings=files,
        )
        for planned, group in zip(plan.groups, groups, strict=True)
        if group
    ]


def _running(
    wanted: ClusteringRequest, tasks: list[RewriteTask], report: Report, engine: Engine | None
) -> AbstractContextManager[Engine]:
    """Who runs the tasks, until the commit is made; a plan without any needs no Spark."""
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
        report.tables["memory"] = [
            {
                "limit_bytes": memory.limit,
                "peak_bytes": max(result.peak for result in results),
                "spilled_groups": sum(result.spilled > 0 for result in results),
                "spilled_bytes": sum(result.spilled for result in results),
            }
        ]
    return results


def _stats(result: RewriteResult) -> list[WrittenBaseFile]:
    return [
        WrittenBaseFile(
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


def _account(report: Report, results: Sequence[RewriteResult], written: Sequence[WrittenBaseFile]) -> None:
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


def _replaced(inputs: Sequence[BaseFile]) -> dict[str, list[str]]:
    replaced: dict[str, list[str]] = {}
    for file in inputs:
        replaced.setdefault(file.partition, []).append(file.file_id)
    return replaced
