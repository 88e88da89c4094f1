"""HoodieCompactionPlan, read only: which file groups a pending compaction or log compaction holds.

{operations [{baseInstantTime, deltaFilePaths, dataFilePath, fileId, partitionPath, metrics, bootstrapFilePath}],
extraMetadata, version, strategy, preserveHoodieMetadata, missingSchedulePartitions (1.x)}; an Avro container file.
Source: CompactionUtils of Apache Hudi.
"""

from dataclasses import dataclass

from ..errors import CorruptFile
from . import avro


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file group to compact; the slice is the one named after `base_instant`."""

    partition: str
    file_id: str
    base_instant: str


def decode_compaction_plan(data: bytes, path: str) -> tuple[CompactionOperation, ...]:
    """The operations of a plan; none for an empty file. Raises CorruptFile."""
    if not data:
        return ()
    tree = avro.read_container(data, path)
    try:
        return tuple(
            CompactionOperation(o.get("partitionPath") or "", o["fileId"] or "", o["baseInstantTime"] or "")
            for o in tree.get("operations") or ()
        )
    except (AttributeError, KeyError, TypeError) as e:
        raise CorruptFile(f"{path} holds no compaction plan: {e}") from e
