"""Hashes of rows, computed by column, for comparing sets of rows in any order.

A row's hash is a sum over its columns of `value * constant`, where the odd constant belongs to the column's name,
type and, inside strings, to the position of each 8-byte word; the sum is then mixed by a bijection of 64 bits. So one
changed value always changes its row's hash, and values swapped between rows or columns change it too.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache, reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .binary_layout import has_offsets, offsets_and_bytes, padded

Hashes: TypeAlias = "npt.NDArray[np.uint64]"

_SLICE = 1 << 15
"""Rows hashed at a time: the working set of a column stays in the processor's cache."""
_LONG_VALUE = 1024
"""Values of more bytes are hashed one by one."""
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(8)] + [(1 << 64) - 1], dtype=np.uint64)
_M1 = np.uint64(0xFF51AFD7ED558CCD)
_M2 = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(32)


def row_hashes(table: pa.Table) -> Iterator[Hashes]:
    """The hashes of the rows of `table` in order, some thousands at a time; a dictionary-encoded column counts as its
    values."""
    for rows, _ in _hashes(table, ""):
        yield rows


def all_row_hashes(table: pa.Table) -> Hashes:
    """The hashes of all rows of `table` in order."""
    return np.concatenate([np.zeros(0, np.uint64), *row_hashes(table)])


def row_and_key_hashes(table: pa.Table, key: str) -> tuple[Hashes, Hashes]:
    """As `all_row_hashes`, of the table and of its column `key` alone."""
    none = np.zeros(0, np.uint64)
    pairs = [(none, none), *_hashes(table, key)]
    return np.concatenate([rows for rows, _ in pairs]), np.concatenate([keys for _, keys in pairs])


def _hashes(table: pa.Table, key: str) -> Iterator[tuple[Hashes, Hashes]]:
    for batch in table.combine_chunks().to_batches():
        dictionaries: dict[str, Hashes] = {}
        for start in range(0, batch.num_rows, _SLICE):
            part = batch.slice(start, _SLICE)
            rows = np.zeros(part.num_rows, dtype=np.uint64)
            keys = rows[:0]
            for name, column in zip(table.column_names, part.columns, strict=True):
                values = _column(column, name, dictionaries)
                rows += values
                if name == key:
                    keys = mix(values)
            yield mix(rows), keys


def column_hashes(table: pa.Table) -> list[Hashes]:
    """The hashes of the values of each column: a row's hash is `mix` of the sum of those of its values."""
    found: list[list[Hashes]] = [[] for _ in table.column_names]
    for batch in table.combine_chunks().to_batches():
        for place, (name, column) in enumerate(zip(table.column_names, batch.columns, strict=True)):
            found[place].append(_column(column, name, {}))
    return [np.concatenate([np.zeros(0, np.uint64), *parts]) for parts in found]


def mix(values: Hashes) -> Hashes:
    """Mix `values` in place by MurmurHash3's finaliser with shifts of 32 bits (a bijection); returns the array."""
    values ^= values >> _SHIFT
    values *= _M1
    values ^= values >> _SHIFT
    values *= _M2
    values ^= values >> _SHIFT
    return values


@lru_cache(maxsize=65536)
def _constant(path: str, salt: str | int = "") -> np.uint64:
    digest = hashlib.blake2b(f"{path}\0{salt}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "big") | 1)


def _column(array: pa.Array, path: str, dictionaries: dict[str, Hashes]) -> Hashes:
    """One hash per row of `array`; all nulls of a column have the same."""
    if pa.types.is_dictionary(array.type):
        return _dictionary(array, path, dictionaries)
    if pa.types.is_null(array.type):
        return np.full(len(array), _constant(path, "null"), dtype=np.uint64)
    # The text of a nested type has the field names of the file, which may differ; its leaves count by themselves.
    hashes = _hasher(array.type)(array, path if pa.types.is_nested(array.type) else f"{path}:{array.type}")
    if array.null_count:
        np.copyto(hashes, _constant(path, "null"), where=~_valid(array))
    return hashes


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _dictionary(array: pa.Array, path: str, dictionaries: dict[str, Hashes]) -> Hashes:
    # The slices of one batch share their dictionary: hash its values once.
    values = dictionaries.get(path)
    if values is None:
        values = dictionaries[path] = np.append(_column(array.dictionary, path, {}), _constant(path, "null"))
    indices = array.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), len(array.dictionary))
    hashes: Hashes = values[indices.to_numpy(zero_copy_only=False)]
    return hashes


def _hasher(kind: pa.DataType) -> Callable[[pa.Array, str], Hashes]:
    types = pa.types
    if types.is_boolean(kind):
        return _boolean
    if types.is_fixed_size_binary(kind) or types.is_decimal(kind):
        return _fixed_bytes
    if types.is_primitive(kind):
        return _primitive
    if has_offsets(kind):
        return _bytes
    if types.is_struct(kind):
        return _struct
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return _list
    raise TypeError(f"no checksum for {kind}")


def _boolean(array: pa.Array, path: str) -> Hashes:
    values: Hashes = pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.uint64)
    return values * _constant(path)


def _primitive(array: pa.Array, path: str) -> Hashes:
    width = array.type.bit_width // 8
    raw = np.frombuffer(array.buffers()[1], dtype=f"u{width}")[array.offset : array.offset + len(array)]
    hashes: Hashes = np.multiply(raw, _constant(path), dtype=np.uint64)
    return hashes


def _fixed_bytes(array: pa.Array, path: str) -> Hashes:
    width = array.type.bit_width // 8 if pa.types.is_decimal(array.type) else array.type.byte_width
    result = np.zeros(len(array), dtype=np.uint64)
    data, first = array.buffers()[1], array.offset * width
    for k in range(-(-width // 8)):
        left, at, parts = min(8, width - 8 * k), 0, []
        # A word of fewer bytes is put together of numbers of 4, 2 and 1 bytes.
        for size in (8, 4, 2, 1):
            if left & size:
                part = np.ndarray(len(array), f"u{size}", data, first + 8 * k + at, (width,))
                parts.append(np.left_shift(part, np.uint64(8 * at), dtype=np.uint64))
                at += size
        result += reduce(np.bitwise_or, parts) * _constant(path, k)
    return result


def _bytes(array: pa.Array, path: str) -> Hashes:
    """Hashes of strings and binaries: eight bytes at a time, of all values together."""
    lengths = _lengths(array)
    whole = padded(array, most=_LONG_VALUE)
    return _unpadded(array, lengths, path) if whole is None else _padded(whole, lengths, path)


def _padded(values: npt.NDArray[np.uint8], lengths: "npt.NDArray[np.int64]", path: str) -> Hashes:
    """The hashes of `_bytes` for values that are filled up with zeros to the same number of words."""
    result = np.multiply(lengths, _constant(path, "length"), dtype=np.uint64, casting="unsafe")
    for k, word in enumerate(values.view(np.uint64).T):
        result += word * _constant(path, k)
    return result


def _lengths(array: pa.Array) -> "npt.NDArray[np.int64]":
    """The number of bytes of each value, 0 for nulls."""
    lengths = np.diff(offsets_and_bytes(array)[0])
    return np.where(_valid(array), lengths, 0) if array.null_count else lengths


def _unpadded(array: pa.Array, lengths: "npt.NDArray[np.int64]", path: str) -> Hashes:
    """The hashes of `_bytes`, of values as they are."""
    offsets, data = offsets_and_bytes(array)
    first, last = int(offsets[0]), int(offsets[-1])
    # In whole words, with one to spare, so that the last word of the last value may be read whole.
    begin, end = first // 8 * 8, -(-last // 8) * 8 + 8
    if data.size >= end:
        aligned = data[begin:end].view(np.uint64)
    else:
        aligned = np.zeros((end - begin) // 8, np.uint64)
        aligned.view(np.uint8)[: last - begin] = data[begin:last]
    content = aligned.view(np.uint8)[first - begin :]
    starts = offsets[:-1] - first
    result = lengths.astype(np.uint64) * _constant(path, "length")
    long = np.flatnonzero(lengths > _LONG_VALUE)
    if len(long):
        _long_values(result, long, content, starts, lengths, path)
        lengths = np.where(lengths > _LONG_VALUE, 0, lengths)
    longest, shortest = (int(lengths.max()), int(lengths.min())) if len(lengths) else (0, 0)
    if shortest == longest and first + longest * len(array) == last:
        return _equal_lengths(result, content, longest, path)
    rows: npt.NDArray[np.int64] | None = None
    at = starts + (first - begin)
    place, shift = at >> 3, ((at & 7) << 3).astype(np.uint64)
    back = np.uint64(64) - shift
    low = aligned[place]
    for k in range(-(-longest // 8)):
        if shortest <= 8 * k:
            # The values that have this word.
            keep = np.flatnonzero(lengths > 8 * k)
            rows = keep if rows is None else rows[keep]
            place, lengths = place[keep], lengths[keep]
            shift, back, low = shift[keep], back[keep], low[keep]
        # A word of a value lies between two words of memory: taking these two takes a fraction of the time.
        place += 1
        high = aligned[place]
        low >>= shift
        low |= high << back
        if shortest < 8 * k + 8:
            low &= _MASKS[np.minimum(lengths - 8 * k, 8)]
        low *= _constant(path, k)
        if rows is None:
            result += low
        else:
            result[rows] += low
        low = high
    return result


def _equal_lengths(result: Hashes, content: npt.NDArray[np.uint8], length: int, path: str) -> Hashes:
    """The hashes of `_bytes` for adjacent values of one length (as most keys are), by strides instead of a gather."""
    for k in range(-(-length // 8)):
        word = np.ndarray(len(result), np.uint64, content.data, 8 * k, (length,))
        if length < 8 * k + 8:
            word = word & _MASKS[length - 8 * k]
        result += word * _constant(path, k)
    return result


def _long_values(
    result: Hashes,
    rows: npt.NDArray[np.int64],
    content: npt.NDArray[np.uint8],
    starts: "npt.NDArray[np.int64]",
    lengths: "npt.NDArray[np.int64]",
    path: str,
) -> None:
    digests = np.zeros(len(rows), dtype=np.uint64)
    for i, row in enumerate(rows.tolist()):
        value = content[int(starts[row]) : int(starts[row] + lengths[row])]
        digests[i] = int.from_bytes(hashlib.blake2b(value.data, digest_size=8).digest(), "big")
    # All at once: numpy warns when a single number overflows, not when those of an array do.
    result[rows] += digests * _constant(path, "long")


def _struct(array: pa.StructArray, path: str) -> Hashes:
    result: Hashes = np.zeros(len(array), dtype=np.uint64)
    for i, field in enumerate(array.type):
        # field() leaves out the offset of a sliced struct, flatten() copies nulls down: both matter here.
        child = array.field(i)
        if len(child) != len(array):
            child = child.slice(array.offset, len(array))
        result += _column(child, f"{path}.{field.name}", {})
    # Mixed, so that structs inside one row are not interchangeable with their members.
    return mix(result)


def _list(array: pa.ListArray | pa.LargeListArray | pa.MapArray, path: str) -> Hashes:
    """Hashes of lists: each element is mixed with its position in the list."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.diff(offsets)
    if array.null_count:
        lengths = np.where(_valid(array), lengths, 0)
    first, last = int(offsets[0]), int(offsets[-1])
    result: Hashes = lengths.astype(np.uint64) * _constant(path, "length")
    if first == last:
        return result
    elements = _elements(array).slice(first, last - first)
    hashes = _column(elements, f"{path}[]", {})
    position = np.arange(first, last) - np.repeat(offsets[:-1], np.diff(offsets))
    hashes = mix(hashes + position.astype(np.uint64) * _constant(path, "position"))
    sums: Hashes = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    starts = offsets[:-1] - first
    result += sums[starts + lengths] - sums[starts]
    return result


def _elements(array: pa.ListArray | pa.LargeListArray | pa.MapArray) -> pa.Array:
    """The whole child array of a list or map, also what is outside of the array's own slice."""
    if pa.types.is_map(array.type):
        return pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return array.values
