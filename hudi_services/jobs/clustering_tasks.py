"""Makes the tasks that rewrite the groups of a clustering plan."""

import sys
from collections.abc import Sequence
from dataclasses import replace

from ..clustering.plan import check_order, dropped_columns
from ..clustering.task import RewriteTask
from ..codecs.clustering_plan import ClusteringPlan
from ..errors import ConfigError
from ..files.names import new_file_id
from ..metadata.records.keys import COLUMN_STATS
from ..metadata.statistics.indexed_columns import may_be_indexed
from ..model import FileSlice
from ..options import keys
from ..options.option import is_code
from ..rows.memory import TaskMemory
from ..rows.sort_order import SortColumn, from_strategy_params, layout_of
from ..snapshot import Snapshot, current_schema
from .report import Row
from .request import ClusteringRequest
from .settings import file_settings


def rewrite_tasks(
    wanted: ClusteringRequest,
    table: Snapshot,
    instant: str,
    plan: ClusteringPlan,
    groups: Sequence[Sequence[FileSlice]],
) -> list[RewriteTask]:
    """A task for each of the `groups` of the plan that is not empty. Raises ConfigError for unusable sort columns."""
    schema = current_schema(table)
    layout = _layout(wanted, instant, plan)
    sort = () if layout == keys.NO_LAYOUT else from_strategy_params(plan.strategy_params)
    check_order(sort, layout, table)
    counted = _counted(table)
    files = file_settings(wanted.options, table.config)
    if plan.strategy_class == keys.SINGLE_FILE_EXECUTION:
        files = replace(files, file_bytes=sys.maxsize)
    return [
        RewriteTask(
            storage=table.storage,
            instant=instant,
            partition=group[0].partition,
            slices=tuple(sorted(group, key=lambda one: one.base_instant, reverse=True)),
            source=table.slices,
            file_ids=tuple(new_file_id() for _ in range(max(1, planned.output_groups))),
            sort=sort,
            layout=layout,
            table_schema=schema,
            dropped_columns=dropped_columns(table.config),
            meta_fields=table.config.populate_meta_fields,
            settings=files,
            counted=counted if any(one.log_files for one in group) else (),
            indexed=tuple(sorted(_indexed_columns(table))),
        )
        for planned, group in zip(plan.groups, groups, strict=True)
        if group
    ]


def _counted(table: Snapshot) -> tuple[str, ...]:
    """The completed writes on which the rows of file slices with log files depend, besides their files."""
    if table.log_naming.tells_writers:
        return ()
    return tuple(write.ts for write in table.timeline.completed_writes())


def _layout(wanted: ClusteringRequest, instant: str, plan: ClusteringPlan) -> str:
    """The layout that the options set, else the plan's.

    Raises ConfigError when only the plan names code: any writer of the table may have written the plan.
    """
    option = keys.LAYOUT_STRATEGY
    if wanted.options.is_set(option):
        return wanted.options[option]
    layout = layout_of(plan.strategy_params)
    if is_code(layout):
        raise ConfigError(
            f"the plan of {instant} names the layout {layout}, which is code, and code is loaded only when a flag, "
            "--hoodie-conf, --props or a conf file names it",
            hint=f"give --hoodie-conf {option.key}={layout}; if not: hudi-services rollback --instant {instant}",
        )
    return layout


def _indexed_columns(table: Snapshot) -> frozenset[str]:
    """Columns that the metadata table may have statistics of."""
    if table.metadata is None or COLUMN_STATS not in table.metadata.partitions:
        return frozenset()
    return may_be_indexed(table.metadata)


def memory_row(memory: TaskMemory, peak: int | None, spilled_groups: int, spilled_bytes: int | None) -> Row:
    """The row of the report about the memory of tasks, predicted or measured; `peak` in bytes."""
    return {
        "limit_bytes": memory.limit,
        "peak_bytes": peak,
        "spilled_groups": spilled_groups,
        "spilled_bytes": spilled_bytes,
    }


def copying_that_sorts(execution: str, sort: Sequence[SortColumn]) -> list[str]:
    """A warning when `execution` is a class that copies files, but rows are sorted: Hudi then sorts them, too."""
    if not sort or execution not in keys.COPY_EXECUTIONS:
        return []
    name = execution.rpartition(".")[2]
    return [f"{name} copies files only without sort columns: sort columns are set, so rows are sorted, as in Hudi"]
