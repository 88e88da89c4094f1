"""The rollback of writes whose writers died, at a clean, when the table's writers leave it to cleans (LAZY).

With hoodie.clustering.enable.expirations, clusterings that were given up go, too.
Source: HoodieFailedWritesCleaningPolicy, BaseHoodieTableServiceClient.rollbackFailedWrites of Apache Hudi.
"""

from ..commit.conflicts import pending_writes
from ..commit.critical_section import critical_section
from ..commit.liveness import (
    Liveness,
    is_clustering,
    is_stale_rollback,
    last_written_millis,
    liveness,
    now_millis,
)
from ..commit.settings import TransactionSettings
from ..commit.times import Times
from ..snapshot import Snapshot, refresh
from ..timeline.instant import Action, Instant, State
from .execution import pending_rollback, resume_rollback, roll_back, without_target


def roll_back_failed_writes(
    table: Snapshot, settings: TransactionSettings, *, expiry_minutes: int | None = None
) -> list[str]:
    """Roll back every pending write that gives no sign of life; return the times of those writes.

    Rollbacks that died when the files of their write were gone from the timeline are finished. Clusterings stay, unless
    `expiry_minutes` is their least age: then their plans go, too. Takes no lock when there is nothing to roll back.
    """
    failed: list[str] = []
    dead = [*_dead(table, settings, expiry_minutes), *_almost_done(table, settings)]
    if not dead:
        return failed
    with critical_section(table, "clean", settings, repairs=dead[0].ts) as current:
        while left := [write for write in _dead(current, settings, expiry_minutes) if write.ts not in failed]:
            roll_back(current, left[0], Times(current, settings.skew_millis), keep_plan=False)
            failed.append(left[0].ts)
            current = refresh(current)
        for rollback in _almost_done(current, settings):
            resume_rollback(current, rollback, Times(current, settings.skew_millis))
            failed.append(current.timeline.read_rollback_plan(rollback).ts)
            current = refresh(current)
    return failed


def _almost_done(table: Snapshot, settings: TransactionSettings) -> list[Instant]:
    """Rollbacks that no process works at, and whose target is gone, as by Hudi's writers.

    A rollback that is to delete committed files stays: `recover` drops it.
    """
    orphans = (rollback for ts, rollback in table.timeline.pending_rollbacks.items() if not table.timeline.at(ts))
    stale = (rollback for rollback in orphans if is_stale_rollback(table, rollback, settings))
    return [one for one in stale if not without_target(table, table.timeline.read_rollback_plan(one))]


def _dead(table: Snapshot, settings: TransactionSettings, expiry_minutes: int | None) -> list[Instant]:
    found = [write for write in pending_writes(table) if _is_dead(table, write, settings)]
    if expiry_minutes is not None:
        found += [one for one in _clusterings(table) if _has_expired(table, one, settings, expiry_minutes)]
    return found


def _clusterings(table: Snapshot) -> list[Instant]:
    pending = table.timeline.pending({Action.CLUSTERING, Action.REPLACE_COMMIT})
    return [one for one in pending if is_clustering(table, one)]


def _has_expired(table: Snapshot, clustering: Instant, settings: TransactionSettings, minutes: int) -> bool:
    """As isClusteringInstantEligibleForRollback; where a process of ours holds the lease, it is alive.

    The age is that of the requested file: the time zone of instants may not be known.
    """
    planned = last_written_millis(table, clustering, (State.REQUESTED,))
    if now_millis(table) - planned < 60_000 * minutes:
        return False
    rollback = pending_rollback(table, clustering.ts)
    if rollback is not None:
        return is_stale_rollback(table, rollback, settings)
    signs = liveness(table, clustering, settings)
    if signs.holder:
        return False
    beat = signs.heartbeat_millis
    return beat is None or now_millis(table) - beat >= settings.heartbeat_expires_millis


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
