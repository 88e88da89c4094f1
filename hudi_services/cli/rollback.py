"""`hudi-services rollback`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import typer

from .flags import command
from .rolling_back import Job, RollingBackFlags, run_rollback

Completed: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--completed",
        help="Also roll back an instant that is completed (the newest one only). The rows that it wrote are lost.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RollbackFlags(RollingBackFlags):
    """`rollback`."""

    helps: ClassVar[Mapping[str, str]] = {
        "instant": "The write to roll back, named by its instant on the timeline.",
        "dry_run": "Change nothing. List the files that would be deleted, and those that readers would see again.",
        "apply": "Roll back. The command does so without this flag, too.",
    }

    completed: Completed = False


@command(RollbackFlags)
def rollback(flags: RollbackFlags) -> int:
    """Roll back a write that failed.

    Deletes the files that the write left, and its instant, as Apache Hudi does. The command refuses while the writer
    gives signs of life. With --completed it also rolls back the newest completed commit.
    """

    def load() -> Job:
        from ..jobs import rollback

        return rollback.rollback

    return run_rollback(flags, "rollback", load, completed=flags.completed)
