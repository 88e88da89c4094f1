"""Thrift's compact protocol as a generic tree that is written back byte for byte.

    struct   field*, 0x00
    field    1 byte (id delta << 4 | type), delta 1..15; or 1 byte type, then the id as zigzag varint; then the value
    bool     in a field the type is the value: 1 true, 2 false; in a list one byte each
    i8       1 byte; i16, i32, i64: zigzag varint; double: 8 bytes little-endian
    binary   varint length, bytes
    list     1 byte (count << 4 | element type), count 0..14; or 0xF0 | type, then varint count
    map      varint count; when not 0: 1 byte (key type << 4 | value type), then the pairs

A tree keeps every field, known or not, so a parquet footer can be changed in one place and stay the same elsewhere.
Source: thrift/doc/specs/thrift-compact-protocol.md.
"""

import struct as _struct
from dataclasses import dataclass, field
from typing import Any

from ..errors import CorruptFile
from .varint import write_varint

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_BOOLS = (TRUE, FALSE)
_INTEGERS = (I16, I32, I64)
_MAX_DEPTH = 64
UNCOUNTED = 3_000_000
"""Values (structs, their fields, items of lists and entries of maps) that one tree may have whatever its bytes are.
A value takes about 110 bytes of memory, and may take half a byte in the file: this many take 330 MB."""
MOST_VALUES = 12_000_000
"""Values that any tree may have, which take 1.3 GB. A column chunk has 35 to 55 values, so a footer may have 220,000
chunks: ten thousand columns in each of 22 row groups."""
_VALUES, _BYTES = 4, 5
"""Beyond `UNCOUNTED`, at most 4 values in 5 bytes: the densest honest footer (columns of nulls with names of two
letters, no statistics) has 4 in 6.1 bytes, usual footers 4 in 8 to 12; empty structs or structs of one number 4 in 2
to 4."""
_STEP = 100_000
_MASK64 = (1 << 64) - 1


@dataclass(slots=True)
class ListValue:
    """A list or set; `element_type` is the wire type of `items`."""

    element_type: int
    items: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class MapValue:
    """Pairs in wire order; the types are 0 when the map is empty."""

    key_type: int
    value_type: int
    items: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Struct:
    """Fields by id, in wire order: (wire type, value). A bool has the type TRUE whatever its value."""

    fields: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def get(self, field_id: int, default: Any = None) -> Any:
        found = self.fields.get(field_id)
        return default if found is None else found[1]

    def set(self, field_id: int, wire_type: int, value: Any) -> None:
        """Replace the field, or add it; `encode_struct` writes fields in the order of their ids."""
        self.fields[field_id] = (wire_type, value)

    def copy(self) -> "Struct":
        """Another struct with the same values in its fields."""
        return Struct(dict(self.fields))

    def drop(self, *field_ids: int) -> None:
        for field_id in field_ids:
            self.fields.pop(field_id, None)


def decode_struct(data: bytes, source: str, offset: int = 0) -> tuple[Struct, int]:
    """The struct at `offset` and the offset after it. Raises CorruptFile, naming `source` and the offset."""
    decoder = _Decoder(data, offset, source)
    return decoder.struct(0), decoder.position


def encode_struct(value: Struct) -> bytes:
    """The bytes of `value`; equal to the bytes that it was decoded from when those were in the shortest form."""
    out = bytearray()
    _write_struct(out, value)
    return bytes(out)


class _Decoder:
    def __init__(self, data: bytes, position: int, source: str) -> None:
        self.data = data
        self.position = position
        self.source = source
        self.start = position
        self.budget = self.left = UNCOUNTED

    def count(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            self.extend()

    def extend(self) -> None:
        """Raise the budget above the count of values; raise CorruptFile for too many values in the bytes read."""
        counted = self.budget - self.left
        if counted > MOST_VALUES:
            raise self.fail(f"more than {MOST_VALUES} values")
        read = self.position - self.start
        if counted * _BYTES > read * _VALUES:
            raise self.fail(f"{counted} values in {read} bytes, more than any valid file has")
        self.budget, self.left = counted + _STEP, _STEP

    def fail(self, what: str) -> CorruptFile:
        return CorruptFile(f"{self.source}: {what} at byte {self.position} of its Thrift metadata")

    def byte(self) -> int:
        try:
            value = self.data[self.position]
        except IndexError:
            raise self.fail("the data ends") from None
        self.position += 1
        return value

    def varint(self) -> int:
        # Without a call for each byte: this is where the time goes.
        data, at = self.data, self.position
        value = shift = 0
        try:
            while (byte := data[at]) >= 0x80:
                value |= (byte & 0x7F) << shift
                at += 1
                shift += 7
                if shift > 63:
                    self.position = at
                    raise self.fail("a number is longer than 64 bits")
        except IndexError:
            self.position = at
            raise self.fail("the data ends") from None
        self.position = at + 1
        value |= byte << shift
        if value > _MASK64:
            raise self.fail("a number is longer than 64 bits")
        return value

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self.data):
            raise self.fail(f"{length} bytes are missing")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def struct(self, depth: int) -> Struct:
        if depth > _MAX_DEPTH:
            raise self.fail("structs are nested too deeply")
        fields: dict[int, tuple[int, Any]] = {}
        last = 0
        while header := self.byte():
            wire_type = header & 0x0F
            delta = header >> 4
            last = last + delta if delta else self.zigzag()
            if last in fields or not -0x8000 <= last <= 0x7FFF:
                raise self.fail(f"field {last} is repeated or out of range")
            if wire_type in _INTEGERS:
                number = self.varint()
                fields[last] = (wire_type, (number >> 1) ^ -(number & 1))
            elif wire_type in _BOOLS:
                fields[last] = (TRUE, wire_type == TRUE)
            else:
                fields[last] = (wire_type, self.value(wire_type, depth))
        self.count(1 + len(fields))
        return Struct(fields)

    def value(self, wire_type: int, depth: int) -> Any:
        if wire_type in _INTEGERS:
            return self.zigzag()
        if wire_type == BINARY:
            return self.take(self.varint())
        if wire_type == STRUCT:
            return self.struct(depth + 1)
        if wire_type in (LIST, SET):
            return self.list(depth + 1)
        if wire_type in _BOOLS:
            return self.byte() == TRUE
        if wire_type == I8:
            return self.byte()
        if wire_type == DOUBLE:
            return _struct.unpack("<d", self.take(8))[0]
        if wire_type == MAP:
            return self.map(depth + 1)
        raise self.fail(f"unknown type {wire_type}")

    def list(self, depth: int) -> ListValue:
        if depth > _MAX_DEPTH:
            raise self.fail("lists are nested too deeply")
        header = self.byte()
        element_type, count = header & 0x0F, header >> 4
        if count == 15:
            count = self.varint()
        # Every element takes at least one byte: a count beyond the rest of the data is refused before allocating.
        if count > len(self.data) - self.position:
            raise self.fail(f"a list of {count} elements does not fit")
        self.count(count)
        return ListValue(element_type, [self.value(element_type, depth) for _ in range(count)])

    def map(self, depth: int) -> MapValue:
        if depth > _MAX_DEPTH:
            raise self.fail("maps are nested too deeply")
        count = self.varint()
        if not count:
            return MapValue(0, 0)
        if count > len(self.data) - self.position:
            raise self.fail(f"a map of {count} entries does not fit")
        self.count(2 * count)
        types = self.byte()
        key_type, value_type = types >> 4, types & 0x0F
        pairs = [(self.value(key_type, depth), self.value(value_type, depth)) for _ in range(count)]
        return MapValue(key_type, value_type, pairs)


def _zigzag(out: bytearray, value: int) -> None:
    write_varint(out, ((value << 1) ^ (value >> 63)) & _MASK64)


def _write_struct(out: bytearray, value: Struct) -> None:
    last = 0
    for field_id, (wire_type, item) in _in_order(value):
        if wire_type in _BOOLS:
            wire_type = TRUE if item else FALSE
        if 0 < field_id - last <= 15:
            out.append((field_id - last) << 4 | wire_type)
        else:
            out.append(wire_type)
            _zigzag(out, field_id)
        last = field_id
        if wire_type not in _BOOLS:
            _write_value(out, wire_type, item)
    out.append(0)


def _in_order(value: Struct) -> list[tuple[int, tuple[int, Any]]]:
    return sorted(value.fields.items()) if value.fields else []


def _write_value(out: bytearray, wire_type: int, value: Any) -> None:
    if wire_type in _INTEGERS:
        _zigzag(out, value)
    elif wire_type == BINARY:
        write_varint(out, len(value))
        out += value
    elif wire_type == STRUCT:
        _write_struct(out, value)
    elif wire_type in (LIST, SET):
        _write_list(out, value)
    elif wire_type in _BOOLS:
        out.append(TRUE if value else FALSE)
    elif wire_type == I8:
        out.append(value)
    elif wire_type == DOUBLE:
        out += _struct.pack("<d", value)
    else:
        _write_map(out, value)


def _write_list(out: bytearray, value: ListValue) -> None:
    count = len(value.items)
    if count < 15:
        out.append(count << 4 | value.element_type)
    else:
        out.append(0xF0 | value.element_type)
        write_varint(out, count)
    for item in value.items:
        _write_value(out, value.element_type, item)


def _write_map(out: bytearray, value: MapValue) -> None:
    write_varint(out, len(value.items))
    if value.items:
        out.append(value.key_type << 4 | value.value_type)
    for key, item in value.items:
        _write_value(out, value.key_type, key)
        _write_value(out, value.value_type, item)
