"""`hudi-services execute`."""

from ..jobs.request import Mode
from .clustering import run_clustering
from .flags import ClusteringFlags, command


@command(ClusteringFlags)
def execute(flags: ClusteringFlags) -> int:
    """Carry out a clustering plan.

    Rewrites the files of the plan with Spark, proves that no row was lost, doubled or changed, and commits.
    """
    return run_clustering(flags, Mode.EXECUTE)
