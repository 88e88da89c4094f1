"""XXH32 with the seed 0 of many texts at once. Source: the xxHash specification (xxhash_spec.md), XXH32."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .binary_layout import offsets_and_bytes

Hashes = npt.NDArray[np.uint32]

_P1, _P2, _P3, _P4, _P5 = map(np.uint32, (2654435761, 2246822519, 3266489917, 668265263, 374761393))
_MOST_BYTES = 8 << 20
"""Bytes of texts of one length that are hashed together."""


def xx_hash_32(texts: pa.Array) -> Hashes:
    """The hash of the bytes of each string or binary; there are no nulls."""
    offsets, data = offsets_and_bytes(texts)
    starts, lengths = offsets[:-1], np.diff(offsets)
    found = np.zeros(len(texts), np.uint32)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        step = max(1, _MOST_BYTES // max(1, length))
        for at in range(0, len(rows), step):
            some = rows[at : at + step]
            found[some] = _of_length(data[starts[some][:, None] + np.arange(length)], length)
    return found


def _of_length(rows: npt.NDArray[np.uint8], length: int) -> Hashes:
    count, whole = len(rows), length // 4
    words = np.ascontiguousarray(rows[:, : 4 * whole]).view("<u4").astype(np.uint32).reshape(count, whole)
    with np.errstate(over="ignore"):
        done = 0
        if length >= 16:
            lanes = [np.full(count, seed, np.uint32) for seed in (_P1 + _P2, _P2, np.uint32(0), np.uint32(0) - _P1)]
            while 4 * (done + 4) <= length:
                for lane in range(4):
                    lanes[lane] = _rotated(lanes[lane] + words[:, done + lane] * _P2, 13) * _P1
                done += 4
            hashes = sum((_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)), np.uint32(0))
        else:
            hashes = np.full(count, _P5, np.uint32)
        hashes = hashes + np.uint32(length & 0xFFFFFFFF)
        for word in range(done, whole):
            hashes = _rotated(hashes + words[:, word] * _P3, 17) * _P4
        for at in range(4 * whole, length):
            hashes = _rotated(hashes + rows[:, at].astype(np.uint32) * _P5, 11) * _P1
        for by, prime in ((15, _P2), (13, _P3)):
            hashes = (hashes ^ (hashes >> np.uint32(by))) * prime
        return np.asarray(hashes ^ (hashes >> np.uint32(16)), np.uint32)


def _rotated(values: Hashes, by: int) -> Hashes:
    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))
