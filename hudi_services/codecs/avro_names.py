"""References to types without a namespace, from inside of a namespace.

Avro for Java writes such a reference as the bare name, and finds the type when the namespace has none of that name; by
the specification the name belongs to the namespace, and fastavro then finds nothing. Hudi 1.2.0 writes such schemas:
its VECTOR and BLOB types have no namespace, the record of a table has one, and the second column of a type is a
reference.
Source: Schema.Names of Apache Avro 1.11; HoodieSchema of Apache Hudi 1.2.0.
"""

from collections.abc import Mapping
from typing import Any

_NAMESPACE = "hudi_services.none"
_NAMED = ("record", "error", "enum", "fixed")


def with_reachable_names(schema: Any) -> Any:
    """The same schema (parsed JSON), in which types without a namespace have one where a reference needs it."""
    walk = _Walk()
    found = walk.tree(schema, "")
    return found if walk.is_needed else schema


class _Walk:
    def __init__(self) -> None:
        self.is_needed = False
        self._full: set[str] = set()
        self._bare: set[str] = set()
        """The types without a namespace."""

    def tree(self, schema: Any, namespace: str) -> Any:
        if isinstance(schema, list):
            return [self.tree(one, namespace) for one in schema]
        if isinstance(schema, str):
            return self._reference(schema, namespace)
        if not isinstance(schema, Mapping):
            return schema
        kind = schema.get("type")
        if kind in _NAMED:
            return self._definition(dict(schema), namespace)
        if isinstance(kind, (list, Mapping)):
            return {**schema, "type": self.tree(kind, namespace)}
        inner = {"array": "items", "map": "values"}.get(str(kind))
        return {**schema, inner: self.tree(schema.get(inner), namespace)} if inner else schema

    def _reference(self, name: str, namespace: str) -> str:
        if name not in self._bare or f"{namespace}.{name}" in self._full:
            return name
        self.is_needed |= bool(namespace)
        return f"{_NAMESPACE}.{name}"

    def _definition(self, schema: dict[str, Any], namespace: str) -> dict[str, Any]:
        name = str(schema.get("name", ""))
        inside = name.rpartition(".")[0] or str(schema.get("namespace", namespace))
        if inside:
            self._full.add(name if "." in name else f"{inside}.{name}")
        else:
            self._bare.add(name)
            schema["namespace"] = _NAMESPACE
        if isinstance(schema.get("fields"), list):
            schema["fields"] = [self._field(one, inside) for one in schema["fields"]]
        return schema

    def _field(self, field: Any, namespace: str) -> Any:
        return {**field, "type": self.tree(field.get("type"), namespace)} if isinstance(field, Mapping) else field
