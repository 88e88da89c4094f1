"""The entries of HFile data blocks as Arrow columns; their layout stands in `hfile_format`."""

import struct
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.binary_layout import Bytes, Offsets, from_offsets, offsets_and_bytes
from .cursor import Cursor
from .hfile_format import KEY_SUFFIX

ENTRY_OVERHEAD = 8 + 2 + len(KEY_SUFFIX) + 1
"""Bytes of an entry besides its row and its value."""

_LENGTHS = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
_KEY_AND_VALUE = struct.Struct(">ii")
_BINARY = pa.binary()


def entry_columns(entries: Sequence[tuple[bytes, bytes]]) -> tuple[pa.Array, pa.Array]:
    """The binary rows and the binary values of pairs."""
    rows, values = (pa.array([entry[part] for entry in entries], _BINARY) for part in (0, 1))
    return rows, values


def encode_entries(rows: pa.Array, values: pa.Array) -> tuple[Offsets, Bytes]:
    """The entries of these rows and values, one after another, and the n + 1 offsets between them.

    Both are string, large_string, binary or large_binary; together they are shorter than 2 GiB, and a row than 32 KiB.
    """
    (row_offsets, row_bytes), (value_offsets, value_bytes) = offsets_and_bytes(rows), offsets_and_bytes(values)
    lengths = np.empty(len(rows), _LENGTHS)
    lengths["row"] = np.diff(row_offsets)
    lengths["key"] = np.diff(row_offsets) + (2 + len(KEY_SUFFIX))
    lengths["value"] = np.diff(value_offsets)
    parts = (
        from_offsets(np.arange(len(rows) + 1) * _LENGTHS.itemsize, lengths.view(np.uint8)),
        from_offsets(row_offsets, row_bytes),
        pa.scalar(KEY_SUFFIX, _BINARY),
        from_offsets(value_offsets, value_bytes),
        pa.scalar(b"\0", _BINARY),
    )
    return offsets_and_bytes(pc.binary_join_element_wise(*parts, pa.scalar(b"", _BINARY)))


def decode_entries(cursor: Cursor) -> tuple[pa.Array, pa.Array]:
    """The binary rows and the binary values of the data block that fills the cursor. Raises CorruptFile."""
    data, pos, size = cursor.data, 0, len(cursor.data)
    found = []
    # Only its lengths say where an entry ends, so this has to be a loop; whatever else can be done outside of it is.
    try:
        while pos < size:
            found.append(pos)
            key_length, value_length = _KEY_AND_VALUE.unpack_from(data, pos)
            if key_length < 2 or value_length < 0:
                _fail(cursor, pos, f"an entry with lengths {key_length} and {value_length}")
            pos += 8 + key_length + value_length + 1
    except struct.error:
        _fail(cursor, pos, "a torn entry")
    if not found:
        return entry_columns(())
    if pos > size:
        _fail(cursor, found[-1], f"an entry that ends {pos - size} bytes after its block")
    starts = np.array(found)
    lengths = np.ndarray(size - _LENGTHS.itemsize + 1, _LENGTHS, data, strides=(1,))[starts]
    bounds = np.empty((len(starts), 4), np.int64)
    bounds[:, 0] = starts + _LENGTHS.itemsize
    bounds[:, 1] = bounds[:, 0] + lengths["row"]
    bounds[:, 2] = starts + 8 + lengths["key"]
    bounds[:, 3] = bounds[:, 2] + lengths["value"]
    raw = np.frombuffer(data, np.uint8)
    for wrong, problem in (
        ((lengths["row"] < 0) | (bounds[:, 1] > bounds[:, 2]), "a row that does not fit its key"),
        (raw[bounds[:, 3]] != 0, "entries with versions (mvcc) are not supported"),
    ):
        if wrong.any():
            _fail(cursor, int(starts[wrong.argmax()]), problem)
    # Between these bounds lie in turn a row, the rest of its key, a value, and what is before the next row.
    cells = from_offsets(bounds.reshape(-1), raw)
    return cells.take(pa.array(np.arange(0, len(cells), 4))), cells.take(pa.array(np.arange(2, len(cells), 4)))


def _fail(cursor: Cursor, pos: int, problem: str) -> NoReturn:
    cursor.pos = pos
    cursor.fail(problem)
