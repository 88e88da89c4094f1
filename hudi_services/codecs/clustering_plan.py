"""HoodieRequestedReplaceMetadata: the requested file of a clustering, and of every other replace commit.

{operationType, clusteringPlan, extraMetadata, version = 1}; a clustering says CLUSTER and carries a plan, an
insert_overwrite or delete_partition has neither a plan nor, mostly, an operation.
clusteringPlan: {inputGroups [{slices [{dataFilePath, deltaFilePaths, fileId, partitionPath, bootstrapFilePath}],
metrics {str: double}, numOutputFileGroups, extraMetadata}], strategy {strategyClassName, strategyParams},
extraMetadata, preserveHoodieMetadata, missingSchedulePartitions (1.x)}; every record has version = 1.
Paths are full path texts as `Storage.full_path` gives them; "" for an absent data or bootstrap file.
An Avro container file in every table version. Sources: ClusteringUtils, ClusteringPlanActionExecutor of Apache Hudi.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import CorruptFile
from ..paths import bare_name
from . import avro
from .named_paths import check_files, check_partitions

CLUSTER = "CLUSTER"
_RECORD = "HoodieRequestedReplaceMetadata"


@dataclass(frozen=True, slots=True)
class SliceInfo:
    """A file slice to rewrite. The paths are full paths; `data_file` is "" when the slice has log files only."""

    partition: str
    file_id: str
    data_file: str
    log_files: tuple[str, ...] = ()
    bootstrap_file: str = ""

    @property
    def group(self) -> tuple[str, str]:
        """The file group: partition, file id."""
        return (self.partition, self.file_id)

    @property
    def names(self) -> tuple[str, ...]:
        """The bare names of its files: the plan may have another path of the same table."""
        return tuple(bare_name(path) for path in (self.data_file, *self.log_files) if path)


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices that are rewritten together into about `output_groups` new file groups."""

    slices: tuple[SliceInfo, ...]
    output_groups: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """The groups to cluster and the strategy. `strategy_class` is the execution strategy's Java class name.

    `missing_partitions` are the partitions that the scheduler left out; None when it left out none (releases before 1.0
    do not record them).
    """

    groups: tuple[ClusteringGroup, ...]
    strategy_class: str
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    missing_partitions: tuple[str, ...] | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    preserve_metadata: bool = True

    @property
    def slices(self) -> tuple[SliceInfo, ...]:
        """The file slices of all groups."""
        return tuple(one for group in self.groups for one in group.slices)


@dataclass(frozen=True, slots=True)
class RequestedReplace:
    """The whole requested file; `plan` is None unless it is a clustering."""

    operation: str | None
    plan: ClusteringPlan | None
    extra: Mapping[str, str] | None = None

    @property
    def is_clustering(self) -> bool:
        return self.operation == CLUSTER and self.plan is not None


def encode_clustering_plan(plan: ClusteringPlan, release: str) -> bytes:
    """The requested file of a clustering, by the schema of the Hudi `release`."""
    record = {"operationType": CLUSTER, "clusteringPlan": _plan_tree(plan), "extraMetadata": {}, "version": 1}
    return avro.write_container(avro.load_schema(_RECORD, release), record)


def encode_requested_replace(operation: str | None, release: str) -> bytes:
    """The requested file of a replace commit that has no plan; Hudi names the operation DELETE_PARTITION alone."""
    record = {"operationType": operation, "clusteringPlan": None, "extraMetadata": None, "version": 1}
    return avro.write_container(avro.load_schema(_RECORD, release), record)


def decode_requested_replace(data: bytes, path: str) -> RequestedReplace:
    """The requested file of any replace commit; an empty file has neither operation nor plan. Raises CorruptFile."""
    if not data:
        return RequestedReplace(operation=None, plan=None)
    tree = avro.read_container(data, path)
    try:
        plan = None if tree.get("clusteringPlan") is None else _plan(tree["clusteringPlan"])
        requested = RequestedReplace(tree.get("operationType"), plan, tree.get("extraMetadata"))
    except (AttributeError, KeyError, TypeError) as e:
        raise CorruptFile(f"{path} holds no clustering plan: {e}") from e
    for one in plan.slices if plan else ():
        check_partitions(path, (one.partition,))
        check_files(path, filter(None, (one.data_file, *one.log_files, one.file_id)))
    return requested


def _plan_tree(plan: ClusteringPlan) -> dict[str, Any]:
    strategy = {"strategyClassName": plan.strategy_class, "strategyParams": dict(plan.strategy_params), "version": 1}
    missing = plan.missing_partitions
    return {
        "inputGroups": [_group_tree(group) for group in plan.groups],
        "strategy": strategy,
        "extraMetadata": dict(plan.extra),
        "version": 1,
        "preserveHoodieMetadata": plan.preserve_metadata,
        "missingSchedulePartitions": None if missing is None else list(missing),
    }


def _group_tree(group: ClusteringGroup) -> dict[str, Any]:
    return {
        "slices": [_slice_tree(file_slice) for file_slice in group.slices],
        "metrics": dict(group.metrics),
        "numOutputFileGroups": group.output_groups,
        "extraMetadata": None if group.extra is None else dict(group.extra),
        "version": 1,
    }


def _slice_tree(file_slice: SliceInfo) -> dict[str, Any]:
    return {
        "dataFilePath": file_slice.data_file,
        "deltaFilePaths": list(file_slice.log_files),
        "fileId": file_slice.file_id,
        "partitionPath": file_slice.partition,
        "bootstrapFilePath": file_slice.bootstrap_file,
        "version": 1,
    }


def _plan(tree: Mapping[str, Any]) -> ClusteringPlan:
    strategy = tree.get("strategy") or {}
    missing = tree.get("missingSchedulePartitions")
    return ClusteringPlan(
        groups=tuple(_group(group) for group in tree.get("inputGroups") or ()),
        strategy_class=strategy.get("strategyClassName") or "",
        strategy_params=strategy.get("strategyParams") or {},
        missing_partitions=None if missing is None else tuple(missing),
        extra=tree.get("extraMetadata") or {},
        preserve_metadata=bool(tree.get("preserveHoodieMetadata")),
    )


def _group(tree: Mapping[str, Any]) -> ClusteringGroup:
    outputs = tree.get("numOutputFileGroups")
    return ClusteringGroup(
        slices=tuple(_slice(file_slice) for file_slice in tree.get("slices") or ()),
        output_groups=1 if outputs is None else outputs,
        metrics=tree.get("metrics") or {},
        extra=tree.get("extraMetadata"),
    )


def _slice(tree: Mapping[str, Any]) -> SliceInfo:
    return SliceInfo(
        partition=tree.get("partitionPath") or "",
        file_id=tree["fileId"] or "",
        data_file=tree.get("dataFilePath") or "",
        log_files=tuple(tree.get("deltaFilePaths") or ()),
        bootstrap_file=tree.get("bootstrapFilePath") or "",
    )
