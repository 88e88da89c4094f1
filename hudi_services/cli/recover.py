"""`hudi-services recover`."""

from collections.abc import Callable

from ..jobs.report import Report
from ..jobs.request import RecoverRequest
from ..options import keys
from .flags import RecoverFlags, command
from .service import options, run_service


@command(RecoverFlags)
def recover(flags: RecoverFlags) -> int:
    """Say what is stuck on a table, and mend it.

    Shows every pending instant with the evidence and a decision: resume, roll back, drop the plan, or wait.
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
            apply=flags.apply,
        )
        return request, job.recover

    return run_service(flags, ("recover", "recover"), read)
