"""The part of `hudi-services clean` that is about garbage: its flags, and from them to a run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import typer

from ..errors import ConfigError
from ..jobs.report import Report
from ..jobs.request import OrphanFilesMode, OrphanFilesRequest
from .flags import DryRun, ServiceFlags
from .service import options, run_service

_DEFAULT_MIN_AGE = 60

GarbageFlag: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--garbage",
        help="Look for files that belong to no instant, and what dead attempts left. Alone, it changes nothing.",
    ),
]
Apply: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="With --garbage: move what was found to a new quarantine.")
]
Restore: TypeAlias = Annotated[
    str | None,
    typer.Option("--restore", metavar="ID", help="With --garbage: put the files of this quarantine back."),
]
DeleteOlderThan: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--delete-older-than",
        min=0,
        max=36_500,
        metavar="DAYS",
        help="With --garbage: delete quarantines of this age, for good.",
    ),
]
MinAge: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--min-age",
        min=0,
        max=52_560_000,
        metavar="MINUTES",
        help="With --garbage: younger files are never garbage; 60 when not given.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class OrphanFilesFlags(ServiceFlags):
    """To be a base of the flags of `clean`, which calls `run_orphan_files` when `is_about_garbage`."""

    dry_run: DryRun = False
    garbage: GarbageFlag = False
    apply: Apply = False
    restore: Restore = None
    delete_older_than: DeleteOlderThan = None
    min_age: MinAge = None

    @property
    def is_about_garbage(self) -> bool:
        others = (self.restore, self.delete_older_than, self.min_age)
        return self.garbage or self.apply or any(one is not None for one in others)


def run_orphan_files(flags: OrphanFilesFlags, retries: int = 0) -> int:
    """Do what `flags` say, print the report, and give the exit code."""

    def read() -> tuple[OrphanFilesRequest, Callable[[OrphanFilesRequest], Report]]:
        # Only here, so that a wrong flag is told before Arrow is loaded.
        request = orphan_files_request(flags)
        from ..jobs.orphan_files import manage_orphan_files

        return request, manage_orphan_files

    return run_service(flags, ("garbage", _mode(flags).value), read, retries)


def orphan_files_request(flags: OrphanFilesFlags) -> OrphanFilesRequest:
    """Raises ConfigError for flags that do not go together, and for a value, a file or a key=value that is wrong."""
    given = {
        "--dry-run": flags.dry_run,
        "--apply": flags.apply,
        "--restore": flags.restore is not None,
        "--delete-older-than": flags.delete_older_than is not None,
    }
    chosen = [name for name, is_given in given.items() if is_given]
    if not flags.garbage:
        raise ConfigError(f"{chosen[0] if chosen else '--min-age'} needs --garbage", hint="give --garbage, too")
    if len(chosen) > 1:
        raise ConfigError(f"{chosen[0]} and {chosen[1]} exclude each other", hint="run one after the other")
    return OrphanFilesRequest(
        base_path=flags.base_path,
        options=options(flags),
        table_name=flags.table_name,
        mode=_mode(flags),
        quarantine=flags.restore,
        delete_older_than_days=flags.delete_older_than or 0,
        min_age_minutes=_DEFAULT_MIN_AGE if flags.min_age is None else flags.min_age,
    )


def _mode(flags: OrphanFilesFlags) -> OrphanFilesMode:
    if flags.restore is not None:
        return OrphanFilesMode.RESTORE
    if flags.delete_older_than is not None:
        return OrphanFilesMode.DELETE
    return OrphanFilesMode.QUARANTINE if flags.apply else OrphanFilesMode.FIND
