"""Parquet files as the input of a write: each column has the type with which Spark reads it.

The schema is that of the footer alone: what pyarrow, pandas or polars remember in it of their own types (ARROW:schema)
is left out, as every other reader does. Arrow reads all types as Spark does, except

    INT96                   an instant in UTC, in micros, whatever its year; nanoseconds below are cut off
    ENUM, JSON              strings
    BSON, GEOMETRY and others that Arrow may know, or not    the bytes that they are kept in
    required, on any level  nullable: another file may have nulls

Dates and timestamps that Spark counted in the hybrid calendar, by the footer, become Gregorian (`calendars.calendar`).
Times of day, UUIDs, intervals, variants and decimals of more than 38 digits are no types of Spark, and refused.
Source: ParquetToSparkSchemaConverter, ParquetRowConverter of Apache Spark 3.5; parquet-format LogicalTypes.md.
"""

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..calendars.calendar import FileCalendar
from ..calendars.calendar_rebase import Rebase
from ..errors import ConfigError, UnsupportedTable
from ..parquet import file_schema as ps
from ..parquet.conversion import convert_column
from ..parquet.file_schema import FileSchema, Node, arrow_schema, node
from ..parquet.footer import Footer, Physical
from ..parquet.nested_nulls import relaxed
from ..parquet.node_types import build_node
from ..schema.column_type import ColumnType, Kind

_INSTANT = ColumnType(Kind.TIMESTAMP, unit="micros", utc=True)
_TEXT = ColumnType(Kind.STRING)
_OF_ARROW = (ps.L_STRING, ps.L_DECIMAL, ps.L_DATE, ps.L_TIME, ps.L_TIMESTAMP, ps.L_UNKNOWN, ps.L_FLOAT16)
"""The logical types that Arrow reads as Spark does, or as a type that is refused."""
_OF_ARROW_CONVERTED = (ps.UTF8, ps.DECIMAL, ps.DATE, *range(ps.TIME_MILLIS, ps.JSON))
"""Those of files that only have the older form."""
_VARIANT = 16
"""The field id of VARIANT in the union LogicalType."""
_SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"


class ParquetFile:
    """A parquet file: its `schema`, and its record batches."""

    def __init__(self, source: pa.NativeFile, footer: Footer) -> None:
        """`footer` is the one of `source`, and is changed. Raises CorruptFile, UnsupportedTable, pa.ArrowException."""
        self._path = footer.path
        self._own = FileSchema.of(footer)
        self._given = FileSchema(_with_leaves(self._own.root, _given, is_root=True))
        self._arrow = arrow_schema(self._given)
        self._calendar = FileCalendar(footer.path, footer.key_values, self._own, footer.row_groups)
        self._refused = _refused(self._own, footer.key_values)
        self.schema = pa.schema([(field.name, relaxed(field.type)) for field in self._arrow])
        """The columns, each nullable on all levels."""
        self._int96 = {leaf.path[0] for leaf in self._own.leaves if leaf.physical is Physical.INT96}
        self._file = pq.ParquetFile(source, metadata=self._metadata(footer), pre_buffer=True)

    def _metadata(self, footer: Footer) -> pq.FileMetaData:
        """The footer by which pyarrow reads: INT96 as its 12 bytes."""
        footer.set_schema(FileSchema(_with_leaves(self._own.root, _read, is_root=True)).elements)
        for index, leaf in enumerate(self._own.leaves):
            if leaf.physical is Physical.INT96:
                footer.set_leaf(index, leaf.path, Physical.FIXED_LEN_BYTE_ARRAY, keep_statistics=False)
        footer.set_key_values({})
        return pq.read_metadata(io.BytesIO(footer.as_file()))

    def check(self, names: Collection[str]) -> None:
        """Raise ConfigError for one of the columns `names` of no type of Spark, or of times that are not known."""
        for name in names:
            if name in self._refused:
                part, kind = self._refused[name]
                raise ConfigError(
                    f"{self._path}: column {part} has the type {kind}: Spark has no such type",
                    hint="cast the column, of a UUID or an interval to a string, or leave it out",
                )
        self._rebase(names)

    def _rebase(self, names: Collection[str]) -> Rebase | None:
        """What makes dates and timestamps of the columns Gregorian; None where they are."""
        hybrid = {leaf.path[0] for leaf, one in self._calendar.of_leaves if one.is_hybrid}
        try:
            return None if hybrid.isdisjoint(names) else self._calendar.rebase()
        except UnsupportedTable as error:
            raise ConfigError(
                error.message, hint="let Spark write the rows anew, in a session with the time zone that wrote them"
            ) from error

    @property
    def num_row_groups(self) -> int:
        return int(self._file.num_row_groups)

    def of_row_groups(self, first: int, count: int, columns: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of some row groups; `columns`: only these, in the order of the file."""
        names = None if columns is None else [name for name in self.schema.names if name in columns]
        schema = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        rebase = self._rebase(schema.names)
        # One after the other: Arrow holds the stored bytes of all row groups that it is asked for.
        for number in range(first, first + count):
            for batch in self._file.iter_batches(row_groups=[number], columns=names):
                rows = pa.Table.from_batches([batch])
                given = self._as_given(rows if rebase is None else rebase.table(rows, self._own, self._path))
                yield from (given if given.schema.equals(schema) else given.cast(schema)).to_batches()

    def row_group_bytes(self) -> list[int]:
        """The bytes of each row group as stored."""
        of_all = self._file.metadata
        groups = map(of_all.row_group, range(of_all.num_row_groups))
        return [sum(one.column(n).total_compressed_size for n in range(one.num_columns)) for one in groups]

    def _as_given(self, rows: pa.Table) -> pa.Table:
        """Columns as they were read, in the types of `_arrow`."""
        for at, name in enumerate(rows.column_names):
            if name in self._int96:
                own, given, field = self._own.column(name), self._given.column(name), self._arrow.field(name)
                assert own is not None and given is not None, "pyarrow reads the columns of the footer"
                rows = rows.set_column(at, field, convert_column(rows.column(at), own, given, field.type))
        return rows


def _with_leaves(own: Node, of_leaf: Callable[[Node], Node], *, is_root: bool = False) -> Node:
    """The node with other leaves, and with those annotations of groups that all readers know."""
    if not own.is_group:
        return of_leaf(own)
    children = [_with_leaves(child, of_leaf) for child in own.children]
    if is_root or own.converted == ps.LIST or _is_map(own):
        return own.with_children(children)
    return node(own.name, own.repetition, children=children)


def _is_map(own: Node) -> bool:
    entry = own.map_entry
    return entry is not None and entry[0].repetition == ps.REQUIRED


def _given(own: Node) -> Node:
    if own.physical is Physical.INT96:
        return build_node(own.name, _INSTANT).with_repetition(own.repetition)
    return _read(own)


def _read(own: Node) -> Node:
    assert own.physical is not None, "groups have no values"
    if own.physical is Physical.INT96:
        return node(own.name, own.repetition, Physical.FIXED_LEN_BYTE_ARRAY, type_length=12)
    if own.converted in (ps.ENUM, ps.JSON):
        return build_node(own.name, _TEXT).with_repetition(own.repetition)
    is_whole = own.logical == ps.L_INTEGER and own.physical in (Physical.INT32, Physical.INT64)
    if is_whole or own.logical in _OF_ARROW or (own.logical is None and own.converted in _OF_ARROW_CONVERTED):
        return own
    length: dict[str, Any] = {"type_length": own.type_length} if own.physical is Physical.FIXED_LEN_BYTE_ARRAY else {}
    return node(own.name, own.repetition, own.physical, **length)


# ---------------------------------------------------------------------------------------------------- what is refused


def _refused(schema: FileSchema, key_values: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The part of each refused column that is no type of Spark, and its type, by name of the column."""
    found = ((name, _no_type(column, name)) for name in schema.columns if (column := schema.column(name)) is not None)
    intervals = _spark_intervals(key_values)
    return intervals | {name: wrong for name, wrong in found if wrong is not None}


def _no_type(own: Node, path: str) -> tuple[str, str] | None:
    if not own.is_group:
        if own.logical == ps.L_UUID:
            return path, "uuid"
        return (path, "interval") if own.converted == ps.INTERVAL else None
    if own.logical == _VARIANT:
        return path, "variant"
    if _is_map(own):
        parts = [(child, f"{path}.{child.name}") for child in own.children[0].children]
    elif own.converted in (ps.MAP, ps.MAP_KEY_VALUE):
        return path, "map without values, or with keys that may be null"
    elif own.list_element is not None:
        parts = [(own.list_element, f"{path}.element")]
    else:
        parts = [(child, f"{path}.{child.name}") for child in own.children]
    return next(filter(None, (_no_type(part, name) for part, name in parts)), None)


def _spark_intervals(key_values: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The columns that Spark reads as intervals: parquet has only their numbers, and Spark's own schema the name."""
    try:
        fields = json.loads(key_values.get(_SPARK_SCHEMA, "{}")).get("fields", [])
        found = {str(one.get("name")): _interval(one.get("type")) for one in fields}
    except (ValueError, AttributeError, TypeError, RecursionError):
        # It only adds to the file's own schema.
        return {}
    return {name: (name, kind) for name, kind in found.items() if kind}


def _interval(kind: Any) -> str:
    if isinstance(kind, str):
        return kind if kind.startswith("interval") else ""
    parts = kind.values() if isinstance(kind, Mapping) else kind if isinstance(kind, list) else ()
    return next(filter(None, map(_interval, parts)), "")
