"""`hudi-services undo`."""

from .flags import UndoFlags, command
from .take_back import Job, run_take_back


@command(UndoFlags)
def undo(flags: UndoFlags) -> int:
    """Take a completed clustering back.

    Readers see the old files again, as long as those exist and nobody wrote to the new ones. Rows that were written to
    other files since stay.
    """

    def load() -> Job:
        from ..jobs import undo

        return undo.undo

    return run_take_back(flags, "undo", load)
