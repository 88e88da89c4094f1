"""`hudi-services orphan-files`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import typer

from ..errors import ConfigError
from ..runs.report import Report
from ..runs.request import OrphanFilesMode, OrphanFilesRequest
from .flags import Retry, ServiceFlags, command
from .service import options, run_service

_DEFAULT_MIN_AGE = 60

Restore: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--restore", metavar="ID", help="Put the files of this quarantine back where they were; needs --apply to do it."
    ),
]
DeleteOlderThan: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--delete-older-than",
        min=0,
        max=36_500,
        metavar="DAYS",
        help="Delete quarantines that are at least DAYS old, for good; needs --apply to do it.",
    ),
]
MinAge: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--min-age",
        min=0,
        max=52_560_000,
        metavar="MINUTES",
        help="Leave files alone that are younger than this. Default: 60.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class OrphanFilesFlags(ServiceFlags):
    """`orphan-files`."""

    helps: ClassVar[Mapping[str, str]] = {
        "dry_run": "Move and delete nothing, and say what would be done. The command does so without this flag, too.",
        "apply": "Move the orphan files to a new quarantine, from which they can be put back. With --restore or "
        "--delete-older-than: do that.",
    }

    restore: Restore = None
    delete_older_than: DeleteOlderThan = None
    min_age: MinAge = None
    retry: Retry = 0


@command(OrphanFilesFlags)
def orphan_files(flags: OrphanFilesFlags) -> int:
    """Find files that belong to no instant.

    Failed attempts leave such files. Without flags the command only lists them. With --apply it moves them to a
    quarantine inside the table's folder, from which --restore puts them back, and --delete-older-than deletes them.
    Starts no Spark.
    """

    def read() -> tuple[OrphanFilesRequest, Callable[[OrphanFilesRequest], Report]]:
        # First, so that a wrong flag is reported before Arrow is loaded.
        request = orphan_files_request(flags)
        from ..jobs.orphan_files import manage_orphan_files

        return request, manage_orphan_files

    return run_service(flags, ("orphan-files", _mode(flags, changes=flags.apply).value), read, flags.retry)


def orphan_files_request(flags: OrphanFilesFlags) -> OrphanFilesRequest:
    """The request of `flags`. Raises ConfigError for flags that exclude each other, and for a value, a file or a
    key=value that is wrong."""
    if flags.restore is not None and flags.delete_older_than is not None:
        raise ConfigError("--restore and --delete-older-than exclude each other", hint="run one after the other")
    return OrphanFilesRequest(
        base_path=flags.base_path,
        options=options(flags),
        table_name=flags.table_name,
        mode=_mode(flags, changes=flags.changes),
        dry_run=not flags.changes,
        quarantine=flags.restore,
        delete_older_than_days=flags.delete_older_than or 0,
        min_age_minutes=_DEFAULT_MIN_AGE if flags.min_age is None else flags.min_age,
    )


def _mode(flags: OrphanFilesFlags, *, changes: bool) -> OrphanFilesMode:
    if flags.restore is not None:
        return OrphanFilesMode.RESTORE
    if flags.delete_older_than is not None:
        return OrphanFilesMode.DELETE
    return OrphanFilesMode.QUARANTINE if changes else OrphanFilesMode.FIND
