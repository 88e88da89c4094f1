"""Java's String.hashCode, and with it `hashing.file_group_index`, for whole Arrow arrays.

The hash of a row is the sum of unit[i] * 31^(end - 1 - i) modulo 2^32 over its UTF-16 code units. 31 is odd and so has
an inverse: with P the running sum of unit[i] * 31^-i over the units of many rows, the hash of the row at [start, end)
is (P[end] - P[start]) * 31^(end - 1), and no step works row by row.
"""

import functools

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import CheckFailed
from .binary_layout import Bytes, Offsets, offsets_and_bytes, pieces

_INVERSE_OF_31 = pow(31, -1, 1 << 32)
# Bytes that are hashed together: their units and the powers stay in the processor's cache.
_CHUNK_BYTES = 1 << 18
# UTF-8: a byte 10xxxxxx continues a character, 11110xxx begins a character of two UTF-16 units.
_CONTINUES, _BEGINS = 0x80, 0xC0
_TWO_UNITS = 0xF0

Words = npt.NDArray[np.uint32]


def file_group_indexes(keys: pa.Array | pa.ChunkedArray, count: int) -> npt.NDArray[np.int32]:
    """The position of the file group of each key, in file-id order, among `count` file groups.

    `keys` and errors are those of `hash_codes`.
    """
    # Java leaves |MIN_VALUE| negative, which is 2^31 without a sign: the same remainder.
    absolute = np.abs(hash_codes(keys).view(np.int32)).view(np.uint32)
    return (absolute % np.uint32(count)).astype(np.int32)


def hash_codes(keys: pa.Array | pa.ChunkedArray) -> Words:
    """The hash code of each key, without a sign.

    `keys`: string, large_string, binary or large_binary. Raises CheckFailed for nulls and for bytes that are not UTF-8.
    """
    if keys.null_count:
        raise CheckFailed(f"{keys.null_count} record keys are null")
    parts = [np.zeros(0, np.uint32)]
    for array in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        offsets, data = offsets_and_bytes(array)
        for start, end in pieces(offsets, _CHUNK_BYTES):
            rows = offsets[start : end + 1]
            parts.append(_hash_codes(rows - rows[0], data[rows[0] : rows[-1]]))
    return np.concatenate(parts)


def _hash_codes(offsets: Offsets, data: Bytes) -> Words:
    offsets, units = _code_units(offsets, data)
    powers, inverses = _powers(max(_CHUNK_BYTES, len(units)))
    sums = np.zeros(len(units) + 1, np.uint32)
    np.cumsum(units * inverses[: len(units)], dtype=np.uint32, out=sums[1:])
    at_offsets = sums[offsets]
    return (at_offsets[1:] - at_offsets[:-1]) * powers[offsets[1:]]


@functools.lru_cache(maxsize=1)
def _powers(length: int) -> tuple[Words, Words]:
    """31^(i - 1) and 31^-i modulo 2^32 for i from 0 to `length`."""
    up, down = np.full(length + 1, 31, np.uint32), np.full(length + 1, _INVERSE_OF_31, np.uint32)
    up[0], down[0] = _INVERSE_OF_31, 1
    return np.multiply.accumulate(up, dtype=np.uint32), np.multiply.accumulate(down, dtype=np.uint32)


def _code_units(offsets: Offsets, data: Bytes) -> "tuple[Offsets, npt.NDArray[np.uint8 | np.uint16]]":
    """The chunk as UTF-16 code units, and where its rows begin and end among them."""
    if not len(data) or data.max() < _CONTINUES:
        return offsets, data
    continues = (data & _BEGINS) == _CONTINUES
    starts = offsets[:-1][offsets[:-1] < offsets[1:]]
    try:
        units = np.frombuffer(data.tobytes().decode().encode("utf-16-le"), "<u2")
    except UnicodeDecodeError as e:
        raise CheckFailed(f"a record key is not UTF-8: {e.object[max(0, e.start - 20) : e.end + 20]!r}") from e
    # Two rows that are not UTF-8 may be valid text together.
    if continues[starts].any():
        raise CheckFailed("a record key is not UTF-8: it begins in the middle of a character")
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum(~continues + (data >= _TWO_UNITS).astype(np.int8), out=before[1:])
    return before[offsets], units
