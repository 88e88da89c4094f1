"""Conversion of column values from one raw form into another, a whole Arrow array at a time.

`natural` gives the form that compares and computes (timestamps, decimals); `convert_column` gives the raw form of a
target column: nested values are rebuilt around the same offsets, missing fields are nulls, promotions are Hudi's.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CorruptFile
from ..schema.arrow_types import doubles_of
from ..schema.column_type import ColumnType, Kind, decimal_width
from ..schema.evolved_values import changed_values
from ..schema.widening import is_converted, promotable, widens_float
from .file_schema import ColumnMap, FileSchema, Node
from .footer import Physical
from .node_types import list_item, parquet_type

_MICROS_PER_DAY = 86_400_000_000
JULIAN_EPOCH_DAY = 2_440_588
"""1970-01-01 as INT96 counts days."""
INT96 = np.dtype([("nanos", "<i8"), ("day", "<i4")])
"""A value: the nanoseconds of the day, and the day."""
_ARROW_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}


_OfLeaf = Callable[[pa.Array, Node, Node, pa.DataType], pa.Array]
"""Converts the values of a leaf: from the raw form of a node to that of another, whose Arrow type is given."""


_CAST_TO = {
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.ENUM: pa.binary(),
}
"""The Arrow types of what values of other kinds become."""


# --------------------------------------------------------------------------------------------------------- conversion


def convert_column(
    column: pa.ChunkedArray, source: Node, target: Node, target_type: pa.DataType, *, exact_floats: bool = False
) -> pa.ChunkedArray:
    """`column` (raw form of `source`) in the raw form of `target`, whose Arrow type is `target_type`.

    Dictionary-encoded strings stay encoded where nothing changes. `exact_floats`: a column of floats becomes one of
    doubles with the same values, not with those of the shortest decimal texts.
    """
    if exact_floats and widens_float(parquet_type(source), parquet_type(target)):
        return column.cast(target_type)
    if _values_type(column) == target_type and _is_same(source, target):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    chunks = [_convert(_compact(chunk), source, target, target_type) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=target_type)


def converted_table(
    read: pa.Table,
    rows: int,
    source: FileSchema,
    columns: ColumnMap,
    target: FileSchema,
    *,
    exact_floats: bool = False,
) -> pa.Table:
    """Columns of `target` in its raw form, from those of `read` (raw form of `source`); missing ones are `rows` nulls.

    `columns`: those to give, in order, each with its column in `source`. Dictionary-encoded strings stay
    encoded where nothing changes. `exact_floats` as of `convert_column`.
    """
    arrays, same = [], _same_columns(source, tuple(columns.items()), target)
    for name, stored in columns.items():
        own = None if stored is None else source.column(stored)
        wanted, kind = target.column(name), target.arrow.field(name).type
        if own is None or wanted is None:
            arrays.append(pa.chunked_array([pa.nulls(rows, kind)]))
        elif name in same and _values_type(read.column(stored)) == kind:
            arrays.append(read.column(stored))
        else:
            arrays.append(convert_column(read.column(stored), own, wanted, kind, exact_floats=exact_floats))
    fields = [target.arrow.field(name).with_type(array.type) for name, array in zip(columns, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


def _values_type(column: pa.ChunkedArray) -> pa.DataType:
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def _is_same(source: Node, target: Node) -> bool:
    """Whether values have the same raw form in both columns."""
    return source.physical is target.physical and parquet_type(source).required() == parquet_type(target).required()


@lru_cache(maxsize=64)
def _same_columns(
    source: FileSchema, columns: tuple[tuple[str, str | None], ...], target: FileSchema
) -> frozenset[str]:
    """The columns that both schemas have in the same raw form. Tables are converted in many pieces."""
    pairs = ((name, stored and source.column(stored), target.column(name)) for name, stored in columns)
    return frozenset(name for name, own, other in pairs if own and other and _is_same(own, other))


def mapped_leaves(
    column: pa.ChunkedArray, node: Node, of_leaf: Callable[[pa.Array, Node], pa.Array]
) -> pa.ChunkedArray:
    """`column` (raw form of `node`) with what `of_leaf` makes of its leaf arrays, in the same types.

    `of_leaf` gets arrays that start at offset 0, with the node of their leaf.
    """

    def convert(values: pa.Array, leaf: Node, _: Node, __: pa.DataType) -> pa.Array:
        return of_leaf(values, leaf)

    chunks = [_convert(_compact(chunk), node, node, column.type, convert) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=column.type)


def _convert(
    values: pa.Array, source: Node, target: Node, target_type: pa.DataType, of_leaf: _OfLeaf | None = None
) -> pa.Array:
    item = list_item(target)
    if item is not None:
        source_item = list_item(source)
        assert source_item is not None
        children = [_convert(_compact(values.values), source_item, item, target_type.value_type, of_leaf)]
        return _rebuild(values, target_type, children)
    if not target.is_group:
        return (of_leaf or _convert_leaf)(values, source, target, target_type)
    if target.map_entry is not None:
        return _convert_map(values, source, target, target_type, of_leaf)
    return _convert_struct(values, source, target, target_type, of_leaf)


def _convert_map(
    values: pa.Array, source: Node, target: Node, target_type: pa.MapType, of_leaf: _OfLeaf | None
) -> pa.Array:
    assert source.map_entry is not None and target.map_entry is not None
    entries_type = target_type.field(0).type
    pairs = zip((values.keys, values.items), source.map_entry, target.map_entry, entries_type, strict=True)
    parts = [_convert(_compact(part), s, t, field.type, of_leaf) for part, s, t, field in pairs]
    entries = pa.Array.from_buffers(entries_type, len(parts[0]), [None], null_count=0, children=parts)
    return _rebuild(values, target_type, [entries])


def _convert_struct(
    values: pa.Array, source: Node, target: Node, target_type: pa.StructType, of_leaf: _OfLeaf | None
) -> pa.Array:
    by_name = {child.name: (index, child) for index, child in enumerate(source.children)}
    children = []
    for child, field in zip(target.children, target_type, strict=True):
        index, source_child = by_name.get(child.name, (None, None))
        if index is None or source_child is None:
            children.append(pa.nulls(len(values), field.type))
        else:
            children.append(_convert(_compact(values.field(index)), source_child, child, field.type, of_leaf))
    return pa.Array.from_buffers(target_type, len(values), values.buffers()[:1], children=children)


def _rebuild(values: pa.Array, target_type: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """An array with the validity and offsets of `values` and converted children."""
    return pa.Array.from_buffers(target_type, len(values), values.buffers()[:2], children=children)


def _convert_leaf(values: pa.Array, source: Node, target: Node, target_type: pa.DataType) -> pa.Array:
    source_type, final = parquet_type(source).required(), parquet_type(target).required()
    if values.type == target_type and source_type == final and source.physical is target.physical:
        return values
    if widens_float(source_type, final):
        return doubles_of(values)
    changed = changed_values(source_type, final) if not promotable(source_type, final) else None
    if changed is not None:
        return _raw(changed(natural(values, source)), target, target_type)
    if is_converted(source_type, final):
        return pc.cast(values, _CAST_TO[final.kind], safe=False).cast(target_type)
    return _raw(_rescale(natural(values, source), final), target, target_type)


def _rescale(values: pa.Array, final: ColumnType) -> pa.Array:
    if final.kind is Kind.DECIMAL:
        return values.cast(_decimal_type(final))
    if final.kind is Kind.TIMESTAMP:
        return values.cast(pa.timestamp(_ARROW_UNITS[final.unit], "UTC" if final.utc else None))
    return values


def _compact(values: pa.Array) -> pa.Array:
    """The same values from offset 0, so that buffers can be used as they are."""
    return pa.concat_arrays([values, values.slice(0, 0)]) if values.offset else values


# -------------------------------------------------------------------------------------------------- raw <-> natural


def natural(values: pa.Array, leaf: Node) -> pa.Array:
    """The raw values of `leaf` in an ordered form: INT96 as UTC micros, decimals as decimals, the rest as it is."""
    if leaf.physical is Physical.INT96:
        return _from_int96(_compact(values))
    column = parquet_type(leaf)
    if column.kind is not Kind.DECIMAL or pa.types.is_decimal(values.type):
        return values
    if leaf.physical in (Physical.INT32, Physical.INT64):
        return _decimal_from_ints(_compact(values), _decimal_type(column))
    return _decimal_from_bytes(_compact(values), _decimal_type(column))


def _raw(values: pa.Array, leaf: Node, raw_type: pa.DataType) -> pa.Array:
    if values.type == raw_type:
        return values
    if leaf.physical is Physical.INT96:
        return _to_int96(_compact(values))
    if pa.types.is_decimal(values.type):
        return _decimal_to_raw(_compact(values), leaf, raw_type)
    return values.cast(raw_type)


def _decimal_type(column: ColumnType) -> pa.DataType:
    make = pa.decimal128 if column.precision <= 38 else pa.decimal256
    return make(column.precision, column.scale)


def _from_int96(values: pa.Array) -> pa.Array:
    data = np.frombuffer(values.buffers()[1], INT96, len(values)) if len(values) else np.empty(0, INT96)
    days = data["day"].astype(np.int64) - JULIAN_EPOCH_DAY
    micros = days * _MICROS_PER_DAY + data["nanos"] // 1000
    return _array(pa.timestamp("us", "UTC"), values, micros)


def _to_int96(values: pa.Array) -> pa.Array:
    micros = values.cast(pa.timestamp("us", values.type.tz)).view(pa.int64()).fill_null(0).to_numpy()
    data = np.empty(len(values), INT96)
    data["day"] = micros // _MICROS_PER_DAY + JULIAN_EPOCH_DAY
    data["nanos"] = micros % _MICROS_PER_DAY * 1000
    return _array(pa.binary(12), values, data)


def _decimal_from_ints(values: pa.Array, decimal: pa.DataType) -> pa.Array:
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy()
    words = np.empty((len(numbers), decimal.byte_width // 8), np.int64)
    words[:, 0] = numbers
    words[:, 1:] = (numbers >> 63)[:, None]
    return _array(decimal, values, words)


def _decimal_from_bytes(values: pa.Array, decimal: pa.DataType) -> pa.Array:
    """Big-endian two's complement of any length to Arrow's fixed little-endian words."""
    width = decimal.byte_width
    starts, lengths, data = _byte_ranges(values)
    out = np.zeros((len(values), width), np.uint8)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        if length == 0:
            continue
        if length > width:
            raise CorruptFile(f"a decimal of {length} bytes does not fit its {decimal.precision} digits")
        digits = data[starts[rows][:, None] + np.arange(length)]
        out[rows, width - length :] = digits
        out[rows, : width - length] = np.where(digits[:, :1] >= 0x80, 0xFF, 0)
    return _array(decimal, values, out[:, ::-1])


def _byte_ranges(values: pa.Array) -> "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]":
    if pa.types.is_fixed_size_binary(values.type):
        width = values.type.byte_width
        starts = np.arange(len(values), dtype=np.int64) * width
        lengths = np.full(len(values), width, np.int64)
        data = values.buffers()[1]
    else:
        _, offsets_buffer, data = values.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32, len(values) + 1).astype(np.int64)
        starts, lengths = offsets[:-1], np.diff(offsets)
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return starts, np.where(valid, lengths, 0), np.frombuffer(data or b"", np.uint8)


def _decimal_to_raw(values: pa.Array, leaf: Node, raw_type: pa.DataType) -> pa.Array:
    shape = (len(values), values.type.byte_width // 8)
    words = np.frombuffer(values.buffers()[1] or b"", np.int64, shape[0] * shape[1]).reshape(shape)
    if leaf.physical in (Physical.INT32, Physical.INT64):
        return _array(pa.int64(), values, np.ascontiguousarray(words[:, 0])).cast(raw_type)
    big_endian = words.view(np.uint8)[:, ::-1]
    fixed = leaf.physical is Physical.FIXED_LEN_BYTE_ARRAY
    width = leaf.type_length if fixed else decimal_width(values.type.precision)
    sign = np.where(big_endian[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    padding = np.repeat(sign, max(0, width - big_endian.shape[1]), axis=1)
    digits = np.concatenate((padding, big_endian), axis=1)[:, -width:]
    fixed_size = _array(pa.binary(width), values, digits)
    return fixed_size if fixed else fixed_size.cast(raw_type)


def _array(kind: pa.DataType, like: pa.Array, data: "npt.NDArray[np.generic]") -> pa.Array:
    """`data` under the validity of `like`, which starts at offset 0."""
    return pa.Array.from_buffers(kind, len(like), [like.buffers()[0], pa.py_buffer(np.ascontiguousarray(data))])
