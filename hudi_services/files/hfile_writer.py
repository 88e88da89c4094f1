"""Writes HFiles that every Hudi release from 0.15.0 on reads; the layout stands in `hfile_format`.

The choices that make it so: gzip, checksum type NONE (its bytes are zeros), full keys in the index and as LASTKEY, no
multi-level index, no bloom filter, and data blocks of at most 64 KiB. Source: HFileWriterImpl, HoodieAvroHFileWriter.
"""

import struct
import zlib
from collections.abc import Sequence

from ..codecs.varint import encode_varint
from ..errors import CheckFailed, UnsupportedTable
from .hfile_format import (
    BLOCK_HEADER_SIZE,
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    INFO_MAGIC,
    KEY_SUFFIX,
    ROOT_INDEX_MAGIC,
    IndexEntry,
    Trailer,
    encode_hadoop_vint,
    encode_proto_bytes,
    encode_trailer,
)

# The Java reader ends a block early by the size of its checksums. With at most 64 KiB in a block these are 20 bytes,
# less than the smallest entry, so that it loses nothing; a larger entry has a block of its own.
_BLOCK_SIZE = 64 * 1024
_BYTES_PER_CHECKSUM = 16384
_GZIP = 31
_MAX_ROW = 0x7FFF
_ENTRY_OVERHEAD = 8 + 2 + len(KEY_SUFFIX) + 1


def write_hfile(entries: Sequence[tuple[bytes, bytes]], schema_json: str) -> bytes:
    """An HFile of (row key, value) pairs, which must be sorted by row key and unique; the same input, the same bytes.

    `schema_json` is the Avro schema of the values. Raises CheckFailed for no entries or unsorted ones, and
    UnsupportedTable for a row key of more than 32767 bytes.
    """
    _check(entries)
    file = _FileBuilder()
    for rows in _split(entries):
        file.add_data(rows)
    return file.finish(entries, schema_json)


class _FileBuilder:
    """Appends blocks and remembers where they are."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._uncompressed = 0
        self._index: list[IndexEntry] = []

    def add_data(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        payload = b"".join(map(_entry, rows))
        previous = self._index[-1].offset if self._index else -1
        offset = self._append(DATA_MAGIC, payload, previous)
        self._index.append(IndexEntry(rows[0][0], offset, self._size - offset))

    def finish(self, entries: Sequence[tuple[bytes, bytes]], schema_json: str) -> bytes:
        root = b"".join(map(_index_entry, self._index))
        root_offset = self._append(ROOT_INDEX_MAGIC, root, -1)
        self._append(ROOT_INDEX_MAGIC, b"", root_offset)
        info_offset = self._append(FILE_INFO_MAGIC, _file_info(entries, schema_json), -1)
        trailer = Trailer(
            file_info_offset=info_offset,
            load_on_open_offset=root_offset,
            uncompressed_data_index_size=len(root),
            total_uncompressed_bytes=self._uncompressed,
            data_index_count=len(self._index),
            entry_count=len(entries),
            first_data_offset=self._index[0].offset,
            last_data_offset=self._index[-1].offset,
        )
        return b"".join((*self._parts, encode_trailer(trailer)))

    def _append(self, magic: bytes, payload: bytes, previous: int) -> int:
        """Append a block, and return where it begins."""
        offset = self._size
        block = _block(magic, payload, previous)
        self._parts.append(block)
        self._size += len(block)
        self._uncompressed += BLOCK_HEADER_SIZE + len(payload)
        return offset


def _check(entries: Sequence[tuple[bytes, bytes]]) -> None:
    if not entries:
        raise CheckFailed("an HFile needs at least one entry")
    previous = None
    for row, _ in entries:
        if previous is not None and row <= previous:
            raise CheckFailed(f"HFile entries must be sorted and unique: {row!r} follows {previous!r}")
        if len(row) > _MAX_ROW:
            raise UnsupportedTable(f"the key {row[:40]!r}... has {len(row)} bytes, and an HFile takes {_MAX_ROW}")
        previous = row


def _split(entries: Sequence[tuple[bytes, bytes]]) -> list[Sequence[tuple[bytes, bytes]]]:
    """The entries of each data block."""
    blocks, start, size = [], 0, 0
    for at, (row, value) in enumerate(entries):
        length = _ENTRY_OVERHEAD + len(row) + len(value)
        if at > start and size + length > _BLOCK_SIZE:
            blocks.append(entries[start:at])
            start, size = at, 0
        size += length
    return [*blocks, entries[start:]]


def _key(row: bytes) -> bytes:
    return struct.pack(">H", len(row)) + row + KEY_SUFFIX


def _entry(pair: tuple[bytes, bytes]) -> bytes:
    key, value = _key(pair[0]), pair[1]
    return b"".join((struct.pack(">ii", len(key), len(value)), key, value, b"\0"))


def _index_entry(entry: IndexEntry) -> bytes:
    key = _key(entry.row)
    return struct.pack(">qi", entry.offset, entry.size) + encode_hadoop_vint(len(key)) + key


def _block(magic: bytes, payload: bytes, previous: int) -> bytes:
    stream = zlib.compressobj(wbits=_GZIP)
    stored = stream.compress(payload) + stream.flush()
    with_header = BLOCK_HEADER_SIZE + len(stored)
    checksums = bytes(4 * -(-with_header // _BYTES_PER_CHECKSUM))
    sizes = struct.pack(">iiq", len(stored) + len(checksums), len(payload), previous)
    return b"".join((magic, sizes, struct.pack(">bii", 0, _BYTES_PER_CHECKSUM, with_header), stored, checksums))


def _file_info(entries: Sequence[tuple[bytes, bytes]], schema_json: str) -> bytes:
    count = len(entries)
    info = {
        b"KEY_VALUE_VERSION": struct.pack(">i", 1),
        b"MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
        b"hfile.AVG_KEY_LEN": struct.pack(">i", sum(len(_key(row)) for row, _ in entries) // count),
        b"hfile.AVG_VALUE_LEN": struct.pack(">i", sum(len(value) for _, value in entries) // count),
        b"hfile.CREATE_TIME_TS": struct.pack(">q", 0),
        b"hfile.LASTKEY": _key(entries[-1][0]),
        b"schema": schema_json.encode(),
    }
    pairs = (encode_proto_bytes(1, key) + encode_proto_bytes(2, value) for key, value in sorted(info.items()))
    message = b"".join(encode_proto_bytes(1, pair) for pair in pairs)
    return INFO_MAGIC + encode_varint(len(message)) + message
