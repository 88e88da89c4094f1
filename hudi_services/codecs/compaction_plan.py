"""HoodieCompactionPlan: the file groups of a pending compaction or log compaction, and the files to merge in each.

{operations [{baseInstantTime, deltaFilePaths, dataFilePath, fileId, partitionPath, metrics {str: double},
bootstrapFilePath}], extraMetadata, version = 2, strategy, preserveHoodieMetadata, missingSchedulePartitions (1.x)}; an
Avro container file. Since version 2 the paths are bare file names.
Source: CompactionUtils, CompactionV2MigrationHandler, CompactionStrategy of Apache Hudi.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import CorruptFile
from ..model import FileSlice
from ..paths import bare_name
from . import avro
from .named_paths import check_files, check_partitions

COMPACT = "COMPACT"
"""The operation type of the commit of a compaction."""

_RECORD = "HoodieCompactionPlan"
_VERSION = 2
_MB = 1024 * 1024
FIRST_BASE_BYTES = 120 * _MB
"""The size in bytes that Hudi expects of a first base file (hoodie.parquet.max.file.size)."""


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file group to compact: its slice at `base_instant`. `base_file` is "" for none.

    Files are given by name, in the order in which they are merged; sizes in bytes.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: str = ""
    log_files: tuple[str, ...] = ()
    base_bytes: int = 0
    """Written into the metrics; never read from a plan."""
    log_bytes: int = 0
    source: str = ""
    """The file with the columns of a bootstrapped base file; never read from a plan."""

    @property
    def group(self) -> tuple[str, str]:
        """The file group: partition, file id."""
        return (self.partition, self.file_id)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its files."""
        return tuple(filter(None, (self.base_file, *self.log_files)))

    @classmethod
    def of(cls, file_slice: FileSlice) -> "CompactionOperation":
        """The operation that merges a slice as it is."""
        logs, base = tuple(log.name for log in file_slice.log_files), file_slice.base_file
        return cls(
            file_slice.partition,
            file_slice.file_id,
            file_slice.base_instant,
            file_slice.base_name,
            logs,
            file_slice.base_bytes,
            file_slice.log_bytes,
            "" if base is None or base.source is None else base.source.uri,
        )


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """All operations, and the extra metadata of the planner."""

    operations: tuple[CompactionOperation, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)


def encode_compaction_plan(plan: CompactionPlan, release: str) -> bytes:
    """The requested file, by the schema of the Hudi `release`."""
    tree = {
        "operations": [_operation_tree(operation) for operation in plan.operations],
        "extraMetadata": dict(plan.extra),
        "version": _VERSION,
        "strategy": None,
        "preserveHoodieMetadata": False,
    }
    return avro.write_container(avro.load_schema(_RECORD, release), tree)


def decode_compaction_plan(data: bytes, path: str) -> CompactionPlan:
    """The plan; without operations for an empty file. Raises CorruptFile."""
    if not data:
        return CompactionPlan()
    tree = avro.read_container(data, path)
    try:
        operations = tuple(_operation(one) for one in tree.get("operations") or ())
        plan = CompactionPlan(operations, dict(tree.get("extraMetadata") or {}))
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise CorruptFile(f"{path} holds no compaction plan: {e}") from e
    check_partitions(path, (one.partition for one in operations))
    check_files(path, (name for one in operations for name in one.names))
    return plan


def _operation(tree: Mapping[str, Any]) -> CompactionOperation:
    return CompactionOperation(
        tree.get("partitionPath") or "",
        tree["fileId"] or "",
        tree["baseInstantTime"] or "",
        bare_name(tree.get("dataFilePath") or ""),
        tuple(bare_name(path) for path in tree.get("deltaFilePaths") or ()),
    )


def planned_io(base_bytes: int, log_bytes: int) -> int:
    """The megabytes that the compaction of a slice reads and writes; the sizes are in bytes, 0 for no base file."""
    return sum(_planned_io(base_bytes, log_bytes))


def _planned_io(base_bytes: int, log_bytes: int) -> tuple[int, int]:
    return (base_bytes + log_bytes) // _MB, (base_bytes or FIRST_BASE_BYTES) // _MB


def _operation_tree(operation: CompactionOperation) -> dict[str, Any]:
    read, written = map(float, _planned_io(operation.base_bytes, operation.log_bytes))
    metrics = {
        "TOTAL_LOG_FILES": float(len(operation.log_files)),
        "TOTAL_LOG_FILES_SIZE": float(operation.log_bytes),
        "TOTAL_IO_READ_MB": read,
        "TOTAL_IO_WRITE_MB": written,
        "TOTAL_IO_MB": read + written,
    }
    return {
        "baseInstantTime": operation.base_instant,
        "deltaFilePaths": list(operation.log_files),
        "dataFilePath": operation.base_file or None,
        "fileId": operation.file_id,
        "partitionPath": operation.partition,
        "metrics": metrics,
        "bootstrapFilePath": operation.source or None,
    }
