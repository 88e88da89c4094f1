"""`hudi-services clean`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..runs.report import Report
from ..runs.request import CleanRequest
from .flags import Retry, ServiceFlags, command
from .service import options, run_service


@dataclass(frozen=True, kw_only=True)
class CleanFlags(ServiceFlags):
    """`clean`."""

    acts = True
    helps: ClassVar[Mapping[str, str]] = {
        "dry_run": "Delete nothing. Say which files would be deleted, which stay, and by which rule.",
        "apply": "Delete the files. The command does so without this flag, too.",
    }

    retry: Retry = 0


@command(CleanFlags)
def clean(flags: CleanFlags) -> int:
    """Delete old files that no reader needs any more.

    Finishes cleans that were begun, plans a new one by Hudi's rules, and deletes the files. Starts no Spark. Files that
    belong to no instant are found by the command orphan-files.
    """

    def read() -> tuple[CleanRequest, Callable[[CleanRequest], Report]]:
        from ..jobs import clean as job

        request = CleanRequest(
            base_path=flags.base_path,
            options=options(flags),
            table_name=flags.table_name,
            dry_run=not flags.changes,
        )
        return request, job.clean

    return run_service(flags, ("clean", "clean"), read, flags.retry)
