"""Logical column types, one vocabulary for parquet files and for Avro schemas (avro_type).

Physical forms (INT96, list levels, decimal width) are not part of a type; `required` leaves out nullability.
Source: parquet-format LogicalTypes.md.
"""

import functools
from dataclasses import dataclass, replace
from enum import Enum

from ..codecs.thrift import Struct
from . import file_schema as ps
from .file_schema import Node
from .footer import Physical


class Kind(Enum):
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    ENUM = "enum"
    BYTES = "bytes"
    FIXED = "fixed"
    UUID = "uuid"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    UNSIGNED = "unsigned"
    LIST = "array"
    MAP = "map"
    STRUCT = "record"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One type; only the fields that its kind has are set. `unit` is millis, micros or nanos (of TIME, TIMESTAMP)."""

    kind: Kind
    nullable: bool = False
    precision: int = 0
    scale: int = 0
    unit: str = ""
    utc: bool = False
    """TIMESTAMP: an instant (isAdjustedToUTC), not a local time."""
    size: int = 0
    """Bytes of FIXED, bits of UNSIGNED."""
    element: "ColumnType | None" = None
    key: "ColumnType | None" = None
    value: "ColumnType | None" = None
    fields: "tuple[tuple[str, ColumnType], ...]" = ()

    @property
    def parts(self) -> "tuple[ColumnType, ...]":
        """The types directly inside of it: of elements, keys, values, fields."""
        found = (self.element, self.key, self.value, *(part for _, part in self.fields))
        return tuple(part for part in found if part is not None)

    def required(self) -> "ColumnType":
        """The same type, not nullable on any level."""
        if self.kind not in (Kind.LIST, Kind.MAP, Kind.STRUCT):
            return _with_nullable(self, False)
        return replace(
            self,
            nullable=False,
            element=self.element and self.element.required(),
            key=self.key and self.key.required(),
            value=self.value and self.value.required(),
            fields=tuple((name, t.required()) for name, t in self.fields),
        )

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        if self.kind is Kind.TIMESTAMP:
            return f"{'' if self.utc else 'local-'}timestamp-{self.unit}"
        if self.kind is Kind.LIST:
            return f"array<{self.element}>"
        if self.kind is Kind.MAP:
            return f"map<{self.value}>"
        if self.kind is Kind.STRUCT:
            return f"record<{', '.join(f'{name}: {t}' for name, t in self.fields)}>"
        return str(self.kind.value)


@functools.lru_cache(maxsize=1024)
def _with_nullable(leaf: ColumnType, nullable: bool) -> ColumnType:
    """A leaf type; the same object each time, since files have many columns and few types."""
    return replace(leaf, nullable=nullable)


def parquet_type(node: Node) -> ColumnType:
    """The type of a parquet column."""
    item, entry = list_item(node), node.map_entry
    nullable = node.repetition == ps.OPTIONAL
    if item is not None:
        return ColumnType(Kind.LIST, nullable, element=parquet_type(item))
    if not node.is_group:
        return _with_nullable(_leaf_type(node), nullable)
    if entry is not None:
        return ColumnType(Kind.MAP, nullable, key=parquet_type(entry[0]), value=parquet_type(entry[1]))
    return ColumnType(Kind.STRUCT, nullable, fields=tuple((c.name, parquet_type(c)) for c in node.children))


def list_item(node: Node) -> Node | None:
    """The element of a list column as a node that is not REPEATED, None when the column is no list.

    A REPEATED node that is not the child of a list stands for a list of itself.
    """
    item = node if node.repetition == ps.REPEATED else node.list_element
    if item is None or item.repetition != ps.REPEATED:
        return item
    return item.with_repetition(ps.REQUIRED)


_BARE = {
    Physical.BOOLEAN: Kind.BOOLEAN,
    Physical.INT32: Kind.INT,
    Physical.INT64: Kind.LONG,
    Physical.FLOAT: Kind.FLOAT,
    Physical.DOUBLE: Kind.DOUBLE,
    Physical.BYTE_ARRAY: Kind.BYTES,
}
_CONVERTED = {
    ps.UTF8: ColumnType(Kind.STRING),
    ps.JSON: ColumnType(Kind.STRING),
    ps.ENUM: ColumnType(Kind.ENUM),
    ps.DATE: ColumnType(Kind.DATE),
    ps.TIME_MILLIS: ColumnType(Kind.TIME, unit="millis"),
    ps.TIME_MICROS: ColumnType(Kind.TIME, unit="micros"),
    ps.TIMESTAMP_MILLIS: ColumnType(Kind.TIMESTAMP, unit="millis", utc=True),
    ps.TIMESTAMP_MICROS: ColumnType(Kind.TIMESTAMP, unit="micros", utc=True),
    ps.UINT_8: ColumnType(Kind.UNSIGNED, size=8),
    ps.UINT_16: ColumnType(Kind.UNSIGNED, size=16),
    ps.UINT_32: ColumnType(Kind.UNSIGNED, size=32),
    ps.UINT_64: ColumnType(Kind.UNSIGNED, size=64),
}
_UNITS = {1: "millis", 2: "micros", 3: "nanos"}


def _leaf_type(node: Node) -> ColumnType:
    if node.physical is Physical.INT96:
        return ColumnType(Kind.TIMESTAMP, unit="micros", utc=True)
    if node.converted == ps.DECIMAL:
        precision, scale = node.precision_and_scale
        return ColumnType(Kind.DECIMAL, precision=precision, scale=scale)
    if node.logical in (ps.L_TIME, ps.L_TIMESTAMP):
        return _time_type(node)
    if node.logical == ps.L_UUID:
        return ColumnType(Kind.UUID)
    if node.logical == ps.L_INTEGER and not node.logical_value.get(2, True):
        return ColumnType(Kind.UNSIGNED, size=int(node.logical_value.get(1) or 0))
    if node.converted in _CONVERTED:
        return _CONVERTED[node.converted]
    if node.physical is Physical.FIXED_LEN_BYTE_ARRAY:
        return ColumnType(Kind.FIXED, size=node.type_length)
    assert node.physical is not None
    return ColumnType(_BARE[node.physical])


def _time_type(node: Node) -> ColumnType:
    value = node.logical_value
    union = value.get(2)
    unit = _UNITS.get(next(iter(union.fields), 0), "nanos") if isinstance(union, Struct) else "nanos"
    if node.logical == ps.L_TIME:
        return ColumnType(Kind.TIME, unit=unit)
    return ColumnType(Kind.TIMESTAMP, unit=unit, utc=bool(value.get(1)))
