"""Writes HFiles that every Hudi release from 0.15.0 on reads; for the layout see `hfile_format`.

The choices for that: gzip, checksum type NONE (its bytes are zeros), full keys in the index and as LASTKEY, no
multi-level index, no bloom filter, and data blocks of at most 64 KiB. Source: HFileWriterImpl, HoodieAvroHFileWriter.
"""

import io
import struct
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.binary_layout import Offsets, offsets_and_bytes, pieces
from ..codecs.gzip_stream import gzip
from ..codecs.varint import encode_varint
from ..errors import CheckFailed, UnsupportedTable
from .hfile_entries import ENTRY_OVERHEAD, encode_entries, entry_columns
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
# less than the smallest entry, so that no entry is lost; a larger entry has a block of its own.
_BLOCK_SIZE = 64 * 1024
_BYTES_PER_CHECKSUM = 16384
_MAX_ROW = 0x7FFF
# Bytes of entries that are encoded at once: enough to make the cost of calls of numpy and Arrow small.
_PIECE = 4 << 20


def write_hfile(entries: Sequence[tuple[bytes, bytes]], schema_json: str) -> bytes:
    """An HFile of (row key, value) pairs, sorted and unique, as `HFileStream` writes it. Raises what that raises."""
    file = io.BytesIO()
    stream = HFileStream(file.write, schema_json)
    stream.add(*entry_columns(entries))
    stream.close()
    return file.getvalue()


class HFileStream:
    """Writes an HFile piece by piece through `write`; the same entries give the same bytes.

    `schema_json` is the Avro schema of the values. Memory holds one block, the index of blocks, and little more than
    the arrays that `add` gets. The file is whole only after `close`.
    """

    def __init__(self, write: Callable[[bytes], object], schema_json: str) -> None:
        self._write = write
        self._schema_json = schema_json
        self._size = 0
        self._uncompressed = 0
        self._index: list[IndexEntry] = []
        self._block = bytearray()
        """Entries of the block that is not written yet."""
        self._block_row = b""
        self._count = 0
        self._row_bytes = 0
        self._value_bytes = 0
        self._last_row: bytes | None = None

    def add(self, rows: pa.Array, values: pa.Array) -> None:
        """Append entries: row keys (string or binary, also large) above all earlier keys, and as many binary values.

        The values may be dictionary-encoded. Raises CheckFailed for unsorted or repeated keys and for nulls, and
        UnsupportedTable for a key of more than 32767 bytes; after that the file is lost.
        """
        if not len(rows):
            return
        row_lengths, value_lengths = _lengths(rows), _lengths(values)
        self._check(rows, row_lengths)
        sizes = row_lengths + value_lengths + ENTRY_OVERHEAD
        for start, end in pieces(np.append(0, np.cumsum(sizes)), _PIECE):
            self._add_piece(rows[start:end], _plain(values[start:end]))
        self._count += len(rows)
        self._row_bytes += int(row_lengths.sum())
        self._value_bytes += int(value_lengths.sum())
        self._last_row = _row(rows, -1)

    def close(self) -> int:
        """Write what is left, and return the size of the file in bytes. Raises CheckFailed when it has no entries."""
        if not self._count:
            raise CheckFailed("an HFile needs at least one entry")
        self._end_block()
        root = b"".join(map(_index_entry, self._index))
        root_offset = self._append(ROOT_INDEX_MAGIC, root, -1)
        self._append(ROOT_INDEX_MAGIC, b"", root_offset)
        info_offset = self._append(FILE_INFO_MAGIC, self._file_info(), -1)
        trailer = Trailer(
            file_info_offset=info_offset,
            load_on_open_offset=root_offset,
            uncompressed_data_index_size=len(root),
            total_uncompressed_bytes=self._uncompressed,
            data_index_count=len(self._index),
            entry_count=self._count,
            first_data_offset=self._index[0].offset,
            last_data_offset=self._index[-1].offset,
        )
        end = encode_trailer(trailer)
        self._write(end)
        return self._size + len(end)

    def _check(self, rows: pa.Array, lengths: Offsets) -> None:
        longest = int(lengths.argmax())
        if lengths[longest] > _MAX_ROW:
            start = _row(rows, longest)[:40]
            raise UnsupportedTable(f"the key {start!r}... has {lengths[longest]} bytes, and an HFile takes {_MAX_ROW}")
        pairs = [(self._last_row, _row(rows, 0))] if self._last_row is not None else []
        wrong = pc.index(pc.less(rows[:-1], rows[1:]), False).as_py()
        if wrong >= 0:
            pairs.append((_row(rows, wrong), _row(rows, wrong + 1)))
        for previous, row in pairs:
            if row <= previous:
                raise CheckFailed(f"HFile entries must be sorted and unique: {row!r} follows {previous!r}")

    def _add_piece(self, rows: pa.Array, values: pa.Array) -> None:
        offsets, data = encode_entries(rows, values)
        at = 0
        while at < len(rows):
            limit = offsets[at] + _BLOCK_SIZE - len(self._block)
            end = int(np.searchsorted(offsets, limit, "right")) - 1
            if end <= at and self._block:
                self._end_block()
                continue
            end = max(end, at + 1)
            if not self._block:
                self._block_row = _row(rows, at)
            self._block += data[offsets[at] : offsets[end]].data
            at = end

    def _end_block(self) -> None:
        previous = self._index[-1].offset if self._index else -1
        offset = self._append(DATA_MAGIC, self._block, previous)
        self._index.append(IndexEntry(self._block_row, offset, self._size - offset))
        self._block.clear()

    def _append(self, magic: bytes, payload: bytes | bytearray, previous: int) -> int:
        """Write a block, and return where it begins."""
        offset = self._size
        block = _block(magic, payload, previous)
        self._write(block)
        self._size += len(block)
        self._uncompressed += BLOCK_HEADER_SIZE + len(payload)
        return offset

    def _file_info(self) -> bytes:
        key_bytes = self._row_bytes + self._count * len(_key(b""))
        info = {
            b"KEY_VALUE_VERSION": struct.pack(">i", 1),
            b"MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
            b"hfile.AVG_KEY_LEN": struct.pack(">i", key_bytes // self._count),
            b"hfile.AVG_VALUE_LEN": struct.pack(">i", self._value_bytes // self._count),
            b"hfile.CREATE_TIME_TS": struct.pack(">q", 0),
            b"hfile.LASTKEY": _key(self._last_row or b""),
            b"schema": self._schema_json.encode(),
        }
        pairs = (encode_proto_bytes(1, key) + encode_proto_bytes(2, value) for key, value in sorted(info.items()))
        message = b"".join(encode_proto_bytes(1, pair) for pair in pairs)
        return INFO_MAGIC + encode_varint(len(message)) + message


def _lengths(column: pa.Array) -> Offsets:
    """The length in bytes of each row. Raises CheckFailed for nulls."""
    if column.null_count:
        raise CheckFailed(f"{column.null_count} keys or values of an HFile are null")
    if pa.types.is_dictionary(column.type):
        found: Offsets = _lengths(column.dictionary)[column.indices.to_numpy()]
        return found
    return np.diff(offsets_and_bytes(column)[0])


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _row(rows: pa.Array, at: int) -> bytes:
    return bytes(rows[at].as_buffer())


def _key(row: bytes) -> bytes:
    return struct.pack(">H", len(row)) + row + KEY_SUFFIX


def _index_entry(entry: IndexEntry) -> bytes:
    key = _key(entry.row)
    return struct.pack(">qi", entry.offset, entry.size) + encode_hadoop_vint(len(key)) + key


def _block(magic: bytes, payload: bytes | bytearray, previous: int) -> bytes:
    stored = gzip(payload)
    with_header = BLOCK_HEADER_SIZE + len(stored)
    checksums = bytes(4 * -(-with_header // _BYTES_PER_CHECKSUM))
    sizes = struct.pack(">iiq", len(stored) + len(checksums), len(payload), previous)
    return b"".join((magic, sizes, struct.pack(">bii", 0, _BYTES_PER_CHECKSUM, with_header), stored, checksums))
