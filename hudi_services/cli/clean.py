"""`hudi-services clean`."""

from collections.abc import Callable
from dataclasses import dataclass

from ..jobs.report import Report
from ..jobs.request import CleanRequest
from .flags import Retry, command
from .orphan_files import OrphanFilesFlags, run_orphan_files
from .service import options, run_service


@dataclass(frozen=True, kw_only=True)
class CleanFlags(OrphanFilesFlags):
    """`clean`."""

    retry: Retry = 0


@command(CleanFlags)
def clean(flags: CleanFlags) -> int:
    """Delete files that no reader needs any more.

    Finishes cleans that were begun, plans a new one by Hudi's rules, and deletes. Starts no Spark. With --garbage:
    looks for files that belong to nothing, and moves them to a quarantine, from which they can come back.
    """
    if flags.is_about_garbage:
        return run_orphan_files(flags, flags.retry)

    def read() -> tuple[CleanRequest, Callable[[CleanRequest], Report]]:
        from ..jobs import clean as job

        request = CleanRequest(
            base_path=flags.base_path,
            options=options(flags),
            table_name=flags.table_name,
            dry_run=flags.dry_run,
        )
        return request, job.clean

    return run_service(flags, ("clean", "clean"), read, flags.retry)
