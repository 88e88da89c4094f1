"""HFile version 3, the sorted key-value file of the metadata table: constants, blocks and trailer.

A file, all integers big-endian:

    data blocks | meta blocks | root data index | meta index | file info | trailer (the last 4096 bytes)

HBase may put leaf index blocks among the data blocks and intermediate ones before the root index. Block:

    0   8  magic
    8   4  on-disk size without header: compressed payload + checksums
    12  4  uncompressed payload size
    16  8  offset of the previous block of the type, or -1 (readers ignore it)
    24  1  checksum type: 0 none, 1 CRC32, 2 CRC32C
    25  4  bytes per checksum
    29  4  33 + compressed payload size
    33     payload, compressed with the file's codec
           4 bytes of checksum per (begun) `bytes per checksum` of header and compressed payload

Payloads:

    data        repeated: int32 key length, int32 value length, key, value, mvcc (one byte 0)
    key         int16 row length, row, 10-byte suffix (family length 0, timestamp Long.MAX, type Put)
    root index  repeated: int64 offset, int32 on-disk size with header, Hadoop VInt length, first key of the block
                (1.2's own writer leaves the suffix away; 1.1's wrote a protobuf varint for the length)
    leaf index  int32 n, (n + 1) x int32 relative offset, n x (int64 offset, int32 size, key)
    file info   "PBUF", varint length, InfoProto {repeated map_entry = 1 {bytes first = 1; bytes second = 2}}
    trailer     magic, varint length, TrailerProto, zeros, int32 version (low byte 3)

Rows are the UTF-8 record keys, in unsigned byte order. Source: org.apache.hudi.io.hfile (reader and writer of 1.0.2 to
1.2.0), hfile_format.md, and HBase's HFileBlock for files of 0.15.0 and 1.0.2.
"""

from dataclasses import dataclass

from ..codecs.cursor import Cursor
from ..codecs.varint import encode_varint

BLOCK_HEADER_SIZE = 33
TRAILER_SIZE = 4096
DATA_MAGIC = b"DATABLK*"
ROOT_INDEX_MAGIC = b"IDXROOT2"
LEAF_INDEX_MAGIC = b"IDXLEAF2"
INTERMEDIATE_INDEX_MAGIC = b"IDXINTE2"
FILE_INFO_MAGIC = b"FILEINF2"
TRAILER_MAGIC = b'TRABLK"$'
INFO_MAGIC = b"PBUF"
MAJOR_VERSION = 3
CODEC_GZ = 1
CODEC_NONE = 2
COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
KEY_SUFFIX = b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\x04"
"""Family length 0, the latest timestamp, type Put."""

# Fields of TrailerProto; 11 is the comparator's name and 13 an encryption key.
_NUMBER_FIELDS = {
    1: "file_info_offset",
    2: "load_on_open_offset",
    3: "uncompressed_data_index_size",
    4: "total_uncompressed_bytes",
    5: "data_index_count",
    6: "meta_index_count",
    7: "entry_count",
    8: "index_levels",
    9: "first_data_offset",
    10: "last_data_offset",
    12: "codec",
}
_COMPARATOR_FIELD = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailer:
    """TrailerProto; offsets and sizes in bytes."""

    file_info_offset: int = 0
    load_on_open_offset: int = 0
    uncompressed_data_index_size: int = 0
    total_uncompressed_bytes: int = 0
    data_index_count: int = 0
    meta_index_count: int = 0
    entry_count: int = 0
    index_levels: int = 1
    first_data_offset: int = 0
    last_data_offset: int = 0
    codec: int = CODEC_GZ


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A block and a row that is its first row or before it; `size` includes the block's header."""

    row: bytes
    offset: int
    size: int


def encode_hadoop_vint(value: int) -> bytes:
    """A non-negative number as Hadoop's WritableUtils.writeVInt writes it."""
    if value <= 0x7F:
        return bytes((value,))
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((0x90 - len(raw),)) + raw


def encode_proto_bytes(field: int, value: bytes) -> bytes:
    return encode_varint(field << 3 | 2) + encode_varint(len(value)) + value


def encode_trailer(trailer: Trailer) -> bytes:
    """The 4096 bytes that end a file."""
    proto = bytearray()
    for number, name in sorted((*_NUMBER_FIELDS.items(), (_COMPARATOR_FIELD, ""))):
        if number == _COMPARATOR_FIELD:
            proto += encode_proto_bytes(number, COMPARATOR)
        else:
            proto += encode_varint(number << 3) + encode_varint(getattr(trailer, name))
    head = TRAILER_MAGIC + encode_varint(len(proto)) + proto
    return head.ljust(TRAILER_SIZE - 4, b"\0") + MAJOR_VERSION.to_bytes(4, "big")


def decode_trailer(cursor: Cursor) -> Trailer:
    """The trailer at the cursor, which holds exactly its 4096 bytes. Raises CorruptFile."""
    if cursor.data[-1] != MAJOR_VERSION:
        cursor.fail(f"HFile version {cursor.data[-1]} is not supported, only {MAJOR_VERSION}")
    if cursor.take(len(TRAILER_MAGIC), "trailer magic") != TRAILER_MAGIC:
        cursor.fail("no HFile trailer here")
    fields = proto_fields(cursor.nested(cursor.varint("trailer length"), "trailer"))
    numbers = {_NUMBER_FIELDS[f]: value for f, value in fields if f in _NUMBER_FIELDS and isinstance(value, int)}
    trailer = Trailer(**numbers)
    if trailer.codec not in (CODEC_GZ, CODEC_NONE):
        cursor.fail(f"HFile compression codec {trailer.codec} is not supported, only GZ and NONE")
    return trailer


def proto_fields(cursor: Cursor) -> list[tuple[int, int | bytes]]:
    """The varint and bytes fields of the message that fills the cursor; HFiles have no fixed-width ones."""
    fields: list[tuple[int, int | bytes]] = []
    while cursor.remaining:
        tag = cursor.varint("field tag")
        if tag & 7 == 0:
            fields.append((tag >> 3, cursor.varint("number field")))
        elif tag & 7 == 2:
            fields.append((tag >> 3, cursor.take(cursor.varint("field length"), "bytes field")))
        else:
            cursor.fail(f"unknown wire type {tag & 7}")
    return fields
