"""HoodieCleanerPlan (requested) and HoodieCleanMetadata (completed).

Plan: {earliestInstantToRetain {timestamp, action, state}, lastCompletedCommitTimestamp, policy,
filePathsToBeDeletedPerPartition {partition: [{filePath, isBootstrapBaseFile}]}, partitionsToBeDeleted, extraMetadata,
version = 2}; version 1 plans name the files in filesToBeDeletedPerPartition {partition: [name]}.
Metadata: {startCleanTime, timeTakenInMillis, totalFilesDeleted, earliestCommitToRetain, lastCompletedCommitTimestamp,
partitionMetadata {partition: {partitionPath, policy, deletePathPatterns, successDeleteFiles, failedDeleteFiles,
isPartitionDeleted}}, version = 2, bootstrapPartitionMetadata, extraMetadata}.
Avro container files in every table version. Source: CleanerUtils of Apache Hudi.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import CorruptFile
from ..paths import bare_name
from . import avro
from .named_paths import check_files, check_partitions

_VERSION = 2


@dataclass(frozen=True, slots=True)
class CleanerPlan:
    """`files` holds paths as Hudi listed them (full, perhaps with a scheme), keyed by partition.

    `earliest_to_retain` and its action are "" when the policy has none.
    """

    policy: str
    earliest_to_retain: str
    last_completed: str
    files: Mapping[str, tuple[str, ...]]
    partitions_to_delete: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    earliest_action: str = ""

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Bare names of the files by partition: the plan may have another path of the same table."""
        return {partition: tuple(bare_name(p) for p in paths) for partition, paths in self.files.items()}

    @property
    def named(self) -> frozenset[tuple[str, str]]:
        """`names` as pairs of partition and name."""
        return frozenset((partition, name) for partition, names in self.names.items() for name in names)


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """A completed clean: bare names of the deleted files, keyed by partition."""

    ts: str
    earliest_to_retain: str
    last_completed: str
    deleted: Mapping[str, tuple[str, ...]]
    deleted_partitions: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    policy: str = ""
    millis: int = 0

    @classmethod
    def of(
        cls,
        plan: CleanerPlan,
        ts: str,
        deleted: Mapping[str, tuple[str, ...]],
        seconds: float,
        deleted_partitions: tuple[str, ...] = (),
    ) -> "CleanMetadata":
        """The clean `ts`, which has carried out a plan in so many seconds."""
        return cls(
            ts=ts,
            earliest_to_retain=plan.earliest_to_retain,
            last_completed=plan.last_completed,
            deleted=deleted,
            deleted_partitions=deleted_partitions,
            extra=plan.extra,
            policy=plan.policy,
            millis=round(seconds * 1000),
        )


def encode_cleaner_plan(plan: CleanerPlan, release: str) -> bytes:
    """The requested file: a plan of version 2, whose files are full paths."""
    earliest = None
    if plan.earliest_to_retain:
        earliest = {"timestamp": plan.earliest_to_retain, "action": plan.earliest_action, "state": "COMPLETED"}
    record = {
        "earliestInstantToRetain": earliest,
        "lastCompletedCommitTimestamp": plan.last_completed,
        "policy": plan.policy,
        "filesToBeDeletedPerPartition": {},
        "version": _VERSION,
        "filePathsToBeDeletedPerPartition": {
            partition: [{"filePath": path, "isBootstrapBaseFile": False} for path in paths]
            for partition, paths in plan.files.items()
        },
        "partitionsToBeDeleted": list(plan.partitions_to_delete),
        "extraMetadata": dict(plan.extra),
    }
    return avro.write_container(avro.load_schema("HoodieCleanerPlan", release), record)


def encode_clean_metadata(metadata: CleanMetadata, release: str) -> bytes:
    """The completed file: every file of `deleted` counts as deleted; a partition that only lost its folder has none."""
    partitions = {**dict.fromkeys(metadata.deleted_partitions, ()), **metadata.deleted}
    record = {
        "startCleanTime": metadata.ts,
        "timeTakenInMillis": metadata.millis,
        "totalFilesDeleted": sum(map(len, partitions.values())),
        "earliestCommitToRetain": metadata.earliest_to_retain,
        "lastCompletedCommitTimestamp": metadata.last_completed,
        "partitionMetadata": {
            partition: {
                "partitionPath": partition,
                "policy": metadata.policy,
                "deletePathPatterns": list(names),
                "successDeleteFiles": list(names),
                "failedDeleteFiles": [],
                "isPartitionDeleted": partition in metadata.deleted_partitions,
            }
            for partition, names in partitions.items()
        },
        "version": _VERSION,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": dict(metadata.extra),
    }
    return avro.write_container(avro.load_schema("HoodieCleanMetadata", release), record)


def decode_cleaner_plan(data: bytes, path: str) -> CleanerPlan:
    """The plan. Raises CorruptFile, also for an empty file, and for paths where no data of the table can be."""
    tree = avro.read_container(data, path)
    try:
        plan = CleanerPlan(
            policy=tree["policy"],
            earliest_to_retain=(tree.get("earliestInstantToRetain") or {}).get("timestamp") or "",
            last_completed=tree.get("lastCompletedCommitTimestamp") or "",
            files=_files(tree),
            partitions_to_delete=tuple(tree.get("partitionsToBeDeleted") or ()),
            extra=tree.get("extraMetadata") or {},
            earliest_action=(tree.get("earliestInstantToRetain") or {}).get("action") or "",
        )
    except (AttributeError, KeyError, TypeError) as e:
        raise CorruptFile(f"{path} holds no cleaner plan: {e}") from e
    check_partitions(path, (*plan.files, *plan.partitions_to_delete))
    check_files(path, (name for names in plan.files.values() for name in names))
    return plan


def decode_clean_metadata(data: bytes, path: str) -> CleanMetadata:
    """The metadata of a completed clean. Raises CorruptFile, also for an empty file."""
    tree = avro.read_container(data, path)
    try:
        partitions = tree["partitionMetadata"]
        return CleanMetadata(
            ts=tree["startCleanTime"],
            earliest_to_retain=tree["earliestCommitToRetain"],
            last_completed=tree.get("lastCompletedCommitTimestamp") or "",
            deleted={name: tuple(done["successDeleteFiles"]) for name, done in partitions.items()},
            deleted_partitions=tuple(name for name, done in partitions.items() if done.get("isPartitionDeleted")),
            extra=tree.get("extraMetadata") or {},
            policy=next((done["policy"] for done in partitions.values()), ""),
            millis=tree["timeTakenInMillis"],
        )
    except (AttributeError, KeyError, TypeError) as e:
        raise CorruptFile(f"{path} holds no clean metadata: {e}") from e


def _files(tree: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    if (tree.get("version") or 1) < 2:
        return {name: tuple(files) for name, files in (tree.get("filesToBeDeletedPerPartition") or {}).items()}
    found = tree.get("filePathsToBeDeletedPerPartition") or {}
    return {name: tuple(info["filePath"] or "" for info in files) for name, files in found.items()}
