"""`hudi-services schedule`."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import typer

from ..runs.request import Mode
from .clustering import ClusteringFlags, run_clustering
from .compact import run_compaction
from .flags import command


class Service(str, enum.Enum):
    """The services that have plans."""

    CLUSTERING = "clustering"
    COMPACTION = "compaction"


ServiceName: TypeAlias = Annotated[
    Service,
    typer.Option("--service", help="What to plan: a clustering, or a compaction of a merge-on-read table."),
]


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
    service: ServiceName = Service.CLUSTERING
    hidden = (
        "parallelism",
        "spark_master",
        "spark_memory",
        "mode",
        "schedule_only",
        "retry_last_failed",
        "max_processing_time",
        "publish",
        "all_or_nothing",
    )


@command(ScheduleFlags)
def schedule(flags: ScheduleFlags) -> int:
    """Write a clustering plan, or a compaction plan.

    A clustering plan names the small files of each partition, packed into groups; `execute` executes it. With --service
    compaction, the plan names file groups with log files; `compact` executes it. The command rewrites no data and
    starts no Spark. Other flags of Hudi's HoodieClusteringJob are accepted.
    """
    if flags.service is Service.COMPACTION:
        return run_compaction(flags, Mode.SCHEDULE)
    return run_clustering(flags, Mode.SCHEDULE)
