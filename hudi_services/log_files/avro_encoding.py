"""Encodes Arrow columns as Avro records, a field at a time for all records: the inverse of `avro_columns`.

Each field becomes an array of the bytes of its values, and Arrow joins the arrays of all fields row by row, so that no
value is a Python object. For the binary forms see `avro_columns`; items of an array or map are one block.
Source: the Avro 1.11 specification, "Binary Encoding".
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .avro_walk import AvroWalk, Fields

Encoded: TypeAlias = pa.Array
"""large_binary: the bytes of a value for each row."""

_BYTES = pa.large_binary()
_MOST_BYTES = 10
"""Of a varint of 64 bits."""


class AvroEncoder:
    """Encodes the columns of an Avro schema (JSON), in tables that have a column for each of its fields."""

    def __init__(self, text: str) -> None:
        self._fields = _Encoders().fields(json.loads(text))

    def encode(self, rows: pa.Table) -> Encoded:
        """The records of a table whose columns have the Arrow types of the schema (or their raw form)."""
        return joined([kind.encode(flat(rows.column(name))) for name, kind in self._fields])


def encode_primitive(name: str, values: pa.Array) -> Encoded:
    """The values of a primitive type of Avro; those of nulls mean nothing."""
    return _PRIMITIVES[name].encode(values)


def flat(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, without dictionary."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


def joined(parts: Sequence[Encoded | bytes]) -> Encoded:
    """The bytes of several parts, row by row; a part of bytes stands in each row. Null where a part is null."""
    arrays = [pa.scalar(part, _BYTES) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*arrays, pa.scalar(b"", _BYTES))


def varints(values: npt.NDArray[np.int64]) -> Encoded:
    """Zigzag varints."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    lengths = np.ones(bits.size, np.int64)
    for count in range(1, _MOST_BYTES):
        longer = bits >= np.uint64(1 << 7 * count)
        if not longer.any():
            break
        lengths += longer
    offsets = np.zeros(bits.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    active = np.arange(bits.size)
    for count in range(int(lengths.max(initial=0))):
        active = active[lengths[active] > count]
        byte = (bits[active] >> np.uint64(7 * count)).astype(np.uint8) & np.uint8(0x7F)
        data[offsets[active] + count] = byte | np.where(lengths[active] > count + 1, 0x80, 0).astype(np.uint8)
    return _of_offsets(offsets, pa.py_buffer(data))


def texts(values: pa.Array) -> Encoded:
    """Strings or bytes, each after its length."""
    raw = values.cast(pa.large_string() if pa.types.is_string(values.type) else _BYTES).cast(_BYTES)
    return joined([varints(_numbers(pc.binary_length(raw))), raw])


def fixed(values: npt.NDArray[Any]) -> Encoded:
    """The bytes of numbers as they are in memory; of an array of two dimensions those of each row."""
    rows = np.ascontiguousarray(values)
    width = rows.nbytes // max(1, len(rows))
    return _of_offsets(np.arange(len(rows) + 1, dtype=np.int64) * width, pa.py_buffer(rows))


def _of_offsets(offsets: npt.NDArray[np.int64], data: pa.Buffer) -> Encoded:
    return pa.Array.from_buffers(_BYTES, len(offsets) - 1, [None, pa.py_buffer(offsets), data])


def _numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    """Integers, dates and timestamps as numbers; those of nulls mean nothing."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False)).astype(np.int64)


class _Type:
    """One Avro type; the bytes of a null mean nothing."""

    def encode(self, values: pa.Array) -> Encoded:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Number(_Type):
    def encode(self, values: pa.Array) -> Encoded:
        return varints(_numbers(values))


@dataclass(frozen=True, slots=True)
class _Float(_Type):
    form: str

    def encode(self, values: pa.Array) -> Encoded:
        numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
        return fixed(np.asarray(numbers).astype(np.dtype(self.form)))


@dataclass(frozen=True, slots=True)
class _Boolean(_Type):
    def encode(self, values: pa.Array) -> Encoded:
        return fixed(_numbers(values.cast(pa.uint8())).astype(np.uint8))


@dataclass(frozen=True, slots=True)
class _Bytes(_Type):
    def encode(self, values: pa.Array) -> Encoded:
        return texts(_decimal_bytes(values, 16) if pa.types.is_decimal(values.type) else values)


@dataclass(frozen=True, slots=True)
class _Fixed(_Type):
    width: int

    def encode(self, values: pa.Array) -> Encoded:
        return _decimal_bytes(values, self.width) if pa.types.is_decimal(values.type) else values.cast(_BYTES)


@dataclass(frozen=True, slots=True)
class _Enum(_Type):
    symbols: tuple[str, ...]

    def encode(self, values: pa.Array) -> Encoded:
        return varints(_numbers(pc.index_in(values.cast(pa.string()), value_set=pa.array(self.symbols))))


@dataclass(frozen=True, slots=True)
class _Union(_Type):
    """A union of one type, and null unless `null` is None; `null` is the branch of null."""

    inner: _Type
    null: int | None

    def encode(self, values: pa.Array) -> Encoded:
        if self.null is None:
            return joined([b"\0", self.inner.encode(values)])
        branches = b"\0\2" if self.null else b"\2\0"
        found = joined([branches[:1], self.inner.encode(values)])
        return found if not values.null_count else pc.if_else(pc.is_valid(values), found, branches[1:])


@dataclass(frozen=True, slots=True)
class _Record(_Type):
    fields: tuple[tuple[str, _Type], ...]

    def encode(self, values: pa.Array) -> Encoded:
        return joined([kind.encode(values.field(name)) for name, kind in self.fields])


@dataclass(frozen=True, slots=True)
class _Items(_Type):
    """An array, or a map, whose item is a key and a value."""

    item: _Type

    def encode(self, values: pa.Array) -> Encoded:
        bounds = np.asarray(values.offsets.to_numpy()).astype(np.int64)
        first, count = int(bounds[0]), int(bounds[-1] - bounds[0])
        items = self.item.encode(_items(values).slice(first, count))
        _, offsets, data = items.buffers()
        starts = np.frombuffer(offsets, np.int64, count + 1, 8 * items.offset)
        counts = np.diff(bounds)
        of_list = _of_offsets(np.ascontiguousarray(starts[bounds - first]), data)
        block = joined([varints(counts), of_list, b"\0"])
        return pc.if_else(pa.array(counts > 0), block, pa.scalar(b"\0", _BYTES))


def _items(values: pa.Array) -> pa.Array:
    """The items of all lists; those of maps are structs of key and value."""
    if pa.types.is_map(values.type):
        return pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
    return values.values


def _decimal_bytes(values: pa.Array, width: int) -> Encoded:
    """Decimals of 128 bits as so many bytes, the greatest first."""
    data = values.buffers()[1]
    rows = np.frombuffer(data, np.uint8, 16 * len(values), 16 * values.offset).reshape(-1, 16)
    return fixed(rows[:, width - 1 :: -1] if width < 16 else rows[:, ::-1])


class _Encoders(AvroWalk[_Type]):
    """The types that encode."""

    def primitive(self, name: str) -> _Type | None:
        return _PRIMITIVES.get(name)

    def union(self, inner: _Type, null: int | None) -> _Type:
        return _Union(inner, null)

    def array(self, items: _Type) -> _Type:
        return _Items(items)

    def map(self, values: _Type) -> _Type:
        return _Items(_Record((("key", _Bytes()), ("value", values))))

    def record(self, fields: Fields[_Type]) -> _Type:
        return _Record(fields)

    def enum(self, symbols: Sequence[str]) -> _Type:
        return _Enum(tuple(symbols))

    def fixed(self, size: int) -> _Type:
        return _Fixed(size)


_PRIMITIVES: dict[str, _Type] = {
    "boolean": _Boolean(),
    "int": _Number(),
    "long": _Number(),
    "float": _Float("<f4"),
    "double": _Float("<f8"),
    "bytes": _Bytes(),
    "string": _Bytes(),
}
