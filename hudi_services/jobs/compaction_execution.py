"""Executes a compaction plan: the tasks, the commit, and their part of the report."""

import sys
from collections.abc import Sequence
from dataclasses import replace

from ..attempts.attempt import Attempt
from ..base_files.new_file import NewFile
from ..codecs.compaction_plan import COMPACT
from ..commit.drafts import CommitDraft
from ..commit.expectations import FilesStored, InputsStayCommitted
from ..commit.rolling_metadata import RollingMetadata
from ..commit.times import refuse_ahead
from ..compaction.inputs import SlicesComplete, compacted_slices
from ..concurrency import at_once
from ..derived_indexes.expression_index.index import ComputedIndex
from ..errors import NothingToDo
from ..metadata.record_index.log_writing import MovedKeys
from ..model import FileSlice, MergedLogs
from ..rewriting.rewrite import RewriteResult
from ..rows.settings import file_settings
from ..runs.report import InOut, Report
from ..runs.report_rows import CompactionGroupRow
from ..runs.request import CompactionRequest
from ..runs.rewrite_tasks import task_maker
from ..runs.rewriting import Rewrite, carry_out
from ..runs.run import Run
from ..runs.running import Running, started
from ..timeline.instant import Instant, State


def execute_plan(run: Run[CompactionRequest], instant: Instant) -> Report:
    """Execute the plan of the pending compaction `instant`, or say what that would do."""
    table, report = run.table, run.report
    report.instant = instant.ts
    refuse_ahead(table, instant.ts)
    seen = frozenset(write.ts for write in table.timeline.completed_writes())
    with report.phase("open"):
        plan = table.timeline.read_compaction_plan(instant)
        slices = compacted_slices(table, plan, instant)
    with started("compaction", slices, run) as running:
        with report.phase("open"):
            slices = at_once(table.slices.checked, slices)
        if len(slices) < len(plan.operations):
            report.warnings.append(
                f"{len(plan.operations) - len(slices)} of {len(plan.operations)} file groups were replaced since the "
                "plan was made, and are left out"
            )
        return _execute(run, instant, slices, seen, running)


def _execute(
    run: Run[CompactionRequest],
    instant: Instant,
    slices: Sequence[FileSlice],
    seen: frozenset[str],
    running: Running,
) -> Report:
    table, report, settings = run.table, run.report, run.settings
    report.groups = len(slices)
    report.files = InOut(sum(len(one.files) for one in slices), len(slices))
    report.bytes = InOut(sum(one.size for one in slices), None)
    unchanged = SlicesComplete(instant, slices, seen, settings)
    if run.request.dry_run:
        unchanged.check(table)
        return _dry_run(instant, slices, report)
    # A compaction writes one base file for each file group, whatever its size.
    files = replace(file_settings(run.options, table.config), file_bytes=sys.maxsize)
    make = task_maker(table, instant.ts, files)
    tasks = [replace(make([one], [one.file_id]), keeps_group=True) for one in slices]
    merged = frozenset(log.path for one in slices for log in one.log_files)
    by_group = {(one.partition, one.file_id): one for one in slices}
    rolling = run.options.of(RollingMetadata)

    def draft(written: Sequence[NewFile], moved: MovedKeys | None, computed: tuple[ComputedIndex, ...]) -> CommitDraft:
        expected = (
            unchanged,
            InputsStayCommitted(slices, settings),
            FilesStored(table.storage, [one.stat for one in written]),
        )
        return CommitDraft(instant, COMPACT, written, None, moved, computed, expected, merged, rolling=rolling)

    def described(result: RewriteResult, new: NewFile) -> NewFile:
        one = by_group[result.partition, new.file_id]
        return new.next_of(one, result.logs, MergedLogs.of(one, result.logs))

    # The keys stay in their file groups, and so does the record index.
    rewrite = Rewrite("compaction", tasks, {}, unchanged, described, draft, moves_keys=False)
    attempt = Attempt(table, instant, rewrite.operation, [unchanged], settings)
    return carry_out(rewrite, attempt, run, running)


def _dry_run(instant: Instant, slices: Sequence[FileSlice], report: Report) -> Report:
    """Report what executing the plan would do."""
    if not slices:
        raise NothingToDo(f"every file group of the compaction {instant.ts} was replaced since")
    report.dry_run = True
    report.show(
        CompactionGroupRow,
        (
            CompactionGroupRow(one.partition, one.file_id, one.base_bytes, len(one.log_files), one.log_bytes)
            for one in slices
        ),
    )
    if instant.state is State.INFLIGHT:
        report.warnings.append(
            "an earlier attempt at this plan is not finished: the next run continues it, or rolls it back"
        )
    return report.looked("dry run: the plan was not executed", instant.ts)
