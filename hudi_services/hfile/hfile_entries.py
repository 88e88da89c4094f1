"""The entries of HFile data blocks as Arrow columns; `hfile_format` describes their layout."""

import struct
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.binary_layout import Bytes, Offsets, from_offsets, offsets_and_bytes
from ..codecs.cursor import Cursor
from .hfile_format import KEY_SUFFIX

ENTRY_OVERHEAD = 8 + 2 + len(KEY_SUFFIX) + 1
"""Bytes of an entry, without its row and its value."""

_LENGTHS = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
_KEY_OVERHEAD = 2 + len(KEY_SUFFIX)
_KEY_AND_VALUE = struct.Struct(">II")
_SHORTEST = 8 + 2 + 1
_LOOKED_AT = 1 << 16
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
    lengths["key"] = np.diff(row_offsets) + _KEY_OVERHEAD
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
    if not data:
        return entry_columns(())
    raw = np.frombuffer(data, np.uint8)
    found = _usual_bounds(data)
    if found is None:
        found = _bounds(blocks, data)
    _check_bounds(blocks, found)
    starts, ends = found[:-1], found[1:]
    if (ends - starts).min() < _SHORTEST:
        _fail(blocks, int(starts[(ends - starts).argmin()]), "an entry without a row")
    bounds = np.empty((len(starts), 4), np.int64)
    bounds[:, 0] = starts + _LENGTHS.itemsize
    bounds[:, 1] = bounds[:, 0] + _at_each_byte(data, ">i2")[starts + 8]
    bounds[:, 2] = starts + 8 + _at_each_byte(data, ">i4")[starts]
    bounds[:, 3] = ends - 1
    for wrong, problem in (
        ((bounds[:, 1] < bounds[:, 0]) | (bounds[:, 1] > bounds[:, 2]), "a row that does not fit its key"),
        (raw[bounds[:, 3]] != 0, "entries with versions (mvcc) are not supported"),
    ):
        if wrong.any():
            _fail(blocks, int(starts[wrong.argmax()]), problem)
    # Between these bounds are, in turn, a row, the rest of its key, a value, and the bytes before the next row.
    cells = from_offsets(bounds.reshape(-1), raw)
    return cells.take(pa.array(np.arange(0, len(cells), 4))), cells.take(pa.array(np.arange(2, len(cells), 4)))


def check_large_block(block: Cursor, last_starts: int) -> None:
    """Raise CorruptFile when an entry of a data block begins after its first `last_starts` bytes.

    No writer fills a block that far: the arrays of its entries would take much more memory than its bytes.
    """
    data, pos = block.data, 0
    while pos <= last_starts:
        if pos + _KEY_AND_VALUE.size > len(data):
            return
        key_length, value_length = _KEY_AND_VALUE.unpack_from(data, pos)
        pos += 9 + key_length + value_length
    if pos < len(data):
        block.pos = pos
        block.fail(f"an entry begins after {pos} bytes of its block")


def _usual_bounds(data: bytes) -> Offsets | None:
    """The starts of all entries, and the end of the last; None when they must be read one after another.

    Candidates are the places whose bytes may be the lengths of an entry with a key as Hudi writes it. If the first
    candidate is at the first byte, and each entry ends where the next candidate is or at the end, the candidates are
    the entries: nothing is between them.
    """
    raw = np.frombuffer(data, np.uint8)
    # The low bytes of the lengths of key and row. Some at a time: large temporary arrays cost more than the comparison.
    key, row = raw[3 : 4 - _LENGTHS.itemsize], raw[9:]
    found = (
        np.flatnonzero(key[at : at + _LOOKED_AT] - row[at : at + _LOOKED_AT] == _KEY_OVERHEAD) + at
        for at in range(0, len(row), _LOOKED_AT)
    )
    starts = np.concatenate([np.zeros(0, np.int64), *found])
    keys = _at_each_byte(data, ">u4")[starts]
    is_usual = keys == _at_each_byte(data, ">u2")[starts + 8] + np.int64(_KEY_OVERHEAD)
    starts, keys = starts[is_usual], keys[is_usual]
    bounds = np.append(starts, len(data))
    leads_to = starts + keys + _at_each_byte(data, ">u4")[starts + 4] + 9
    return bounds if bounds[0] == 0 and np.array_equal(leads_to, bounds[1:]) else None


def _at_each_byte(data: bytes, kind: str) -> npt.NDArray[np.integer]:
    """The number that begins at each byte, up to the last byte at which a whole number begins."""
    width = np.dtype(kind).itemsize
    return np.ndarray((max(len(data) + 1 - width, 0),), kind, data, strides=(1,))


def _bounds(blocks: Sequence[Cursor], data: bytes) -> Offsets:
    """As `_usual_bounds`, whatever the lengths are. Raises CorruptFile."""
    found, pos, size = [0], 0, len(data)
    # Read without a sign, the lengths cannot lead back.
    try:
        while pos < size:
            key_length, value_length = _KEY_AND_VALUE.unpack_from(data, pos)
            pos += 9 + key_length + value_length
            found.append(pos)
    except struct.error:
        _fail(blocks, pos, "a torn entry")
    if pos > size:
        _fail(blocks, found[-2], f"an entry that ends {pos - size} bytes after its block")
    return np.array(found)


def _check_bounds(blocks: Sequence[Cursor], offsets: Offsets) -> None:
    """Raise CorruptFile unless each block ends where an entry ends; `offsets`: where entries begin and end."""
    ends = np.cumsum([len(block.data) for block in blocks])
    at = np.searchsorted(offsets, ends)
    wrong = offsets[at] != ends
    if wrong.any():
        first = int(at[wrong][0])
        _fail(
            blocks,
            int(offsets[first - 1]),
            f"an entry that ends {offsets[first] - ends[wrong][0]} bytes after its block",
        )


def _fail(blocks: Sequence[Cursor], pos: int, problem: str) -> NoReturn:
    """Raise CorruptFile for the entry at `pos` of all blocks together."""
    for block in blocks:
        if pos < len(block.data):
            break
        pos -= len(block.data)
    block.pos = pos
    block.fail(problem)
