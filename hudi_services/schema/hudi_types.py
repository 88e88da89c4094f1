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

from .column_type import Kind

VECTOR_COLUMNS = "hoodie.vector.columns"
"""The footer entry that names the VECTOR columns of a base file."""

_ELEMENTS = {"FLOAT": (Kind.FLOAT, 4), "DOUBLE": (Kind.DOUBLE, 8), "INT8": (Kind.INT, 1)}
"""The type of a number, and its bytes."""
RECORDS = {"variant": "VARIANT", "blob": "BLOB"}
"""The names of the types that are records, by the logical type."""


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


def vector_of(fixed: Mapping[str, Any]) -> Vector | None:
    """The vector that an Avro fixed (parsed JSON) is; None for one with other properties than Hudi 1.2.0 gives it."""
    element, dimension = str(fixed.get("elementType", "FLOAT")).upper(), str(fixed.get("dimension", ""))
    is_known = element in _ELEMENTS and str(fixed.get("storageBacking", "FIXED_BYTES")).upper() == "FIXED_BYTES"
    if fixed.get("logicalType") != "vector" or not is_known or not (dimension.isascii() and dimension.isdigit()):
        return None
    found = Vector(int(dimension), element)
    return found if found.width == fixed.get("size") and found.dimension > 0 else None


def listed(columns: Mapping[str, Vector]) -> str:
    """The value of the footer entry for these columns."""
    return ",".join(f"{name}:{vector}" for name, vector in columns.items())
