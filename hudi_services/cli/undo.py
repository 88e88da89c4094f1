"""`hudi-services undo`."""

from collections.abc import Callable

from ..jobs.report import Report
from ..jobs.request import RepairRequest
from .flags import UndoFlags, command
from .service import options, run_service


@command(UndoFlags)
def undo(flags: UndoFlags) -> int:
    """Take a completed clustering back.

    Readers see the old files again, as long as those exist and nobody wrote to the new ones. Rows that were written to
    other files since stay.
    """

    def read() -> tuple[RepairRequest, Callable[[RepairRequest], Report]]:
        from ..jobs import undo

        wanted = RepairRequest(
            base_path=flags.base_path,
            table_name=flags.table_name,
            options=options(flags),
            instant=flags.instant,
            command="undo",
            dry_run=flags.dry_run,
        )
        return wanted, undo.undo

    return run_service(flags, ("undo", "undo"), read)
