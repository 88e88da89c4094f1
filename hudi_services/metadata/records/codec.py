"""The bytes of the metadata table's records: a HoodieMetadataRecord in Avro, stored under its key.

Its field `key` is empty; `type` says which one of the other fields is set: filesystemMetadata, ColumnStatsMetadata,
BloomFilterMetadata, recordIndexMetadata or SecondaryIndexMetadata.
Source: HoodieMetadataPayload, HoodieMetadata.avsc of Apache Hudi.
"""

from collections.abc import Mapping
from typing import Any

from ...codecs.avro import AvroSchema, read_datum, write_datum
from ...errors import CorruptFile
from ...schema.column_type import ColumnType, Kind
from ..record_index.locations import location_of, location_tree
from ..statistics.values import Wrapped, ordinal, typed_bound, unwrap, v1_bound, wrap
from .model import (
    BloomRecord,
    FileEntry,
    FilesRecord,
    LocationRecord,
    Record,
    RecordType,
    SecondaryRecord,
    StatsRecord,
)

_NAMESPACE = "org.apache.hudi.avro.model."


def encode_record(record: Record, schema: AvroSchema, *, typed: bool) -> bytes:
    """The value under the record's key; `typed` column statistics say their type (table version 9)."""
    kind, content = _content(record, typed)
    return write_datum(schema, {"key": "", "type": int(kind), "filesystemMetadata": None} | content)


def _content(record: Record, typed: bool) -> tuple[RecordType, dict[str, Any]]:
    match record:
        case FilesRecord():
            entries = {name: {"size": e.size, "isDeleted": e.deleted} for name, e in record.entries.items()}
            return record.type, {"filesystemMetadata": entries}
        case StatsRecord():
            return record.type, {"ColumnStatsMetadata": _stats_tree(record, typed)}
        case BloomRecord():
            return RecordType.BLOOM_FILTERS, {
                "BloomFilterMetadata": {
                    "type": record.type_code,
                    "timestamp": record.instant,
                    "bloomFilter": record.bits,
                    "isDeleted": record.deleted,
                }
            }
        case LocationRecord():
            return RecordType.RECORD_INDEX, {"recordIndexMetadata": location_tree(record.location)}
        case SecondaryRecord():
            return RecordType.SECONDARY_INDEX, {"SecondaryIndexMetadata": {"isDeleted": record.deleted}}


def decode_record(key: str, value: bytes, schema: AvroSchema, path: str) -> Record:
    """The record stored under `key` in the file `path`; raises CorruptFile, also for types that we do not read."""
    tree = read_datum(schema, value, path)
    try:
        return _record(key, RecordType(tree["type"]), tree)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as e:
        raise CorruptFile(f"{path} has no valid metadata record under the key {key[:80]!r}: {e}") from e


def _record(key: str, kind: RecordType, tree: Mapping[str, Any]) -> Record:
    match kind:
        case RecordType.ALL_PARTITIONS | RecordType.FILES:
            entries = (tree["filesystemMetadata"] or {}).items()
            found = {name: FileEntry(int(e["size"]), bool(e["isDeleted"])) for name, e in entries}
            return FilesRecord(key, kind, found)
        case RecordType.COLUMN_STATS | RecordType.PARTITION_STATS:
            return _stats_record(key, kind, tree["ColumnStatsMetadata"])
        case RecordType.BLOOM_FILTERS:
            bloom = tree["BloomFilterMetadata"]
            bits = bytes(bloom["bloomFilter"])
            return BloomRecord(key, bloom["type"], bloom["timestamp"], bits, bool(bloom["isDeleted"]))
        case RecordType.RECORD_INDEX:
            return LocationRecord(key, location_of(tree["recordIndexMetadata"]))
        case RecordType.SECONDARY_INDEX:
            return SecondaryRecord(key, bool(tree["SecondaryIndexMetadata"]["isDeleted"]))


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
        bound = record.bound
        info = f"{bound.precision},{bound.scale}" if bound.kind is Kind.DECIMAL else None
        tree["valueType"] = {"typeOrdinal": ordinal(bound), "additionalInfo": info}
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


def _bound(value_type: Mapping[str, Any] | None, wrapped: Wrapped | None) -> ColumnType:
    if value_type is None:
        return v1_bound(wrapped)
    return typed_bound(value_type["typeOrdinal"], value_type["additionalInfo"], wrapped)
