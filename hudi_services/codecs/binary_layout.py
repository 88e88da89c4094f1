"""The buffers of Arrow's variable-size binary arrays, for code that works on bytes instead of values.

Source: the Arrow columnar format, "Variable-size Binary Layout".
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Offsets = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_WITH_OFFSETS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def has_offsets(kind: pa.DataType) -> bool:
    """Whether `offsets_and_bytes` takes arrays of this type."""
    return kind in _WITH_OFFSETS


def offsets_are_wide(array: pa.Array) -> bool:
    """Whether the offsets of such an array have 64 bits."""
    return bool(pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type))


def offsets_and_bytes(array: pa.Array) -> tuple[Offsets, Bytes]:
    """n + 1 offsets into the bytes of a string, large_string, binary or large_binary array of n rows.

    Row i is bytes[offsets[i]:offsets[i + 1]]; the bytes of a null row have no meaning. A slice has its own offsets into
    the bytes of the whole array, which are not copied.
    """
    if not len(array):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    width = np.dtype(np.int64 if offsets_are_wide(array) else np.int32)
    _, offsets, data = array.buffers()
    found = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize)
    return found.astype(np.int64, copy=False), np.frombuffer(data or b"", np.uint8)


def padded(array: pa.Array, *, most: int = 0) -> Bytes | None:
    """The bytes of n strings or binaries, (n, width), each filled up with zeros to the same number of 8-byte words.

    Nulls have no bytes. None where all have one length, as most keys have, for which there are shorter ways; where that
    would take more than twice as many bytes as the values and 16 for each; or a value is longer than `most`, if given.
    """
    offsets, _ = offsets_and_bytes(array)
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    if (lengths == longest).all():
        return None
    width = max(8, -(-longest // 8) * 8)
    if (most and longest > most) or width * len(array) > 2 * int(offsets[-1] - offsets[0]) + 16 * len(array):
        return None
    text = pa.large_string() if offsets_are_wide(array) else pa.string()
    if array.type != text:
        array = array.view(text)
    if array.null_count:
        array = pc.fill_null(array, "")
    data = pc.ascii_rpad(array, width, padding="\0").buffers()[2]
    found: Bytes = np.frombuffer(data or b"", np.uint8, len(array) * width).reshape(len(array), width)
    return found


def from_offsets(offsets: Offsets, data: Bytes) -> pa.Array:
    """The binary array whose rows are between these offsets, less than 2 GiB from first to last; copies no row."""
    whole = [None, pa.py_buffer((offsets - offsets[0]).astype(np.int32)), pa.py_buffer(data[offsets[0] : offsets[-1]])]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, whole)


def pieces(offsets: Offsets, limit: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges [start, end) of all rows, each of at most `limit` bytes and `limit` rows, or of one row."""
    start, count = 0, len(offsets) - 1
    while start < count:
        end = int(np.searchsorted(offsets, offsets[start] + limit, "right")) - 1
        # Rows without bytes take room too.
        end = min(max(end, start + 1), start + limit)
        yield start, end
        start = end
