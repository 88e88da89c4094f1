"""Publishing the files of an index build at a moment when no write is pending, and no change is missing in them."""

import time
from contextlib import suppress
from typing import Protocol

from ..commit.begun_rollbacks import not_yet_rolled_back
from ..commit.conflicts import recover_hint
from ..commit.critical_section import critical_section
from ..commit.drafts import Draft
from ..commit.liveness import liveness
from ..commit.settings import TransactionSettings
from ..commit.times import Times
from ..commit.transaction import complete
from ..commit.unfinished import unfinished
from ..errors import ConflictError, NeedsRecovery
from ..indexing.publication import Behind
from ..runs.request import SparkRequest
from ..runs.run import Run
from ..snapshot import Snapshot, refresh
from ..timeline.instant import Instant
from ..waiting import Waiting

_POLL_SECONDS = 1.0


class FollowingBuild(Protocol):
    """A build that can follow the table."""

    def is_behind(self, table: Snapshot) -> bool: ...

    def catch_up(self, table: Snapshot) -> None: ...


def publish_when_quiet(build: FollowingBuild, draft: Draft, run: "Run[SparkRequest]", what: str) -> None:
    """Follow the table until, under its lock, the build lacks nothing and no write is pending; then publish `draft`.

    `what` says it for those who wait for the lock. Raises ConflictError or NeedsRecovery when a write stays pending for
    too long.
    """
    table, settings = run.table, run.settings
    deadline = time.monotonic() + settings.lock_wait.wait_millis / 1000
    with Waiting(table.on_wait) as waiting:
        while True:
            current = refresh(table)
            if build.is_behind(current):
                build.catch_up(current)
            with critical_section(current, what, settings) as locked:
                pending = unfinished(locked)
                if not pending and not build.is_behind(locked):
                    with suppress(Behind):
                        complete(locked, draft, Times(locked, settings.skew_millis).next)
                        return
            if not pending:
                continue
            first = pending[0]
            if time.monotonic() > deadline:
                raise _blocked(locked, first, settings)
            waiting.tell(f"the {first.action.value} {first.ts} to end ({first.file_name})")
            table.clock.sleep(_POLL_SECONDS)


def _blocked(table: Snapshot, pending: Instant, settings: TransactionSettings) -> ConflictError | NeedsRecovery:
    if pending.is_completed:
        return not_yet_rolled_back(table, table.timeline.pending_rollbacks[pending.ts], pending, settings)
    message = (
        f"{table.storage.root}: the {pending.action.value} {pending.ts} is not finished ({pending.file_name}), and may "
        "not know of the new index"
    )
    if liveness(table, pending, settings).alive:
        return ConflictError(message, hint="run again with --resume when it is finished; what was built is kept")
    return NeedsRecovery(
        f"{message}; this instant was abandoned: its writer gives no sign of life",
        hint=f"{recover_hint(table)}; then run again with --resume: what was built is kept",
    )
