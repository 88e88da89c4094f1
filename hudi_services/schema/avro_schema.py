"""Avro schemas of new columns, as Hudi's writers make them.

    record       <table>_record in the namespace hoodie.<table>; __ stands for each character that Avro does not allow
    struct       a record with the name of the field, in the namespace of the record around it: <namespace>.<record>
    decimal      a fixed called `fixed` in the namespace <namespace>.<record>.<field>
    nullable     a union with null in the first place, and the default null

Source: AvroConversionUtils, HoodieAvroUtils.sanitizeName, HoodieSchemaUtils of Apache Hudi; SchemaConverters of Apache
Spark.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import ConfigError
from .avro_type import PRIMITIVES
from .column_type import Column, ColumnType, Kind, decimal_width

_UNFIT_FIRST, _UNFIT = re.compile(r"\A[^A-Za-z_]"), re.compile(r"[^A-Za-z0-9_]")
_MASK = "__"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVE = {kind: name for name, kind in PRIMITIVES.items()}


def record_schema(table_name: str) -> dict[str, Any]:
    """The record of a table's rows, without fields."""
    name = _UNFIT.sub(_MASK, _UNFIT_FIRST.sub(_MASK, table_name))
    return {"type": "record", "name": f"{name}_record", "namespace": f"hoodie.{name}", "fields": []}


def with_fields(record: Mapping[str, Any], columns: Iterable[Column]) -> dict[str, Any]:
    """`record` with more fields. Raises ConfigError for a column whose name Avro does not allow."""
    inside = f"{record['namespace']}.{record['name']}"
    return {**record, "fields": [*record["fields"], *(_field(one, inside) for one in columns)]}


def with_kinds(record: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """`record` with other primitive types of some fields, which have primitive types; all else stays as it is."""
    fields = [
        {**one, "type": _of_kind(one["type"], kinds[one["name"]])} if one["name"] in kinds else one
        for one in record["fields"]
    ]
    return {**record, "fields": fields}


def _of_kind(schema: Any, kind: Kind) -> Any:
    if isinstance(schema, list):
        return [one if one == "null" else _of_kind(one, kind) for one in schema]
    return {**schema, "type": _of_kind(schema["type"], kind)} if isinstance(schema, Mapping) else _PRIMITIVE[kind]


def _field(column: Column, namespace: str) -> dict[str, Any]:
    name, kind = column.name, column.type
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"column {name!r} has a name that Avro does not allow",
            hint="rename it: letters, digits and _ are allowed, with no digit in the first place",
        )
    found: dict[str, Any] = {"name": name, "type": _type(name, kind, namespace)}
    return found | ({"default": None} if kind.nullable else {})


def _type(name: str, column: ColumnType, namespace: str) -> Any:
    found = _required(name, column, namespace)
    return ["null", found] if column.nullable else found


def _required(name: str, column: ColumnType, namespace: str) -> Any:
    if column.kind is Kind.STRUCT:
        inside = f"{namespace}.{name}"
        fields = [_field(one, inside) for one in column.fields]
        return {"type": "record", "name": name, "namespace": namespace, "fields": fields}
    if column.kind is Kind.LIST:
        assert column.element is not None, "a list has elements"
        return {"type": "array", "items": _type(name, column.element, namespace)}
    if column.kind is Kind.MAP:
        assert column.value is not None, "a map has values"
        return {"type": "map", "values": _type(name, column.value, namespace)}
    if column.kind is Kind.DECIMAL:
        fixed = {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}"}
        size, digits = decimal_width(column.precision), {"precision": column.precision, "scale": column.scale}
        return {**fixed, "size": size, "logicalType": "decimal", **digits}
    if column.kind is Kind.DATE:
        return {"type": "int", "logicalType": "date"}
    if column.kind is Kind.TIMESTAMP:
        return {"type": "long", "logicalType": f"{'' if column.utc else 'local-'}timestamp-{column.unit}"}
    return _PRIMITIVE[column.kind]
