"""Signs of life of a pending instant: is its writer still at work, or did it die?

A sign of life is a file that was written: the heartbeat, a timeline file of the instant, a marker. With a heartbeat,
the newest sign may be as old as Hudi allows a heartbeat to be. Without one it may be much older, because the writer
does not promise regular signs; less so for cleans and index builds, which are short. For our own attempts the lease
decides.
Source: HoodieHeartbeatClient; Hudi's own rule for clusterings is hoodie.clustering.pending.expiration of 60 minutes.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..computed_once import cached_property
from ..errors import CorruptFile
from ..paths import bare_name
from ..snapshot import Snapshot
from ..storage import FileInfo, Storage
from ..table.file_ledger import COMPACTIONS
from ..timeline.instant import Action, Instant, State
from .heartbeat import heartbeat_path
from .lease import Lease, Leases, LeaseState, read_lease
from .markers import marker_folder
from .settings import TransactionSettings
from .shown_plans import attempt_that_shows

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT)
_MARKERS = marker_folder("").rstrip("/")
_FOLDERS_AT_MOST = 8
"""Folders of markers to list one by one; of more, one listing of all of them costs less."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """The signs of life of an instant. Times are epoch milliseconds by the store's clock; 0 when no sign was found."""

    last_sign_millis: int
    heartbeat_millis: int | None
    """When the heartbeat file was written; None when there is no heartbeat file."""
    alive: bool
    holder: str = ""
    """The process of ours that holds the instant's lease, for people; "" when none does. It is alive at any age."""


def lease_name(instant: Instant) -> str:
    """The name of the lease that our attempt at `instant` holds from beginning to end."""
    of_action = {Action.CLEAN: "clean", Action.COMPACTION: "compaction", **dict.fromkeys(_WRITES, "write")}
    kind = of_action.get(instant.action)
    return clustering_lease_name(instant.ts) if kind is None else f"{kind}-{instant.ts}"


def clustering_lease_name(ts: str) -> str:
    """`lease_name` of a clustering that may not be on the timeline."""
    return f"clustering-{ts}"


class Signs:
    """The heartbeats, markers and leases of a table at one moment; the listings serve any number of instants."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._leases = Leases(storage)

    def heartbeat(self, ts: str) -> FileInfo | None:
        return self._heartbeats.get(ts)

    def last_marker_millis(self, ts: str) -> int:
        """When the newest marker of the instant `ts` was written, epoch milliseconds; 0 without markers."""
        if ts not in self._marked:
            return 0
        if len(self._marked) <= _FOLDERS_AT_MOST:
            return _newest_millis(self._storage.list_tree(marker_folder(ts)))
        return self._all_markers.get(ts, 0)

    def lease(self, name: str) -> LeaseState | None:
        return self._leases.read(name)

    @cached_property
    def _heartbeats(self) -> dict[str, FileInfo]:
        return {file.name: file for file in self._storage.list_dir(heartbeat_path("").rstrip("/"))[0]}

    @cached_property
    def _marked(self) -> frozenset[str]:
        folders = self._storage.list_dir(_MARKERS)[1]
        return frozenset(bare_name(folder) for folder in folders)

    @cached_property
    def _all_markers(self) -> dict[str, int]:
        newest: dict[str, int] = {}
        for file in self._storage.list_tree(_MARKERS):
            ts = file.path[len(_MARKERS) + 1 :].partition("/")[0]
            newest[ts] = max(newest.get(ts, 0), file.mtime_millis)
        return newest


def _newest_millis(files: Iterable[FileInfo]) -> int:
    return max((file.mtime_millis for file in files), default=0)


def liveness(
    table: Snapshot,
    instant: Instant,
    settings: TransactionSettings,
    *,
    held: Lease | None = None,
    listed: Signs | None = None,
) -> Liveness:
    """Find the signs of life of the pending `instant`, which is not a rollback.

    `held` is the instant's lease when the caller itself holds it: then the previous lease counts.
    `listed` are the signs that a caller with many instants has listed once.
    """
    heartbeat = listed.heartbeat(instant.ts) if listed else table.storage.head(heartbeat_path(instant.ts))
    folder = marker_folder(instant.ts)
    marked = listed.last_marker_millis(instant.ts) if listed else _newest_millis(table.storage.list_tree(folder))
    is_short = instant.action in (Action.CLEAN, Action.INDEXING)
    is_service = is_short or instant.action in COMPACTIONS or is_clustering(table, instant)
    # Also where the plan cannot be read, so that a clustering cannot be distinguished from a write.
    may_cluster = is_service or instant.action in (Action.CLUSTERING, Action.REPLACE_COMMIT)
    # The requested file of a service does not show that a process executes it.
    states = (State.INFLIGHT,) if is_service else (State.REQUESTED, State.INFLIGHT)
    last = max(heartbeat.mtime_millis if heartbeat else 0, marked, last_written_millis(table, instant, states))
    lease = None
    if may_cluster or instant.action in _WRITES:
        lease = held.previous if held else _lease(table.storage, lease_name(instant), listed)
        if lease is None and may_cluster and instant.state is State.INFLIGHT:
            # A plan that is published late may be shown by an attempt whose lease has another time.
            staged = attempt_that_shows(table.storage, instant.ts)
            name = clustering_lease_name(staged)
            is_own = held is not None and held.name == name
            lease = _lease(table.storage, name, listed) if staged and not is_own else None
    silence = settings.patience_millis if is_short else settings.abandoned_millis
    return _life(table, settings, last, heartbeat, lease, silence)


def _lease(storage: Storage, name: str, listed: Signs | None) -> LeaseState | None:
    return listed.lease(name) if listed else read_lease(storage, name)


def _life(
    table: Snapshot,
    settings: TransactionSettings,
    last: int,
    heartbeat: FileInfo | None,
    lease: LeaseState | None,
    silence: int,
) -> Liveness:
    """Judge the signs of life. `silence` is how long an instant without a heartbeat may be silent, in milliseconds.

    The lease decides, unless it is not held and the last sign is later than the lease.
    """
    if lease is not None and (lease.held or last <= lease.until_millis):
        alive = lease.held
    else:
        alive = now_millis(table) - last < (settings.heartbeat_expires_millis if heartbeat else silence)
    return Liveness(last, heartbeat.mtime_millis if heartbeat else None, alive, lease.holder if lease else "")


def is_clustering(table: Snapshot, instant: Instant) -> bool:
    """Whether the plan of the instant is that of a clustering; an instant with an unreadable plan counts as a write."""
    try:
        return table.timeline.is_clustering(instant)
    except CorruptFile:
        return False


def is_reserved(table: Snapshot, clustering: Instant) -> bool:
    """Whether the pending clustering has no plan yet: a process has reserved its instant (`late_plan`)."""
    try:
        return not table.timeline.read_plan(clustering).groups
    except CorruptFile:
        return False


def last_written_millis(table: Snapshot, instant: Instant, states: Collection[State] = tuple(State)) -> int:
    """When the newest file of the instant in one of `states` was written, epoch milliseconds; 0 without such a file."""
    files = [file for file in table.timeline.files_of(instant.ts, instant.action) if file.state in states]
    return max((table.timeline.written[file.file_name] for file in files), default=0)


def rollback_liveness(
    table: Snapshot, rollback: Instant, settings: TransactionSettings, *, held: Lease | None = None
) -> Liveness:
    """The liveness of a pending rollback: by our lease, by Hudi's heartbeat, or else by its timeline files.

    Hudi writes heartbeats of rollbacks from 1.2 on, with several writers. A process of ours that holds the lease of the
    target is about to finish the rollback and continue with the plan; that lease does not count when it is the caller's
    own (`held`).
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
    """The name of the lease that we hold while we carry out the rollback at `ts`."""
    return f"rollback-{ts}"


def is_stale_rollback(table: Snapshot, rollback: Instant, settings: TransactionSettings) -> bool:
    """Whether no process works at a pending rollback any more."""
    return not rollback_liveness(table, rollback, settings).alive


def age_millis(table: Snapshot, instant: Instant) -> float:
    """Milliseconds since the first file of the instant was written."""
    files = table.timeline.files_of(instant.ts, instant.action)
    return now_millis(table) - min(table.timeline.written[file.file_name] for file in files)


def now_millis(table: Snapshot) -> float:
    return table.clock.now().timestamp() * 1000
