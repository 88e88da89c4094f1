"""The estimate for a dry run: the rows, new files and memory of executing a plan."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ..clustering.planned_slices import sized_slices
from ..codecs.clustering_plan import ClusteringPlan
from ..errors import HudiServicesError
from ..options import file_keys
from ..rewriting.group_writer import GroupEstimate
from ..rewriting.rewrite import estimate_group
from ..rewriting.task import RewriteTask
from ..rows.memory import TaskMemory
from ..runs.ahead import is_local
from ..runs.report import InOut, Report
from ..runs.report_rows import ClusteringGroupRow, EstimatedGroupRow, TaskMemoryRow
from ..runs.request import ClusteringRequest
from ..runs.run import Run
from ..units import counted
from .clustering_tasks import rewrite_tasks

_MOST_FILES = 2000
"""Files whose footers are read; groups beyond them are estimated by their bytes."""
_AT_ONCE = 4


def add_estimate(run: Run[ClusteringRequest], plan: ClusteringPlan) -> None:
    """Add rows, new files and memory of the plan and its groups to the report of a dry run.

    An error in the estimate becomes a warning: the report shows the plan all the same.
    """
    report = run.report
    with report.phase("estimate"):
        try:
            _add_estimate(run, plan)
        except HudiServicesError as error:
            report.warnings.append(f"no estimate, and this plan could not be executed: {error.message}")
        # The operator's own layout may raise anything.
        except Exception as error:
            report.warnings.append(f"no estimate: {type(error).__name__}: {error}")


def _add_estimate(run: Run[ClusteringRequest], plan: ClusteringPlan) -> None:
    memory = TaskMemory(run.options[file_keys.MEMORY_PER_TASK] or _assumed_memory(run.request))
    tasks = rewrite_tasks(run, "", plan, sized_slices(run.table, plan, "the plan"))
    tasks = [replace(task, memory=memory) for task in tasks]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(estimate_group, _first(tasks)))
    estimates = [one for one in found if one is not None]
    if len(estimates) < len(found):
        run.report.warnings.append(f"no estimate: the execution strategy {tasks[0].execution} gives none")
        return
    _tell(estimates, memory, run.report)
    if len(estimates) < len(tasks):
        run.report.warnings.append(
            f"the estimate has read the footers of {counted(len(estimates), 'group')}; for all {len(tasks)} it uses "
            "their bytes"
        )


def _first(tasks: Sequence[RewriteTask]) -> list[RewriteTask]:
    """The first tasks, which together have at most 2000 files; at least one task."""
    found: list[RewriteTask] = []
    files = 0
    for task in tasks:
        files += len(task.slices)
        if found and files > _MOST_FILES:
            break
        found.append(task)
    return found


def _tell(estimates: Sequence[GroupEstimate], memory: TaskMemory, report: Report) -> None:
    planned = report.shown(ClusteringGroupRow)
    estimated = [_estimated(group, estimate) for group, estimate in zip(planned, estimates, strict=False)]
    groups = [*estimated, *planned[len(estimates) :]]
    report.show(ClusteringGroupRow, groups)
    # Groups without an estimate count by their bytes.
    share = sum(group.bytes for group in groups) / max(1, sum(group.bytes for group in estimated))
    rows = round(sum(estimate.rows for estimate in estimates) * share)
    report.rows = InOut(rows, rows)
    report.bytes = InOut(report.bytes.before, round(sum(sum(estimate.new_files) for estimate in estimates) * share))
    report.files = InOut(report.files.before, sum(group.new_files for group in groups))
    spilled = round(sum(estimate.spilled for estimate in estimates) * share)
    peak = max(estimate.memory for estimate in estimates)
    report.show(TaskMemoryRow, [TaskMemoryRow(memory.limit, memory.process, peak, spilled, None)])


def _estimated(group: ClusteringGroupRow, estimate: GroupEstimate) -> EstimatedGroupRow:
    return EstimatedGroupRow(
        **{**vars(group), "new_files": len(estimate.new_files)},
        rows=estimate.rows,
        new_bytes=sum(estimate.new_files),
        new_file_bytes=max(estimate.new_files, default=0),
        memory_bytes=estimate.memory,
        decoded=estimate.decoded,
    )


def _assumed_memory(request: ClusteringRequest) -> int:
    """Bytes that `execute` with the same flags would leave for a task; on this machine when they name no master."""
    if is_local(request):
        from ..processes.process_engine import ProcessEngine

        return ProcessEngine(request.options[file_keys.MAX_PARALLELISM]).task_memory
    # From the package for Spark, but this module does not load Spark.
    from ..spark.memory import task_memory

    memory = request.spark_memory or "1g"
    settings = {
        "spark.master": request.spark_master or "local[*]",
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
    }
    return task_memory(lambda name, default: settings.get(name, default))
