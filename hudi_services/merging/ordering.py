"""Ordering values: the values of the ordering fields, of data records and of the entries of delete blocks, as numbers.

Values compare as the engine of the owner release compares them: numbers by value (NaN is the greatest, 0.0 is greater
than -0.0), texts by their UTF-8 bytes, decimals by value, dates and timestamps by their numbers.
Sources: OrderingValues, HoodieAvroWrapperUtils of Apache Hudi 1.2.0; HoodieAvroUtils.unwrapAvroValueWrapper of 0.15.0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UnsupportedTable
from ..parquet.conversion import natural
from ..parquet.file_schema import REQUIRED, FileSchema, Node, node
from ..parquet.node_types import parquet_type
from ..schema.column_type import Kind
from ..table.support import WITH_HUDI
from .fold import Numbers
from .rules import MergeRule

_ORDERED = {
    Kind.BOOLEAN,
    Kind.INT,
    Kind.LONG,
    Kind.FLOAT,
    Kind.DOUBLE,
    Kind.STRING,
    Kind.DECIMAL,
    Kind.DATE,
    Kind.TIME,
    Kind.TIMESTAMP,
}
# The wrapper of a delete entry whose value has the Java class of the values of a data record.
_WRAPPERS = {
    Kind.BOOLEAN: ("BooleanWrapper",),
    Kind.INT: ("IntWrapper",),
    Kind.LONG: ("LongWrapper",),
    Kind.FLOAT: ("FloatWrapper",),
    Kind.DOUBLE: ("DoubleWrapper",),
    Kind.TIME: ("LongWrapper", "TimeMicrosWrapper"),
    Kind.TIMESTAMP: ("LongWrapper", "TimestampMicrosWrapper"),
}
# From 1.1 on, values of other classes are converted before they are compared.
_CONVERTED = {Kind.STRING: ("StringWrapper",), Kind.DECIMAL: ("DecimalWrapper",), Kind.DATE: ("DateWrapper",)}


@dataclass(frozen=True, slots=True)
class OrderingField:
    """One ordering field of a schema; `path` leads to it through structs."""

    path: tuple[str, ...]
    leaf: Node
    wrappers: tuple[str, ...]
    """The wrappers of delete entries whose values are compared with those of data records."""

    @property
    def is_int(self) -> bool:
        """Whether a null counts as 0: Hudi's default ordering value is an int."""
        return parquet_type(self.leaf).kind is Kind.INT

    @property
    def arrow(self) -> pa.DataType:
        """The type of its `values`."""
        return natural(pa.nulls(0, _raw_type(self.leaf)), self.leaf).type

    def values(self, table: pa.Table) -> pa.ChunkedArray:
        """The values of a table in the raw form of the schema."""
        column = table.column(self.path[0])
        for name in self.path[1:]:
            column = pc.struct_field(column, name)
        chunks = [natural(chunk, self.leaf) for chunk in column.chunks]
        return pa.chunked_array(chunks, type=self.arrow)


def ordering_fields(rule: MergeRule, schema: FileSchema, path: str) -> tuple[OrderingField, ...]:
    """The ordering fields of a schema. Raises UnsupportedTable, naming `path`, for one that is missing or unordered."""
    return tuple(_ordering_field(name, schema, rule, path) for name in rule.ordering)


def _ordering_field(name: str, schema: FileSchema, rule: MergeRule, table: str) -> OrderingField:
    path = tuple(name.split("."))
    found = schema.column(path[0])
    for part in path[1:]:
        found = next((child for child in found.children if child.name == part), None) if found is not None else None
    if found is None:
        raise UnsupportedTable(f"{table}: the ordering field {name} is not in its schema")
    kind = parquet_type(found).kind
    if kind not in _ORDERED:
        raise UnsupportedTable(
            f"{table}: the ordering field {name} has the type {parquet_type(found)}, which has no order in log files",
            hint=WITH_HUDI,
        )
    known = _WRAPPERS.get(kind) or (_CONVERTED[kind] if rule.converts_entries else ())
    return OrderingField(path, found, known)


def with_ordering(rule: MergeRule, fields: Sequence[OrderingField]) -> MergeRule:
    """The rule for these fields: where 1.0.2 fails on a delete without ordering value, it is that of 1.2.0."""
    if not rule.ordering or any(one.is_int for one in fields):
        return rule
    return replace(rule, unordered_deletes_yield=True)


def numbers(values: pa.ChunkedArray) -> Numbers:
    """Numbers that compare as the values do; those of nulls mean nothing."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return _plain(values.cast(pa.int8()))
    if pa.types.is_floating(kind):
        return _float_order(values)
    if pa.types.is_temporal(kind):
        return _plain(values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
    if pa.types.is_integer(kind):
        return _plain(values)
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks.to_numpy().astype(np.int64))


def _plain(values: pa.ChunkedArray) -> Numbers:
    return np.asarray(pc.fill_null(values, 0).to_numpy().astype(np.int64))


def _float_order(values: pa.ChunkedArray) -> Numbers:
    """The bits of doubles, turned so that they order as Double.compareTo does."""
    doubles = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy()
    bits = np.where(np.isnan(doubles), np.float64(np.nan), doubles).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def _raw_type(leaf: Node) -> pa.DataType:
    return FileSchema(node("record", REQUIRED, children=[leaf])).arrow.field(0).type
