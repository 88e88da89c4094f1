"""Values of the record index: the location of the record of a key.

A value is a HoodieMetadataRecord of type 5 stored under the record key, with the field `key` itself empty, so that all
records of a file have the same value. Its recordIndexMetadata:

    partitionName    the partition's path, "" in a table without partitions
    fileIdEncoding   0: the file id is `<uuid>-<n>`, or a bare uuid; 1: it is any other text
    fileIdHighBits, fileIdLowBits, fileIndex    encoding 0: the signed halves of the uuid, and n or -1; otherwise all -1
    fileId           encoding 1: the file id; otherwise ""
    instantTime      the instant that wrote the record, in epoch milliseconds
    position         null (from release 1.0 on)

Source: HoodieMetadataPayload.createRecordIndexUpdate, HoodieTableMetadataUtil.getLocationFromRecordIndexInfo.
"""

from __future__ import annotations

import functools
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from ...clock import parse_instant
from ...codecs.avro import AvroSchema, read_datum, write_datum
from ...errors import CorruptFile, UnsupportedTable

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD_TYPE = 5
_UUID_ENCODING, _TEXT_ENCODING = 0, 1
_NO_FILE_INDEX = -1
# File ids that Java's UUID and int turn into the same text again.
_UUID_FILE_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-(0|[1-9][0-9]{0,8}))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_MASK = (1 << 64) - 1
HUDI_ZONE = "LOCAL"
"""The zone of the milliseconds in the index: Hudi uses the zone of its JVM, whatever the zone of the timeline."""


@dataclass(frozen=True, slots=True)
class Location:
    """The file group of a record, and the instant that wrote it there."""

    partition: str
    file_id: str
    instant_millis: int


def millis_of(instant: str, zone: str = HUDI_ZONE) -> int:
    """The epoch milliseconds of an instant, whose zone is "UTC" or "LOCAL"; one of 14 digits ends its second.

    Hudi itself writes and reads them in the zone of its JVM, also when the timeline is in UTC. Raises UnsupportedTable
    for an instant that is no time: Hudi cannot index its records either.
    """
    moment = parse_instant(instant, zone)
    if moment is None:
        raise UnsupportedTable(f"the instant {instant} is not a time, and the record index needs one")
    return (moment - _EPOCH) // _MILLISECOND


def encode_location(location: Location, schema: AvroSchema) -> bytes:
    """The value of all records at a location, in a schema of `records.schema.stored_schema`."""
    tree = {"key": "", "type": _RECORD_TYPE, "recordIndexMetadata": location_tree(location)}
    return write_datum(schema, tree)


def location_tree(location: Location) -> dict[str, Any]:
    """The recordIndexMetadata of a location."""
    info: dict[str, Any] = {
        "partitionName": location.partition,
        "fileIdHighBits": -1,
        "fileIdLowBits": -1,
        "fileIndex": _NO_FILE_INDEX,
        "fileId": location.file_id,
        "instantTime": location.instant_millis,
        "fileIdEncoding": _TEXT_ENCODING,
    }
    if match := _UUID_FILE_ID.fullmatch(location.file_id):
        number = uuid.UUID(match[1]).int
        info |= {
            "fileIdHighBits": _signed(number >> 64),
            "fileIdLowBits": _signed(number & _MASK),
            "fileIndex": _NO_FILE_INDEX if match[2] is None else int(match[2]),
            "fileId": "",
            "fileIdEncoding": _UUID_ENCODING,
        }
    return info


# A file is read block by block, and each block has the same values again.
@functools.lru_cache(maxsize=1 << 16)
def decode_location(value: bytes, schema: AvroSchema, path: str) -> Location:
    """The location in a value of the file `path`. Raises CorruptFile for anything else."""
    tree = read_datum(schema, value, path)
    try:
        if tree["type"] != _RECORD_TYPE:
            raise ValueError(f"a record of type {tree['type']}")
        return location_of(tree["recordIndexMetadata"])
    except (KeyError, TypeError, ValueError) as e:
        raise CorruptFile(f"{path} has no valid entry of the record index: {e}") from e


def location_of(info: Mapping[str, Any]) -> Location:
    """The location in a recordIndexMetadata. Raises KeyError, TypeError or ValueError for anything else."""
    partition, millis = info["partitionName"], info["instantTime"]
    if partition is None or millis is None:
        raise ValueError("no partition or no instant")
    return Location(partition, _file_id(info), millis)


def decode_locations(values: pa.Array, schema: AvroSchema, path: str) -> tuple[pa.Array, list[Location]]:
    """The int32 position of the location of each of the binary `values` of the file `path`, and the list of locations.

    Only distinct values are decoded. Raises CorruptFile.
    """
    encoded = values.dictionary_encode()
    return encoded.indices, [decode_location(value, schema, path) for value in encoded.dictionary.to_pylist()]


def _file_id(info: Mapping[str, Any]) -> str:
    encoding = info["fileIdEncoding"]
    if encoding == _UUID_ENCODING:
        high, low, index = info["fileIdHighBits"], info["fileIdLowBits"], info["fileIndex"]
        text = str(uuid.UUID(int=(high & _MASK) << 64 | low & _MASK))
        return text if index == _NO_FILE_INDEX else f"{text}-{index:d}"
    if encoding != _TEXT_ENCODING or info["fileId"] is None:
        raise ValueError(f"a file id in encoding {encoding}: {info['fileId']}")
    return str(info["fileId"])


def _signed(number: int) -> int:
    """The signed number with the same 64 bits."""
    return number - (1 << 64) if number >> 63 else number
