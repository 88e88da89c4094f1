"""Columns and types in the form of a schema history, and their ids.

    record  {"type": "record", "fields": [{"id", "name", "optional", "type", "doc"?}, ...]}
    array   {"type": "array", "element_id", "element", "element_optional"}
    map     {"type": "map", "key_id", "key": "string", "value_id", "value", "value_optional"}
    others  boolean int long float double date time timestamp string binary uuid fixed[N] decimal(P, S)

New ids: the fields of a record come first, one after the other, then what is inside of each of them, in their order.
Source: SerDeHelper, Types and AvroInternalSchemaConverter of Apache Hudi 0.15.0 to 1.2.0.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import UnsupportedTable
from .column_type import Column, ColumnType, Kind

_PRIMITIVES = {
    "boolean": ColumnType(Kind.BOOLEAN),
    "int": ColumnType(Kind.INT),
    "long": ColumnType(Kind.LONG),
    "float": ColumnType(Kind.FLOAT),
    "double": ColumnType(Kind.DOUBLE),
    "date": ColumnType(Kind.DATE),
    "time": ColumnType(Kind.TIME, unit="micros"),
    "timestamp": ColumnType(Kind.TIMESTAMP, unit="micros", utc=True),
    "string": ColumnType(Kind.STRING),
    "binary": ColumnType(Kind.BYTES),
    "uuid": ColumnType(Kind.UUID),
}
_NAMES = {kind.kind: name for name, kind in _PRIMITIVES.items()} | {Kind.ENUM: "string"}
_FIXED, _DECIMAL = re.compile(r"fixed\[(\d+)\]"), re.compile(r"decimal\((\d+),\s*(\d+)\)")
_MAX_DEPTH = 64


def parse_columns(fields: Any, depth: int = 0) -> tuple[Column, ...]:
    """The columns of a list of fields (parsed JSON), with their ids.

    Raises UnsupportedTable for a type that releases of Hudi do not read, ValueError for what is no list of fields.
    """
    if not isinstance(fields, list) or depth > _MAX_DEPTH:
        raise ValueError("its fields are no list, or too deep")
    return tuple(_column(one, depth) for one in fields)


def _column(field: Any, depth: int) -> Column:
    if not isinstance(field, Mapping) or not isinstance(field.get("name"), str) or not _is_id(field.get("id")):
        raise ValueError("a field has no name or no id")
    return Column(field["name"], _type(field.get("type"), bool(field.get("optional")), depth + 1), field["id"])


def _type(tree: Any, optional: bool, depth: int) -> ColumnType:
    if isinstance(tree, str):
        return replace(_primitive(tree), nullable=optional)
    kind = tree.get("type") if isinstance(tree, Mapping) else None
    if kind == "record":
        return ColumnType(Kind.STRUCT, optional, fields=parse_columns(tree.get("fields"), depth))
    if depth > _MAX_DEPTH:
        raise ValueError("its types are too deep")
    if kind == "array":
        return ColumnType(
            Kind.LIST, optional, element=_type(tree.get("element"), bool(tree.get("element_optional")), depth + 1)
        )
    if kind == "map":
        value = _type(tree.get("value"), bool(tree.get("value_optional")), depth + 1)
        return ColumnType(Kind.MAP, optional, key=_type(tree.get("key"), False, depth + 1), value=value)
    raise ValueError(f"{tree!r} is no type")


def _primitive(name: str) -> ColumnType:
    found = _PRIMITIVES.get(name)
    if found is not None:
        return found
    if fixed := _FIXED.fullmatch(name):
        return ColumnType(Kind.FIXED, size=int(fixed[1]))
    if digits := _DECIMAL.fullmatch(name):
        return ColumnType(Kind.DECIMAL, precision=int(digits[1]), scale=int(digits[2]))
    raise UnsupportedTable(f"the type {name}, which releases of Hudi write and do not read")


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def ids_of(fields: Iterable[Mapping[str, Any]]) -> list[int]:
    """All ids of some fields (parsed JSON) and of what is inside of them."""
    found: list[int] = []
    for one in fields:
        found += [one["id"], *_ids_inside(one["type"])]
    return found


def _ids_inside(tree: Any) -> list[int]:
    if not isinstance(tree, Mapping):
        return []
    own = [tree[key] for key in ("element_id", "key_id", "value_id") if key in tree]
    parts = [found for key in ("element", "value") for found in _ids_inside(tree.get(key))]
    return [*own, *parts, *ids_of(tree.get("fields", ()))]


def new_fields(columns: Iterable[Column], next_id: Callable[[], int]) -> list[dict[str, Any]]:
    """New columns as fields (JSON); `next_id` draws their ids. Raises UnsupportedTable for types without a name."""
    numbered = [(next_id(), one) for one in columns]
    return [
        {"id": number, "name": one.name, "optional": one.type.nullable, "type": _tree(one.type, next_id)}
        for number, one in numbered
    ]


def _tree(kind: ColumnType, next_id: Callable[[], int]) -> Any:
    if kind.kind is Kind.STRUCT:
        return {"type": "record", "fields": new_fields(kind.fields, next_id)}
    if kind.kind is Kind.LIST and kind.element is not None:
        number = next_id()
        element = _tree(kind.element, next_id)
        return {
            "type": "array",
            "element_id": number,
            "element": element,
            "element_optional": kind.element.nullable,
        }
    if kind.kind is Kind.MAP and kind.value is not None:
        key, value = next_id(), next_id()
        found = _tree(kind.value, next_id)
        return {
            "type": "map",
            "key_id": key,
            "key": "string",
            "value_id": value,
            "value": found,
            "value_optional": kind.value.nullable,
        }
    return type_name(kind)


def type_name(kind: ColumnType) -> str:
    """The name of a type that is not nested. Raises UnsupportedTable where a history has none that Hudi reads."""
    if kind.kind is Kind.DECIMAL:
        return f"decimal({kind.precision}, {kind.scale})"
    if kind.kind is Kind.FIXED:
        return f"fixed[{kind.size}]"
    is_local = kind.kind is Kind.TIMESTAMP and (not kind.utc or kind.unit != "micros")
    if is_local or kind.kind not in _NAMES:
        raise UnsupportedTable(f"the type {kind}, which a schema history of Hudi does not hold")
    return _NAMES[kind.kind]
