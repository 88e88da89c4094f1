"""What `rollback` and `undo` have in common: from their flags to a run."""

from collections.abc import Callable
from typing import TypeAlias

from ..jobs.report import Report
from ..jobs.request import RepairRequest
from .flags import UndoFlags
from .service import options, run_service

Job: TypeAlias = Callable[[RepairRequest], Report]


def run_rollback(flags: UndoFlags, command: str, load: Callable[[], Job], *, completed: bool = False) -> int:
    """Do what `flags` say, print the report, and give the exit code. `load` gives the job, once the flags are good."""

    def read() -> tuple[RepairRequest, Job]:
        wanted = RepairRequest(
            base_path=flags.base_path,
            table_name=flags.table_name,
            options=options(flags),
            instant=flags.instant,
            command=command,
            completed=completed,
            dry_run=flags.dry_run,
        )
        return wanted, load()

    return run_service(flags, (command, command), read)
