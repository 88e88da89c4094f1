"""Values of enums: a write refuses a text that is no symbol of the enum in the table's Avro schema.

A parquet file would take any text, and readers of Hudi would fail in it. Rows are checked in their Arrow form.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError
from ..schema.avro_type import names_of


class EnumSymbols:
    """The enums of an Avro record (parsed JSON)."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._named: dict[str, Any] = {}
        namespace = str(schema.get("namespace", ""))
        found = {str(field["name"]): self._enums(field["type"], namespace) for field in schema["fields"]}
        self._columns = {name: enums for name, enums in found.items() if enums is not None}

    def check(self, name: str, values: pa.ChunkedArray) -> None:
        """Raise ConfigError, naming the column, for a text of it that is no symbol."""
        enums = self._columns.get(name)
        for chunk in values.chunks if enums is not None else ():
            _check(name, chunk, enums)

    def _enums(self, kind: Any, namespace: str) -> Any:
        """Of an enum its symbols; of an array or map what its items have, in a list; of a record a dict of its fields.

        None where there is no enum inside. A type that contains itself is refused before (`avro_type`).
        """
        if isinstance(kind, list):
            others = [one for one in kind if one != "null"]
            return self._enums(others[0], namespace) if len(others) == 1 else None
        if isinstance(kind, str):
            return self._named.get(kind, self._named.get(f"{namespace}.{kind}"))
        if isinstance(kind["type"], (list, Mapping)):
            return self._enums(kind["type"], namespace)
        if kind["type"] in ("array", "map"):
            inner = self._enums(kind["items" if kind["type"] == "array" else "values"], namespace)
            return None if inner is None else [inner]
        if kind["type"] not in ("record", "error", "enum"):
            return None
        full_name, inside = names_of(kind, namespace)
        if kind["type"] == "enum":
            found: Any = pa.array(kind["symbols"], pa.string())
        else:
            fields = {str(one["name"]): self._enums(one["type"], inside) for one in kind["fields"]}
            found = {name: enums for name, enums in fields.items() if enums is not None} or None
        self._named[full_name] = found
        return found


def _check(name: str, values: pa.Array, enums: Any) -> None:
    if isinstance(enums, dict):
        # A field counts as null where its struct is null.
        parts = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        for field, inner in enums.items():
            _check(f"{name}.{field}", parts[field], inner)
    elif isinstance(enums, list):
        is_map = pa.types.is_map(values.type)
        present = values.drop_null()
        _check(name if is_map else f"{name}.element", present.items if is_map else present.flatten(), enums[0])
    else:
        found = pc.unique(values.cast(pa.string())).drop_null()
        unknown = found.filter(pc.invert(pc.is_in(found, value_set=enums)))
        if len(unknown):
            raise ConfigError(
                f"column {name} has the value {unknown[0].as_py()!r}, which its enum in the table does not have",
                hint=f"give one of {', '.join(enums.to_pylist())}",
            )
