"""`hudi-services undo`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .flags import command
from .rolling_back import Job, RollingBackFlags, run_rollback


@dataclass(frozen=True, kw_only=True)
class UndoFlags(RollingBackFlags):
    """`undo`."""

    helps: ClassVar[Mapping[str, str]] = {
        "instant": "The completed clustering to undo, named by its instant on the timeline.",
        "dry_run": "Change nothing. List the new files that would be deleted, and the old ones that readers would see "
        "again.",
        "apply": "Undo the clustering. The command does so without this flag, too.",
    }


@command(UndoFlags)
def undo(flags: UndoFlags) -> int:
    """Undo a completed clustering.

    Readers see the old files again. This works as long as the old files exist and no writer has changed the new files.
    Rows that were written to other files since then stay.
    """

    def load() -> Job:
        from ..jobs import undo

        return undo.undo

    return run_rollback(flags, "undo", load)
