"""The estimate of a plan that was not written: what executing it would read, write and take."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import zip_longest

from ..clustering.estimate import GroupEstimate, estimate_group
from ..clustering.plan import input_slices
from ..clustering.task import RewriteTask
from ..codecs.clustering_plan import ClusteringPlan
from ..errors import HudiServicesError
from ..options import keys
from ..rows.memory import TaskMemory
from ..snapshot import Snapshot
from .clustering_tasks import memory_row, rewrite_tasks
from .report import InOut, Report, Row
from .request import ClusteringRequest

_MOST_FILES = 2000
"""Whose footers are read; groups beyond these are estimated by their bytes."""
_AT_ONCE = 4


def add_estimate(wanted: ClusteringRequest, table: Snapshot, plan: ClusteringPlan, report: Report) -> None:
    """Add to what the report of a dry run tells of the plan and its groups: rows, new files, memory.

    What there is in the way of an estimate is a warning: the plan is there to be seen all the same.
    """
    with report.phase("bill"):
        try:
            _add_estimate(wanted, table, plan, report)
        except HudiServicesError as error:
            report.warnings.append(f"no estimate, and this plan could not be executed: {error.message}")
        # The operator's own layout may raise anything.
        except Exception as error:
            report.warnings.append(f"no estimate: {type(error).__name__}: {error}")


def _add_estimate(wanted: ClusteringRequest, table: Snapshot, plan: ClusteringPlan, report: Report) -> None:
    memory = TaskMemory(wanted.options[keys.MEMORY_PER_TASK] or _assumed_memory(wanted))
    tasks = rewrite_tasks(wanted, table, "", plan, input_slices(plan, "the plan"))
    tasks = [replace(task, memory=memory) for task in tasks]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        estimates = list(pool.map(estimate_group, _first(tasks)))
    _tell(estimates, memory, report)
    if len(estimates) < len(tasks):
        report.warnings.append(
            f"the estimate has read the footers of {len(estimates)} groups; for all {len(tasks)} it goes by their bytes"
        )


def _first(tasks: Sequence[RewriteTask]) -> list[RewriteTask]:
    """So many of the tasks that not too many footers must be read; at least one."""
    found: list[RewriteTask] = []
    files = 0
    for task in tasks:
        files += len(task.slices)
        if found and files > _MOST_FILES:
            break
        found.append(task)
    return found


def _tell(estimates: Sequence[GroupEstimate], memory: TaskMemory, report: Report) -> None:
    groups: list[Row] = []
    for group, estimate in zip_longest(report.tables["clustering_groups"], estimates):
        groups.append(group if estimate is None else {**group, **_of_group(estimate)})
    report.tables["clustering_groups"] = groups
    # Groups beyond those that were looked at count by their bytes.
    share = _sum(groups, "bytes") / max(1, _sum(groups[: len(estimates)], "bytes"))
    rows = round(sum(estimate.rows for estimate in estimates) * share)
    report.rows = InOut(rows, rows)
    report.bytes = InOut(report.bytes.before, round(sum(sum(estimate.new_files) for estimate in estimates) * share))
    report.files = InOut(report.files.before, _sum(groups, "new_files"))
    spilled = round(sum(estimate.spilled for estimate in estimates) * share)
    report.tables["memory"] = [memory_row(memory, max(estimate.memory for estimate in estimates), spilled, None)]


def _of_group(estimate: GroupEstimate) -> Row:
    return {
        "rows": estimate.rows,
        "new_files": len(estimate.new_files),
        "new_bytes": sum(estimate.new_files),
        "new_file_bytes": max(estimate.new_files, default=0),
        "memory_bytes": estimate.memory,
        "decoded": estimate.decoded,
    }


def _sum(groups: Sequence[Row], name: str) -> int:
    return sum(int(group[name] or 0) for group in groups)


def _assumed_memory(wanted: ClusteringRequest) -> int:
    """What `execute` with the same flags would leave for a task; on this machine where they name no master."""
    # Of the room of Spark, but it loads none.
    from ..spark.memory import task_memory

    memory = wanted.spark_memory or "1g"
    settings = {
        "spark.master": wanted.spark_master or "local[*]",
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
    }
    return task_memory(lambda name, default: settings.get(name, default))
