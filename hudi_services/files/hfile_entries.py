"""The entries of HFile data blocks as Arrow columns; their layout stands in `hfile_format`."""

import struct
from bisect import bisect_left
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
_KEY_AND_VALUE = struct.Struct(">II")
_SHORTEST = 8 + 2 + 1
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


def decode_entries(blocks: Sequence[Cursor]) -> tuple[pa.Array, pa.Array]:
    """The binary rows and the binary values of the data blocks that fill the cursors. Raises CorruptFile."""
    data = b"".join(block.data for block in blocks)
    found, pos, size = [0], 0, len(data)
    # Only its lengths say where an entry ends, so this has to be a loop; whatever else can be done outside of it is.
    # Read without a sign they cannot lead back.
    try:
        while pos < size:
            key_length, value_length = _KEY_AND_VALUE.unpack_from(data, pos)
            pos += 9 + key_length + value_length
            found.append(pos)
    except struct.error:
        _fail(blocks, pos, "a torn entry")
    if pos > size:
        _fail(blocks, found[-2], f"an entry that ends {pos - size} bytes after its block")
    _check_bounds(blocks, found)
    if not data:
        return entry_columns(())
    raw, ends = np.frombuffer(data, np.uint8), np.array(found)
    starts = ends[:-1]
    if (ends[1:] - starts).min() < _SHORTEST:
        _fail(blocks, found[int((ends[1:] - starts).argmin())], "an entry without a row")
    lengths = raw[starts[:, None] + np.arange(_LENGTHS.itemsize)].view(_LENGTHS)[:, 0]
    bounds = np.empty((len(starts), 4), np.int64)
    bounds[:, 0] = starts + _LENGTHS.itemsize
    bounds[:, 1] = bounds[:, 0] + lengths["row"]
    bounds[:, 2] = starts + 8 + lengths["key"]
    bounds[:, 3] = ends[1:] - 1
    for wrong, problem in (
        ((lengths["row"] < 0) | (bounds[:, 1] > bounds[:, 2]), "a row that does not fit its key"),
        (raw[bounds[:, 3]] != 0, "entries with versions (mvcc) are not supported"),
    ):
        if wrong.any():
            _fail(blocks, found[int(wrong.argmax())], problem)
    # Between these bounds lie in turn a row, the rest of its key, a value, and what is before the next row.
    cells = from_offsets(bounds.reshape(-1), raw)
    return cells.take(pa.array(np.arange(0, len(cells), 4))), cells.take(pa.array(np.arange(2, len(cells), 4)))


def _check_bounds(blocks: Sequence[Cursor], found: Sequence[int]) -> None:
    """Each block must end with an entry; `found`: where entries end."""
    end = 0
    for block in blocks:
        end += len(block.data)
        at = bisect_left(found, end)
        if found[at] != end:
            _fail(blocks, found[at - 1], f"an entry that ends {found[at] - end} bytes after its block")


def _fail(blocks: Sequence[Cursor], pos: int, problem: str) -> NoReturn:
    """For the entry at `pos` of all blocks together."""
    for block in blocks:
        if pos < len(block.data):
            break
        pos -= len(block.data)
    block.pos = pos
    block.fail(problem)
