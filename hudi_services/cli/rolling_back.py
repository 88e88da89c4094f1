"""The common part of `rollback` and `undo`: their flags, and the run that the flags ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import typer

from ..runs.report import Report
from ..runs.request import RepairRequest
from .flags import ServiceFlags
from .service import options, run_service

Job: TypeAlias = Callable[[RepairRequest], Report]
Instant: TypeAlias = Annotated[str, typer.Option("--instant", "-i", metavar="INSTANT")]


@dataclass(frozen=True, kw_only=True)
class RollingBackFlags(ServiceFlags):
    """Both commands act at once: they do one thing, to one instant, and the operator names it."""

    acts = True

    instant: Instant


def run_rollback(flags: RollingBackFlags, command: str, load: Callable[[], Job], *, completed: bool = False) -> int:
    """Do what `flags` say, print the report, and give the exit code. `load` returns the job when the flags are good."""

    def read() -> tuple[RepairRequest, Job]:
        wanted = RepairRequest(
            base_path=flags.base_path,
            table_name=flags.table_name,
            options=options(flags),
            instant=flags.instant,
            command=command,
            completed=completed,
            dry_run=not flags.changes,
        )
        return wanted, load()

    return run_service(flags, (command, command), read)
