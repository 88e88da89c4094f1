"""The schema of a write: that of the table, with the columns that the rows add, and the rows in the form of its files.

Columns of the table that the rows lack are nulls only when that is asked for; new columns come last, and are nullable
once the table has rows. Of two types of one column the wider one is taken: values of the rows are promoted to the type
of the table, or the table gets the type of the rows, where all values of the table keep their meaning in it.
Source: HoodieSchemaUtils.deduceWriterSchema of Apache Hudi 1.x.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.slices import RECORD_KEY
from ..computed_once import cached_property
from ..errors import ConfigError
from ..parquet.file_schema import REQUIRED, FileSchema, node
from ..parquet.nested_nulls import has_required, refuse_nulls, relaxed, with_required
from ..parquet.node_types import build_node, build_nodes
from ..schema.arrow_types import column_type, with_texts
from ..schema.avro_schema import record_schema, with_fields, with_kinds
from ..schema.column_type import Column, ColumnType, Kind
from ..schema.table_schema import META_COLUMNS, ROW_META_COLUMNS, TableSchema
from ..schema.widening import grows, misfit, would_round
from .enum_symbols import check_symbols
from .vectors import check_lists, stored_vectors

FixedTypes = Callable[[], Mapping[str, str]]
"""Gives the columns of the table that must keep their types, each with the reason."""

_META = ColumnType(Kind.STRING, nullable=True)


@dataclass(frozen=True)
class WriterSchema:
    """`table` is the schema of the commit: without meta columns. `has_meta`: whether files have them."""

    table: TableSchema
    has_meta: bool
    no_longer_zero: frozenset[str] = frozenset()
    """Ordering fields that grow from int, in which a null counts as 0; in these rows they may have none."""

    @classmethod
    def deduce(
        cls,
        rows: pa.Schema,
        table: TableSchema | None,
        *,
        table_name: str,
        has_meta: bool,
        local_timestamps: bool,
        nulls_for_missing: bool = False,
        fixed: FixedTypes = dict,
        compared: Collection[str] = (),
    ) -> "WriterSchema":
        """The schema of a write of `rows` to a table with this schema; None for a table without commits.

        `fixed` is called where a type would grow; `compared` are the ordering fields that are compared with those of
        files. Raises ConfigError, naming the column, for one that the table cannot take.
        """
        names = [name for name in rows.names if name not in META_COLUMNS]
        doubled = {name for name in names if names.count(name) > 1}
        if doubled:
            raise ConfigError(f"the rows have several columns called {min(doubled)}")
        if not names:
            raise ConfigError("the rows have no columns")
        known: Mapping[str, ColumnType] = table.types if table is not None else {}
        _check_case(names, known)
        may_lack = {name for name, one in known.items() if one.nullable and nulls_for_missing}
        missing = [name for name in known if name not in may_lack.union(names)]
        if missing:
            raise ConfigError(
                f"the rows lack the column {missing[0]} of the table",
                hint="add the column, or set hoodie.write.set.null.for.missing.columns=true for nullable columns",
            )
        added: list[Column] = []
        grown: dict[str, Kind] = {}
        for name in names:
            field = rows.field(name)
            if name in known and pa.types.is_null(field.type):
                continue
            found = column_type(name, field.type, nullable=field.nullable or table is not None)
            if table is not None and name in table.vectors:
                check_lists(name, found, table.vectors[name])
                continue
            if not local_timestamps and _has_local_timestamp(found):
                raise ConfigError(
                    f"column {name} has timestamps without a time zone, and the Hudi release of this table version "
                    "does not read them",
                    hint="give them a time zone: UTC keeps the clock times",
                )
            if name in known and grows(known[name].kind, found.kind):
                must_stay = fixed()
                if name in must_stay:
                    raise _other_type(name, found, known[name], must_stay[name])
                grown[name] = found.kind
            elif name in known:
                _check_column(name, found, known[name])
            else:
                _refuse_types_of_hudi(field)
                _check_case_of_fields(name, found)
                added.append(Column(name, found))
        record = record_schema(table_name) if table is None else table.avro
        record = with_kinds(record, grown) if grown else record
        ints = {name for name in grown if known[name].kind is Kind.INT}
        of_commit = TableSchema.of(with_fields(record, added) if added else record)
        return cls(of_commit, has_meta, frozenset(ints.intersection(compared)))

    @classmethod
    def of_table(cls, table: TableSchema, rows: pa.Schema, names: Collection[str], *, has_meta: bool) -> "WriterSchema":
        """The schema of the table, for a write that uses only the columns `names` of `rows`.

        Raises ConfigError, naming the column, for one that is missing or has another type.
        """
        known = table.types
        for name in names:
            if rows.names.count(name) != 1:
                many = "several columns" if name in rows.names else "no column"
                raise ConfigError(f"the rows have {many} called {name}, of which their keys are made")
            field = rows.field(name)
            if name in known and not pa.types.is_null(field.type):
                _check_promotable(name, column_type(name, field.type, nullable=True), known[name])
        return cls(table, has_meta)

    def with_columns(self, rows: pa.Schema, names: Collection[str]) -> "WriterSchema":
        """The schema with the columns `names` of `rows`, which it does not have."""
        if not names:
            return self
        added = [Column(name, column_type(name, rows.field(name).type, nullable=True)) for name in names]
        return replace(self, table=TableSchema.of(with_fields(self.table.avro, added)))

    def without(self, names: Collection[str]) -> "WriterSchema":
        """The schema without the columns `names`."""
        return replace(self, table=self.table.for_files((), names)) if names else self

    @cached_property
    def target(self) -> FileSchema:
        """The schema of new base files."""
        meta = [Column(name, _META) for name in ROW_META_COLUMNS] if self.has_meta else []
        columns = build_nodes((*meta, *self.table.columns))
        return FileSchema(node(str(self.table.avro["name"]), REQUIRED, children=columns))

    @cached_property
    def keyed(self) -> FileSchema:
        """The schema of rows with their record keys, which base files do not have without meta fields."""
        return self.target if self.has_meta else with_key(self.target)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The data columns, as `conform` gives them."""
        names = [name for name in self.target.columns if name not in META_COLUMNS]
        return pa.schema([self.target.arrow.field(name) for name in names])

    def conform(self, rows: pa.Table, names: Collection[str] | None = None) -> pa.Table:
        """The data columns of `rows`, in the order and raw form of the target; missing ones are nulls.

        `names`: only these columns. Raises ConfigError, naming the column, for a value that its type cannot hold, and
        for a null where none may be, also inside of values.
        """
        columns, schema = [], self.arrow
        if names is not None:
            schema = pa.schema([field for field in schema if field.name in names])
        for field in schema:
            column = rows.column(field.name) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
            columns.append(_cast(self._as_stored(column, field.name), field))
            check_symbols(field.name, columns[-1], self.table.types[field.name])
            if field.name in self.no_longer_zero:
                _refuse_zeros(field, column.null_count)
        return pa.table(columns, schema=schema)

    def _as_stored(self, column: pa.ChunkedArray | pa.Array, name: str) -> pa.ChunkedArray | pa.Array:
        vector = self.table.vectors.get(name)
        # Rows have vectors as lists.
        return stored_vectors(name, column, vector) if vector is not None and column.type.num_fields == 1 else column


def _refuse_zeros(field: pa.Field, nulls: int) -> None:
    if nulls:
        raise ConfigError(
            f"the ordering field {field.name} has {nulls} nulls, and would get the type of the rows, {field.type}: "
            "nulls count as 0 in an int alone",
            hint="give every row a value, or convert the column to the type of the table",
        )


def with_key(schema: FileSchema) -> FileSchema:
    """A schema without meta columns, with the record key as its first column."""
    return FileSchema(schema.root.with_children([build_node(RECORD_KEY, _META), *schema.root.children]))


def _cast(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if not field.nullable:
        refuse_nulls(field.name, column.null_count)
    if not has_required(field.type):
        return _of_type(column, field, field.type)
    loose = _of_type(column, field, relaxed(field.type))
    return with_required(loose if isinstance(loose, pa.ChunkedArray) else pa.chunked_array([loose]), field)


def _of_type(column: pa.ChunkedArray | pa.Array, field: pa.Field, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if column.type == kind:
        return column
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        by_text = with_texts(column.type, kind)
        return pc.cast(column if by_text == kind else pc.cast(column, by_text), kind)
    except pa.ArrowException as error:
        raise ConfigError(
            f"column {field.name} cannot be written as {field.type}: {str(error).splitlines()[0]}",
            hint="round or convert the values of the column first",
        ) from error


def _check_case(names: Sequence[str], known: Collection[str]) -> None:
    """Raise ConfigError for a new column of another one's name in other case: Spark does not read both."""
    others = {name.lower(): name for name in (*META_COLUMNS, *known)}
    for name in names:
        other = name if name in known else others.setdefault(name.lower(), name)
        if other != name:
            where = " of the table" if other in known else ""
            raise ConfigError(
                f"the new column {name} differs only in case from the column {other}{where}, and Spark does not read a "
                "table with both",
                hint=f"rename {name}, to {other} where the two are the same",
            )


def _check_case_of_fields(name: str, column_type: ColumnType) -> None:
    """Raise ConfigError as `_check_case`, for fields of structs in a new column."""
    fields: dict[str, str] = {}
    for field in column_type.field_types:
        other = fields.setdefault(field.lower(), field)
        if other != field:
            raise ConfigError(
                f"the new column {name} has the fields {other} and {field}, which differ only in case, and Spark does "
                "not read both",
                hint="rename one of them",
            )
    for part in column_type.parts:
        _check_case_of_fields(name, part)


def _refuse_types_of_hudi(field: pa.Field) -> None:
    """Raise ConfigError for a new column that says, as columns of Spark do, that it is one of Hudi's own types."""
    told = (field.metadata or {}).get(b"hudi_type")
    if told is not None:
        raise ConfigError(
            f"the new column {field.name} is to be {told.decode(errors='replace')} (hudi_type), and writes here make "
            "no column of that type",
            hint="create the column with Apache Hudi, or leave out hudi_type",
        )


def _has_local_timestamp(column_type: ColumnType) -> bool:
    return (column_type.kind is Kind.TIMESTAMP and not column_type.utc) or any(
        map(_has_local_timestamp, column_type.parts)
    )


def _check_column(name: str, of_rows: ColumnType, of_table: ColumnType) -> None:
    """Raise ConfigError when a column of the rows cannot be one of the table."""
    try:
        _check_promotable(name, of_rows, of_table)
    except ConfigError as error:
        if not of_table.hudi:
            raise
        fields = ", ".join(f"{part.name} ({part.type})" for part in of_table.fields)
        raise ConfigError(
            f"column {name} has the type {of_rows}, and {of_table.hudi} in the table",
            hint=f"give structs with the fields {fields}, or write this column with Apache Hudi",
        ) from error


def _check_promotable(name: str, of_rows: ColumnType, of_table: ColumnType) -> None:
    wrong = misfit(name, of_rows, of_table)
    if wrong is None:
        return
    if wrong.source.kind is wrong.target.kind is Kind.STRUCT:
        fields = ", ".join(wrong.source.field_types)
        raise ConfigError(f"column {wrong.path} has the fields {fields}, and the table other ones")
    why = _why_kept(wrong.path, wrong.source.kind, wrong.target.kind)
    raise _other_type(wrong.path, wrong.source, wrong.target, why)


def _why_kept(name: str, of_rows: Kind, of_table: Kind) -> str:
    """Why the type of the rows, to which Hudi would let that of the table grow, is not taken; "" for others."""
    if would_round(of_table, of_rows):
        return "large whole numbers would be rounded"
    is_nested = "." in name
    return "Hudi fails to read nested values of two types" if is_nested and grows(of_table, of_rows) else ""


def _other_type(name: str, of_rows: ColumnType, of_table: ColumnType, why: str) -> ConfigError:
    """`why`: the reason for which the table does not get the type of the rows, or ""."""
    return ConfigError(
        f"column {name} has the type {of_rows}, and {of_table} in the table{why and ', and must keep it: '}{why}",
        hint="convert the column to the type of the table",
    )
