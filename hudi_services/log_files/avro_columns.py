"""Decodes Avro records into Arrow columns, a field at a time for all records.

    record      its fields, one after the other
    union       long branch | value
    int, long   zigzag varint
    float       4 bytes, double 8, little-endian; boolean 1
    bytes       long length | bytes; string the same, in UTF-8; fixed: the bytes alone
    enum        int number of the symbol
    array, map  blocks of (long count | items) until count 0; a negative count is followed by the block's long length;
                an item of a map is a string key and a value

Every step takes the positions of all records and returns their next positions, so that the work is done by numpy and
Arrow. The columns have the raw form of `AvroColumns.schema` (see parquet.file_schema), as if a base file had been read.
Source: the Avro 1.11 specification, "Binary Encoding".
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..codecs import thrift
from ..codecs.avro import parse_schema
from ..codecs.thrift import Struct
from ..errors import CorruptFile
from ..parquet import file_schema as ps
from ..parquet.file_schema import FileSchema, Node
from ..parquet.footer import Physical
from ..parquet.node_types import build_nodes
from ..schema.avro_type import avro_columns
from .avro_walk import AvroWalk, Fields

Positions: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_VARINT_BITS = 63
_FIXED_WIDTHS = {"boolean": 1, "float": 4, "double": 8}
_NUMBERS = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}


class AvroColumns:
    """The decoder of records of one schema; `schema` is its columns as those of a file.

    Raises CorruptFile for a text that is no Avro schema, UnsupportedTable for types that no base file has.
    """

    def __init__(self, text: str, path: str) -> None:
        parse_schema(text, path)
        tree = json.loads(text)
        try:
            columns = build_nodes(avro_columns(tree))
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise CorruptFile(f"{path} has a schema that is not one of columns: {e}") from e
        self.as_written = FileSchema(_root(columns))
        """The schema of a base file with these columns."""
        self.schema = FileSchema(_root([_with_loose_decimals(column) for column in columns]))
        self._fields = _Types().fields(tree)
        self._types = [self.schema.arrow.field(name).type for name, _ in self._fields]

    def decode(self, data: bytes | memoryview, starts: Positions, ends: Positions, path: str, base: int) -> pa.Table:
        """The records at `starts` to `ends` of `data`, which is at offset `base` of the file `path`.

        The records are in ascending order and do not overlap. Raises CorruptFile for a record that is not of the
        schema, or that does not end where it should.
        """
        source = _Source(np.frombuffer(data, np.uint8), pa.py_buffer(data), path, base)
        at, arrays = starts, []
        for (_, kind), arrow in zip(self._fields, self._types, strict=True):
            array, at = kind.read(source, at, arrow)
            arrays.append(array)
        wrong = np.flatnonzero(at != ends)
        if wrong.size:
            source.fail(int(starts[wrong[0]]), "an Avro record does not end where its length says")
        return pa.table(arrays, schema=self.schema.arrow)


def avro_decoder(text: str, path: str) -> AvroColumns:
    """The decoder of a schema, which many blocks share; `path` is for messages. Raises what `AvroColumns` raises."""
    return _decoder(_Schema(text, path))


@dataclass(frozen=True, slots=True)
class _Schema:
    text: str
    path: str = field(compare=False)


@lru_cache(maxsize=64)
def _decoder(schema: _Schema) -> AvroColumns:
    return AvroColumns(schema.text, schema.path)


def _root(columns: Sequence[Node]) -> Node:
    return ps.node("record", ps.REQUIRED, children=columns)


def _with_loose_decimals(node: Node) -> Node:
    """`node` with decimals as bytes of any length, as Avro has them."""
    if node.is_group:
        return node.with_children([_with_loose_decimals(child) for child in node.children])
    if node.converted != ps.DECIMAL:
        return node
    element = Struct({key: value for key, value in node.element.fields.items() if key != 2})
    element.set(1, thrift.I32, int(Physical.BYTE_ARRAY))
    return Node(element, node.name, node.repetition, Physical.BYTE_ARRAY)


@dataclass(frozen=True, slots=True)
class _Source:
    data: npt.NDArray[np.uint8]
    buffer: pa.Buffer
    path: str
    base: int

    def fail(self, at: int, problem: str) -> NoReturn:
        raise CorruptFile(f"{self.path} is corrupt at offset {self.base + at}: {problem}")

    def check(self, ends: Positions, what: str) -> None:
        """Raise CorruptFile when a value ends after the data."""
        if ends.size and int(ends.max()) > len(self.data):
            self.fail(int(ends[np.argmax(ends > len(self.data))]), f"{what} ends after the block")

    def longs(self, at: Positions, what: str) -> tuple[Positions, Positions]:
        """The zigzag varints at these positions, and the positions after them."""
        self.check(at + 1, what)
        byte = self.data[at]
        value = (byte & 0x7F).astype(np.uint64)
        at = at + 1
        active = np.flatnonzero(byte >= 0x80)
        shift = 7
        while active.size:
            if shift > _VARINT_BITS:
                self.fail(int(at[active[0]]), f"{what} does not end")
            self.check(at[active] + 1, what)
            byte = self.data[at[active]]
            value[active] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[active] += 1
            active = active[byte >= 0x80]
            shift += 7
        signed = (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
        return signed, at

    def lengths(self, at: Positions, what: str) -> tuple[Positions, Positions, Positions]:
        """The starts and ends of values with a length before them, and the same ends as next positions."""
        found, at = self.longs(at, f"the length of {what}")
        # Compared before it is added, so that no sum overflows.
        wrong = (found < 0) | (found > len(self.data))
        if wrong.any():
            self.fail(int(at[np.argmax(wrong)]), f"{what} has the length {int(found[np.argmax(wrong)])}")
        ends = at + found
        self.check(ends, what)
        return at, ends, ends

    def binary(self, starts: Positions, ends: Positions) -> pa.Array:
        """The bytes between these positions as an Arrow array."""
        if not starts.size:
            return pa.array([], pa.binary())
        if starts.size > 1 and (starts[1:] < ends[:-1]).any():
            self.fail(int(starts[1:][np.argmax(starts[1:] < ends[:-1])]), "two values overlap")
        # The values, and the bytes between them, are the items of one array: Arrow then copies every second one.
        offsets = np.empty(2 * starts.size, np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        whole = pa.Array.from_buffers(pa.binary(), 2 * starts.size - 1, [None, pa.py_buffer(offsets), self.buffer])
        return whole.take(pa.array(np.arange(0, 2 * starts.size, 2, dtype=np.int64)))


class _Type:
    """One Avro type; `read` decodes a value of each record, as an Arrow array of the wanted type without nulls."""

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Number(_Type):
    name: str

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        values, ends = source.longs(at, f"a value of the type {self.name}")
        if arrow.bit_width == 32:
            wrong = (values > 0x7FFFFFFF) | (values < -0x80000000)
            if wrong.any():
                source.fail(int(at[np.argmax(wrong)]), f"the {self.name} {int(values[np.argmax(wrong)])} is too large")
            values = values.astype(np.int32)
        return _of_buffer(arrow, values), ends


@dataclass(frozen=True, slots=True)
class _Fixed(_Type):
    """Values of a fixed number of bytes: float, double and fixed."""

    name: str
    width: int

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        ends = at + self.width
        source.check(ends, f"a value of the type {self.name}")
        if pa.types.is_binary(arrow):
            return source.binary(at, ends), ends
        rows = source.data[at[:, None] + np.arange(self.width)]
        return _of_buffer(arrow, rows), ends


@dataclass(frozen=True, slots=True)
class _Boolean(_Type):
    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        source.check(at + 1, "a boolean")
        values = source.data[at]
        if (values > 1).any():
            source.fail(int(at[np.argmax(values > 1)]), "a boolean that is neither 0 nor 1")
        return pa.array(values == 1), at + 1


@dataclass(frozen=True, slots=True)
class _Bytes(_Type):
    name: str

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        starts, ends, at = source.lengths(at, f"a value of the type {self.name}")
        values = source.binary(starts, ends)
        if pa.types.is_string(arrow):
            try:
                values = values.cast(pa.string())
            except pa.ArrowInvalid:
                source.fail(int(starts[0]), "a string that is not UTF-8")
        return values, at


@dataclass(frozen=True, slots=True)
class _Enum(_Type):
    symbols: tuple[str, ...]

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        numbers, ends = source.longs(at, "the number of a symbol")
        wrong = (numbers < 0) | (numbers >= len(self.symbols))
        if wrong.any():
            source.fail(int(at[np.argmax(wrong)]), f"an unknown symbol {int(numbers[np.argmax(wrong)])}")
        return pa.array(self.symbols, pa.string()).cast(arrow).take(pa.array(numbers)), ends


@dataclass(frozen=True, slots=True)
class _Optional(_Type):
    """A union of null and one other type; `null` is the branch of null."""

    inner: _Type
    null: int

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        branch, at = source.longs(at, "the branch of a union")
        wrong = (branch != 0) & (branch != 1)
        if wrong.any():
            source.fail(int(at[np.argmax(wrong)]), f"an unknown branch {int(branch[np.argmax(wrong)])} of a union")
        present = np.flatnonzero(branch != self.null)
        if present.size == at.size:
            return self.inner.read(source, at, arrow)
        if not present.size:
            return pa.nulls(at.size, arrow), at
        values, ends = self.inner.read(source, at[present], arrow)
        at[present] = ends
        rows = np.zeros(at.size, np.int64)
        rows[present] = np.arange(present.size)
        return values.take(pa.array(rows, mask=branch == self.null)), at


@dataclass(frozen=True, slots=True)
class _Alone(_Type):
    """A union of one type."""

    inner: _Type

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        branch, at = source.longs(at, "the branch of a union")
        if branch.any():
            source.fail(int(at[np.argmax(branch != 0)]), "an unknown branch of a union")
        return self.inner.read(source, at, arrow)


@dataclass(frozen=True, slots=True)
class _Record(_Type):
    fields: tuple[tuple[str, _Type], ...]

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        arrays = []
        for (_, kind), child in zip(self.fields, arrow, strict=True):
            array, at = kind.read(source, at, child.type)
            arrays.append(array)
        return pa.Array.from_buffers(arrow, at.size, [None], null_count=0, children=arrays), at


@dataclass(frozen=True, slots=True)
class _Items(_Type):
    """An array, or a map, whose item is a record of key and value."""

    item: _Type

    def read(self, source: _Source, at: Positions, arrow: pa.DataType) -> tuple[pa.Array, Positions]:
        inner = arrow.field(0).type
        at = at.copy()
        counts = np.zeros(at.size, np.int64)
        arrays: list[pa.Array] = []
        owners: list[Positions] = []
        active = np.arange(at.size)
        while active.size:
            items, begins = source.longs(at[active], "the number of items")
            sized = np.flatnonzero(items < 0)
            _, begins[sized] = source.longs(begins[sized], "the length of items")
            items = np.abs(items)
            at[active] = begins
            # An item has at least a byte, and so has the end of the array.
            if (items < 0).any() or (items > len(source.data) - begins).any():
                source.fail(int(begins[0]), "more items than bytes")
            active, items = active[items > 0], items[items > 0]
            counts[active] += items
            rows = active
            while rows.size:
                values, at[rows] = self.item.read(source, at[rows], inner)
                arrays.append(values)
                owners.append(rows)
                items -= 1
                rows, items = rows[items > 0], items[items > 0]
        offsets = np.zeros(at.size + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        children = [_in_order(arrays, owners, inner)]
        return pa.Array.from_buffers(arrow, at.size, [None, pa.py_buffer(offsets)], children=children), at


def _in_order(arrays: Sequence[pa.Array], owners: Sequence[Positions], kind: pa.DataType) -> pa.Array:
    """The items record by record; each array has one item of some records."""
    if not arrays:
        return pa.array([], kind)
    order = np.argsort(np.concatenate(owners), kind="stable")
    return pa.concat_arrays(arrays).take(pa.array(order))


def _of_buffer(arrow: pa.DataType, values: npt.NDArray[Any]) -> pa.Array:
    return pa.Array.from_buffers(arrow, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


class _Types(AvroWalk[_Type]):
    """The types that decode."""

    def primitive(self, name: str) -> _Type | None:
        if name in ("int", "long"):
            return _Number(name)
        if name in ("bytes", "string"):
            return _Bytes(name)
        if name == "boolean":
            return _Boolean()
        return _Fixed(name, _FIXED_WIDTHS[name]) if name in ("float", "double") else None

    def union(self, inner: _Type, null: int | None) -> _Type:
        return _Alone(inner) if null is None else _Optional(inner, null)

    def array(self, items: _Type) -> _Type:
        return _Items(items)

    def map(self, values: _Type) -> _Type:
        return _Items(_Record((("key", _Bytes("string")), ("value", values))))

    def record(self, fields: Fields[_Type]) -> _Type:
        return _Record(fields)

    def enum(self, symbols: Sequence[str]) -> _Type:
        return _Enum(tuple(symbols))

    def fixed(self, size: int) -> _Type:
        return _Fixed("fixed", size)
