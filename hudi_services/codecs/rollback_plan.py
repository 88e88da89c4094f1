"""HoodieRollbackPlan (requested) and HoodieRollbackMetadata (completed): undoing one instant.

Plan: {instantToRollback {commitTime, action}, RollbackRequests [{partitionPath, fileId, latestBaseInstant,
filesToBeDeleted [full path], logBlocksToBeDeleted {full path: bytes}}], version = 1}.
Metadata: {startRollbackTime, timeTakenInMillis, totalFilesDeleted, commitsRollback [ts], partitionMetadata {partition:
{partitionPath, successDeleteFiles, failedDeleteFiles, rollbackLogFiles {path: bytes}, logFilesFromFailedCommit
{path: bytes}}}, version = 1, instantsRollback [{commitTime, action}]}.
Avro container files in every table version. Sources: RollbackUtils, BaseRollbackActionExecutor of Apache Hudi.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import CorruptFile
from ..paths import bare_name, is_name
from . import avro
from .named_paths import check_files, check_partitions, outside


@dataclass(frozen=True, slots=True)
class PartitionRollback:
    """Files of one partition to delete, by full path, and log files to cancel with a command block (version 6).

    `file_id` and `base_instant` are "" when the request came from a listing.
    """

    partition: str
    files: tuple[str, ...]
    file_id: str = ""
    base_instant: str = ""
    log_blocks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """The instant to undo, by requested time and action name, and the files and blocks to delete for it."""

    ts: str
    action: str
    requests: tuple[PartitionRollback, ...]

    @property
    def named(self) -> frozenset[tuple[str, str]]:
        """Partition and bare name of the files to delete, and of the log files to cancel blocks of."""
        paths = ((one.partition, path) for one in self.requests for path in (*one.files, *one.log_blocks))
        return frozenset((partition, bare_name(path)) for partition, path in paths)


@dataclass(frozen=True, slots=True)
class RollbackPartition:
    """The result of a rollback in one partition: full paths, and log files with their bytes."""

    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    command_logs: Mapping[str, int] = field(default_factory=dict)
    failed_commit_logs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """A completed rollback: `ts` is its own time, `target_ts` and `target_action` are the instant that it undid."""

    ts: str
    target_ts: str
    target_action: str
    partitions: Mapping[str, RollbackPartition]
    millis: int = 0


def encode_rollback_plan(plan: RollbackPlan, release: str) -> bytes:
    record = {
        "instantToRollback": {"commitTime": plan.ts, "action": plan.action},
        "RollbackRequests": [_request_tree(request) for request in plan.requests],
        "version": 1,
    }
    return avro.write_container(avro.load_schema("HoodieRollbackPlan", release), record)


def decode_rollback_plan(data: bytes, path: str) -> RollbackPlan:
    """The plan.

    Raises CorruptFile, also for an empty file, for a plan without an instant, and for paths where no data can be.
    """
    tree = avro.read_container(data, path)
    try:
        target = tree["instantToRollback"]
        requests = tuple(_request(request) for request in tree.get("RollbackRequests") or ())
        plan = RollbackPlan(ts=target["commitTime"], action=target["action"], requests=requests)
    except (AttributeError, KeyError, TypeError) as e:
        raise CorruptFile(f"{path} holds no rollback plan: {e}") from e
    check_partitions(path, (request.partition for request in requests))
    for request in requests:
        # A command block is written to a new file whose name has the file group and the slice.
        check_files(path, (*request.files, *request.log_blocks))
        for part in filter(None, (request.file_id, request.base_instant)):
            if not is_name(part):
                raise outside(path, part)
    return plan


def encode_rollback_metadata(metadata: RollbackMetadata, release: str) -> bytes:
    target = {"commitTime": metadata.target_ts, "action": metadata.target_action}
    record = {
        "startRollbackTime": metadata.ts,
        "timeTakenInMillis": metadata.millis,
        "totalFilesDeleted": sum(len(partition.deleted) for partition in metadata.partitions.values()),
        "commitsRollback": [metadata.target_ts],
        "partitionMetadata": {path: _partition_tree(path, done) for path, done in metadata.partitions.items()},
        "version": 1,
        "instantsRollback": [target],
    }
    return avro.write_container(avro.load_schema("HoodieRollbackMetadata", release), record)


def decode_rollback_metadata(data: bytes, path: str) -> RollbackMetadata:
    """The metadata of a completed rollback. Raises CorruptFile, also for an empty file."""
    tree = avro.read_container(data, path)
    try:
        targets = tree.get("instantsRollback") or [{"commitTime": t, "action": ""} for t in tree["commitsRollback"]]
        return RollbackMetadata(
            ts=tree["startRollbackTime"],
            target_ts=targets[0]["commitTime"] if targets else "",
            target_action=targets[0]["action"] if targets else "",
            partitions={name: _partition(done) for name, done in tree["partitionMetadata"].items()},
            millis=tree["timeTakenInMillis"],
        )
    except (AttributeError, KeyError, TypeError) as e:
        raise CorruptFile(f"{path} holds no rollback metadata: {e}") from e


def _request_tree(request: PartitionRollback) -> dict[str, Any]:
    return {
        "partitionPath": request.partition,
        "fileId": request.file_id,
        "latestBaseInstant": request.base_instant,
        "filesToBeDeleted": list(request.files),
        "logBlocksToBeDeleted": dict(request.log_blocks),
    }


def _request(tree: Mapping[str, Any]) -> PartitionRollback:
    return PartitionRollback(
        partition=tree["partitionPath"],
        files=tuple(tree.get("filesToBeDeleted") or ()),
        file_id=tree.get("fileId") or "",
        base_instant=tree.get("latestBaseInstant") or "",
        log_blocks=tree.get("logBlocksToBeDeleted") or {},
    )


def _partition_tree(path: str, done: RollbackPartition) -> dict[str, Any]:
    return {
        "partitionPath": path,
        "successDeleteFiles": list(done.deleted),
        "failedDeleteFiles": list(done.failed),
        "rollbackLogFiles": dict(done.command_logs),
        "logFilesFromFailedCommit": dict(done.failed_commit_logs),
    }


def _partition(tree: Mapping[str, Any]) -> RollbackPartition:
    return RollbackPartition(
        deleted=tuple(tree.get("successDeleteFiles") or ()),
        failed=tuple(tree.get("failedDeleteFiles") or ()),
        command_logs=tree.get("rollbackLogFiles") or {},
        failed_commit_logs=tree.get("logFilesFromFailedCommit") or {},
    )
