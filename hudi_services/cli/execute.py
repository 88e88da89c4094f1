"""`hudi-services execute`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..runs.request import Mode
from .clustering import ClusteringFlags, run_clustering
from .flags import command


@dataclass(frozen=True, kw_only=True)
class ExecuteFlags(ClusteringFlags):
    """All flags of HoodieClusteringJob."""

    helps: ClassVar[Mapping[str, str]] = {
        "instant_time": "The pending plan to execute. Default: the earliest. --mode scheduleAndExecute ignores it.",
        "parallelism": "Rewrite at most N groups at once (hoodie.clustering.max.parallelism). Default: as many as "
        "Spark has cores for.",
        "memory_per_task": "Memory for the data of one task, such as 512m (hudi.services.memory.per.task). Default: "
        "what Spark's settings leave for Python.",
        "retry": "Try again up to N times, when the store, the lock or Spark fails.",
        "dry_run": "Rewrite and commit nothing. Say which plan would be executed, whether its files are unchanged, and "
        "estimate rows, new files and memory.",
        "apply": "Execute the plan. The command does so without this flag, too.",
    }


@command(ExecuteFlags)
def execute(flags: ExecuteFlags) -> int:
    """Execute a clustering plan.

    Spark rewrites the files of the plan. Before the commit, the command compares the rows of the new files with those
    of the old ones. When a row was lost, doubled or changed, it commits nothing and ends with exit code 5.
    """
    return run_clustering(flags, Mode.EXECUTE)
