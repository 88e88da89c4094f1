"""Signs of life of a pending instant: is its writer still at work, or did it die?

A sign is a file that was written: the heartbeat, a file of the instant itself, a marker. With a heartbeat the newest
sign may be as old as Hudi allows a heartbeat to be. Without one nobody promised to give signs, and they may be much
older, but for cleans, which are short; of our own attempts the lease tells.
Source: HoodieHeartbeatClient; Hudi's own rule for clusterings is hoodie.clustering.pending.expiration of 60 minutes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from ..errors import CorruptFile
from ..snapshot import Snapshot
from ..storage import FileInfo, Storage
from ..timeline.instant import Action, Instant, State
from .heartbeat import heartbeat_path
from .lease import Lease, LeaseState, read_lease
from .markers import marker_folder, read_markers
from .settings import TransactionSettings


@dataclass(frozen=True, slots=True)
class Liveness:
    """What was found of an instant. Times are epoch milliseconds by the store's clock; 0 when there is no sign."""

    last_sign_millis: int
    heartbeat_millis: int | None
    """When the heartbeat file was written; None when there is none."""
    markers: int
    alive: bool
    holder: str = ""
    """Who of us holds its lease, for people; "" when nobody does. Whatever the age: that one is alive."""


def lease_name(instant: Instant) -> str:
    """The lease that an attempt of ours at the clustering or clean `instant` holds from its beginning to its end."""
    return f"{'clean' if instant.action is Action.CLEAN else 'clustering'}-{instant.ts}"


class Signs:
    """Heartbeats and markers of a table at one moment, listed once for as many instants as are asked for."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def heartbeat(self, ts: str) -> FileInfo | None:
        return self._heartbeats.get(ts)

    def markers(self, ts: str) -> list[FileInfo]:
        """The files of its markers."""
        return self._storage.list_tree(marker_folder(ts)) if ts in self._marked else []

    @cached_property
    def _heartbeats(self) -> dict[str, FileInfo]:
        return {file.name: file for file in self._storage.list_dir(heartbeat_path("").rstrip("/"))[0]}

    @cached_property
    def _marked(self) -> frozenset[str]:
        folders = self._storage.list_dir(marker_folder("").rstrip("/"))[1]
        return frozenset(folder.rpartition("/")[2] for folder in folders)


def liveness(
    table: Snapshot,
    instant: Instant,
    settings: TransactionSettings,
    *,
    held: Lease | None = None,
    listed: Signs | None = None,
) -> Liveness:
    """Look for signs of whoever works at the pending `instant`, which is no rollback.

    `held` is the instant's lease, when the caller itself holds it: then the lease before it counts.
    `listed` are the signs of the same look at the table, for who asks about many instants.
    """
    heartbeat = listed.heartbeat(instant.ts) if listed else table.storage.head(heartbeat_path(instant.ts))
    markers = listed.markers(instant.ts) if listed else table.storage.list_tree(marker_folder(instant.ts))
    is_short = instant.action in (Action.CLEAN, Action.INDEXING)
    is_service = is_short or is_clustering(table, instant)
    # Also where the plan cannot be read, so that it is not told from a write.
    is_leased = is_service or instant.action in (Action.CLUSTERING, Action.REPLACE_COMMIT)
    signs = [file.mtime_millis for file in (heartbeat, *markers) if file is not None]
    # That a service was planned says nothing about anybody who executes it.
    states = (State.INFLIGHT,) if is_service else (State.REQUESTED, State.INFLIGHT)
    last = max([*signs, last_written_millis(table, instant, states)])
    lease = None
    if is_leased:
        lease = held.previous if held else read_lease(table.storage, lease_name(instant))
    silence = settings.patience_millis if is_short else settings.abandoned_millis
    return _life(table, settings, last, heartbeat, lease, silence, _count(table, instant, markers))


def _count(table: Snapshot, instant: Instant, files: Collection[FileInfo]) -> int:
    """How many markers the instant has; where they cannot be read, how many files of them."""
    try:
        return len(read_markers(table.storage, instant.ts)) if files else 0
    except CorruptFile:
        return len(files)


def _life(
    table: Snapshot,
    settings: TransactionSettings,
    last: int,
    heartbeat: FileInfo | None,
    lease: LeaseState | None,
    silence: int,
    markers: int = 0,
) -> Liveness:
    """`silence` is how long one without heartbeat may be silent, milliseconds. A lease counts unless it is outlived."""
    if lease is not None and (lease.held or last <= lease.until_millis):
        alive = lease.held
    else:
        alive = now_millis(table) - last < (settings.heartbeat_expires_millis if heartbeat else silence)
    return Liveness(last, heartbeat.mtime_millis if heartbeat else None, markers, alive, lease.holder if lease else "")


def is_clustering(table: Snapshot, instant: Instant) -> bool:
    """Told by its plan; when that cannot be read it is taken for a write, so that it is at least not overlooked."""
    try:
        return table.timeline.is_clustering(instant)
    except CorruptFile:
        return False


def last_written_millis(table: Snapshot, instant: Instant, states: Collection[State] = tuple(State)) -> int:
    """When the newest file of the instant in one of `states` was written, epoch milliseconds; 0 when there is none."""
    files = [file for file in table.timeline.files_of(instant.ts, instant.action) if file.state in states]
    return max((table.timeline.written[file.file_name] for file in files), default=0)


def rollback_liveness(
    table: Snapshot, rollback: Instant, settings: TransactionSettings, *, held: Lease | None = None
) -> Liveness:
    """Whether somebody works at a pending rollback: the lease of ours, Hudi's heartbeat of it, or else its files.

    Hudi gives a heartbeat of rollbacks from 1.2 on, with several writers. Whoever of us holds the lease of what is
    rolled back is about to finish the rollback, and goes on with the plan, unless that is the caller, with `held`.
    """
    heartbeat = table.storage.head(heartbeat_path(rollback.ts))
    last = max(heartbeat.mtime_millis if heartbeat else 0, last_written_millis(table, rollback))
    lease = read_lease(table.storage, rollback_lease_name(rollback.ts))
    if held is None and not (lease and lease.held):
        of_target = _lease_of_target(table, rollback)
        lease = of_target if of_target and of_target.held else lease
    return _life(table, settings, last, heartbeat, lease, settings.patience_millis)


def _lease_of_target(table: Snapshot, rollback: Instant) -> LeaseState | None:
    try:
        plan = table.timeline.read_rollback_plan(rollback)
    except CorruptFile:
        return None
    target = table.timeline.find(plan.ts, Action(plan.action))
    return read_lease(table.storage, lease_name(target)) if target is not None else None


def rollback_lease_name(ts: str) -> str:
    """The lease that we hold while we carry out the rollback at `ts`."""
    return f"rollback-{ts}"


def is_stale_rollback(table: Snapshot, rollback: Instant, settings: TransactionSettings) -> bool:
    """Whether nobody works at a pending rollback any more."""
    return not rollback_liveness(table, rollback, settings).alive


def age_millis(table: Snapshot, instant: Instant) -> float:
    """Since the first file of the instant was written."""
    files = table.timeline.files_of(instant.ts, instant.action)
    return now_millis(table) - min(table.timeline.written[file.file_name] for file in files)


def now_millis(table: Snapshot) -> float:
    return table.clock.now().timestamp() * 1000
