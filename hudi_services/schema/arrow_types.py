"""The column types of Arrow tables, as Spark and Avro know them.

Narrow and unsigned integers become the signed type that holds them, uint64 a decimal, as Spark reads them from parquet;
times of day, durations and unions are no types of Spark.
Source: SchemaConverters of Apache Spark; AvroConversionUtils of Apache Hudi.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError
from .column_type import Column, ColumnType, Kind
from .hudi_types import Vector

_LEAVES: tuple[tuple[Callable[[pa.DataType], bool], Kind], ...] = (
    (pa.types.is_boolean, Kind.BOOLEAN),
    (pa.types.is_uint32, Kind.LONG),
    (pa.types.is_int64, Kind.LONG),
    (pa.types.is_integer, Kind.INT),
    (pa.types.is_float64, Kind.DOUBLE),
    (pa.types.is_floating, Kind.FLOAT),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), Kind.STRING),
    (pa.types.is_string_view, Kind.STRING),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), Kind.BYTES),
    (lambda kind: pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind), Kind.BYTES),
    (pa.types.is_date, Kind.DATE),
)
_MOST_DIGITS = 38
_DIGITS_OF_UINT64 = 20


def column_type(name: str, kind: pa.DataType, *, nullable: bool) -> ColumnType:
    """The type of a column of Arrow type `kind`. Raises ConfigError, naming the column, for what is no type of Hudi."""
    if pa.types.is_dictionary(kind):
        return column_type(name, kind.value_type, nullable=nullable)
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise _refused(name, kind, "a struct needs a field")
        parts = ((one.name, column_type(f"{name}.{one.name}", one.type, nullable=one.nullable)) for one in kind)
        return ColumnType(Kind.STRUCT, nullable, fields=tuple(Column(*part) for part in parts))
    if pa.types.is_map(kind):
        key = column_type(f"{name}.key", kind.key_type, nullable=False)
        if key.kind is not Kind.STRING:
            raise _refused(name, kind, "the keys of a map are strings in Avro")
        value = column_type(f"{name}.value", kind.item_type, nullable=kind.item_field.nullable)
        return ColumnType(Kind.MAP, nullable, key=key, value=value)
    if _is_list(kind):
        element = column_type(f"{name}.element", kind.value_type, nullable=kind.value_field.nullable)
        return ColumnType(Kind.LIST, nullable, element=element)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= _MOST_DIGITS:
        return ColumnType(Kind.DECIMAL, nullable, precision=kind.precision, scale=kind.scale)
    if pa.types.is_uint64(kind):
        return ColumnType(Kind.DECIMAL, nullable, precision=_DIGITS_OF_UINT64)
    if pa.types.is_timestamp(kind):
        return ColumnType(Kind.TIMESTAMP, nullable, unit="micros", utc=kind.tz is not None)
    for is_it, found in _LEAVES:
        if is_it(kind):
            return ColumnType(found, nullable)
    raise _refused(name, kind, "Spark has no such type")


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _refused(name: str, kind: pa.DataType, why: str) -> ConfigError:
    return ConfigError(f"column {name} has the type {kind}: {why}", hint="convert the column, or leave it out")


_PLAIN = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.ENUM: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.DATE: pa.date32(),
}


def arrow_type(column_type: ColumnType) -> pa.DataType | None:
    """The Arrow type of which `column_type` makes this type; None where there is none, and for types with maps."""
    if column_type.kind is Kind.DECIMAL and column_type.precision <= _MOST_DIGITS:
        return pa.decimal128(column_type.precision, column_type.scale)
    if column_type.kind is Kind.TIMESTAMP:
        return pa.timestamp("us", "UTC" if column_type.utc else None)
    if column_type.kind is Kind.LIST and column_type.element is not None:
        element = arrow_type(column_type.element)
        return element and pa.list_(element)
    if column_type.kind is Kind.STRUCT:
        parts = [(one.name, arrow_type(one.type)) for one in column_type.fields]
        return None if any(part is None for _, part in parts) else pa.struct(parts)
    return _PLAIN.get(column_type.kind)


_VECTORS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}


def number_type(vector: Vector) -> pa.DataType:
    """The type of the numbers of a vector."""
    return _VECTORS[vector.element]


def doubles_of(floats: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The doubles that Hudi makes of floats: those of their shortest decimal texts, see `widening.widens_float`."""
    return pc.cast(pc.cast(floats, pa.string()), pa.float64())


def with_texts(own: pa.DataType, target: pa.DataType) -> pa.DataType:
    """The type `target` with texts in the place of doubles that are floats in `own`, as in `doubles_of`: values of the
    type `own` are cast to this type, and then to `target`."""
    if pa.types.is_float32(own) and pa.types.is_float64(target):
        return pa.string()
    if pa.types.is_struct(own) and pa.types.is_struct(target):
        parts = ((one, own.field(one.name).type) for one in target)
        return pa.struct([one.with_type(with_texts(kind, one.type)) for one, kind in parts])
    if pa.types.is_map(own) and pa.types.is_map(target):
        item = target.item_field
        return pa.map_(target.key_type, item.with_type(with_texts(own.item_type, item.type)))
    if _is_list(own) and pa.types.is_list(target):
        element = target.value_field
        return pa.list_(element.with_type(with_texts(own.value_type, element.type)))
    return target
