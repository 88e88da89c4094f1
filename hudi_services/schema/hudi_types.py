"""The types of Apache Hudi 1.2.0's own, which are logical types of Avro: VECTOR, VARIANT, BLOB.

    VECTOR     a list of a fixed number of numbers, stored as the bytes of an Avro fixed, the numbers little-endian:
               {"type": "fixed", "size": 16, "logicalType": "vector", "dimension": 4, "elementType": "FLOAT",
                "storageBacking": "FIXED_BYTES"}
    VARIANT    a record of metadata and value, both bytes ("logicalType": "variant")
    BLOB       a record of type (an enum), data and reference ("logicalType": "blob")

A parquet file has the fixed and the records alone; only vectors leave a trace, in the footer entry
`hoodie.vector.columns`. Only whole columns are vectors: Hudi takes none inside of structs, arrays and maps.
Source: HoodieSchema, HoodieSchemaType of Apache Hudi 1.2.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .avro_type import names_of
from .column_type import Kind

VECTOR_COLUMNS = "hoodie.vector.columns"
"""The footer entry that names the VECTOR columns of a base file."""

_ELEMENTS = {"FLOAT": (Kind.FLOAT, 4), "DOUBLE": (Kind.DOUBLE, 8), "INT8": (Kind.INT, 1)}
"""The type of a number, and its bytes."""
_RECORDS = {"variant": "VARIANT", "blob": "BLOB"}


@dataclass(frozen=True, slots=True)
class Vector:
    """The type of a VECTOR column: `dimension` numbers, each an `element`: FLOAT, DOUBLE or INT8."""

    dimension: int
    element: str = "FLOAT"

    @property
    def kind(self) -> Kind:
        """The type of a number as columns have it; an INT8 is an int there."""
        return _ELEMENTS[self.element][0]

    @property
    def width(self) -> int:
        """Bytes of a value."""
        return self.dimension * _ELEMENTS[self.element][1]

    def __str__(self) -> str:
        """As Hudi describes the type; FLOAT goes without saying."""
        return f"VECTOR({self.dimension})" if self.element == "FLOAT" else f"VECTOR({self.dimension}, {self.element})"


def vector_columns(schema: Mapping[str, Any]) -> dict[str, Vector]:
    """The VECTOR columns of an Avro record (parsed JSON), in its order.

    A fixed with other properties than Hudi 1.2.0 gives to vectors is none.
    """
    namespace = str(schema.get("namespace", ""))
    named: dict[str, Vector] = {}
    found = ((str(one["name"]), _vector(one["type"], namespace, named)) for one in schema["fields"])
    return {name: vector for name, vector in found if vector is not None}


def record_types(schema: Mapping[str, Any]) -> dict[str, str]:
    """The columns of an Avro record (parsed JSON) that are VARIANT or BLOB, each with the name of its type."""
    named: dict[str, str] = {}
    found = {}
    for field in schema["fields"]:
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for kind in kinds:
            if isinstance(kind, Mapping) and str(kind.get("logicalType")) in _RECORDS:
                named[str(kind.get("name"))] = found[str(field["name"])] = _RECORDS[kind["logicalType"]]
            elif isinstance(kind, str) and kind in named:
                found[str(field["name"])] = named[kind]
    return found


def listed(columns: Mapping[str, Vector]) -> str:
    """The value of the footer entry for these columns."""
    return ",".join(f"{name}:{vector}" for name, vector in columns.items())


def _vector(kind: Any, namespace: str, named: dict[str, Vector]) -> Vector | None:
    """The vector that a type is; two columns of one vector type share one definition, in `named`."""
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return _vector(others[0], namespace, named) if len(others) == 1 else None
    if isinstance(kind, str):
        return named.get(kind) or named.get(f"{namespace}.{kind}")
    if not isinstance(kind, Mapping):
        return None
    if kind.get("type") != "fixed":
        return _vector(kind["type"], namespace, named) if isinstance(kind.get("type"), (list, Mapping)) else None
    found = _defined(kind)
    if found is not None:
        named[names_of(kind, namespace)[0]] = found
    return found


def _defined(fixed: Mapping[str, Any]) -> Vector | None:
    element, dimension = str(fixed.get("elementType", "FLOAT")).upper(), str(fixed.get("dimension", ""))
    is_known = element in _ELEMENTS and str(fixed.get("storageBacking", "FIXED_BYTES")).upper() == "FIXED_BYTES"
    if fixed.get("logicalType") != "vector" or not is_known or not (dimension.isascii() and dimension.isdigit()):
        return None
    found = Vector(int(dimension), element)
    return found if found.width == fixed.get("size") and found.dimension > 0 else None
