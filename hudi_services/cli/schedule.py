"""`hudi-services schedule`."""

from ..jobs.request import Mode
from .clustering import run_clustering
from .flags import ClusteringFlags, command


@command(ClusteringFlags)
def schedule(flags: ClusteringFlags) -> int:
    """Write a clustering plan.

    Picks the small files of each partition and packs them into groups. Rewrites no data and starts no Spark.
    """
    return run_clustering(flags, Mode.SCHEDULE)
