"""The columns of an Avro record schema as logical types.

Source: Avro 1.11 specification (names, logical types); Hudi writes nullable fields as unions with null.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import UnsupportedTable
from .column_type import Column, ColumnType, Kind
from .hudi_types import RECORDS, vector_of

_MAX_DEPTH = 64
_MOST_TYPES = 100_000
"""Types of a schema, at most, counted at each use of a name: forty records that each use the record before twice have
2^40."""


def avro_columns(schema: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns of an Avro record (parsed JSON). Raises UnsupportedTable for recursive types and wide unions."""
    return _AvroReader().type(schema, str(schema.get("namespace", "")), 0).fields


def avro_type_of(schema: Mapping[str, Any], column: str) -> ColumnType | None:
    """The type of one column of an Avro record, whatever the other ones are; None when there is no such column.

    Raises UnsupportedTable as `avro_columns`.
    """
    reader, (_, inside) = _AvroReader(), names_of(schema, "")
    for field in schema["fields"]:
        # Types that a column before this one defines may have names that this one uses.
        try:
            found = reader.type(field["type"], inside, 1)
        except UnsupportedTable:
            if field["name"] == column:
                raise
        else:
            if field["name"] == column:
                return found
    return None


PRIMITIVES = {
    "boolean": Kind.BOOLEAN,
    "int": Kind.INT,
    "long": Kind.LONG,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "string": Kind.STRING,
    "bytes": Kind.BYTES,
}
"""The kinds of Avro's primitive types."""


class _AvroReader:
    """Reads one schema; `names` has each named type, under its full name, and the number of types in it."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[ColumnType, int]] = {}
        self.types = 0

    def type(self, schema: Any, namespace: str, depth: int) -> ColumnType:
        if depth > _MAX_DEPTH:
            raise UnsupportedTable("the table's Avro schema is nested too deeply")
        self.count(1)
        if isinstance(schema, list):
            return self.union(schema, namespace, depth)
        if isinstance(schema, str):
            return self.named(schema, namespace, depth)
        if not isinstance(schema, Mapping):
            raise UnsupportedTable(f"the table's Avro schema holds {schema!r}, which is no type")
        kind = schema.get("type")
        if kind == "array":
            return ColumnType(Kind.LIST, element=self.type(schema["items"], namespace, depth + 1))
        if kind == "map":
            key = ColumnType(Kind.STRING)
            return ColumnType(Kind.MAP, key=key, value=self.type(schema["values"], namespace, depth + 1))
        if kind in ("record", "error", "enum", "fixed"):
            return self.definition(schema, namespace, depth)
        if isinstance(kind, (list, Mapping)):
            return self.type(kind, namespace, depth + 1)
        return _logical(schema, self.named(str(kind), namespace, depth))

    def union(self, branches: list[Any], namespace: str, depth: int) -> ColumnType:
        others = [b for b in branches if b != "null"]
        if len(others) != 1:
            raise UnsupportedTable(
                f"the table's Avro schema has a union of {len(others)} types, which is not supported"
            )
        found = self.type(others[0], namespace, depth + 1)
        return replace(found, nullable=len(others) < len(branches))

    def count(self, types: int) -> None:
        self.types += types
        if self.types > _MOST_TYPES:
            raise UnsupportedTable(f"the table's Avro schema has more than {_MOST_TYPES} types")

    def named(self, name: str, namespace: str, depth: int) -> ColumnType:
        if name in PRIMITIVES:
            return ColumnType(PRIMITIVES[name])
        found = self.names.get(name) or self.names.get(f"{namespace}.{name}")
        if found is None:
            raise UnsupportedTable(f"the table's Avro schema uses {name}, which is unknown or contains itself")
        named, types = found
        self.count(types)
        if depth + _depth(named) > _MAX_DEPTH:
            raise UnsupportedTable("the table's Avro schema is nested too deeply")
        return named

    def definition(self, schema: Mapping[str, Any], namespace: str, depth: int) -> ColumnType:
        full_name, namespace = names_of(schema, namespace)
        before = self.types
        if schema["type"] == "enum":
            found = ColumnType(Kind.ENUM, symbols=tuple(map(str, schema.get("symbols", ()))))
        elif schema["type"] == "fixed":
            found = _logical(schema, ColumnType(Kind.FIXED, size=int(schema["size"]), hudi=vector_of(schema) or ""))
        else:
            fields = tuple(Column(str(f["name"]), self.type(f["type"], namespace, depth + 1)) for f in schema["fields"])
            found = ColumnType(Kind.STRUCT, fields=fields, hudi=RECORDS.get(str(schema.get("logicalType")), ""))
        self.names[full_name] = found, self.types - before
        return found


def names_of(schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The full name of a named type that is defined in `namespace`, and the namespace inside of it."""
    name = str(schema.get("name", ""))
    inside = name.rpartition(".")[0] or str(schema.get("namespace", namespace))
    return name if "." in name or not inside else f"{inside}.{name}", inside


def _depth(column_type: ColumnType) -> int:
    return 1 + max(map(_depth, column_type.parts), default=0)


def _logical(schema: Mapping[str, Any], bare: ColumnType) -> ColumnType:
    """`bare` with the schema's logical type, which Avro ignores where it does not fit."""
    logical = str(schema.get("logicalType", ""))
    if logical == "decimal" and bare.kind in (Kind.BYTES, Kind.FIXED):
        precision, scale = schema.get("precision", 0), schema.get("scale", 0)
        is_decimal = isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision > 0
        return ColumnType(Kind.DECIMAL, precision=precision, scale=scale) if is_decimal else bare
    if logical == "date" and bare.kind is Kind.INT:
        return ColumnType(Kind.DATE)
    if logical == "uuid" and bare.kind is Kind.STRING:
        return bare
    prefix, _, unit = logical.rpartition("-")
    if prefix == "time":
        return ColumnType(Kind.TIME, unit=unit)
    if prefix in ("timestamp", "local-timestamp") and bare.kind is Kind.LONG:
        return ColumnType(Kind.TIMESTAMP, unit=unit, utc=prefix == "timestamp")
    return bare
