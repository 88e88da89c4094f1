"""The table services that run after a write, in its process, as the options of Hudi's writers ask for them.

    hoodie.clean.automatic              clean (on by default, as in Hudi)
    hoodie.archive.automatic            archival (on by default, as in Hudi)
    hoodie.compact.inline               merge-on-read: execute the pending plans, then plan and execute, when it is due
    hoodie.compact.schedule.inline      merge-on-read: plan, when it is due, unless a plan is pending
    hoodie.clustering.inline            execute the pending plans, then plan and execute; every 4 commits by default
    hoodie.clustering.async.enabled     plan, unless a plan is pending

A service that fails leaves the write as it is: complete.
Source: BaseHoodieWriteClient.postCommit, runTableServicesInline, HoodieClusteringConfig of Apache Hudi.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..commit.conflicts import WriterAtWork
from ..engine import Engine
from ..errors import HudiServicesError, LockBusy, NothingToDo
from ..options import Options, clustering_keys, writing_keys
from ..runs.report import Report, RunState, sentence
from ..runs.report_rows import ServiceRow
from ..runs.request import (
    ArchiveRequest,
    CleanRequest,
    ClusteringRequest,
    CompactionRequest,
    Mode,
    PlanRequest,
    WriteRequest,
)
from ..snapshot import Snapshot, refresh
from ..timeline.instant import Action
from . import archive, clean
from .services import job_of

_INLINE_COMMITS = "4"
"""hoodie.clustering.inline.max.commits and hoodie.clustering.async.max.commits of Hudi."""


@dataclass(slots=True)
class InlineServices:
    """What runs after a write; `options` are those of the request, over the table's. `table` is the table then."""

    request: WriteRequest
    options: Options
    table: Snapshot
    engine: Engine

    def run(self, report: Report) -> Report:
        """Run the services, after a write that is complete, and add what they did to its report."""
        if not self.options[writing_keys.TABLE_SERVICES]:
            return report
        if self.options[writing_keys.CLEAN_AUTOMATIC]:
            self._run("clean", self._clean, report)
        if self.options[writing_keys.ARCHIVE_AUTOMATIC]:
            self._run("archive", self._archive, report)
        if self.table.config.is_merge_on_read:
            self._compact(report)
        if self.options[writing_keys.CLUSTERING_INLINE]:
            for _ in self.table.timeline.pending_clusterings():
                self._run("clustering", lambda: self._cluster(Mode.EXECUTE), report)
            self._run("clustering", lambda: self._cluster(Mode.SCHEDULE_AND_EXECUTE), report)
        elif self.options[writing_keys.CLUSTERING_ASYNC] and not self.table.timeline.pending_clusterings():
            self._run("clustering", lambda: self._cluster(Mode.SCHEDULE), report)
        return report

    def _clean(self) -> Report:
        return clean.clean(CleanRequest(base_path=self.request.base_path, options=self.request.options), self.table)

    def _archive(self) -> Report:
        return archive.archive(
            ArchiveRequest(base_path=self.request.base_path, options=self.request.options), self.table
        )

    def _compact(self, report: Report) -> None:
        pending = self.table.timeline.pending({Action.COMPACTION})
        inline = self.options[writing_keys.COMPACT_INLINE]
        modes = [*([Mode.EXECUTE] * len(pending)), Mode.SCHEDULE_AND_EXECUTE] if inline else []
        if not inline and self.options[writing_keys.COMPACT_SCHEDULE_INLINE] and not pending:
            modes = [Mode.SCHEDULE]
        for mode in modes:
            self._run("compaction", partial(self._compaction, mode), report)

    def _compaction(self, mode: Mode) -> Report:
        return self._planned(
            CompactionRequest(base_path=self.request.base_path, options=self.request.options, mode=mode)
        )

    def _cluster(self, mode: Mode) -> Report:
        options = self.request.options
        if not any(map(self.options.is_set, (clustering_keys.INLINE_MAX_COMMITS, clustering_keys.ASYNC_MAX_COMMITS))):
            options = options.with_default(clustering_keys.INLINE_MAX_COMMITS, _INLINE_COMMITS)
        return self._planned(ClusteringRequest(base_path=self.request.base_path, options=options, mode=mode))

    def _planned(self, request: PlanRequest) -> Report:
        """Run a service with plans, in its mode."""
        engine = {} if request.mode is Mode.SCHEDULE else {"engine": self.engine}
        return job_of(request)(request, self.table, **engine)

    def _run(self, name: str, job: Callable[[], Report], report: Report) -> None:
        with report.phase(name):
            try:
                done = job()
            except NothingToDo:
                return
            except (LockBusy, WriterAtWork) as busy:
                # Nothing is wrong: beside other writers this happens again and again.
                report.warnings.append(f"no {name} followed, a later write does it: {sentence(busy)}")
                return
            except HudiServicesError as error:
                self.table = refresh(self.table)
                self._failed(name, sentence(error), error.hint, report)
                return
        report.warn(done.warnings)
        if done.state is RunState.IDLE:
            return
        self.table = refresh(self.table)
        row = ServiceRow(name, done.action, done.instant, done.state.value)
        report.show(ServiceRow, [*report.shown(ServiceRow), row])
        if done.exit_code:
            self._failed(name, done.reason or "it is partly done", done.hint, report)

    def _failed(self, name: str, why: str, hint: str, report: Report) -> None:
        operation = self.request.operation.value
        told = f"the {operation} {report.instant} is complete, but the {name} after it failed: {why}"
        if self.options[writing_keys.FAIL_WITH_SERVICES]:
            report.partly_done(told, hint)
        else:
            report.warnings.append(told)
