"""The rollback of writes whose writers died, at a clean, when the table's writers leave it to cleans (LAZY).

Source: HoodieFailedWritesCleaningPolicy, BaseHoodieTableServiceClient.rollbackFailedWrites of Apache Hudi.
"""

from ...snapshot import Snapshot, reopen
from ...timeline.instant import Instant
from ..conflicts import pending_writes
from ..critical_section import critical_section
from ..liveness import Liveness, is_stale_rollback, liveness, now_millis
from ..settings import TransactionSettings
from ..times import Times
from .execution import pending_rollback, roll_back


def roll_back_failed_writes(table: Snapshot, settings: TransactionSettings) -> list[str]:
    """Roll back every pending write that gives no sign of life; return the times of those writes.

    Clusterings stay, as with Hudi. Takes no lock when there is nothing to roll back.
    """
    dead = [write for write in pending_writes(table) if _is_dead(table, write, settings)]
    failed: list[str] = []
    if not dead:
        return failed
    with critical_section(table, "clean", settings, repairs=dead[0].ts) as current:
        for write in pending_writes(current):
            if _is_dead(current, write, settings):
                roll_back(current, write, Times(current, settings.skew_millis), keep_plan=False)
                failed.append(write.ts)
                current = reopen(current)
    return failed


def _is_dead(table: Snapshot, write: Instant, settings: TransactionSettings) -> bool:
    """Whether neither the writer of `write` nor a process that rolls it back is at work."""
    rollback = pending_rollback(table, write.ts)
    if rollback is not None:
        return is_stale_rollback(table, rollback, settings)
    signs = liveness(table, write, settings)
    return not signs.alive and not _has_just_expired(table, signs, settings)


def is_left_to_writers(table: Snapshot, write: Instant, settings: TransactionSettings) -> bool:
    """Whether the heartbeat of `write` has expired a short while ago.

    Hudi's writers then roll the write back. They look for it without the lock, and fail when it is gone by then.
    """
    signs = liveness(table, write, settings)
    return not signs.alive and _has_just_expired(table, signs, settings)


def _has_just_expired(table: Snapshot, signs: Liveness, settings: TransactionSettings) -> bool:
    if signs.heartbeat_millis is None or not settings.lock.is_shared:
        return False
    return now_millis(table) - signs.last_sign_millis < 2 * settings.heartbeat_expires_millis
