"""`hudi-services rollback`."""

from collections.abc import Callable

from ..jobs.report import Report
from ..jobs.request import RepairRequest
from .flags import RollbackFlags, command
from .service import options, run_service


@command(RollbackFlags)
def rollback(flags: RollbackFlags) -> int:
    """Roll back a write that failed.

    Deletes the files that it left, and the instant itself, as Apache Hudi does. One that gives signs of life is left
    alone. With --completed, the newest completed commit can be taken back, too.
    """

    def read() -> tuple[RepairRequest, Callable[[RepairRequest], Report]]:
        from ..jobs import rollback

        wanted = RepairRequest(
            base_path=flags.base_path,
            table_name=flags.table_name,
            options=options(flags),
            instant=flags.instant,
            command="rollback",
            completed=flags.completed,
            dry_run=flags.dry_run,
        )
        return wanted, rollback.rollback

    return run_service(flags, ("rollback", "rollback"), read)
