"""Rolling back an attempt that did not complete, as Hudi would: an instant of its own, with plan and result.

    .rollback.requested (which files) -> .rollback.inflight -> delete the files -> metadata table
    -> the attempt's inflight and requested file, when the plan goes too -> .rollback -> inflight file -> markers

Killed anywhere, the next rollback of the same attempt finds the plan and goes on. Sources: MarkerBasedRollbackStrategy,
BaseRollbackActionExecutor, BaseHoodieTableServiceClient.rollbackInflightClustering.
"""

import time
from collections import defaultdict

from ..codecs.rollback_plan import (
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from ..errors import CorruptFile
from ..files.names import parse_base_file
from ..handle import Table
from ..metadata.sync import sync_rollback
from ..timeline.instant import Action, Instant, State
from .markers import Marker, delete_markers, read_markers
from .times import Times


def roll_back(table: Table, target: Instant, times: Times, *, keep_plan: bool) -> str:
    """Undo the pending `target` and give the rollback's instant; the caller holds the lock.

    `keep_plan` leaves the requested file, so that the action can be executed again.
    """
    started = time.monotonic()
    timeline = table.timeline
    rollback = pending_rollback(table, target)
    if rollback is None:
        ts = times.next()
        plan = RollbackPlan(target.ts, target.action.value, _requests(table, target))
        data = encode_rollback_plan(plan, table.config.version.release)
        rollback = timeline.publish(ts, Action.ROLLBACK, State.REQUESTED, data)
    else:
        plan = timeline.read_rollback_plan(rollback)
    if rollback.state is State.REQUESTED:
        timeline.publish(rollback.ts, Action.ROLLBACK, State.INFLIGHT)
    partitions = _delete_files(table, plan)
    if table.metadata is not None:
        sync_rollback(table.metadata, target.ts, rollback.ts, times.next)
    if not keep_plan:
        _drop(table, target, State.INFLIGHT)
        _drop(table, target, State.REQUESTED)
    millis = round((time.monotonic() - started) * 1000)
    metadata = RollbackMetadata(rollback.ts, target.ts, target.action.value, partitions, millis)
    timeline.publish(
        rollback.ts,
        Action.ROLLBACK,
        State.COMPLETED,
        encode_rollback_metadata(metadata, table.config.version.release),
        times.next(),
    )
    if keep_plan:
        _drop(table, target, State.INFLIGHT)
    delete_markers(table.storage, target.ts)
    return rollback.ts


def drop_requested(table: Table, target: Instant) -> None:
    """Cancel a plan that was never started."""
    _drop(table, target, State.REQUESTED)


def _drop(table: Table, target: Instant, state: State) -> None:
    name = table.timeline.layout.file_name(target.ts, target.action, state)
    table.storage.delete(table.timeline.path(name))


def pending_rollback(table: Table, target: Instant) -> Instant | None:
    """The rollback of `target` that its process did not finish, if there is one."""
    for instant in table.timeline.pending({Action.ROLLBACK}):
        if table.timeline.read_rollback_plan(instant).ts == target.ts:
            return instant
    return None


def _requests(table: Table, target: Instant) -> tuple[RollbackRequest, ...]:
    return tuple(_request(table, target.ts, marker) for marker in read_markers(table.storage, target.ts))


def _request(table: Table, ts: str, marker: Marker) -> RollbackRequest:
    base = parse_base_file(marker.partition, marker.file_name, 0)
    if base is None or base.instant != ts or marker.kind == "APPEND":
        raise CorruptFile(
            f"{table.storage.root}: the marker of {marker.path} ({marker.kind}) does not name a base file of {ts}",
            hint="let Apache Hudi roll this instant back",
        )
    return RollbackRequest(marker.partition, (table.storage.full_path(marker.path),), base.file_id, base.instant)


def _delete_files(table: Table, plan: RollbackPlan) -> dict[str, RollbackPartition]:
    deleted: dict[str, list[str]] = defaultdict(list)
    for request in plan.requests:
        for full_path in request.files:
            # By partition and name: the plan keeps full paths, and the table may be known by another.
            name = full_path.rpartition("/")[2]
            table.storage.delete_output(f"{request.partition}/{name}" if request.partition else name)
            deleted[request.partition].append(full_path)
    return {partition: RollbackPartition(tuple(paths)) for partition, paths in deleted.items()}
