"""What type may become what other one: the one place that says so, with a relation for each who asks.

                 a file or rows,    a table, by    statistics,    JSON, in a     a file, in an
                 read as            its rows       as those of    column of      expression index
    int          long float double  long double    64 bits        -              long
                 string                            float double
    long         float double       -              float double   any number     -
                 string
    float        double             double         double         -              -
    double       -                  -              -              float decimal  -
    string       bytes enum         -              bytes          bytes decimal  -
                                                                  date time
    bytes        string             -              decimal        -              -
    enum         string             -              -              -              -
    decimal      a wider one        -              any other one  -              -
    times        a finer unit       -              any unit       -              -

By ALTER TABLE, where a table has a schema history, numbers also become decimals and texts, dates texts, texts dates and
decimals (`evolved_values`). A table does not grow where values that are stored would be rounded, although Hudi lets it.
Files that are read together take the type to which all of theirs are promoted. Statistics without value types do not
tell int, date and time apart, nor long and timestamp, nor string and UUID; a compaction of Hudi before 1.1 makes bytes
of decimals (`metadata.statistics.values`). Longs and doubles in one column of JSON are doubles. Which columns of a
table must keep their types, whatever their values could become, is in `ingest.fixed_types`; what the texts of CSV can
be, in `inputs.csv_types`.
Sources: HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType (files, rows), SchemaChangeUtils (ALTER TABLE),
HoodieSchemaUtils.deduceWriterSchema (tables), HoodieTableMetadataUtil, HoodieAvroWrapperUtils (statistics) of Apache
Hudi.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import UnsupportedTable
from .column_type import UNITS, Column, ColumnType, Kind

_NUMBERS: Mapping[Kind, Collection[Kind]] = {
    Kind.INT: (Kind.LONG, Kind.FLOAT, Kind.DOUBLE),
    Kind.LONG: (Kind.FLOAT, Kind.DOUBLE),
    Kind.FLOAT: (Kind.DOUBLE,),
}
_ROUNDED = {(Kind.INT, Kind.FLOAT), (Kind.LONG, Kind.FLOAT), (Kind.LONG, Kind.DOUBLE)}
"""Numbers that lose digits when they are large. The others have one value, and no other, in the wider type."""
_TEXTS: Mapping[Kind, Collection[Kind]] = {
    Kind.INT: (Kind.STRING,),
    Kind.LONG: (Kind.STRING,),
    Kind.STRING: (Kind.BYTES, Kind.ENUM),
    Kind.BYTES: (Kind.STRING,),
    Kind.ENUM: (Kind.STRING,),
}


# ------------------------------------------------------------------------------------------------------ files and rows


def is_converted(source: ColumnType, target: ColumnType) -> bool:
    """Whether the leaf type `source` becomes one of another kind when it is read as `target`."""
    kind = source.kind
    return target.kind in _NUMBERS.get(kind, ()) or target.kind in _TEXTS.get(kind, ())


_ALTERED: Mapping[Kind, Collection[Kind]] = {
    Kind.INT: (Kind.DECIMAL,),
    Kind.LONG: (Kind.DECIMAL,),
    Kind.FLOAT: (Kind.STRING, Kind.DECIMAL),
    Kind.DOUBLE: (Kind.STRING, Kind.DECIMAL),
    Kind.DECIMAL: (Kind.STRING, Kind.DECIMAL),
    Kind.DATE: (Kind.STRING,),
    Kind.STRING: (Kind.DATE, Kind.DECIMAL),
}


def altered(source: ColumnType, target: ColumnType) -> bool:
    """Whether ALTER TABLE may give a column of the leaf type `source` the type `target` (`schema_history`)."""
    return promotable(source, target) or target.kind in _ALTERED.get(source.kind, ())


def promotable(source: ColumnType, target: ColumnType) -> bool:
    """Whether every value of the leaf type `source`, in a file or in rows, has one meaning as `target`."""
    if source.required() == target.required() or is_converted(source, target):
        return True
    if source.kind is not target.kind:
        return False
    if source.kind is Kind.DECIMAL:
        whole = target.precision - target.scale >= source.precision - source.scale
        return whole and target.scale >= source.scale
    if source.kind in (Kind.TIME, Kind.TIMESTAMP):
        return source.utc == target.utc and UNITS.index(source.unit) <= UNITS.index(target.unit)
    return False


def widens_float(source: ColumnType, target: ColumnType) -> bool:
    """Whether floats become doubles: those of their shortest decimal texts, 0.1f becomes 0.1.

    In one place releases before 1.1 keep the value, 0.10000000149011612 (`MergeRule.exact_floats`).
    """
    return (source.kind, target.kind) == (Kind.FLOAT, Kind.DOUBLE)


@dataclass(frozen=True, slots=True)
class Misfit:
    """A part of a column, by its path, that cannot become what the table has there."""

    path: str
    source: ColumnType
    target: ColumnType


def misfit(path: str, source: ColumnType, target: ColumnType) -> Misfit | None:
    """The first part of a column of rows that cannot be one of the table: structs must have the same fields."""
    if source.kind is not target.kind or not source.is_nested:
        return None if promotable(source, target) else Misfit(path, source, target)
    if [*source.field_types] != [*target.field_types]:
        return Misfit(path, source, target)
    own = _inside(source)
    return next(filter(None, (misfit(f"{path}.{name}", own[name], one) for name, one in _inside(target).items())), None)


def _inside(kind: ColumnType) -> dict[str, ColumnType]:
    """The parts of a nested type by name; the keys of maps are strings in Avro."""
    parts = {"element": kind.element, "value": kind.value}
    return {name: one for name, one in parts.items() if one is not None} | kind.field_types


# ----------------------------------------------------------------------------------------- files that are read together

# Types that one table may have under different names while the stored values are the same: they are copied as they are.
_ALIKE = (
    {Kind.INT, Kind.DATE, Kind.TIME},
    {Kind.LONG, Kind.TIMESTAMP, Kind.TIME},
    {Kind.STRING, Kind.ENUM, Kind.UUID},
    {Kind.BYTES, Kind.FIXED, Kind.DECIMAL, Kind.UUID},
)


@dataclass(frozen=True, slots=True)
class FileType:
    """The type that the file `path` has for the column in question."""

    path: str
    type: ColumnType


def common_type(name: str, table_type: ColumnType | None, files: Sequence[FileType]) -> ColumnType:
    """The type to which every file's can be promoted; nullable where any of them is.

    It is that of the table, in the finest unit of the files; without one, that of the first file for which this is
    true. Structs have the fields of the table, or else of all files. Raises UnsupportedTable, naming column and file.
    """
    known = ([table_type] if table_type is not None else []) + [f.type for f in files]
    nullable = any(t.nullable for t in known)
    kinds = {t.kind for t in known}
    if len(kinds) == 1 and (nested := _NESTED.get(known[0].kind)) is not None:
        return replace(nested(name, table_type, files), nullable=nullable)
    return replace(_common_leaf(name, table_type, files), nullable=nullable)


def _common_list(name: str, table_type: ColumnType | None, files: Sequence[FileType]) -> ColumnType:
    element = common_type(f"{name}.element", table_type and table_type.element, _parts(files, "element"))
    return ColumnType(Kind.LIST, element=element)


def _common_map(name: str, table_type: ColumnType | None, files: Sequence[FileType]) -> ColumnType:
    key = common_type(f"{name}.key", table_type and table_type.key, _parts(files, "key"))
    value = common_type(f"{name}.value", table_type and table_type.value, _parts(files, "value"))
    return ColumnType(Kind.MAP, key=key, value=value)


def _parts(files: Sequence[FileType], part: str) -> list[FileType]:
    return [FileType(f.path, getattr(f.type, part)) for f in files]


def _common_struct(name: str, table_type: ColumnType | None, files: Sequence[FileType]) -> ColumnType:
    table_fields = table_type.field_types if table_type is not None else {}
    names = table_fields or dict.fromkeys(one.name for f in files for one in f.type.fields)
    merged = []
    for field in names:
        having = [FileType(f.path, found) for f in files if (found := f.type.field_types.get(field)) is not None]
        final = common_type(f"{name}.{field}", table_fields.get(field), having)
        merged.append(Column(field, final if len(having) == len(files) else replace(final, nullable=True)))
    return ColumnType(Kind.STRUCT, fields=tuple(merged))


_NESTED = {Kind.LIST: _common_list, Kind.MAP: _common_map, Kind.STRUCT: _common_struct}


def _common_leaf(name: str, table_type: ColumnType | None, files: Sequence[FileType]) -> ColumnType:
    candidates = list(dict.fromkeys(f.type.required() for f in files))
    if table_type is not None:
        wanted = _finest(table_type.required(), candidates)
        candidates = [wanted, *(c for c in candidates if _alike(c, wanted))]
    for candidate in candidates:
        if all(promotable(f.type, candidate) for f in files):
            return candidate
    offender = next(f for f in files if not promotable(f.type, candidates[0]))
    raise UnsupportedTable(
        f"column {name} is {offender.type} in {offender.path} and {candidates[0]} in the table, "
        "and the first type cannot be read as the second",
        hint="leave the partition out, or let Hudi rewrite that file first",
    )


def _finest(table_type: ColumnType, files: Sequence[ColumnType]) -> ColumnType:
    """`table_type` in the finest unit of the files, so that no value is truncated; in its own unit if no file has one.

    With hoodie.parquet.outputtimestamptype=TIMESTAMP_MILLIS Spark's files say millis and the table schema micros.
    """
    if table_type.kind not in (Kind.TIME, Kind.TIMESTAMP):
        return table_type
    units = [f.unit for f in files if f.kind is table_type.kind] or [table_type.unit]
    return replace(table_type, unit=max((u for u in units if u in UNITS), key=UNITS.index, default="micros"))


def _alike(column_type: ColumnType, other: ColumnType) -> bool:
    if column_type.kind is other.kind:
        return column_type.kind in (Kind.TIMESTAMP, Kind.FIXED)
    return any(column_type.kind in group and other.kind in group for group in _ALIKE)


def has_coarser_times(own: ColumnType, other: ColumnType) -> bool:
    """Whether times in the type `own`, or inside of it, have a coarser unit than those of another form of the type."""
    if own.unit in UNITS and other.unit in UNITS:
        return UNITS.index(own.unit) < UNITS.index(other.unit)
    inside = _inside(other)
    return any(has_coarser_times(one, inside[name]) for name, one in _inside(own).items() if name in inside)


def mixes_units(types: Sequence[ColumnType]) -> bool:
    """Whether a column has timestamps of several units, which a merge does not tell apart."""
    return len({one.unit for one in types if one.kind is Kind.TIMESTAMP}) > 1


# --------------------------------------------------------------------------------------------------------- other askers


def grows(of_table: Kind, of_rows: Kind) -> bool:
    """Whether a column of a table gets the type of the rows of a write."""
    return of_rows in _NUMBERS.get(of_table, ()) and (of_table, of_rows) not in _ROUNDED


def would_round(of_table: Kind, of_rows: Kind) -> bool:
    """Whether a column of a table does not grow, as Hudi lets it, because large whole numbers would be rounded."""
    return (of_table, of_rows) in _ROUNDED


def is_computed_as(own: Kind, column: Kind) -> bool:
    """Whether an expression index of a column takes the values of a file that has it in the type `own`."""
    return own is column or (own, column) == (Kind.INT, Kind.LONG)


def joined(kind: Kind, other: Kind) -> Kind | None:
    """The type of a column of JSON that has values of both types: numbers become the wider ones."""
    if kind is other or kind in _NUMBERS.get(other, ()):
        return kind
    return other if other in _NUMBERS.get(kind, ()) else None


_JSON: Mapping[Kind, Collection[Kind]] = {
    Kind.STRING: (Kind.STRING, Kind.BYTES, Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL),
    Kind.LONG: (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL),
    Kind.DOUBLE: (Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL),
    Kind.BOOLEAN: (Kind.BOOLEAN,),
}


def fits_json(kind: Kind, column: Kind) -> bool:
    """Whether values of JSON may be those of a column of the table; each is parsed, and refused where it is none."""
    return column in _JSON.get(kind, ())


# ----------------------------------------------------------------------------------------------------------- statistics

_WIDTH = {Kind.INT: 1, Kind.LONG: 2, Kind.FLOAT: 3, Kind.DOUBLE: 4}


def bound_becomes(source: ColumnType, target: ColumnType) -> bool:
    """Whether a bound of type `source` may be read as one of type `target`. Not every decimal has a smaller scale."""
    if source.unit_nanos is not None and target.unit_nanos is not None:
        return True
    known, wanted = _family(source), _family(target)
    if known == wanted or target.kind in _NUMBERS.get(source.kind, ()):
        return True
    if source.kind is Kind.INT:
        return wanted is Kind.LONG
    if target.kind is Kind.DECIMAL:
        return source.kind is Kind.DECIMAL or leaves_decimal(source, target)
    return known is Kind.STRING and wanted is Kind.BYTES


def leaves_decimal(bound: ColumnType, column: ColumnType) -> bool:
    """Whether a bound is what a compaction of Hudi before 1.1 leaves of a decimal: a column of bytes never becomes one
    of decimals."""
    return bound.kind is Kind.BYTES and column.kind is Kind.DECIMAL


def widest(bounds: Sequence[ColumnType]) -> ColumnType:
    """The first bound's type, which is the newest file's, unless an older file has a wider one, or a finer unit."""
    known = [bound for bound in bounds if bound.kind is not Kind.NULL]
    if not known:
        return bounds[0]
    return max(known, key=lambda bound: (_WIDTH.get(bound.kind, 0), bound.scale, -(bound.unit_nanos or 0)))


def _family(bound: ColumnType) -> Kind:
    """The type that stands for all those which bounds without a value type do not tell apart."""
    if bound.kind is Kind.TIME:
        return Kind.INT if bound.unit == "millis" else Kind.LONG
    return _FAMILIES.get(bound.kind, bound.kind)


_FAMILIES = {Kind.DATE: Kind.INT, Kind.TIMESTAMP: Kind.LONG, Kind.UUID: Kind.STRING, Kind.FIXED: Kind.BYTES}
