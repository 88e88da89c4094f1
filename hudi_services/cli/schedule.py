"""`hudi-services schedule`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..jobs.request import Mode
from .clustering import ClusteringFlags, run_clustering
from .flags import command


@dataclass(frozen=True, kw_only=True)
class ScheduleFlags(ClusteringFlags):
    """Accepts all flags of HoodieClusteringJob, and lists those that have a meaning when a plan is written."""

    helps: ClassVar[Mapping[str, str]] = {
        "instant_time": "Give the new plan this instant, as yyyyMMddHHmmssSSS. Default: the time of the clock now.",
        "memory_per_task": "With --dry-run: estimate for tasks with this much memory for data, such as 512m "
        "(hudi.services.memory.per.task).",
        "dry_run": "Write no plan. Say for each file slice why it would be in the plan or not, and estimate rows, new "
        "files and memory.",
        "apply": "Write the plan. The command does so without this flag, too.",
    }
    hidden = (
        "parallelism",
        "spark_master",
        "spark_memory",
        "mode",
        "schedule_only",
        "retry_last_failed",
        "max_processing_time",
    )


@command(ScheduleFlags)
def schedule(flags: ScheduleFlags) -> int:
    """Write a clustering plan.

    The plan names the small files of each partition, packed into groups. The command rewrites no data and starts no
    Spark; `execute` executes the plan. Other flags of Hudi's HoodieClusteringJob are accepted.
    """
    return run_clustering(flags, Mode.SCHEDULE)
