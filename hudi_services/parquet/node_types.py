"""Columns of parquet files as column types, and column types as the columns that Hudi's writer makes of them.

Source: parquet-format LogicalTypes.md; AvroSchemaConverter (parquet-avro).
"""

from collections.abc import Iterable
from typing import Any

from ..codecs import thrift
from ..codecs.thrift import Struct
from ..errors import UnsupportedTable
from ..schema.column_type import UNITS, Column, ColumnType, Kind, decimal_width, with_nullable
from . import file_schema as ps
from .file_schema import Node, node
from .footer import Physical


def parquet_type(node: Node) -> ColumnType:
    """The type of a parquet column."""
    item, entry = list_item(node), node.map_entry
    nullable = node.repetition == ps.OPTIONAL
    if item is not None:
        return ColumnType(Kind.LIST, nullable, element=parquet_type(item))
    if not node.is_group:
        return with_nullable(_leaf_type(node), nullable)
    if entry is not None:
        return ColumnType(Kind.MAP, nullable, key=parquet_type(entry[0]), value=parquet_type(entry[1]))
    return ColumnType(Kind.STRUCT, nullable, fields=tuple(Column(c.name, parquet_type(c)) for c in node.children))


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
    number = next(iter(union.fields), 0) if isinstance(union, Struct) else 0
    unit = UNITS[number - 1] if number in (1, 2) else "nanos"
    if node.logical == ps.L_TIME:
        return ColumnType(Kind.TIME, unit=unit)
    return ColumnType(Kind.TIMESTAMP, unit=unit, utc=bool(value.get(1)))


# ---------------------------------------------------------------------------------------------------------- new columns


def build_nodes(columns: Iterable[Column]) -> list[Node]:
    """The elements of some columns, each as `build_node` makes it."""
    return [build_node(one.name, one.type) for one in columns]


def build_node(name: str, column: ColumnType) -> Node:
    """The elements that Hudi's writer makes for a column of this type (lists in three levels)."""
    repetition = ps.OPTIONAL if column.nullable else ps.REQUIRED
    if column.kind is Kind.LIST and column.element is not None:
        repeated = node("list", ps.REPEATED, children=[build_node("element", column.element)])
        return node(name, repetition, children=[repeated], converted=ps.LIST, logical=_logical(ps.L_LIST))
    if column.kind is Kind.MAP and column.key is not None and column.value is not None:
        pair = [build_node("key", column.key), build_node("value", column.value)]
        entry = node("key_value", ps.REPEATED, children=pair)
        return node(name, repetition, children=[entry], converted=ps.MAP, logical=_logical(ps.L_MAP))
    if column.kind is Kind.STRUCT:
        return node(name, repetition, children=build_nodes(column.fields))
    return _build_leaf(name, repetition, column)


_LEAVES: dict[Kind, tuple[Physical, dict[str, Any]]] = {
    Kind.BOOLEAN: (Physical.BOOLEAN, {}),
    Kind.INT: (Physical.INT32, {}),
    Kind.LONG: (Physical.INT64, {}),
    Kind.FLOAT: (Physical.FLOAT, {}),
    Kind.DOUBLE: (Physical.DOUBLE, {}),
    Kind.STRING: (
        Physical.BYTE_ARRAY,
        {"converted": ps.UTF8, "logical": Struct({ps.L_STRING: (thrift.STRUCT, Struct())})},
    ),
    Kind.ENUM: (Physical.BYTE_ARRAY, {"converted": ps.ENUM, "logical": Struct({ps.L_ENUM: (thrift.STRUCT, Struct())})}),
    Kind.BYTES: (Physical.BYTE_ARRAY, {}),
    Kind.DATE: (Physical.INT32, {"converted": ps.DATE, "logical": Struct({ps.L_DATE: (thrift.STRUCT, Struct())})}),
}


def _build_leaf(name: str, repetition: int, column: ColumnType) -> Node:
    if column.kind in _LEAVES:
        physical, extra = _LEAVES[column.kind]
        return node(name, repetition, physical, **extra)
    if column.kind is Kind.DECIMAL:
        value = Struct({1: (thrift.I32, column.scale), 2: (thrift.I32, column.precision)})
        return node(
            name,
            repetition,
            Physical.FIXED_LEN_BYTE_ARRAY,
            type_length=decimal_width(column.precision),
            converted=ps.DECIMAL,
            scale=column.scale,
            precision=column.precision,
            logical=_logical(ps.L_DECIMAL, value),
        )
    if column.kind is Kind.FIXED:
        return node(name, repetition, Physical.FIXED_LEN_BYTE_ARRAY, type_length=column.size)
    if column.kind in (Kind.TIME, Kind.TIMESTAMP):
        return _build_time(name, repetition, column)
    raise UnsupportedTable(f"column {name} would have to be made as {column.kind.value}, which is not supported")


def _build_time(name: str, repetition: int, column: ColumnType) -> Node:
    unit = Struct({UNITS.index(column.unit) + 1: (thrift.STRUCT, Struct())})
    is_time = column.kind is Kind.TIME
    value = Struct({1: (thrift.TRUE, is_time or column.utc), 2: (thrift.STRUCT, unit)})
    extra: dict[str, Any] = {"logical": _logical(ps.L_TIME if is_time else ps.L_TIMESTAMP, value)}
    # parquet-mr writes the old annotation only for instants, which it has always meant.
    converted = {
        (True, "millis"): ps.TIME_MILLIS,
        (True, "micros"): ps.TIME_MICROS,
        (False, "millis"): ps.TIMESTAMP_MILLIS,
        (False, "micros"): ps.TIMESTAMP_MICROS,
    }.get((is_time, column.unit))
    if converted is not None and (is_time or column.utc):
        extra["converted"] = converted
    physical = Physical.INT32 if is_time and column.unit == "millis" else Physical.INT64
    return node(name, repetition, physical, **extra)


def _logical(member: int, value: Struct | None = None) -> Struct:
    return Struct({member: (thrift.STRUCT, value or Struct())})
