"""`hudi-services clean`."""

from collections.abc import Callable

from ..jobs.report import Report
from ..jobs.request import CleanRequest
from .flags import CleanFlags, command
from .service import options, run_service


@command(CleanFlags)
def clean(flags: CleanFlags) -> int:
    """Delete files that no reader needs any more.

    Finishes cleans that were begun, plans a new one by Hudi's rules, and deletes. Starts no Spark.
    """

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
