"""One target schema for files that are rewritten together.

When the files agree with each other and with the table, the target is their schema, element for element. Otherwise it
is what Hudi's reader would hand to its writer: the columns of the table schema in its order and in its types, each
with the elements of the newest file that has the column in that type. A column that a file lacks is read as nulls.

Promotions: int to long, float, double, string; long to float, double, string; float to double; string to and from
bytes; decimals that get wider; coarser to finer time units; new fields in structs; required to optional.
Sources: HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType, AvroSchemaConverter (parquet-avro).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import UnsupportedTable
from ..schema.column_type import UNITS, Column, ColumnType, Kind
from ..schema.table_schema import TableSchema
from . import file_schema as ps
from .conversion import promotable
from .file_schema import FileSchema, Node
from .footer import Physical
from .node_types import build_node, parquet_type

# Types that one table may have under different names while the stored values are the same: they are copied as they are.
_ALIKE = (
    {Kind.INT, Kind.DATE, Kind.TIME},
    {Kind.LONG, Kind.TIMESTAMP, Kind.TIME},
    {Kind.STRING, Kind.ENUM, Kind.UUID},
    {Kind.BYTES, Kind.FIXED, Kind.DECIMAL, Kind.UUID},
)


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """The schema of the file `path`."""

    path: str
    schema: FileSchema


@dataclass(frozen=True, slots=True)
class _Typed:
    """The type that the file `path` has for the column in question."""

    path: str
    type: ColumnType


def resolve_target(sources: Sequence[SourceSchema], table: TableSchema | None) -> FileSchema:
    """The schema of the file that replaces `sources` (newest first, at least one).

    `table` is the schema of the table, with the meta columns that the files have; None lets the newest file decide.
    Raises UnsupportedTable, naming column and file, when a file cannot be read with the types of the table.
    """
    finals = {name: _final_type(name, kind, sources) for name, kind in _wanted(sources, table).items()}
    newest = sources[0].schema
    if all(s.schema == newest for s in sources[1:]) and newest.columns == tuple(finals):
        types = {c.name: parquet_type(c).required() for c in newest.root.children}
        if all(types[name] == final.required() for name, final in finals.items()):
            return newest
    children = [_target_node(name, final, sources) for name, final in finals.items()]
    if len(set().union(*map(_list_levels, children))) > 1:
        # Hudi 1.2 takes the lists of one file to be of one form; only that of three levels has room for every null.
        pairs = zip(children, finals.items(), strict=True)
        children = [build_node(name, final) if _list_levels(child) else child for child, (name, final) in pairs]
    return FileSchema(newest.root.with_children(children))


def _list_levels(column: Node) -> set[int]:
    """The numbers of levels in which the lists of a column are stored: 2 (`repeated element`), 3, or both."""
    element = column.list_element
    own = set() if element is None else {2 if element.repetition == ps.REPEATED else 3}
    return own.union(*map(_list_levels, column.children))


def agrees(target: FileSchema, table: TableSchema) -> bool:
    """Whether the schema of the table describes the values of `target` as they are stored, units of time included."""
    stored = ((target.column(one.name), one.type) for one in table.columns)
    return all(column is not None and parquet_type(column).required() == wanted.required() for column, wanted in stored)


def _wanted(sources: Sequence[SourceSchema], table: TableSchema | None) -> Mapping[str, ColumnType | None]:
    if table is not None:
        return table.types
    return dict.fromkeys(name for source in sources for name in source.schema.columns)


def _final_type(name: str, table_type: ColumnType | None, sources: Sequence[SourceSchema]) -> ColumnType:
    found = [(s.path, s.schema.column(name)) for s in sources]
    typed = [_Typed(path, parquet_type(column)) for path, column in found if column is not None]
    final = _merge(name, table_type, typed)
    return final if len(typed) == len(found) else replace(final, nullable=True)


def _merge(name: str, table_type: ColumnType | None, files: Sequence[_Typed]) -> ColumnType:
    """The type to which every file's can be promoted; nullable where any of them is."""
    known = ([table_type] if table_type is not None else []) + [f.type for f in files]
    nullable = any(t.nullable for t in known)
    kinds = {t.kind for t in known}
    if len(kinds) == 1 and (nested := _NESTED.get(known[0].kind)) is not None:
        return replace(nested(name, table_type, files), nullable=nullable)
    return replace(_merge_leaf(name, table_type, files), nullable=nullable)


def _merge_list(name: str, table_type: ColumnType | None, files: Sequence[_Typed]) -> ColumnType:
    element = _merge(f"{name}.element", table_type and table_type.element, _parts(files, "element"))
    return ColumnType(Kind.LIST, element=element)


def _merge_map(name: str, table_type: ColumnType | None, files: Sequence[_Typed]) -> ColumnType:
    key = _merge(f"{name}.key", table_type and table_type.key, _parts(files, "key"))
    value = _merge(f"{name}.value", table_type and table_type.value, _parts(files, "value"))
    return ColumnType(Kind.MAP, key=key, value=value)


def _parts(files: Sequence[_Typed], part: str) -> list[_Typed]:
    return [_Typed(f.path, getattr(f.type, part)) for f in files]


def _merge_struct(name: str, table_type: ColumnType | None, files: Sequence[_Typed]) -> ColumnType:
    table_fields = table_type.field_types if table_type is not None else {}
    names = table_fields or dict.fromkeys(one.name for f in files for one in f.type.fields)
    merged = []
    for field in names:
        having = [_Typed(f.path, found) for f in files if (found := f.type.field_types.get(field)) is not None]
        final = _merge(f"{name}.{field}", table_fields.get(field), having)
        merged.append(Column(field, final if len(having) == len(files) else replace(final, nullable=True)))
    return ColumnType(Kind.STRUCT, fields=tuple(merged))


_NESTED = {Kind.LIST: _merge_list, Kind.MAP: _merge_map, Kind.STRUCT: _merge_struct}


def _merge_leaf(name: str, table_type: ColumnType | None, files: Sequence[_Typed]) -> ColumnType:
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


def _alike(one: ColumnType, other: ColumnType) -> bool:
    if one.kind is other.kind:
        return one.kind in (Kind.TIMESTAMP, Kind.FIXED)
    return any(one.kind in group and other.kind in group for group in _ALIKE)


# ------------------------------------------------------------------------------------------------------- the elements


def _target_node(name: str, final: ColumnType, sources: Sequence[SourceSchema]) -> Node:
    columns = [column for s in sources if (column := s.schema.column(name)) is not None]
    same = [c for c in columns if parquet_type(c).required() == final.required()]
    # INT96 has the type of a timestamp in micros; a file that really has micros is the better model.
    same.sort(key=lambda column: any(leaf.physical is Physical.INT96 for leaf in column.flat()))
    fitted = (_fit(column, final) for column in same)
    return next((f for f in fitted if f is not None), None) or build_node(name, final)


def _fit(column: Node, final: ColumnType) -> Node | None:
    """`column` with the nullability of `final`; None when its list form has no place for a null."""
    if column.repetition == ps.REPEATED:
        if final.nullable:
            return None
        fitted = _fit(column.with_repetition(ps.REQUIRED), final)
        return fitted and fitted.with_repetition(ps.REPEATED)
    children = _fit_children(column, final)
    if children is None:
        return None
    repetition = ps.OPTIONAL if final.nullable else ps.REQUIRED
    fitted = column.with_children(children) if column.is_group else column
    return fitted if fitted.repetition == repetition else fitted.with_repetition(repetition)


def _fit_children(column: Node, final: ColumnType) -> list[Node] | None:
    if final.kind is Kind.LIST and final.element is not None:
        repeated = column.children[0]
        if column.list_element is repeated:
            fitted = _fit(repeated, final.element)
            return [fitted] if fitted is not None else None
        item = _fit(repeated.children[0], final.element)
        return [repeated.with_children([item])] if item is not None else None
    if final.kind is Kind.MAP and final.key is not None and final.value is not None:
        entry = column.children[0]
        pair = [_fit(entry.children[0], final.key), _fit(entry.children[1], final.value)]
        fitted_pair = [p for p in pair if p is not None]
        return [entry.with_children(fitted_pair)] if len(fitted_pair) == 2 else None
    if final.kind is Kind.STRUCT:
        by_name = {child.name: child for child in column.children}
        fields = [_fit(by_name[one.name], one.type) for one in final.fields]
        fitted_fields = [f for f in fields if f is not None]
        return fitted_fields if len(fitted_fields) == len(fields) else None
    return []
