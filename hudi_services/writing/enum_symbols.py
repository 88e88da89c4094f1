"""Values of enums: a write refuses a text that is no symbol of the enum in the table's Avro schema.

A parquet file would take any text, and readers of Hudi would fail in it. Rows are checked in their Arrow form.
"""

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError
from ..schema.column_type import ColumnType, Kind


def check_symbols(name: str, values: pa.ChunkedArray | pa.Array, column: ColumnType) -> None:
    """Raise ConfigError, naming the part of the column, for a text that is no symbol of its enum."""
    for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
        _check(name, chunk, column)


def _has_enums(kind: ColumnType) -> bool:
    return kind.kind is Kind.ENUM or any(map(_has_enums, kind.parts))


def _check(name: str, values: pa.Array, kind: ColumnType) -> None:
    if not _has_enums(kind):
        return
    if kind.kind is Kind.STRUCT:
        # A field counts as null where its struct is null.
        parts = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        for one in kind.fields:
            _check(f"{name}.{one.name}", parts[one.name], one.type)
    elif kind.element is not None:
        _check(f"{name}.element", values.drop_null().flatten(), kind.element)
    elif kind.value is not None:
        _check(name, values.drop_null().items, kind.value)
    else:
        found = pc.unique(values.cast(pa.string())).drop_null()
        unknown = found.filter(pc.invert(pc.is_in(found, value_set=pa.array(kind.symbols, pa.string()))))
        if len(unknown):
            raise ConfigError(
                f"column {name} has the value {unknown[0].as_py()!r}, which its enum in the table does not have",
                hint=f"give one of {', '.join(kind.symbols)}",
            )
