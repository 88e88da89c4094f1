"""`hudi-services rollback`."""

from .flags import RollbackFlags, command
from .rolling_back import Job, run_rollback


@command(RollbackFlags)
def rollback(flags: RollbackFlags) -> int:
    """Roll back a write that failed.

    Deletes the files that it left, and the instant itself, as Apache Hudi does. One that gives signs of life is left
    alone. With --completed, the newest completed commit can be taken back, too.
    """

    def load() -> Job:
        from ..jobs import rollback

        return rollback.rollback

    return run_rollback(flags, "rollback", load, completed=flags.completed)
