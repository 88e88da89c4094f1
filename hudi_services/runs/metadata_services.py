"""Cleans and compacts the metadata table after a commit, when that is due, while the lock of the commit is still held.

An error in either does not change the commit: the report has it as a warning, and the next writer goes on.
"""

from collections.abc import Callable, Sequence

from ..attempts.afterwards import Afterwards
from ..cleaning.metadata_table import clean_metadata, metadata_retention
from ..clock import SystemClock
from ..engine import Engine
from ..metadata.file_groups.compaction import compact
from ..metadata.file_groups.merged_base import MergedBase, MergeTask, write_merged_base
from ..metadata.metadata_table import MetadataTable
from ..timeline.compaction_trigger import MetadataTrigger
from .report import sentence
from .report_rows import MetadataCleanRow, MetadataCompactionRow
from .request import Request
from .run import Run


def metadata_services(runner: Engine, run: Run[Request]) -> Afterwards:
    """The function that `Attempt.finish` calls with the metadata table and the times of the transaction."""

    report = run.report

    def merge(tasks: Sequence[MergeTask]) -> Sequence[MergedBase]:
        with report.phase("compact metadata table"):
            return runner.map(
                write_merged_base,
                tasks,
                "compact the metadata table",
                run.progress("compact metadata table"),
            )

    def clean(now: MetadataTable, times: Callable[[], str]) -> bool:
        done = clean_metadata(now, metadata_retention(run.options), times)
        if done is not None:
            report.show(MetadataCleanRow, [MetadataCleanRow(done.instant, done.files)])
        return done is not None

    def afterwards(metadata: MetadataTable, times: Callable[[], str]) -> bool:
        what, cleaned = "cleaned", False
        try:
            # The clean first, as in Hudi: of what the compaction merges, readers that have begun still need the files.
            cleaned = clean(metadata, times)
            what = "compacted"
            now = metadata.reload() if cleaned else metadata
            done = compact(now, run.options.of(MetadataTrigger), SystemClock().now(), times, merge)
        except Exception as error:
            # Any error: the commit is complete, and the report must say so.
            report.warnings.append(f"the metadata table was not {what}, a later run does it: {sentence(error)}")
            return True
        if done is not None:
            row = MetadataCompactionRow(done.instant, done.file_groups, done.log_files)
            report.show(MetadataCompactionRow, [row])
        return cleaned or done is not None

    return afterwards
