"""`hudi-services clean`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, TypeAlias

import typer

from ..errors import ConfigError
from ..runs.report import Report
from ..runs.request import CleanRequest
from .flags import command
from .orphan_files import OrphanFilesFlags, run_orphan_files
from .service import options, run_service

Garbage: TypeAlias = Annotated[
    bool,
    typer.Option("--garbage", help="Old spelling of the command orphan-files, which looks for files of no instant."),
]


@dataclass(frozen=True, kw_only=True)
class CleanFlags(OrphanFilesFlags):
    """`clean`, which accepts the flags of `orphan-files` with --garbage, as before that command existed."""

    acts = True
    helps: ClassVar[Mapping[str, str]] = {
        "dry_run": "Delete nothing. Say which files would be deleted, which stay, and by which rule.",
        "apply": "Delete the files. The command does so without this flag, too.",
        "restore": "With --garbage: put the files of this quarantine back, at once.",
        "delete_older_than": "With --garbage: delete quarantines that are at least DAYS old, at once.",
        "min_age": "With --garbage: leave files alone that are younger than this. Default: 60.",
    }
    hidden = ("garbage", "restore", "delete_older_than", "min_age")

    garbage: Garbage = False

    def orphan_files(self) -> OrphanFilesFlags:
        """The flags of `orphan-files` that mean the same. Raises ConfigError where --garbage is missing."""
        own = {"--restore": self.restore, "--delete-older-than": self.delete_older_than, "--min-age": self.min_age}
        given = [name for name, value in own.items() if value is not None]
        if not self.garbage:
            raise ConfigError(
                f"{given[0]} needs --garbage", hint="use the command orphan-files, or give --garbage, too"
            )
        values = {one.name: getattr(self, one.name) for one in fields(OrphanFilesFlags)}
        # These two acted at once, before the command existed.
        acts = self.restore is not None or self.delete_older_than is not None
        return OrphanFilesFlags(**values | {"apply": self.apply or (acts and not self.dry_run)})


@command(CleanFlags)
def clean(flags: CleanFlags) -> int:
    """Delete old files that no reader needs any more.

    Finishes cleans that were begun, plans a new one by Hudi's rules, and deletes the files. Starts no Spark. Files that
    belong to no instant are found by the command orphan-files.
    """
    if flags.garbage:
        return run_orphan_files(flags.orphan_files())

    def read() -> tuple[CleanRequest, Callable[[CleanRequest], Report]]:
        if any(one is not None for one in (flags.restore, flags.delete_older_than, flags.min_age)):
            flags.orphan_files()
        from ..jobs import clean as job

        request = CleanRequest(
            base_path=flags.base_path,
            options=options(flags),
            table_name=flags.table_name,
            dry_run=not flags.changes,
        )
        return request, job.clean

    return run_service(flags, ("clean", "clean"), read, flags.retry)
