"""`hudi-services undo`."""

from .flags import UndoFlags, command
from .rolling_back import Job, run_rollback


@command(UndoFlags)
def undo(flags: UndoFlags) -> int:
    """Take a completed clustering back.

    Readers see the old files again, as long as those exist and nobody wrote to the new ones. Rows that were written to
    other files since stay.
    """

    def load() -> Job:
        from ..jobs import undo

        return undo.undo

    return run_rollback(flags, "undo", load)
