"""Records of the metadata table: HoodieMetadataRecord for listings and column statistics, and how they merge.

    type 1  key `__all_partitions__`: filesystemMetadata {partition: size 0, isDeleted}
    type 2  key = a data partition:   filesystemMetadata {file name: size > 0, isDeleted}
    type 3  column_stats:     ColumnStatsMetadata of one column of one file
    type 6  partition_stats:  the same of one column of one data partition, whose path stands in fileName

A record is stored in Avro under its key, with the field `key` itself empty. The schema in HFiles and log blocks is the
record's with the five meta columns, always null here, in front. Source: HoodieMetadataPayload (preCombine),
MetadataPartitionType.combineMetadataPayloads, HoodieTableMetadataUtil.mergeColumnStatsRecords of Apache Hudi.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ..codecs.avro import AvroSchema, load_schema, parse_schema, read_datum, write_datum
from ..errors import CorruptFile
from ..versions import RELEASES
from .values import BoundType, NoPromotion, ValueType, Wrapped, greatest, promote, smallest, unwrap, v1_bound, wrap

_NAMESPACE = "org.apache.hudi.avro.model."
_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


class RecordType(IntEnum):
    """The `type` field, for the partitions that we read and write."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    PARTITION_STATS = 6


_STATS_TYPES = (RecordType.COLUMN_STATS, RecordType.PARTITION_STATS)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A name in a listing: its size in bytes (0 for partitions), or that it was deleted."""

    size: int
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class FilesRecord:
    """Partitions of the table, or files of one partition, by name."""

    key: str
    type: RecordType
    entries: Mapping[str, FileEntry]


@dataclass(frozen=True, slots=True)
class StatsRecord:
    """Statistics of one column in one file or partition. Sizes in bytes.

    `tight` says that the range was computed over everything, and so replaces an older one instead of widening it.
    """

    key: str
    type: RecordType
    file_name: str
    column: str
    bound: BoundType
    minimum: Any
    maximum: Any
    value_count: int
    null_count: int
    total_size: int
    total_uncompressed_size: int
    deleted: bool = False
    tight: bool = False


Record = FilesRecord | StatsRecord


@functools.lru_cache(maxsize=8)
def stored_schema(release: str) -> AvroSchema:
    """The schema of HFiles and log blocks that a writer of this Hudi release uses."""
    record = json.loads(load_schema("HoodieMetadataRecord", release).text)
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in _META_COLUMNS]
    record["fields"] = meta + record["fields"]
    return parse_schema(json.dumps(record, separators=(",", ":"), ensure_ascii=False), "HoodieMetadataRecord.avsc")


def writer_schema(release: str, newest: AvroSchema | None) -> AvroSchema:
    """The schema for a new block: `release`'s, or that of a later writer which wrote the `newest` one already.

    Some readers (hudi-rs) take the schema of one block for all of them.
    """
    later = (stored_schema(r) for r in RELEASES[RELEASES.index(release) + 1 :])
    return next((schema for schema in later if newest and schema.text == newest.text), stored_schema(release))


def encode_record(record: Record, schema: AvroSchema, *, typed: bool) -> bytes:
    """The value under the record's key; `typed` column statistics say their type (table version 9)."""
    tree: dict[str, Any] = {"key": "", "type": int(record.type), "filesystemMetadata": None}
    if isinstance(record, FilesRecord):
        entries = {name: {"size": e.size, "isDeleted": e.deleted} for name, e in record.entries.items()}
        return write_datum(schema, tree | {"filesystemMetadata": entries})
    return write_datum(schema, tree | {"ColumnStatsMetadata": _stats_tree(record, typed)})


def decode_record(key: str, value: bytes, schema: AvroSchema, path: str) -> Record:
    """The record stored under `key` in the file `path`; raises CorruptFile, also for types that we do not read."""
    tree = read_datum(schema, value, path)
    try:
        kind = RecordType(tree["type"])
        if kind in _STATS_TYPES:
            return _stats_record(key, kind, tree["ColumnStatsMetadata"])
        entries = (tree["filesystemMetadata"] or {}).items()
        return FilesRecord(key, kind, {name: FileEntry(int(e["size"]), bool(e["isDeleted"])) for name, e in entries})
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as e:
        raise CorruptFile(f"{path} has no valid metadata record under the key {key[:80]!r}: {e}") from e


def merge_records(older: Record, newer: Record) -> Record:
    """What two records of one key mean together; a deleted record merges like an absent one, which is for callers."""
    if isinstance(newer, FilesRecord) and isinstance(older, FilesRecord):
        return FilesRecord(newer.key, newer.type, _merge_entries(older.entries, newer.entries))
    if isinstance(newer, StatsRecord) and isinstance(older, StatsRecord):
        return newer if newer.deleted or older.deleted or newer.tight else _widen(older, newer)
    return newer


def _merge_entries(older: Mapping[str, FileEntry], newer: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
    merged = dict(older)
    for name, entry in newer.items():
        before = merged.get(name)
        if before is None or (entry.deleted and before.deleted):
            merged[name] = entry
        elif entry.deleted:
            # A deletion and what it deletes cancel out; without an older entry it must stay, to cancel out below.
            del merged[name]
        else:
            merged[name] = FileEntry(max(before.size, entry.size))
    return merged


def _widen(older: StatsRecord, newer: StatsRecord) -> StatsRecord:
    bound = older.bound if newer.bound.type is ValueType.NULL else newer.bound
    try:
        bounds = [promote(value, older.bound, bound) for value in (older.minimum, older.maximum)]
    except NoPromotion:
        # Hudi cannot merge them either; the newer range is at least true for the newer file.
        bounds = [None, None]
    return StatsRecord(
        key=newer.key,
        type=newer.type,
        file_name=newer.file_name,
        column=newer.column,
        bound=bound,
        minimum=smallest([bounds[0], newer.minimum]),
        maximum=greatest([bounds[1], newer.maximum]),
        value_count=older.value_count + newer.value_count,
        null_count=older.null_count + newer.null_count,
        total_size=older.total_size + newer.total_size,
        total_uncompressed_size=older.total_uncompressed_size + newer.total_uncompressed_size,
    )


def _stats_tree(record: StatsRecord, typed: bool) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "fileName": record.file_name,
        "columnName": record.column,
        "minValue": _union(wrap(record.minimum, record.bound, typed=typed)),
        "maxValue": _union(wrap(record.maximum, record.bound, typed=typed)),
        "valueCount": record.value_count,
        "nullCount": record.null_count,
        "totalSize": record.total_size,
        "totalUncompressedSize": record.total_uncompressed_size,
        "isDeleted": record.deleted,
        "isTightBound": record.tight,
    }
    if typed:
        decimal = record.bound.type is ValueType.DECIMAL
        info = f"{record.bound.precision},{record.bound.scale}" if decimal else None
        tree["valueType"] = {"typeOrdinal": int(record.bound.type), "additionalInfo": info}
    return tree


def _union(wrapped: Wrapped | None) -> tuple[str, dict[str, Any]] | None:
    return None if wrapped is None else (_NAMESPACE + wrapped[0], {"value": wrapped[1]})


def _stats_record(key: str, kind: RecordType, tree: Mapping[str, Any]) -> StatsRecord:
    minimum, maximum = _wrapped(tree["minValue"]), _wrapped(tree["maxValue"])
    bound = _bound(tree.get("valueType"), minimum or maximum)
    return StatsRecord(
        key=key,
        type=kind,
        file_name=tree["fileName"] or "",
        column=tree["columnName"] or "",
        bound=bound,
        minimum=unwrap(minimum, bound),
        maximum=unwrap(maximum, bound),
        value_count=int(tree["valueCount"] or 0),
        null_count=int(tree["nullCount"] or 0),
        total_size=int(tree["totalSize"] or 0),
        total_uncompressed_size=int(tree["totalUncompressedSize"] or 0),
        deleted=bool(tree["isDeleted"]),
        tight=bool(tree.get("isTightBound")),
    )


def _wrapped(union: Any) -> Wrapped | None:
    return None if union is None else (union[0].rpartition(".")[2], union[1]["value"])


def _bound(value_type: Mapping[str, Any] | None, wrapped: Wrapped | None) -> BoundType:
    if value_type is None:
        return v1_bound(wrapped)
    kind = ValueType(value_type["typeOrdinal"])
    if kind is ValueType.V1:
        return v1_bound(wrapped)
    if kind is not ValueType.DECIMAL:
        return BoundType(kind)
    precision, _, scale = (value_type["additionalInfo"] or "").partition(",")
    return BoundType(kind, int(precision), int(scale))
