"""Sorting record keys as HFiles have them: by their UTF-8 bytes, unsigned."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.binary_layout import Bytes, offsets_and_bytes

# Each round sorts equal keys by about six more bytes; Arrow sorts the keys that are equal after all rounds.
_ROUNDS = 4
# Keeps the first 0 to 8 bytes of a word.
_MASKS = np.array([(1 << 64) - (1 << (64 - 8 * kept)) for kept in range(9)], np.uint64)

_Places = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]


def sort_keys(keys: pa.Array) -> pa.Array:
    """The int64 positions that sort string, large_string, binary or large_binary `keys`, which have no nulls.

    Equal keys keep their order. Numbers are sorted, which takes at most half the time of comparing keys: the first
    eight bytes after the common prefix of all keys; then, for keys with equal bytes, the number of their group followed
    by their next bytes; and so on.
    """
    if len(keys) < 2:
        return pa.array(range(len(keys)), pa.int64())
    offsets, data = offsets_and_bytes(keys)
    starts, ends = offsets[:-1] + _shared(keys), offsets[1:]
    order, tied = np.arange(len(keys)), np.arange(len(keys))
    groups = np.zeros(len(keys), np.uint64)
    for _ in range(_ROUNDS):
        width = 8 - (int(groups[-1]).bit_length() + 7) // 8
        rows = order[tied]
        words = _words(np.minimum(starts[rows], ends[rows]), ends[rows], data)
        words = groups << np.uint64(8 * width) | words >> np.uint64(64 - 8 * width)
        sorting = np.argsort(words, kind="stable")
        order[tied], words = rows[sorting], words[sorting]
        starts += width
        same = np.concatenate([[False], words[1:] == words[:-1], [False]])
        still = same[1:] | same[:-1]
        if not still.any():
            return pa.array(order)
        tied, groups = tied[still], np.cumsum(~same[:-1][still], dtype=np.uint64) - np.uint64(1)
    # In the order of the array, so that a stable sort keeps the order of equal keys.
    rows = np.sort(order[tied])
    order[tied] = rows[pc.array_sort_indices(keys.take(pa.array(rows))).to_numpy()]
    return pa.array(order)


class SortedBinary(Sequence[bytes]):
    """An ascending binary array as a sequence for `bisect`, which makes Python values of single rows only."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: int) -> bytes:  # type: ignore[override]
        found = self._array[index].as_py()
        assert isinstance(found, bytes)
        return found

    def between(self, first: bytes, last: bytes, start: int) -> tuple[int, int]:
        """Where the rows from `first` to `last` begin and end, searched from position `start` on."""
        begin = bisect_left(self, first, start)
        return begin, bisect_right(self, last, begin)


def _shared(keys: pa.Array) -> int:
    """The number of bytes of the common prefix of all keys."""
    low, high = (bytes(end.as_buffer()) for end in pc.min_max(keys).values())
    return next((i for i, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))


def _words(starts: _Places, ends: _Places, data: Bytes) -> _Words:
    """Eight bytes from each start on, big-endian, with zeros from its end on."""
    if len(data) < 8:
        data = np.append(data, np.zeros(8, np.uint8))
    # Near the end of the data a word begins earlier, and the bytes before the start are shifted out.
    inside = np.minimum(starts, len(data) - 8)
    words = np.ndarray(len(data) - 7, ">u8", data.data, strides=(1,))[inside].astype(np.uint64)
    words <<= (8 * (starts - inside)).astype(np.uint64)
    words &= _MASKS[np.minimum(ends - starts, 8)]
    return words
