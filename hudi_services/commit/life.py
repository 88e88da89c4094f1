"""Signs of life of a pending instant: is its writer still at work, or did it die?

A sign is a file that was written: the heartbeat, a file of the instant itself, a marker. With a heartbeat the newest
sign may be as old as Hudi allows a heartbeat to be. Without one nobody promised to give signs, and they may be much
older; but a clustering writes markers all the time, and of our own attempts the lease tells.
Source: HoodieHeartbeatClient; Hudi's own rule for clusterings is hoodie.clustering.pending.expiration of 60 minutes.
"""

from collections.abc import Collection
from dataclasses import dataclass

from ..handle import Table
from ..timeline.instant import Action, Instant, State
from .guard import Guard, read_lease
from .heartbeat import heartbeat_path
from .markers import marker_folder, read_markers
from .settings import TransactionSettings


@dataclass(frozen=True, slots=True)
class Life:
    """What was found of an instant. Times are epoch milliseconds by the store's clock; 0 when there is no sign."""

    last_sign_millis: int
    heartbeat_millis: int | None
    """When the heartbeat file was written; None when there is none."""
    markers: int
    alive: bool


def lease_name(instant: Instant) -> str:
    """The lease that an attempt of ours at the clustering or clean `instant` holds from its beginning to its end."""
    return f"{'clean' if instant.action is Action.CLEAN else 'clustering'}-{instant.ts}"


def signs_of_life(table: Table, instant: Instant, settings: TransactionSettings, *, held: Guard | None = None) -> Life:
    """Look for signs of whoever works at the pending `instant`.

    `held` is the guard of the instant's lease, when the caller itself holds it: then the lease before it counts.
    """
    heartbeat = table.storage.head(heartbeat_path(instant.ts))
    markers = table.storage.list_tree(marker_folder(instant.ts))
    is_service = instant.action is Action.CLEAN or table.timeline.is_clustering(instant)
    signs = [file.mtime_millis for file in (heartbeat, *markers) if file is not None]
    # That a service was planned says nothing about anybody who executes it.
    states = (State.INFLIGHT,) if is_service else (State.REQUESTED, State.INFLIGHT)
    last = max([*signs, last_written_millis(table, instant, states)])
    lease = None
    if is_service:
        lease = held.previous if held else read_lease(table.storage, lease_name(instant))
    if lease is not None and (lease.held or last <= lease.until_millis):
        alive = lease.held
    else:
        promised = heartbeat is not None or is_service
        limit = settings.heartbeat_expires_millis if promised else settings.abandoned_millis
        alive = now_millis(table) - last < limit
    count = len(read_markers(table.storage, instant.ts)) if markers else 0
    return Life(last, heartbeat.mtime_millis if heartbeat else None, count, alive)


def last_written_millis(table: Table, instant: Instant, states: Collection[State] = tuple(State)) -> int:
    """When the newest file of the instant in one of `states` was written, epoch milliseconds; 0 when there is none."""
    files = [file for file in table.timeline.files_of(instant.ts, instant.action) if file.state in states]
    found = (table.storage.head(table.timeline.path(file.file_name)) for file in files)
    return max((file.mtime_millis for file in found if file is not None), default=0)


def is_stale_rollback(table: Table, rollback: Instant, settings: TransactionSettings) -> bool:
    """Whether nobody has worked at a pending rollback for as long as a heartbeat lasts."""
    assert rollback.action is Action.ROLLBACK
    return now_millis(table) - last_written_millis(table, rollback) >= settings.heartbeat_expires_millis


def now_millis(table: Table) -> float:
    return table.clock.now().timestamp() * 1000
