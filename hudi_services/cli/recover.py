"""`hudi-services recover`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import typer

from ..options import keys
from ..runs.report import Report
from ..runs.request import RecoverRequest
from .flags import ServiceFlags, command
from .service import options, run_service

OneInstant: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--instant", metavar="INSTANT", help="Decide about this pending instant only. Default: about all of them."
    ),
]
AbandonedAfter: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--abandoned-after",
        min=0,
        max=52_560_000,
        metavar="MINUTES",
        help="Take an instant for abandoned after MINUTES without a sign of life, when its writer gives no heartbeat "
        "(hudi.services.abandoned.after.minutes). Default: 60.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RecoverFlags(ServiceFlags):
    """`recover`."""

    helps: ClassVar[Mapping[str, str]] = {"apply": "Carry out the decisions that the command shows."}

    instant: OneInstant = None
    abandoned_after: AbandonedAfter = None


@command(RecoverFlags)
def recover(flags: RecoverFlags) -> int:
    """Show what is stuck on a table, and repair it.

    Lists every pending instant with the evidence and a decision: resume, roll back, drop the plan, or wait. Changes
    nothing until you add --apply. Starts no Spark.
    """

    def read() -> tuple[RecoverRequest, Callable[[RecoverRequest], Report]]:
        from ..jobs import recover as job

        after = flags.abandoned_after
        own = {} if after is None else {keys.ABANDONED_AFTER_MINUTES.key: str(after)}
        request = RecoverRequest(
            base_path=flags.base_path,
            options=options(flags, ("--abandoned-after", own)),
            table_name=flags.table_name,
            instant=flags.instant,
            apply=flags.changes,
        )
        return request, job.recover

    return run_service(flags, ("recover", "recover"), read)
