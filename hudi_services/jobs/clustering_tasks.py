"""Makes the tasks that rewrite the groups of a clustering plan."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..clustering.plan import check_order
from ..codecs.clustering_plan import ClusteringPlan
from ..errors import ConfigError
from ..file_names import new_file_id
from ..model import FileSlice
from ..options import clustering_keys
from ..options.value_types import is_code
from ..rewriting.task import RewriteTask
from ..rows.settings import file_settings
from ..rows.sort_order import SortColumn, from_strategy_params, layout_of
from ..runs.request import ClusteringRequest
from ..runs.rewrite_tasks import task_maker
from ..snapshot import Snapshot
from ..table.support import are_buckets


def rewrite_tasks(
    wanted: ClusteringRequest,
    table: Snapshot,
    instant: str,
    plan: ClusteringPlan,
    groups: Sequence[Sequence[FileSlice]],
) -> list[RewriteTask]:
    """A task for each of the `groups` of the plan that is not empty. Raises ConfigError for unusable sort columns."""
    layout = _layout(wanted, instant, plan)
    sort = () if layout == clustering_keys.NO_LAYOUT else from_strategy_params(plan.strategy_params)
    check_order(sort, layout, table)
    files = file_settings(wanted.options, table.config)
    if plan.strategy_class == clustering_keys.SINGLE_FILE_EXECUTION:
        files = replace(files, file_bytes=sys.maxsize)
    make = task_maker(table, instant, files)
    # An estimate is made before the plan has an instant.
    common: dict[str, Any] = {"sort": sort, "layout": layout, "until": instant or None}
    tasks = []
    for planned, group in zip(plan.groups, groups, strict=True):
        if are_buckets(group):
            whole = replace(files, file_bytes=sys.maxsize)
            bucket = make(group, [group[0].file_id])
            tasks.append(replace(bucket, settings=whole, keeps_group=True, **common))
        elif group:
            ids = [new_file_id() for _ in range(max(1, planned.output_groups))]
            tasks.append(replace(make(group, ids), **common))
    return tasks


def _layout(wanted: ClusteringRequest, instant: str, plan: ClusteringPlan) -> str:
    """The layout that the options set, else the plan's.

    Raises ConfigError when only the plan names code: any writer of the table may have written the plan.
    """
    option = clustering_keys.LAYOUT_STRATEGY
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


def copying_that_sorts(execution: str, sort: Sequence[SortColumn]) -> list[str]:
    """A warning when `execution` is a class that copies files, but rows are sorted: Hudi then sorts them, too."""
    if not sort or execution not in clustering_keys.COPY_EXECUTIONS:
        return []
    name = execution.rpartition(".")[2]
    return [f"{name} copies files only without sort columns: sort columns are set, so rows are sorted, as in Hudi"]
