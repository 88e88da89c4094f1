"""The critical section under the table's lock, and the publication of a plan in it."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..clock import uptime
from ..concurrency import at_once
from ..errors import ConflictError, LockBusy, PartlyDone, StorageError
from ..locking.protocol import LockWait, TableLock
from ..snapshot import Snapshot, refresh_beside, with_instant
from ..table.partitions import StorageLister
from ..table.support import check_timeline
from ..timeline.active import ANSWERS_HOLD_SECONDS
from ..timeline.instant import Action, State
from .conflicts import refuse_beside_index_builds, refuse_beside_writers
from .lease import MOST_TRIES, TABLE_LEASE, Lease, check_leases, stored_leases
from .settings import TransactionSettings
from .times import Times, refuse_ahead


@contextmanager
def critical_section(
    table: Snapshot,
    action: str,
    settings: TransactionSettings,
    *,
    plan: str | None = None,
    own: str = "",
    lease: Lease | None = None,
    repairs: str | None = None,
    completes: str = "",
    beside_writers: bool = False,
    commits: bool = True,
    left: list[str] | None = None,
    asks: Callable[[], None] | None = None,
) -> Iterator[Snapshot]:
    """Hold our lease of the table and Hudi's lock, and yield the table as it is now.

    `own` is the instant that the caller works at. `plan` is the instant of a plan that replaces file groups, see
    `conflicts.prospect`. `completes` names the change that is complete when the body ends. `beside_writers`: the action
    changes nothing that writers use, and is not refused while they are at work. An action that does not write to the
    metadata table (`commits`) takes a look at it just before for the present. `left` gets the paths of old files of the
    lease, for a caller that deletes more. `asks` is called under the lock, while the table is looked at.

    The table's `check_held` raises ConflictError when the lease of the table, the lock, or the caller's own `lease` was
    lost.

    Raises LockBusy; ConflictError for another writer or indexer at work that excludes this action; NeedsRecovery for
    a restore that has begun meanwhile, and for a write whose writer died, unless the action repairs a write
    (`repairs`); PartlyDone when the body completed the change `completes`, but the lock could not be released.
    """
    wait, done = replace(settings.lock_wait, on_wait=table.on_wait), False
    lock = settings.lock.lock(table.storage, wait)
    try:
        holds = 0.0 if commits else ANSWERS_HOLD_SECONDS
        with _locked(table, action, lock, wait, lease, left, holds, asks) as (hold, current):
            current = replace(current, check_held=hold.check, stored=StorageLister(current.storage))
            _refuse(current, settings, plan=plan, own=own, repairs=repairs, beside_writers=beside_writers)
            yield current
            done = True
    except StorageError as error:
        if not (done and completes):
            raise
        raise PartlyDone(
            f"{completes} is complete, but the table's lock could not be given back: {error}",
            hint="delete the lock file when no other writer holds it",
        ) from error


def look(table: Snapshot, settings: TransactionSettings, lease: Lease, *, own: str) -> Snapshot:
    """The table as it is now, without a lock, for a caller whose `lease` is confirmed by this.

    A look at the metadata table just before is taken for the present. Raises what `critical_section` raises.
    """

    def confirm() -> None:
        lease.check_beside(stored_leases(lease.storage))

    current, _ = refresh_beside(table, confirm, holds=ANSWERS_HOLD_SECONDS)
    _refuse(current, settings, own=own)
    return current


def _refuse(
    current: Snapshot,
    settings: TransactionSettings,
    *,
    plan: str | None = None,
    own: str,
    repairs: str | None = None,
    beside_writers: bool = False,
) -> None:
    check_timeline(current.timeline, current.storage)
    if not beside_writers:
        refuse_beside_writers(current, settings, plan=plan, own=own, repairs=repairs)
    if repairs is None:
        refuse_beside_index_builds(current)


@contextmanager
def _locked(
    table: Snapshot,
    action: str,
    lock: TableLock,
    wait: LockWait,
    lease: Lease | None,
    left: list[str] | None,
    holds: float,
    asks: Callable[[], None] | None,
) -> Iterator[tuple["_Hold", Snapshot]]:
    """Our lease of the table and Hudi's lock, and the table as it is then.

    The lease is confirmed while the table is read; where it was not ours, both count for nothing.
    """
    for _ in range(MOST_TRIES):
        seconds = wait.wait_millis / 1000
        own = Lease(table.storage, TABLE_LEASE, action, seconds, wait.on_wait, confirmed=False, left=left)
        with own, lock:
            hold = _Hold(lock, own, lease)
            current, is_ours = refresh_beside(table, partial(hold.begin, asks), holds=holds)
            if is_ours:
                yield hold, current
                return
    raise LockBusy(f"{table.storage.root}: other runs take the lease of the table again and again", hint="try again")


class _Hold:
    """What is held in a critical section: Hudi's lock, our lease of the table, and perhaps another lease."""

    def __init__(self, lock: TableLock, own: Lease, lease: Lease | None) -> None:
        self._lock = lock
        self._own = own
        self._leases = [own] if lease is None else [own, lease]
        self._lost: ConflictError | None = None
        self._seen = -math.inf
        """When the look of the beginning was asked for, by `uptime`; it stands for the first check after it."""

    def begin(self, asks: Callable[[], None] | None) -> bool:
        """Confirm the lease of the table; whether it is ours. `check` tells when another one was lost.

        `asks` is called at the same time.
        """
        asked = uptime()
        looks: list[Callable[[], Any]] = [partial(stored_leases, self._own.storage), *([] if asks is None else [asks])]
        stored, *_ = at_once(lambda look: look(), looks)
        if not self._own.confirm(stored):
            return False
        try:
            self._lock.check()
            for lease in self._leases[1:]:
                lease.check_beside(stored)
        except ConflictError as lost:
            self._lost = lost
        self._seen = asked
        return True

    def check(self) -> None:
        """Raise ConflictError when one of them was lost."""
        if self._lost is not None:
            raise self._lost
        seen, self._seen = self._seen, -math.inf
        if uptime() - seen > ANSWERS_HOLD_SECONDS:
            at_once(lambda check: check(), (lambda: check_leases(self._leases), self._lock.check))


class Requested(NamedTuple):
    """A plan that was published: its instant, and the table with it."""

    ts: str
    table: Snapshot


def request(
    table: Snapshot,
    action: Action,
    name: str,
    plan: Callable[[Snapshot], bytes],
    settings: TransactionSettings,
    *,
    rewrites: bool,
    ts: str | None = None,
    beside_writers: bool = False,
) -> Requested:
    """Publish the plan of an action; `plan` is called with the table as it is under the lock.

    `name` is shown to people who wait for the lock. `rewrites` says that the plan replaces file groups by files that
    bear its time. `beside_writers` as for `critical_section`. `ts` is the instant that the caller wants; without it a
    new instant is drawn. Raises ConflictError when `ts` is not later than all instants of the timeline.
    """
    with critical_section(
        table,
        name,
        settings,
        plan="" if rewrites else None,
        beside_writers=beside_writers,
        commits=False,
    ) as current:
        data = plan(current)
        instant = ts or Times(current, settings.skew_millis).draw()
        if rewrites:
            refuse_ahead(current, instant)
        latest = current.timeline.latest_time()
        if instant <= latest:
            raise ConflictError(
                f"--instant-time {instant} is not later than {latest}, the last time of the timeline",
                hint="leave --instant-time out",
            )
        current.check_held()
        published = current.timeline.publish(instant, action, State.REQUESTED, data)
        after = with_instant(current, published, data)
    return Requested(instant, replace(after, check_held=table.check_held))
