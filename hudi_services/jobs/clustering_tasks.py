"""Makes the tasks that rewrite the groups of a clustering plan."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..bucket_index.bucket_split import BucketSplit, children_of
from ..bucket_index.ring import Ring
from ..bucket_index.ring_hashes import KeyHashes
from ..bucket_index.signs import has_buckets
from ..clustering.bucket_plan import rings_of
from ..clustering.plan import check_order
from ..clustering.planned_slices import own_execution
from ..codecs.clustering_plan import ClusteringGroup, ClusteringPlan
from ..errors import ConfigError
from ..file_names import new_file_id
from ..model import FileSlice
from ..options import Options, writing_keys
from ..options import clustering_keys as keys
from ..options.option import Option
from ..options.value_types import is_code
from ..rewriting.execution_strategies import EXECUTIONS, execution_called
from ..rewriting.task import RewriteTask
from ..rows.settings import file_settings
from ..rows.sort_order import SortColumn, from_strategy_params, layout_of
from ..runs.request import ClusteringRequest
from ..runs.rewrite_tasks import task_maker
from ..runs.run import Run
from ..table.support import are_buckets


def rewrite_tasks(
    run: Run[ClusteringRequest], instant: str, plan: ClusteringPlan, groups: Sequence[Sequence[FileSlice]]
) -> list[RewriteTask]:
    """A task for each of the `groups` of the plan that is not empty.

    Raises ConfigError for unusable sort columns, ConflictError for a plan with buckets that the table does not have.
    """
    table, options = run.table, run.options
    layout = _layout(options, instant, plan)
    sort = () if layout == keys.NO_LAYOUT else from_strategy_params(plan.strategy_params)
    check_order(sort, layout, table)
    files = file_settings(options, table.config)
    execution, parameters = _execution(options, instant, plan)
    if EXECUTIONS.get(plan.strategy_class, EXECUTIONS[keys.SORT_AND_SIZE_EXECUTION]).single_files:
        files = replace(files, file_bytes=sys.maxsize)
    make = task_maker(table, instant, files)
    common: dict[str, Any] = {
        "sort": sort,
        "layout": layout,
        # An estimate is made before the plan has an instant.
        "until": instant or None,
        "execution": execution,
        "parameters": parameters,
    }
    tasks = []
    rings = rings_of(table, plan, instant) if has_buckets(plan) else {}
    for planned, group in zip(plan.groups, groups, strict=True):
        if group and rings:
            split = _split(run, rings[group[0].partition], group, planned, instant)
            whole = replace(files, file_bytes=sys.maxsize)
            tasks.append(replace(make(group, split.new), settings=whole, split=split, **common))
        elif are_buckets(group):
            whole = replace(files, file_bytes=sys.maxsize)
            bucket = make(group, [group[0].file_id])
            tasks.append(replace(bucket, settings=whole, keeps_group=True, **common))
        elif group:
            ids = [new_file_id() for _ in range(max(1, planned.output_groups))]
            tasks.append(replace(make(group, ids), **common))
    return tasks


def _split(
    run: Run[ClusteringRequest],
    rings: tuple[Ring, Ring],
    group: Sequence[FileSlice],
    planned: ClusteringGroup,
    instant: str,
) -> BucketSplit:
    before, after = rings
    config, option = run.table.config, writing_keys.BUCKET_FIELDS
    if len(before.nodes) == 1 and len(config.record_key_fields) > 1 and not run.options.is_set(option):
        raise ConfigError(
            f"the partition {before.partition!r} of {run.table.storage.root} has one bucket, which does not tell which "
            "fields of the record key are hashed",
            hint=f"set {option.key} as the writers of the table do: to all fields, where they do not set it",
        )
    hashed = run.options[writing_keys.BUCKET_FIELDS]
    hashes = KeyHashes.of_table(run.table.config, hashed)
    new = tuple(one.file_id for one in children_of(planned.extra or {}, instant) if one.prefix is not None)
    return BucketSplit(hashes, before, after, frozenset(one.file_id for one in group), new)


def _layout(options: Options, instant: str, plan: ClusteringPlan) -> str:
    """The layout that the options set, else the plan's. Raises ConfigError when only the plan names code."""
    option = keys.LAYOUT_STRATEGY
    if options.is_set(option):
        return options[option]
    layout = layout_of(plan.strategy_params)
    if is_code(layout):
        raise _names_code(instant, "layout", layout, option)
    return layout


def _execution(options: Options, instant: str, plan: ClusteringPlan) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The execution strategy and its parameters: the operator's own, if the options name one, else the plan's.

    Raises ConfigError when only the plan names code, and for a class that cannot be loaded.
    """
    option = keys.EXECUTION_STRATEGY_CLASS
    own = execution_called(options[option]).own
    if own is not None:
        given = options.given_keys(own.prefix) if own.prefix else ()
        return options[option], tuple((key, options.given(key)[1]) for key in given)
    if own_execution(plan) and not options.is_set(option):
        raise _names_code(instant, "execution strategy", own_execution(plan), option)
    of_buckets = plan.strategy_class in keys.BUCKET_EXECUTIONS and not has_buckets(plan)
    is_known = plan.strategy_class in EXECUTIONS and not of_buckets
    return plan.strategy_class if is_known else keys.SORT_AND_SIZE_EXECUTION, ()


def _names_code(instant: str, what: str, name: str, option: Option[str]) -> ConfigError:
    """The refusal of a plan that names code: any writer of the table may have written the plan."""
    return ConfigError(
        f"the plan of {instant} names the {what} {name}, which is code, and code is loaded only when a flag, "
        "--hoodie-conf, --props or a conf file names it",
        hint=f"give --hoodie-conf {option.key}={name}; if not: hudi-services rollback --instant {instant}",
    )


def copying_that_sorts(execution: str, sort: Sequence[SortColumn]) -> list[str]:
    """A warning when `execution` is a class that copies files, but rows are sorted: Hudi then sorts them, too."""
    if not sort or execution not in EXECUTIONS or not EXECUTIONS[execution].copies:
        return []
    name = execution.rpartition(".")[2]
    return [f"{name} copies files only without sort columns: sort columns are set, so rows are sorted, as in Hudi"]
