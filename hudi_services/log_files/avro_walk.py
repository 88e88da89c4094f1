"""The types of an Avro schema as values of a caller's own: one walk for the decoder and the encoder of records."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from ..schema.avro_type import names_of

T = TypeVar("T")

Fields = tuple[tuple[str, T], ...]


class AvroWalk(ABC, Generic[T]):
    """Reads one schema, which `avro_columns` has accepted; `_named` has each named type under its full name."""

    def __init__(self) -> None:
        self._named: dict[str, T] = {}

    def fields(self, schema: Mapping[str, Any], namespace: str = "") -> Fields[T]:
        """The fields of a record."""
        _, namespace = names_of(schema, namespace)
        return tuple((str(one["name"]), self._type(one["type"], namespace)) for one in schema["fields"])

    @abstractmethod
    def primitive(self, name: str) -> T | None:
        """The type of a primitive; None for any other name."""

    @abstractmethod
    def union(self, inner: T, null: int | None) -> T:
        """A union of one type, and null, which is the branch `null`; None without null."""

    @abstractmethod
    def array(self, items: T) -> T: ...

    @abstractmethod
    def map(self, values: T) -> T: ...

    @abstractmethod
    def record(self, fields: Fields[T]) -> T: ...

    @abstractmethod
    def enum(self, symbols: Sequence[str]) -> T: ...

    @abstractmethod
    def fixed(self, size: int) -> T: ...

    def _type(self, schema: Any, namespace: str) -> T:
        if isinstance(schema, list):
            inner = self._type(next(branch for branch in schema if branch != "null"), namespace)
            return self.union(inner, schema.index("null") if "null" in schema else None)
        if isinstance(schema, str):
            return self.primitive(schema) or self._named.get(schema) or self._named[f"{namespace}.{schema}"]
        kind = schema["type"]
        if kind == "array":
            return self.array(self._type(schema["items"], namespace))
        if kind == "map":
            return self.map(self._type(schema["values"], namespace))
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(schema, namespace)
        return self._type(kind, namespace)

    def _definition(self, schema: Mapping[str, Any], namespace: str) -> T:
        if schema["type"] == "enum":
            found = self.enum(schema["symbols"])
        elif schema["type"] == "fixed":
            found = self.fixed(int(schema["size"]))
        else:
            found = self.record(self.fields(schema, namespace))
        full_name, _ = names_of(schema, namespace)
        self._named[full_name] = found
        return found
