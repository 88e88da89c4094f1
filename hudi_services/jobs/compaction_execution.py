"""Executes a compaction plan: the tasks, the commit, and their part of the report."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..base_files.new_file import NewFile
from ..codecs.compaction_plan import COMPACT
from ..commit.commit_draft import CommitDraft
from ..commit.expectations import FilesStored, InputsStayCommitted
from ..commit.rolling_metadata import RollingMetadata
from ..compaction.inputs import SlicesComplete, compacted_slices
from ..concurrency import at_once
from ..derived_indexes.expression_index.index import ComputedIndex
from ..errors import HudiServicesError, NothingToDo
from ..metadata.record_index.log_writing import IndexDelta
from ..model import FileSlice, MergedLogs
from ..rewriting.rewrite import RewriteResult
from ..rows.settings import file_settings
from ..runs.report import InOut
from ..runs.report_rows import CompactionGroupRow
from ..runs.request import CompactionRequest
from ..runs.rewrite_tasks import task_maker
from ..runs.rewriting import Rewrite
from ..runs.run import Run
from ..timeline.instant import Instant
from .plan_execution import PlanExecution


class CompactionExecution(PlanExecution[CompactionRequest]):
    """The execution of one plan of compaction."""

    name = "compaction"

    def __init__(self, run: Run[CompactionRequest], instant: Instant) -> None:
        super().__init__(run, instant)
        plan = run.table.timeline.read_compaction_plan(instant)
        self._planned = len(plan.operations)
        self._work: Sequence[FileSlice] = compacted_slices(run.table, plan, instant)

    @property
    def slices(self) -> Sequence[FileSlice]:
        return self._work

    @property
    def unchanged(self) -> SlicesComplete:
        return SlicesComplete(self.instant, self._work, self.run.seen, self.run.settings)

    def open(self) -> None:
        report, slices = self.run.report, at_once(self.run.table.slices.checked, self._work)
        self._work = slices
        if len(slices) < self._planned:
            report.warnings.append(
                f"{self._planned - len(slices)} of {self._planned} file groups were replaced since the plan was made, "
                "and are left out"
            )
        report.groups = len(slices)
        report.files = InOut(sum(len(one.files) for one in slices), len(slices))
        report.bytes = InOut(sum(one.size for one in slices), None)

    def look(self) -> None:
        self.unchanged.check(self.run.table)
        if not self._work:
            raise NothingToDo(f"every file group of the compaction {self.instant.ts} was replaced since")
        rows = [
            CompactionGroupRow(one.partition, one.file_id, one.base_bytes, len(one.log_files), one.log_bytes)
            for one in self._work
        ]
        self.run.report.show(CompactionGroupRow, rows)

    def rewrite(self) -> Rewrite:
        table, options, slices, instant = self.run.table, self.run.options, self._work, self.instant
        # A compaction writes one base file for each file group, whatever its size.
        files = replace(file_settings(options, table.config), file_bytes=sys.maxsize)
        make = task_maker(table, instant.ts, files)
        tasks = [replace(make([one], [one.file_id]), keeps_group=True) for one in slices]
        merged = frozenset(log.path for one in slices for log in one.log_files)
        by_group = {(one.partition, one.file_id): one for one in slices}
        unchanged, stay = self.unchanged, InputsStayCommitted(slices, self.run.settings)
        rolling, schema = options.of(RollingMetadata), table.versioned_schema(instant.ts)

        def draft(
            written: Sequence[NewFile], delta: IndexDelta | None, computed: tuple[ComputedIndex, ...]
        ) -> CommitDraft:
            expected = (unchanged, stay, FilesStored(table.storage, [one.stat for one in written]))
            facts = (written, None, delta, computed, expected, merged, schema)
            return CommitDraft(instant, COMPACT, *facts, rolling=rolling)

        def described(result: RewriteResult, new: NewFile) -> NewFile:
            one = by_group[result.partition, new.file_id]
            return new.next_of(one, result.logs, MergedLogs.of(one, result.logs))

        # The keys stay in their file groups, and so does the record index.
        return Rewrite(self.name, tasks, {}, unchanged, _needs_all, described, draft, moves_keys=False)


def _needs_all(why: Mapping[int, HudiServicesError]) -> None:
    """A file group of a compaction that is complete must have its base file: later log files belong to that."""
    raise next(iter(why.values()))
