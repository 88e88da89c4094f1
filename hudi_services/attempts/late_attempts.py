"""Attempts that publish their plan late and have ended without a commit: what they left is taken back.

staged       .hoodie/.hudi_services/staged-<ts>/**            the staging folder
reserved     a pending clustering without groups
both         a note of where the plan is shown: see `shown_plans`
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from ..commit.checkpoints import delete_checkpoints
from ..commit.lease import LEASE_FOLDER, read_lease
from ..commit.liveness import (
    age_millis,
    clustering_lease_name,
    is_clustering,
    is_reserved,
    lease_name,
    liveness,
)
from ..commit.markers import delete_markers
from ..commit.new_files import staging_folder
from ..commit.settings import TransactionSettings
from ..commit.shown_plans import shown_at, staged_attempts
from ..commit.times import Times
from ..commit.transaction import Transaction
from ..concurrency import at_once
from ..errors import LockBusy
from ..file_names import OWN_FOLDER
from ..paths import bare_name
from ..rollback.execution import drop_attempt, roll_back
from ..snapshot import Snapshot, refresh
from ..storage import Storage
from ..timeline.instant import Action, Instant, State

_LEASE = re.compile(r"clustering-([0-9]{17})\.[0-9]+\.json")
_CHECKPOINTS = re.compile(r"clustering-([0-9]{17})")


def take_back(transaction: Transaction, ts: str, action: Action, settings: TransactionSettings) -> bool:
    """Take back the clustering `ts` of a late attempt; False when it is completed.

    Beside writers, as long as the attempt has not reached the metadata table. Raises the errors of a critical section.
    """
    with transaction.section(f"take back {ts}", repairs=ts, beside_writers=True) as current:
        found = current.timeline.find(ts, action)
        if found is None or found.is_completed:
            return found is None
        if found.state is State.REQUESTED or is_reserved(current, found):
            drop_attempt(current, found)
            return True
    with transaction.section(f"take back {ts}", repairs=ts) as current:
        found = current.timeline.find(ts, action)
        if found is not None and not found.is_completed:
            roll_back(current, found, Times(current, settings.skew_millis), keep_plan=False)
    return found is None or not found.is_completed


def take_back_dead(table: Snapshot, settings: TransactionSettings) -> list[str]:
    """Take back the attempts of runs that were killed, and return their times.

    Raises LockBusy while another run is at work.
    """
    staged, begun = {*staged_attempts(table.storage)}, _leased(table.storage) | _checkpointed(table.storage)
    # Only now: the instant of an attempt that publishes its plan first is on the timeline before its lease.
    table = refresh(table)
    for ts in sorted(staged | {ts for ts in begun if not table.timeline.at(ts)}):
        take_back_staged(table, ts, settings)
    reserved = _reserved(table)
    for one in reserved:
        _take_back_reserved(table, one, settings)
    for ts in begun - staged:
        found = table.timeline.find(ts, table.timeline.layout.clustering_action)
        if found is not None and found.is_completed:
            _clear(table, found, settings)
    return sorted(staged | {one.ts for one in reserved})


@dataclass(frozen=True, slots=True)
class LateAttempt:
    """A late attempt that has begun and not ended; `holder` is its process, for people, "" when the process is dead.

    `is_reserved`: all that it has left is a pending clustering without groups.
    """

    ts: str
    holder: str
    is_reserved: bool


def late_attempts(table: Snapshot) -> list[LateAttempt]:
    """The late attempts, oldest first."""
    reserved = {one.ts for one in _reserved(table)}
    folders = {*staged_attempts(table.storage)}

    def attempt(ts: str) -> LateAttempt:
        lease = read_lease(table.storage, clustering_lease_name(ts))
        return LateAttempt(ts, lease.holder if lease else "", ts not in folders)

    return at_once(attempt, sorted(folders | reserved))


def delete_staged(storage: Storage, staged: str) -> None:
    """Delete what a staged attempt has left outside the timeline."""
    storage.delete_tree(staging_folder(staged))
    delete_checkpoints(storage, staged)


def _reserved(table: Snapshot) -> list[Instant]:
    pending = table.timeline.pending({Action.CLUSTERING, Action.REPLACE_COMMIT})
    return [one for one in pending if is_clustering(table, one) and is_reserved(table, one)]


def _checkpointed(storage: Storage) -> set[str]:
    folders = (_CHECKPOINTS.fullmatch(bare_name(path)) for path in storage.list_dir(OWN_FOLDER)[1])
    return {one[1] for one in folders if one}


def _leased(storage: Storage) -> set[str]:
    leases = (_LEASE.fullmatch(file.name) for file in storage.list_dir(LEASE_FOLDER)[0])
    return {one[1] for one in leases if one}


def _clear(table: Snapshot, completed: Instant, settings: TransactionSettings) -> None:
    """Delete what is left of an attempt that was killed after its commit; not while its process is at it."""
    with (
        suppress(LockBusy),
        Transaction(table, lease_name(completed), f"clear {completed.ts}", settings) as transaction,
    ):
        transaction.done()
        transaction.clean_up(completed.ts)


def take_back_staged(table: Snapshot, staged: str, settings: TransactionSettings) -> None:
    """Take back one attempt by its folder. Raises LockBusy while its process is at work."""
    action, storage = table.timeline.layout.clustering_action, table.storage
    with Transaction(table, clustering_lease_name(staged), f"take back {staged}", settings) as transaction:
        # Only now: before it died, its process may have shown the plan.
        table, ts = refresh(table), shown_at(storage, staged)
        found = table.timeline.find(ts, action) if ts else None
        if found is not None and not found.is_completed:
            _refuse_live(table, found, settings, transaction)
            take_back(transaction, found.ts, action, settings)
        elif found is not None:
            delete_markers(storage, found.ts)
        delete_staged(storage, staged)
        transaction.forget()


def _take_back_reserved(table: Snapshot, reserved: Instant, settings: TransactionSettings) -> None:
    with Transaction(table, lease_name(reserved), f"take back {reserved.ts}", settings) as transaction:
        # A run that has just reserved the instant takes the lease next.
        may_begin = transaction.lease.previous is None
        if may_begin and age_millis(table, reserved) < settings.heartbeat_expires_millis:
            raise _busy(table, reserved)
        _refuse_live(table, reserved, settings, transaction)
        take_back(transaction, reserved.ts, reserved.action, settings)
        transaction.forget()


def _refuse_live(table: Snapshot, pending: Instant, settings: TransactionSettings, transaction: Transaction) -> None:
    """Raise LockBusy when another process works at the instant; `transaction` holds the lease of the dead attempt.

    Signs of life that are no later than that lease come from the dead attempt.
    """
    execution = None if transaction.name == lease_name(pending) else read_lease(table.storage, lease_name(pending))
    is_executed = execution is not None and execution.held
    if is_executed or liveness(table, pending, settings, held=transaction.lease).alive:
        raise _busy(table, pending)


def _busy(table: Snapshot, instant: Instant) -> LockBusy:
    return LockBusy(
        f"{table.storage.root}: another run clusters the table, under the instant {instant.ts}",
        hint="wait for it; without a sign of life for two minutes it counts as dead",
    )
