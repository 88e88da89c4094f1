"""The tasks of a plan that rewrites file slices: what they share, whatever the service."""

from collections.abc import Callable, Sequence

from ..metadata.records.keys import COLUMN_STATS
from ..metadata.statistics.indexed_columns import may_be_indexed
from ..model import FileSlice
from ..options.clustering_keys import NO_LAYOUT
from ..rewriting.inputs import Unfit
from ..rewriting.task import RewriteTask
from ..rows.settings import FileSettings
from ..snapshot import Snapshot
from .report import Report, sentence


def task_maker(
    table: Snapshot, instant: str, settings: FileSettings
) -> Callable[[Sequence[FileSlice], Sequence[str]], RewriteTask]:
    """A function that makes the task for a group of file slices and the ids of its new files; it does not sort."""
    schema = table.schema_at(instant)
    counted, indexed = _counted(table), tuple(sorted(indexed_columns(table)))

    def task(slices: Sequence[FileSlice], file_ids: Sequence[str]) -> RewriteTask:
        return RewriteTask(
            storage=table.storage,
            instant=instant,
            partition=slices[0].partition,
            slices=tuple(sorted(slices, key=lambda one: one.base_instant, reverse=True)),
            source=table.slices,
            file_ids=tuple(file_ids),
            sort=(),
            layout=NO_LAYOUT,
            table_schema=schema,
            dropped_columns=table.config.dropped_columns,
            meta_fields=table.config.populate_meta_fields,
            settings=settings,
            counted=counted if any(one.log_files for one in slices) else (),
            indexed=indexed,
        )

    return task


_UNFIT = "cannot be rewritten, and are left out of the plan"


def warn_of_unfit(report: Report, unfit: Sequence[Unfit]) -> None:
    """A warning of the slices that a plan leaves out; it replaces that of an earlier plan of this run."""
    report.warnings = [warning for warning in report.warnings if _UNFIT not in warning]
    if unfit:
        first = sentence(unfit[0].error) + (f"; {unfit[0].error.hint}" if unfit[0].error.hint else "")
        report.warnings.append(f"{len(unfit)} file slices {_UNFIT}; the first: {first}")


def _counted(table: Snapshot) -> tuple[str, ...]:
    """The completed writes on which the rows of file slices with log files depend, besides their files."""
    if table.log_naming.tells_writers:
        return ()
    return tuple(write.ts for write in table.timeline.completed_writes())


def indexed_columns(table: Snapshot) -> frozenset[str]:
    """Columns that the metadata table may have statistics of."""
    if table.metadata is None or COLUMN_STATS not in table.metadata.partitions:
        return frozenset()
    return may_be_indexed(table.metadata)
