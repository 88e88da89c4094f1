"""Rollbacks that were begun: of an instant that this process works at, and of completed commits.

Readers and writers still see a completed commit when its rollback begins. Whoever carries the rollback out goes on from
its plan: what the commit wrote is deleted, and what it superseded or replaced is read again. Until then the view of the
table is that of a commit that stays.
"""

from collections.abc import Collection
from contextlib import suppress

from ..errors import ConflictError, NeedsRecovery, NotFound
from ..snapshot import Snapshot
from ..table.view import FileGroupId
from ..timeline.instant import Action, Instant
from .conflicts import recover_hint
from .liveness import is_stale_rollback
from .settings import TransactionSettings


def rollbacks_of(table: Snapshot, ts: str, known: Collection[str]) -> list[str]:
    """The times of the rollbacks of `ts`, in any state, that are not in `known`."""
    timeline, found = table.timeline, []
    for one in timeline.instants:
        if one.action is not Action.ROLLBACK or one.ts in known:
            continue
        # An archiver deletes the plan of a rollback first. It does not archive a rollback of a pending instant.
        with suppress(NotFound):
            done = one.is_completed
            target = timeline.read_rollback(one).target_ts if done else timeline.read_rollback_plan(one).ts
            found += [one.ts] if target == ts else []
    return found


def begun_rollbacks(table: Snapshot) -> list[tuple[Instant, Instant]]:
    """The pending rollbacks whose target is completed, each with its target."""
    pending = table.timeline.pending_rollbacks
    return [(pending[target.ts], target) for target in table.timeline.completed_writes() if target.ts in pending]


def check_stays(table: Snapshot, groups: Collection[FileGroupId], settings: TransactionSettings) -> None:
    """Raise ConflictError when a commit that wrote or replaced one of `groups` is about to be rolled back.

    Raises NeedsRecovery when no process works at that rollback any more.
    """
    for rollback, target in begun_rollbacks(table):
        if not table.timeline.read_commit(target).touched_groups.isdisjoint(groups):
            raise not_yet_rolled_back(table, rollback, target, settings)


def not_yet_rolled_back(
    table: Snapshot, rollback: Instant, target: Instant, settings: TransactionSettings
) -> ConflictError | NeedsRecovery:
    """The error of an action that must wait until `rollback` has ended."""
    message = f"{table.storage.root}: {rollback.file_name} rolls back {target.ts}, which is still completed"
    if is_stale_rollback(table, rollback, settings):
        return NeedsRecovery(message, hint=recover_hint(table))
    return ConflictError(message, hint="wait until that rollback has ended")
