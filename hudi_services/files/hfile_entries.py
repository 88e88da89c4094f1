"""The entries of HFile data blocks as Arrow columns; their layout stands in `hfile_format`."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.binary_layout import Bytes, Offsets, from_offsets, offsets_and_bytes
from .hfile_format import KEY_SUFFIX

ENTRY_OVERHEAD = 8 + 2 + len(KEY_SUFFIX) + 1
"""Bytes of an entry besides its row and its value."""

_LENGTHS = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
_BINARY = pa.binary()
_NOTHING = pa.scalar(b"", _BINARY)


def entry_columns(entries: Sequence[tuple[bytes, bytes]]) -> tuple[pa.Array, pa.Array]:
    """The binary rows and the binary values of pairs."""
    rows, values = (pa.array([entry[part] for entry in entries], _BINARY) for part in (0, 1))
    return rows, values


def encode_entries(rows: pa.Array, values: pa.Array) -> tuple[Offsets, Bytes]:
    """The entries of these rows and values, one after another, and the n + 1 offsets between them.

    Both are string, large_string, binary or large_binary; together they are shorter than 2 GiB, and a row than 32 KiB.
    """
    row_offsets, value_offsets = (offsets_and_bytes(column)[0] for column in (rows, values))
    rows, values = (from_offsets(*offsets_and_bytes(column)) for column in (rows, values))
    lengths = np.empty(len(rows), _LENGTHS)
    lengths["row"] = np.diff(row_offsets)
    lengths["key"] = np.diff(row_offsets) + (2 + len(KEY_SUFFIX))
    lengths["value"] = np.diff(value_offsets)
    heads = _column(lengths.view(np.uint8).reshape(-1, _LENGTHS.itemsize))
    suffix, mvcc = pa.scalar(KEY_SUFFIX, _BINARY), pa.scalar(b"\0", _BINARY)
    return offsets_and_bytes(pc.binary_join_element_wise(heads, rows, suffix, values, mvcc, _NOTHING))


def decode_equal_entries(payload: bytes) -> tuple[pa.Array, pa.Array] | None:
    """The binary rows and values of a data block whose entries all have the same three lengths; None for any other."""
    data = np.frombuffer(payload, np.uint8)
    if len(data) < _LENGTHS.itemsize:
        return None
    key, value, row = (int(length) for length in data[: _LENGTHS.itemsize].view(_LENGTHS)[0])
    size = 8 + key + value + 1
    if row < 0 or value < 0 or 2 + row > key or len(data) % size:
        return None
    entries = data.reshape(-1, size)
    if entries[:, -1].any() or (entries[:, : _LENGTHS.itemsize] != entries[0, : _LENGTHS.itemsize]).any():
        return None
    row_at = _LENGTHS.itemsize
    return _column(entries[:, row_at : row_at + row]), _column(entries[:, 8 + key : -1])


def _column(cells: Bytes) -> pa.Array:
    """The binary array of rows that are of one length."""
    count, length = cells.shape
    return from_offsets(np.arange(count + 1) * length, np.ascontiguousarray(cells).reshape(-1))
