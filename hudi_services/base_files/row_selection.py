"""Rows of Arrow tables of any size: taking some of them, and tables in parts.

An array of strings, bytes or lists counts its bytes in 31 bits, and a column is as many arrays as it needs. But
pyarrow's `take`, `sort_by` and `combine_chunks` of a column, and of a table with nested columns, make one array: above
2 GiB they fail, and where rows are taken several times, offsets overflow without an error. The functions here do not.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.binary_layout import pieces

PART_BYTES = 256 << 20
"""The bytes of the tables of `in_parts`."""
_PIECE_BYTES = 512 << 20
_ARRAY_BYTES = 1 << 30
"""More bytes are not put into one array."""
_OFFSET_BYTES, _VIEW_BYTES = 4, 16

Numbers = npt.NDArray[np.int64]
T = TypeVar("T")


def take_rows(column: pa.ChunkedArray, order: pa.Array) -> pa.ChunkedArray:
    """`column.take(order)` for a column of any size, and for rows that are taken several times."""
    return _taken(column, order, _numbers(order))


def take_table(table: pa.Table, rows: "Numbers | pa.Array") -> pa.Table:
    """`table.take(rows)` for a table of any size."""
    order = rows if isinstance(rows, pa.Array) else pa.array(rows)
    numbers = _numbers(order)
    return pa.table([_taken(column, order, numbers) for column in table.columns], schema=table.schema)


def _taken(column: pa.ChunkedArray, order: pa.Array, numbers: Numbers) -> pa.ChunkedArray:
    most = column.nbytes * _times(column, numbers)
    if column.num_chunks <= 1 and most <= _ARRAY_BYTES:
        return column.take(order)
    if 2 * len(order) >= len(column) and most <= _PIECE_BYTES:
        # Taking from one array costs a quarter.
        return pa.chunked_array([column.combine_chunks()]).take(order)
    if _varies(column.type):
        sizes = np.concatenate([row_bytes(chunk) for chunk in column.chunks])
    else:
        sizes = np.full(len(column), -(-column.nbytes // max(1, len(column))), np.int64)
    found = [_gather(column, numbers[start:end]) for start, end in pieces(_ends(sizes[numbers]), _PIECE_BYTES)]
    return pa.chunked_array(found, type=column.type)


def with_few_chunks(table: pa.Table) -> pa.Table:
    """The same table, with each column in one array where that is not too large: what follows is faster then."""
    if all(column.num_chunks <= 1 for column in table.columns):
        return table
    columns = [pa.chunked_array([_one(column)]) if _joins(column) else column for column in table.columns]
    return pa.table(columns, schema=table.schema)


def in_parts(table: pa.Table, *, by_values: bool = False) -> Iterator[pa.Table]:
    """The rows in tables of at most `PART_BYTES`, or of one row.

    `by_values`: dictionaries and views, of which an array may have few bytes, count as their values.
    """
    is_exact = by_values and any(_hides_bytes(field.type) for field in table.schema)
    if not table.num_rows or (table.nbytes <= PART_BYTES and not is_exact):
        yield table
        return
    sizes = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        sizes += np.concatenate([row_bytes(chunk) for chunk in column.chunks])
    for start, end in pieces(_ends(sizes), PART_BYTES):
        yield table.slice(start, end - start)


def by_number(numbers: "npt.NDArray[np.integer[Any]]") -> Numbers:
    """The order of rows by numbers from 0 on, those with the same number in their order.

    numpy's stable sort counts numbers of one or two bytes, in a third of the time of wider ones.
    """
    return np.argsort(numbers.astype(np.min_scalar_type(numbers.max(initial=0))), kind="stable")


def value_codes(column: pa.ChunkedArray) -> Numbers:
    """A number for each value, none of which is null: the same for equal values only."""
    chunks = column.dictionary_encode().unify_dictionaries().chunks
    return np.concatenate([np.zeros(0, np.int64), *(chunk.indices.to_numpy().astype(np.int64) for chunk in chunks)])


def row_bytes(array: pa.Array) -> Numbers:
    """About how many bytes each row has; of a dictionary-encoded array, its value."""
    kind, count = array.type, len(array)
    if pa.types.is_dictionary(kind):
        sizes: Numbers = np.append(row_bytes(array.dictionary), _OFFSET_BYTES)
        found: Numbers = sizes[_numbers(pc.fill_null(array.indices.cast(pa.int64()), len(sizes) - 1))]
        return found
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1] or b"", np.int32, 4 * count, _VIEW_BYTES * array.offset)
        lengths = np.where(np.asarray(array.is_valid()), views.reshape(count, 4)[:, 0], 0).astype(np.int64)
        return lengths + _OFFSET_BYTES
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) or kind in (pa.string(), pa.binary()):
        return _numbers(pc.fill_null(pc.binary_length(array), 0)) + _OFFSET_BYTES
    if pa.types.is_struct(kind):
        return sum((row_bytes(child) for child in array.flatten()), start=np.zeros(count, np.int64))
    if pa.types.is_map(kind):
        return _bytes_of_items(array, (array.keys, array.items))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _bytes_of_items(array, (array.values,))
    return np.full(count, max(1, -(-array.nbytes // max(1, count))), np.int64)


def _bytes_of_items(array: pa.Array, items: tuple[pa.Array, ...]) -> Numbers:
    """Those of the items of each list; the parts of `items` also have what is outside of the array's own slice."""
    offsets = _numbers(array.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    of_parts = (row_bytes(one.slice(first, last - first)) for one in items)
    ends = _ends(sum(of_parts, start=np.zeros(last - first, np.int64)))
    return np.diff(ends[offsets - first]) + _OFFSET_BYTES


def _numbers(array: pa.Array) -> Numbers:
    return np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def _ends(sizes: Numbers) -> Numbers:
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def _times(column: pa.ChunkedArray, numbers: Numbers) -> int:
    """How often a row is taken at most; 1 where that does not matter."""
    if not _varies(column.type) or column.nbytes * len(numbers) <= _PIECE_BYTES:
        return 1
    return int(np.bincount(numbers).max())


def _varies(kind: pa.DataType) -> bool:
    """Whether rows differ in their bytes; those of a dictionary are numbers."""
    return bool(kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()) or pa.types.is_nested(kind))


def _hides_bytes(kind: pa.DataType) -> bool:
    """Whether the values of an array may have more bytes than its buffers."""
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    hides = pa.types.is_dictionary(kind) or pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return bool(hides) or any(map(_hides_bytes, inner))


def _joins(column: pa.ChunkedArray) -> bool:
    return bool(column.num_chunks > 1 and column.nbytes <= _ARRAY_BYTES)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return (column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column).combine_chunks()


def _gather(column: pa.ChunkedArray, rows: Numbers) -> pa.Array:
    """The rows `rows`, which fit into one array: taken chunk by chunk, and then put in order."""
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    by_chunk = np.argsort(rows, kind="stable")
    cuts = np.searchsorted(rows[by_chunk], starts)
    parts = [
        chunk.take(pa.array(rows[by_chunk[low:high]] - start))
        for chunk, start, low, high in zip(column.chunks, starts, cuts, cuts[1:], strict=False)
        if high > low
    ]
    back = np.empty(len(rows), dtype=np.int64)
    back[by_chunk] = np.arange(len(rows))
    return pa.concat_arrays(parts).take(pa.array(back))


def gathered(
    items: Iterable[T], table_of: Callable[[T], pa.Table], least_rows: int, least_bytes: int
) -> Iterator[list[T]]:
    """The items in lists, each of which ends when its tables have so many rows or bytes; the last one has the rest."""
    waiting: list[T] = []
    rows = size = 0
    for item in items:
        table = table_of(item)
        waiting.append(item)
        rows, size = rows + table.num_rows, size + table.nbytes
        if rows >= least_rows or size >= least_bytes:
            yield waiting
            waiting, rows, size = [], 0, 0
    if waiting:
        yield waiting
