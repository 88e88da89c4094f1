"""`hudi-services schedule`."""

from ..jobs.request import Mode
from .clustering import run_clustering
from .flags import ScheduleFlags, command


@command(ScheduleFlags)
def schedule(flags: ScheduleFlags) -> int:
    """Write a clustering plan.

    Picks the small files of each partition and packs them into groups. Rewrites no data and starts no Spark. With
    --dry-run: writes nothing, and says of every file slice why it would be picked or not.
    """
    return run_clustering(flags, Mode.SCHEDULE, dry_run=flags.dry_run)
