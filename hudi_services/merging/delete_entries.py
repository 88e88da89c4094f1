"""The entries of delete blocks that a write appends: keys with the ordering values of their rows.

    int IntWrapper; long, timestamp in microseconds LongWrapper; float FloatWrapper; double DoubleWrapper
    string StringWrapper; boolean BooleanWrapper; decimal DecimalWrapper (30,15); date DateWrapper
    several ordering fields: ArrayWrapper of their wrappers

Source: HoodieDeleteBlock, HoodieDeleteRecord.avsc, HoodieAvroWrapperUtils.wrapValueIntoAvro of Apache Hudi.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UnsupportedTable
from ..log_files.avro_encoding import Encoded, encode_primitive, flat, joined, varints
from ..log_files.block_contents import DEFAULT_ORDERING
from ..parquet.node_types import parquet_type
from ..schema.column_type import ColumnType, Kind
from .ordering import OrderingField

_BRANCHES = {
    Kind.BOOLEAN: (1, "boolean"),
    Kind.INT: (2, "int"),
    Kind.LONG: (3, "long"),
    Kind.TIMESTAMP: (3, "long"),
    Kind.FLOAT: (4, "float"),
    Kind.DOUBLE: (5, "double"),
    Kind.STRING: (7, "string"),
    Kind.DATE: (8, "int"),
    Kind.DECIMAL: (9, "bytes"),
}
_ARRAY_BRANCH = 12
_DECIMAL = pa.decimal128(38, 15)
_NULL = b"\0"


def ordering_entries(rows: pa.Table, ordering: Sequence[OrderingField], path: str, *, dates: bool) -> Encoded:
    """The encoded ordering values of rows in the raw form of their schema; without fields the default of Hudi.

    `dates`: whether a date may be one. Raises UnsupportedTable, naming `path`, for values that an entry cannot have.
    """
    if not ordering:
        return pa.repeat(pa.scalar(DEFAULT_ORDERING, pa.large_binary()), rows.num_rows)
    parts = [_wrapped(one, rows, path, dates=dates) for one in ordering]
    if len(parts) == 1:
        return parts[0]
    # A union with null, and an array of one block.
    count = varints(np.array([_ARRAY_BRANCH, 1, len(parts)]))
    head = b"".join(count.to_pylist())
    return joined([head, *parts, b"\0"])


def _wrapped(ordering: OrderingField, rows: pa.Table, path: str, *, dates: bool) -> Encoded:
    kind = parquet_type(ordering.leaf)
    found = _BRANCHES.get(kind.kind)
    values = flat(ordering.values(rows))
    if (
        found is None
        or (kind.kind is Kind.TIMESTAMP and kind.unit != "micros")
        or (kind.kind is Kind.DATE and not dates)
    ):
        raise _unstorable(ordering, path, kind)
    branch, primitive = found
    if kind.kind is Kind.DECIMAL:
        try:
            values = pc.cast(values, _DECIMAL)
        except pa.ArrowInvalid:
            raise _unstorable(ordering, path, kind) from None
    entry = joined([varints(np.array([branch]))[0].as_py(), encode_primitive(primitive, values)])
    return pc.if_else(pc.is_valid(values), entry, pa.scalar(_NULL, pa.large_binary()))


def _unstorable(ordering: OrderingField, path: str, kind: ColumnType) -> UnsupportedTable:
    return UnsupportedTable(
        f"{path} would get deletes with values of the ordering field {'.'.join(ordering.path)}, and the Hudi release "
        f"of this table version cannot store such a value of the type {kind}",
        hint="delete the rows with --operation delete, which needs no ordering value",
    )
