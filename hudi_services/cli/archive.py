"""`hudi-services archive`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..runs.report import Report
from ..runs.request import ArchiveRequest
from .flags import Retry, ServiceFlags, command
from .service import options, run_service


@dataclass(frozen=True, kw_only=True)
class ArchiveFlags(ServiceFlags):
    """`archive`."""

    acts = True
    helps: ClassVar[Mapping[str, str]] = {
        "dry_run": "Archive nothing. Say which instants would go, and what the others stay for.",
        "apply": "Archive the instants. The command does so without this flag, too.",
    }

    retry: Retry = 0


@command(ArchiveFlags)
def archive(flags: ArchiveFlags) -> int:
    """Move old instants from the timeline to the archive.

    Chooses them by Hudi's rules, and does the same for the metadata table. No data file is touched. Starts no Spark.
    """

    def read() -> tuple[ArchiveRequest, Callable[[ArchiveRequest], Report]]:
        from ..jobs import archive as job

        request = ArchiveRequest(
            base_path=flags.base_path,
            options=options(flags),
            table_name=flags.table_name,
            dry_run=not flags.changes,
        )
        return request, job.archive

    return run_service(flags, ("archive", "archive"), read, flags.retry)
