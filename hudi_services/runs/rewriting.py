"""Carries out a plan that rewrites file slices: the tasks, the commit, and their part of the report."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace

from ..attempts.attempt import Attempt
from ..attempts.staged_attempt import NewerInstant, StagedAttempt
from ..base_files.new_file import NewFile
from ..commit.commit_draft import CommitDraft
from ..commit.conflicts import WriterAtWork, refuse_beside_beginners
from ..commit.expectations import Expectation
from ..commit.newest_files import read_ahead
from ..commit.planned_groups import GroupsDropped
from ..derived_indexes.expression_index.index import ComputedIndex
from ..engine import Engine
from ..errors import HudiServicesError, NotFound, TimeOver
from ..indexing.new_keys import (
    IndexBuilt,
    RecordIndexKnown,
    moved_keys,
    record_shards,
    written_ahead,
)
from ..metadata.record_index.log_writing import IndexDelta
from ..model import FileSlice
from ..options import file_keys
from ..rewriting.data_skipping import skipping
from ..rewriting.rewrite import RewriteResult
from ..rewriting.task import RewriteTask
from ..rows.conservation import Checksum
from ..rows.file_output import CHECK
from ..rows.memory import TaskMemory
from ..snapshot import refresh
from ..waiting import Waiting
from .group_tasks import rewrite_groups
from .metadata_services import metadata_services
from .report import CheckResult, InOut, NamedCheck, Report
from .report_rows import DroppedGroupRow, NewFilesRow, SkippingRow, TaskMemoryRow
from .request import SparkRequest
from .run import Run
from .running import Running

_MOST_PAUSE_SECONDS = 0.5
"""The moment between two writes of another writer may be short."""
_TIMES_AHEAD = 3
"""How often log files of the record index are written before the lock is taken; then they are written under it."""

Drafting = Callable[[Sequence[NewFile], IndexDelta | None, tuple[ComputedIndex, ...]], CommitDraft]
"""Makes the draft of the new files, with their keys for the record index and records for the expression indexes."""


def do_nothing() -> None:
    """What most plans need before and after their groups."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A pending plan that rewrites the slices of `tasks`, one task for each group.

    `operation` names it for people. `unchanged` is what it expects of its inputs from the beginning. `dropped` says of
    groups, by number, why they are left out; expectations add to it, and so does `leave_out`, which raises the errors
    of groups that the plan needs. `described` says what a new file is in the commit.
    `moves_keys` says that the rows get into other file groups.
    """

    operation: str
    tasks: Sequence[RewriteTask]
    dropped: Mapping[int, HudiServicesError]
    unchanged: Expectation
    leave_out: Callable[[Mapping[int, HudiServicesError]], None]
    described: Callable[[RewriteResult, NewFile], NewFile]
    draft: Drafting
    moves_keys: bool
    begin: Callable[[], None] = do_nothing
    """Called when the attempt has begun, before any group is written."""
    end: Callable[[], None] = do_nothing
    """Called when the commit is complete."""


def carry_out(
    rewrite: Rewrite,
    attempt: Attempt | StagedAttempt,
    run: Run[SparkRequest],
    engine: Running,
) -> Report:
    """Execute the plan in an attempt, commit it, and end the report; `engine` is closed before."""
    report = run.report
    read_ahead(run.table, [(one.partition, one.file_id) for task in rewrite.tasks for one in task.slices])
    with attempt, engine as runner:
        rewrite.begin()
        done = _rewritten(rewrite, attempt, run, runner)
        results = _finish(rewrite, attempt, done, run, runner)
        report.resumed_groups = sum(result.taken_over for result in results) if attempt.taken_up else 0
    report.completed(attempt.instant.ts)
    _account(report, results, [new for result in results for new in result.files])
    if rewrite.dropped:
        add_dropped_groups(report, {n: rewrite.tasks[n].slices for n in rewrite.dropped}, rewrite.dropped)
    if attempt.begun_meanwhile:
        report.warnings.append(
            f"writes began while the {rewrite.operation} was committed ({', '.join(attempt.begun_meanwhile)}), and no "
            "lock provider is set: they may not have seen the new files, and lose their changes (docs/concurrency.md)"
        )
    if attempt.rolled_back:
        report.warnings.append(f"an earlier attempt was rolled back ({', '.join(attempt.rolled_back)})")
    if report.resumed_groups:
        report.warnings.append(
            f"{report.resumed_groups} of {len(results)} groups were taken over from an earlier attempt"
        )
    with report.phase("clean up"):
        try:
            rewrite.end()
            attempt.clean_up()
        except HudiServicesError as error:
            return report.partly_done(
                f"the {rewrite.operation} is complete, but its markers could not be deleted: {error}"
            )
    if not rewrite.dropped:
        return report
    why, total = _why(rewrite.dropped.values()), len(rewrite.tasks)
    return report.partly_done(
        f"{len(rewrite.dropped)} of {total} groups were left out, because {why}",
        hint="no row was touched in these groups; the next plan takes them",
    )


def _time_over(run: Run[SparkRequest], groups: int, of: int) -> TimeOver:
    limit = run.options.given(file_keys.TIME_LIMIT.key)[1]
    return TimeOver(f"the time limit of {limit} was over before {groups} of {of} groups could begin")


def _why(errors: Iterable[HudiServicesError]) -> str:
    late = [isinstance(error, TimeOver) for error in errors]
    reasons = [] if all(late) else ["other writers changed them"]
    return " or ".join([*reasons, *(["the time limit was over"] if any(late) else [])])


def _rewritten(
    rewrite: Rewrite, attempt: Attempt | StagedAttempt, run: Run[SparkRequest], runner: Engine
) -> dict[int, RewriteResult]:
    """The results of the groups, by number. A group whose files a clean has deleted is dropped, if it may be."""
    resumes = attempt.taken_up or runner.repeats_tasks
    while True:
        begun = {number: task for number, task in enumerate(rewrite.tasks) if number not in rewrite.dropped}
        try:
            tasks = [replace(task, resumes=resumes) for task in begun.values()]
            found = _results(runner, tasks, run)
            numbers = list(begun)
            late = [number for at, number in enumerate(numbers) if at not in found]
            if late:
                rewrite.leave_out(dict.fromkeys(late, _time_over(run, len(late), len(numbers))))
            return {numbers[at]: result for at, result in found.items()}
        except NotFound:
            resumes = True
            rewrite.unchanged.check(refresh(attempt.table))
            # Finished groups are taken over by their checkpoints.
            if begun.keys().isdisjoint(rewrite.dropped):
                raise


def _finish(
    rewrite: Rewrite,
    attempt: Attempt | StagedAttempt,
    done: Mapping[int, RewriteResult],
    run: Run[SparkRequest],
    runner: Engine,
) -> list[RewriteResult]:
    """Commit the groups that are `done`, without those that are dropped meanwhile; the results of the others."""
    shards = record_shards(attempt.table) if rewrite.moves_keys else None
    while True:
        results = [result for number, result in done.items() if number not in rewrite.dropped]
        inputs = [one for number in done if number not in rewrite.dropped for one in rewrite.tasks[number].slices]
        written = [rewrite.described(result, new) for result in results for new in result.files]
        stats = [one.stat for one in written]
        moved = None
        if shards is not None:
            with run.report.phase("read keys"):
                moved = moved_keys(runner, run.table, shards, attempt.files, stats)
        with run.report.phase("compute expressions") if run.indexes else nullcontext():
            computed = run.indexes.records(runner, run.table, attempt.files, stats, inputs)
        draft = rewrite.draft(written, moved, computed)
        if rewrite.moves_keys:
            draft = replace(draft, expectations=(*draft.expectations, RecordIndexKnown(shards is not None)))
        draft.rehearse(attempt.table)
        # Nothing was published: the keys and records of fewer files are computed without the lock.
        try:
            _publish(attempt, draft, run, runner)
            return results
        except GroupsDropped:
            continue
        except IndexBuilt:
            shards = record_shards(refresh(attempt.table))


def _publish(attempt: Attempt | StagedAttempt, draft: CommitDraft, run: Run[SparkRequest], runner: Engine) -> None:
    """Commit the draft; with a late plan, in a moment when no other writer is at work, as long as locks are waited for.

    The lock is not held while this waits, and while log files of the record index are written ahead.
    """
    settings, report = run.settings, run.report
    deadline = time.monotonic() + settings.lock_wait.wait_millis / 1000
    ready, times_ahead = draft, 0
    with Waiting(run.request.on_wait) as waiting:
        while True:
            try:
                if attempt.is_late and settings.lock.is_shared:
                    # Before the lock is taken, because the other writer needs it.
                    refuse_beside_beginners(refresh(attempt.table), settings)
                if draft.index_delta is not None and ready is draft and times_ahead < _TIMES_AHEAD:
                    with report.phase("write the record index"):
                        now = refresh(attempt.table)
                        instant = attempt.expected_instant(now)
                        ready = replace(
                            draft, index_delta=written_ahead(runner, now, attempt.files, draft.index_delta, instant)
                        )
                    times_ahead += 1
                with report.phase("commit"):
                    return attempt.finish(ready, metadata_services(runner, run))
            except NewerInstant:
                ready = draft
            except WriterAtWork as error:
                if not attempt.is_late or time.monotonic() >= deadline:
                    raise
                waiting.tell(f"another writer: {error.message}")
                with report.phase("commit"):
                    time.sleep(min(settings.lock_wait.retry_wait_millis / 1000, _MOST_PAUSE_SECONDS))


def add_dropped_groups(
    report: Report, groups: Mapping[int, Sequence[FileSlice]], why: Mapping[int, HudiServicesError]
) -> None:
    """List the groups of a plan that are left out, by number."""
    report.show(
        DroppedGroupRow,
        (
            DroppedGroupRow(number, group[0].partition, len(group), why[number].message)
            for number, group in sorted(groups.items())
        ),
    )


def _results(engine: Engine, tasks: Sequence[RewriteTask], run: Run[SparkRequest]) -> dict[int, RewriteResult]:
    """The results by the number of the task; those that the time limit did not let begin are not there."""
    report, limit = run.report, run.options[file_keys.TIME_LIMIT]
    end = None if limit is None else report.began + limit
    memory = TaskMemory(run.options[file_keys.MEMORY_PER_TASK] or engine.task_memory)
    with report.phase("rewrite"):
        done = rewrite_groups(engine, [replace(task, memory=memory) for task in tasks], run.progress("rewrite"), end)
    if done.results:
        # Groups that were taken over have no peak.
        peak = max(result.peak for result in done.results.values()) or None
        spilled = [result.spilled for result in done.results.values() if result.spilled]
        report.show(TaskMemoryRow, [TaskMemoryRow(memory.limit, memory.process, peak, len(spilled), sum(spilled))])
        report.tasks = done.tasks
    return done.results


def _account(report: Report, results: Sequence[RewriteResult], written: Sequence[NewFile]) -> None:
    report.files = replace(report.files, after=len(written))
    report.bytes = InOut(sum(r.bytes_in for r in results), sum(one.size for one in written))
    report.rows = InOut(sum(r.rows_in for r in results), sum(one.rows for one in written))
    report.decoded = dict(Counter(r.decoded for r in results if r.decoded is not None))
    if written:
        report.show(NewFilesRow, [_evenness([one.size for one in written])])
    gains = skipping(result.bounds for result in results)
    if gains:
        report.show(SkippingRow, (SkippingRow(**asdict(gain)) for gain in gains))
    # Summed over tasks that run side by side, so these may exceed the wall clock of the rewrite.
    phases = sorted({phase for result in results for phase in result.seconds})
    spent = {phase: sum(result.seconds.get(phase, 0.0) for result in results) for phase in phases}
    report.seconds |= {f"tasks: {phase}": seconds for phase, seconds in spent.items()}
    before = sum((result.before for result in results), start=Checksum())
    after = sum((result.after for result in results), start=Checksum())
    cost = spent.get(CHECK, 0.0) / (sum(spent.values()) or 1.0)
    detail = f"{before} read from the old files, {after} read back from the new ones; {cost:.0%} of the tasks' time"
    report.checks.append(NamedCheck("row conservation", CheckResult.PASSED, detail))


def _evenness(sizes: Sequence[int]) -> NewFilesRow:
    ordered, mean = sorted(sizes), statistics.fmean(sizes)
    return NewFilesRow(
        files=len(sizes),
        p50_bytes=ordered[(len(sizes) - 1) // 2],
        p95_bytes=ordered[math.ceil(len(sizes) * 0.95) - 1],
        max_bytes=ordered[-1],
        variation=round(statistics.pstdev(sizes) / mean, 3),
    )
