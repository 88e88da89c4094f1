"""Logical column types, one vocabulary for Avro schemas, parquet files, Arrow tables and statistics.

Physical forms (INT96, list levels, decimal width) are not part of a type; `required` leaves out nullability.
Source: parquet-format LogicalTypes.md; Avro 1.11 specification.
"""

import functools
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .hudi_types import Vector

UNITS = ("millis", "micros", "nanos")
"""The units of times, coarsest first."""
_NANOS = {"millis": 1_000_000, "micros": 1_000, "nanos": 1}


class Kind(Enum):
    NULL = "null"
    """Of bounds without values; no column has it."""
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
class Column:
    """A column of a table, or a field of a struct."""

    name: str
    type: "ColumnType"
    id: int | None = field(default=None, compare=False)
    """The number of the column in the schema history of the table (`schema_history`); None without one."""


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
    fields: tuple[Column, ...] = ()
    symbols: tuple[str, ...] = field(default=(), compare=False)
    """The values that an ENUM may have; () in parquet files, which do not tell them."""
    hudi: "Vector | str" = field(default="", compare=False)
    """A type of Hudi's own that a FIXED or a STRUCT is stored for: the Vector, or the name of another one."""

    @property
    def unit_nanos(self) -> int | None:
        """Nanoseconds in the unit of times; None for other types."""
        return _NANOS.get(self.unit)

    @property
    def is_nested(self) -> bool:
        return self.kind in (Kind.LIST, Kind.MAP, Kind.STRUCT)

    @property
    def parts(self) -> "tuple[ColumnType, ...]":
        """The types directly inside of it: of elements, keys, values, fields."""
        found = (self.element, self.key, self.value, *(one.type for one in self.fields))
        return tuple(part for part in found if part is not None)

    @property
    def field_types(self) -> "dict[str, ColumnType]":
        """The types of the fields of a struct by name."""
        return {one.name: one.type for one in self.fields}

    def required(self) -> "ColumnType":
        """The same type, not nullable on any level."""
        if not self.is_nested:
            return with_nullable(self, False)
        return replace(
            self,
            nullable=False,
            element=self.element and self.element.required(),
            key=self.key and self.key.required(),
            value=self.value and self.value.required(),
            fields=tuple(replace(one, type=one.type.required()) for one in self.fields),
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
            return f"record<{', '.join(f'{one.name}: {one.type}' for one in self.fields)}>"
        return str(self.kind.value)


@functools.lru_cache(maxsize=1024)
def with_nullable(leaf: ColumnType, nullable: bool) -> ColumnType:
    """A leaf type as files have it; the same object each time, since files have many columns and few types."""
    return replace(leaf, nullable=nullable, symbols=(), hudi="")


def decimal_width(precision: int) -> int:
    """The fewest bytes that hold every decimal of `precision` digits in two's complement."""
    return (int(10**precision - 1).bit_length() + 8) // 8
