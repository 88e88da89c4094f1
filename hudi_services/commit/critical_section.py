"""The critical section under the table's lock, and the publication of a plan in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..concurrency import at_once
from ..errors import ConflictError, PartlyDone, StorageError
from ..snapshot import Snapshot, reopen
from ..table.support import check_timeline
from ..timeline.instant import Action, State
from .conflicts import refuse_beside_index_builds, refuse_beside_writers
from .lease import Lease, check_leases
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
) -> Iterator[Snapshot]:
    """Hold our lease of the table and Hudi's lock, and yield the table as it is now.

    `own` is the instant that the caller works at. `plan` is the instant of a plan that replaces file groups, see
    `conflicts.prospect`. `completes` names the change that is complete when the body ends. `beside_writers`: the action
    changes nothing that writers use, and is not refused while they are at work.

    The table's `check_held` raises ConflictError when the lease of the table, the lock, or the caller's own `lease` was
    lost.

    Raises LockBusy; ConflictError for another writer or indexer at work that excludes this action; NeedsRecovery for
    a restore that has begun meanwhile, and for a write whose writer died, unless the action repairs a write
    (`repairs`); PartlyDone when the body completed the change `completes`, but the lock could not be released.
    """
    wait, done = replace(settings.lock_wait, on_wait=table.on_wait), False
    lock = settings.lock.lock(table.storage, wait)
    try:
        with Lease(table.storage, "table", action, wait.wait_millis / 1000, wait.on_wait) as own_lease, lock:

            def check_held() -> None:
                leases = [held for held in (own_lease, lease) if held is not None]
                at_once(lambda check: check(), (lambda: check_leases(leases), lock.check))

            current = replace(reopen(table), check_held=check_held)
            check_timeline(current.timeline, current.storage)
            if not beside_writers:
                refuse_beside_writers(current, settings, plan=plan, own=own, repairs=repairs)
            if repairs is None:
                refuse_beside_index_builds(current)
            yield current
            done = True
    except StorageError as error:
        if not (done and completes):
            raise
        raise PartlyDone(
            f"{completes} is complete, but the table's lock could not be given back: {error}",
            hint="delete the lock file when no other writer holds it",
        ) from error


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
) -> str:
    """Publish the plan of an action and return its instant; `plan` is called with the table as it is under the lock.

    `name` is shown to people who wait for the lock. `rewrites` says that the plan replaces file groups by files that
    bear its time. `beside_writers` as for `critical_section`. `ts` is the instant that the caller wants; without it a
    new instant is drawn. Raises ConflictError when `ts` is not later than all instants of the timeline.
    """
    plan_of = "" if rewrites else None
    with critical_section(table, name, settings, plan=plan_of, beside_writers=beside_writers) as current:
        data = plan(current)
        instant = ts or Times(current, settings.skew_millis).next()
        if rewrites:
            refuse_ahead(current, instant)
        latest = current.timeline.latest_time()
        if instant <= latest:
            raise ConflictError(
                f"--instant-time {instant} is not later than {latest}, the last time of the timeline",
                hint="leave --instant-time out",
            )
        current.check_held()
        current.timeline.publish(instant, action, State.REQUESTED, data)
        return instant
