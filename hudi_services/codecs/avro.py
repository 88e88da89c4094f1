"""Avro binary and the container files of the timeline.

Container file, as Hudi writes each plan and metadata record:

    "Obj" 0x01
    file metadata   map<bytes>: avro.schema = the writer's schema as JSON; avro.codec = "null", or absent
    sync            16 bytes
    block           long record count (1) | long byte length | the record | sync

Longs are zigzag varints; a map is blocks of (long count | key value …) ended by count 0, a negative count being
followed by the byte length of its block.

Values are plain: dict, list, str, bytes, int, float, bool, None. Logical types are left as their base type (a decimal
is bytes, a date an int): the metadata table holds values beyond Python's dates. A record inside a union of several
record types is a pair (full type name, dict), in both directions.
Sources: the Avro 1.11 specification; TimelineMetadataUtils of Apache Hudi.
"""

import functools
import hashlib
import io
import json
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import fastavro

from ..errors import CorruptFile
from ..limits import LARGEST_FILE
from .avro_names import with_reachable_names
from .avro_schema_check import LONGEST_SCHEMA, check_json_depth, check_types

MAGIC = b"Obj\x01"
_SYNC_LENGTH = 16
_MAX_VARINT_BYTES = 10
# Hudi writes these files without compression; plans and commits would shrink to a fifth.
_INFLATES_TO = 20
_MAY_INFLATE_TO = 1 << 20
# A record of one byte takes 200 bytes of memory. Files of Hudi take up to 36 times their bytes for records, lists and
# dictionaries (cleans of many small partitions; commits 7 to 13): these are counted while a large record is read.
_CONTAINERS = ("record", "array", "map")
_NOT_KEPT = ("logicalType", "__fastavro_parsed", "__named_schemas")
_COUNTED = "hudi-services-counted"
_UNCOUNTED = 256 << 10
_LEAST_BUDGET = 64 << 20
_BYTES_PER_BYTE = 64
_PER_CONTAINER, _PER_ITEM = 80, 40
# Hudi's headers have two entries.
_MOST_HEADER_ENTRIES = 1000
# Schemas are stored under the first release that has them in this form.
_SINCE = ("1.1", "1.0", "0.15")


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A parsed schema and its JSON text, which is what gets embedded in files."""

    text: str
    parsed: Any = field(repr=False, compare=False)

    def says_the_same(self, other: "AvroSchema") -> bool:
        """Whether two schemas differ in their docs alone: ours have none."""
        return self.text == other.text or _without_docs(self.text) == _without_docs(other.text)

    @property
    def counted(self) -> Any:
        """The schema for reads that count records, arrays and maps. Parsed at each call, since few records need it."""
        return fastavro.parse_schema(_with_logical_types(with_reachable_names(json.loads(self.text)), _COUNTED))


@functools.lru_cache(maxsize=64)
def _without_docs(text: str) -> Any:
    def kept(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: kept(value) for key, value in tree.items() if key != "doc"}
        return [kept(part) for part in tree] if isinstance(tree, list) else tree

    return kept(json.loads(text))


@functools.lru_cache(maxsize=64)
def load_schema(record: str, release: str) -> AvroSchema:
    """The schema of a Hudi record, for example `HoodieCommitMetadata`, as the Hudi release (`1.2.0`) writes it."""
    wanted = tuple(map(int, release.split(".")[:2]))
    folder = resources.files(__package__.rpartition(".")[0]) / "schemas"
    for since in _SINCE:
        source = folder / since / f"{record}.avsc"
        if tuple(map(int, since.split("."))) <= wanted and source.is_file():
            text = json.dumps(json.loads(source.read_text("utf-8")), separators=(",", ":"), ensure_ascii=False)
            return parse_schema(text, source.name)
    raise LookupError(f"no schema of {record} for Hudi {release}")


def parse_schema(text: str, path: str) -> AvroSchema:
    """The schema in a JSON text of the file `path`. Raises CorruptFile for a schema that Hudi could not write."""
    try:
        return _parsed(text)
    except Exception as e:
        raise CorruptFile(f"{path} has no valid Avro schema: {_first_line(e)}") from e


# Many files have the same schema; parsing it takes longer than reading a small file.
@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> AvroSchema:
    if len(text) > LONGEST_SCHEMA:
        raise ValueError(f"{len(text)} characters")
    tree = json.loads(text)
    check_json_depth(tree)
    parsed = fastavro.parse_schema(_with_logical_types(with_reachable_names(tree), None))
    check_types(parsed)
    return AvroSchema(text, parsed)


def write_container(schema: AvroSchema, record: Mapping[str, Any]) -> bytes:
    """The container file of one record; the same record gives the same bytes."""
    datum = write_datum(schema, record)
    text = schema.text.encode()
    sync = hashlib.md5(text + datum, usedforsecurity=False).digest()
    header = _long(1) + _bytes(b"avro.schema") + _bytes(text) + _long(0)
    return MAGIC + header + sync + _long(1) + _bytes(datum) + sync


def read_container(data: bytes, path: str) -> dict[str, Any]:
    """The single record of a container file, decoded by its embedded schema.

    Raises CorruptFile, naming `path` and the offset, for anything else: an empty or truncated file, other codecs than
    null and deflate, a schema that is no record, more or less than one record.
    """
    cursor = _Cursor(data, path)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise CorruptFile(f"{path} is no Avro container file: no magic at 0")
    meta = _read_header_map(cursor)
    sync = cursor.take(_SYNC_LENGTH)
    schema = _embedded_schema(meta, path)
    count = cursor.long()
    start = cursor.at
    block = cursor.take(cursor.long())
    if cursor.take(_SYNC_LENGTH) != sync or cursor.at != len(data) or count != 1:
        raise CorruptFile(f"{path} does not hold exactly one Avro record (block at {start})")
    return read_datum(schema, _decompressed(block, meta, path, start), path, offset=start)


def write_datum(schema: AvroSchema, record: Mapping[str, Any]) -> bytes:
    """The binary form of one record, without a container."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema.parsed, record)
    return out.getvalue()


def read_datum(
    schema: AvroSchema, data: bytes, path: str, *, offset: int = 0, readers_schema: AvroSchema | None = None
) -> dict[str, Any]:
    """The record whose binary form is exactly `data`, found at `offset` of `path`. Raises CorruptFile.

    `readers_schema` is a schema of the same record with fewer fields: the other fields are skipped.
    """
    source = io.BytesIO(data)
    reader_schema = None if readers_schema is None else readers_schema.parsed
    is_large = len(data) > _UNCOUNTED
    _budget.left = max(_LEAST_BUDGET, _BYTES_PER_BYTE * len(data))
    try:
        record = fastavro.schemaless_reader(
            source,
            schema.counted if is_large else schema.parsed,
            reader_schema,
            return_record_name=True,
            return_record_name_override=True,
        )
    except Exception as e:
        # fastavro has no error type of its own for bad bytes.
        raise CorruptFile(f"{path} has a broken Avro record at {offset}: {_first_line(e)}") from e
    if source.tell() != len(data):
        raise CorruptFile(f"{path} has {len(data) - source.tell()} bytes after the Avro record at {offset}")
    if not isinstance(record, dict):
        raise CorruptFile(f"{path} has no Avro record at {offset} but another type")
    return record


class _Cursor:
    """A read position; reads beyond the data raise CorruptFile."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self.path, self.at = data, path, 0

    def take(self, length: int) -> bytes:
        if length < 0 or length > len(self.data) - self.at:
            raise CorruptFile(f"{self.path} ends too early: {length} bytes expected at {self.at}")
        self.at += length
        return self.data[self.at - length : self.at]

    def long(self) -> int:
        value = 0
        for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise CorruptFile(f"{self.path} has a varint longer than {_MAX_VARINT_BYTES} bytes at {self.at}")


def _read_header_map(cursor: _Cursor) -> dict[bytes, bytes]:
    meta: dict[bytes, bytes] = {}
    while (count := cursor.long()) != 0:
        if count < 0:
            cursor.long()
        if len(meta) + abs(count) > _MOST_HEADER_ENTRIES:
            raise CorruptFile(f"{cursor.path} has a header of more than {_MOST_HEADER_ENTRIES} entries")
        for _ in range(abs(count)):
            key = cursor.take(cursor.long())
            meta[key] = cursor.take(cursor.long())
    return meta


def _embedded_schema(meta: Mapping[bytes, bytes], path: str) -> AvroSchema:
    try:
        return parse_schema(meta[b"avro.schema"].decode(), path)
    except (KeyError, UnicodeDecodeError) as e:
        raise CorruptFile(f"{path} has no Avro schema in its header") from e


def _decompressed(block: bytes, meta: Mapping[bytes, bytes], path: str, offset: int) -> bytes:
    codec = meta.get(b"avro.codec", b"null")
    if codec == b"null":
        return block
    if codec != b"deflate":
        raise CorruptFile(f"{path} is compressed with {codec[:20]!r}, which Hudi does not write there")
    limit = min(LARGEST_FILE, max(_MAY_INFLATE_TO, _INFLATES_TO * len(block)))
    stream = zlib.decompressobj(-15)
    try:
        data = stream.decompress(block, limit + 1)
    except zlib.error as e:
        raise CorruptFile(f"{path} has a broken deflate block at {offset}") from e
    if len(data) > limit:
        raise CorruptFile(f"{path} has {len(block)} bytes at {offset} that inflate to more than {limit}")
    if not stream.eof:
        raise CorruptFile(f"{path} has a deflate block at {offset} that does not end")
    return data


def _with_logical_types(tree: Any, logical: str | None) -> Any:
    """`tree` with the logical type `logical` for records, arrays and maps, and no other logical type.

    A schema must not say of itself that fastavro has parsed it.
    """
    if isinstance(tree, list):
        return [_with_logical_types(branch, logical) for branch in tree]
    if isinstance(tree, dict):
        # A field's default may be any JSON, but no default of Hudi has this key.
        kept = (item for item in tree.items() if item[0] not in _NOT_KEPT)
        found = {key: _with_logical_types(value, logical) for key, value in kept}
        return {**found, "logicalType": logical} if logical and found.get("type") in _CONTAINERS else found
    return tree


class _Budget(threading.local):
    """The bytes of memory left for records, arrays and maps inside the record that this thread reads."""

    left = 0


_budget = _Budget()


def _count(value: Any, writer_schema: Any, reader_schema: Any) -> Any:
    _budget.left -= _PER_CONTAINER + _PER_ITEM * len(value)
    if _budget.left < 0:
        raise ValueError("it holds many more values than its bytes would make one think")
    return value


for _kind in _CONTAINERS:
    fastavro.read.LOGICAL_READERS[f"{_kind}-{_COUNTED}"] = _count


def _long(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value


def _first_line(error: Exception) -> str:
    text = str(error)
    return text.splitlines()[0][:200] if text else type(error).__name__
