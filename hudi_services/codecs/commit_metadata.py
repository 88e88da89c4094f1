"""HoodieCommitMetadata and HoodieReplaceCommitMetadata: what a commit did, as JSON (table version 6) or Avro (8, 9).

One shape in both: partitionToWriteStats {partition: [HoodieWriteStat]}, compacted, extraMetadata {str: str},
operationType (enum name, upper case), and for replace commits partitionToReplaceFileIds {partition: [file id]}.
The JSON is Jackson's pretty print with unknown keys ignored. In the Avro form `version` is null, as Hudi writes it.
An empty file stands for "nothing known yet": operation UNKNOWN, no stats.
Sources: HoodieWriteStat, CommitMetadataSerDeV1, CommitMetadataSerDeV2 of Apache Hudi.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import CorruptFile
from ..model import CommitMetadata, WriteStat
from . import avro
from .json_text import parse_json

UNKNOWN_OPERATION = "UNKNOWN"

# Counters that Hudi writes as 0 where it did not count.
_ZERO_JSON = (
    "totalWriteErrors",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
)
_ZERO_AVRO = (*_ZERO_JSON, "totalLogReadTimeMs", "numUpdates")
_NULL_JSON = ("cdcStats", "tempPath", "minEventTime", "maxEventTime")


def encode_commit_json(metadata: CommitMetadata) -> bytes:
    """The JSON file of table version 6."""
    tree = _tree(metadata, _stat_to_json)
    return json.dumps(tree, indent=2, separators=(",", " : "), ensure_ascii=False).encode()


def encode_commit_avro(metadata: CommitMetadata, release: str) -> bytes:
    """The Avro container file of table versions 8 and 9; `release` chooses the schema."""
    record = "HoodieCommitMetadata" if metadata.replaced is None else "HoodieReplaceCommitMetadata"
    tree = _tree(metadata, _stat_to_avro) | {"version": None}
    return avro.write_container(avro.load_schema(record, release), tree)


def decode_commit_json(data: bytes, path: str) -> CommitMetadata:
    """The metadata. Raises CorruptFile, naming `path`, when a non-empty file is not the JSON form."""
    if not data:
        return _unknown()
    try:
        tree = parse_json(data)
    except ValueError as e:
        raise CorruptFile(f"{path} is no commit metadata: {e}") from e
    return _commit(tree, path)


def decode_commit_avro(data: bytes, path: str) -> CommitMetadata:
    """The metadata. Raises CorruptFile, naming `path`, when a non-empty file is not the Avro form."""
    return _commit(avro.read_container(data, path), path) if data else _unknown()


def _unknown() -> CommitMetadata:
    return CommitMetadata(operation=UNKNOWN_OPERATION, stats={})


def _tree(metadata: CommitMetadata, stat_form: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "partitionToWriteStats": {p: [stat_form(stat) for stat in stats] for p, stats in metadata.stats.items()},
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra),
        "operationType": metadata.operation,
    }
    if metadata.replaced is not None:
        tree["partitionToReplaceFileIds"] = {p: list(ids) for p, ids in metadata.replaced.items()}
    return tree


def _stat_to_json(stat: WriteStat) -> dict[str, Any]:
    tree = dict.fromkeys(_ZERO_JSON, 0) | dict.fromkeys(_NULL_JSON) | _counted(stat) | _merged(stat)
    if stat.log_version is not None:
        tree["recordsStats"] = {"val": None}
    return tree


def _stat_to_avro(stat: WriteStat) -> dict[str, Any]:
    tree = dict.fromkeys(_ZERO_AVRO, 0) | _counted(stat) | _merged(stat)
    if stat.merged_logs is not None:
        tree["prevBaseFile"] = stat.merged_logs.base_file or None
    return tree


def _merged(stat: WriteStat) -> dict[str, Any]:
    merged = stat.merged_logs
    if merged is None:
        return {}
    return {
        "totalLogFilesCompacted": merged.files,
        "totalLogSizeCompacted": merged.size,
        "totalLogBlocks": merged.counts.blocks,
        "totalLogRecords": merged.counts.records,
        "totalUpdatedRecordsCompacted": merged.counts.keys,
    }


def _counted(stat: WriteStat) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "fileId": stat.file_id,
        "path": stat.path or None,
        "prevCommit": stat.prev_commit,
        "numWrites": stat.num_writes,
        "numDeletes": stat.num_deletes,
        "numUpdateWrites": stat.num_update_writes,
        "numInserts": stat.num_inserts,
        "totalWriteBytes": stat.total_write_bytes,
        # A stat without a path is the forecast in an inflight file, where Hudi leaves the partition out too.
        "partitionPath": stat.partition if stat.path else None,
        "fileSizeInBytes": stat.file_size,
    }
    if stat.path:
        times = {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": stat.create_millis}
        tree["runtimeStats"] = times
    if stat.cdc_files:
        tree["cdcStats"] = dict(stat.cdc_files)
    if stat.log_version is not None:
        tree |= {"logVersion": stat.log_version, "logOffset": stat.log_offset}
        tree |= {"baseFile": stat.base_file, "logFiles": list(stat.log_files or ())}
    return tree


def _commit(tree: Any, path: str) -> CommitMetadata:
    try:
        replaced = tree.get("partitionToReplaceFileIds")
        return CommitMetadata(
            operation=str(tree.get("operationType") or UNKNOWN_OPERATION),
            stats={
                str(partition): tuple(_stat(str(partition), stat) for stat in stats)
                for partition, stats in (tree.get("partitionToWriteStats") or {}).items()
            },
            extra={str(k): str(v) for k, v in (tree.get("extraMetadata") or {}).items() if v is not None},
            replaced=None if replaced is None else {str(p): _texts(ids) for p, ids in replaced.items()},
            compacted=bool(tree.get("compacted")),
        )
    except (AttributeError, TypeError, ValueError) as e:
        raise CorruptFile(f"{path} is no commit metadata: {e}") from e


def _stat(partition: str, tree: Mapping[str, Any]) -> WriteStat:
    log_version = tree.get("logVersion")
    log_files = tree.get("logFiles")
    return WriteStat(
        partition=partition,
        file_id=str(tree.get("fileId") or ""),
        path=str(tree.get("path") or ""),
        prev_commit=str(tree.get("prevCommit") or "null"),
        num_writes=_count(tree, "numWrites"),
        num_deletes=_count(tree, "numDeletes"),
        num_update_writes=_count(tree, "numUpdateWrites"),
        num_inserts=_count(tree, "numInserts"),
        total_write_bytes=_count(tree, "totalWriteBytes"),
        file_size=_count(tree, "fileSizeInBytes"),
        create_millis=_count(tree.get("runtimeStats") or {}, "totalCreateTime"),
        log_version=None if log_version is None else _count(tree, "logVersion"),
        log_offset=_count(tree, "logOffset"),
        base_file=tree.get("baseFile"),
        log_files=None if log_files is None else _texts(log_files),
        cdc_files=_sizes(tree.get("cdcStats") or {}),
    )


def _count(tree: Mapping[str, Any], key: str) -> int:
    value = tree.get(key) or 0
    if not isinstance(value, int):
        raise TypeError(f"{key} is {value!r:.40}")
    return value


def _sizes(tree: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple((str(path), _count(tree, path)) for path in tree)


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"a list of texts expected, found {values!r:.40}")
    return tuple(map(str, values))
