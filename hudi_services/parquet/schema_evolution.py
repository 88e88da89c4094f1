"""One target schema for files that are rewritten together.

When the files agree with each other and with the table, the target is their schema, element for element. Otherwise it
is what Hudi's reader would hand to its writer: the columns of the table schema in its order and in its types, each
with the elements of the newest file that has the column in that type. A column that a file lacks is read as nulls.

Source: AvroSchemaConverter (parquet-avro); for the types `schema.widening`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..schema.column_type import ColumnType, Kind
from ..schema.table_schema import TableSchema
from ..schema.widening import FileType, common_type
from . import file_schema as ps
from .file_schema import FileSchema, Node
from .footer import Physical
from .node_types import build_node, parquet_type


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """The schema of the file `path`."""

    path: str
    schema: FileSchema


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
    found = [(s.path, s.schema.column_of(name)) for s in sources]
    typed = [FileType(path, parquet_type(column)) for path, column in found if column is not None]
    final = common_type(name, table_type, typed)
    return final if len(typed) == len(found) else replace(final, nullable=True)


# ------------------------------------------------------------------------------------------------------- the elements


def _target_node(name: str, final: ColumnType, sources: Sequence[SourceSchema]) -> Node:
    columns = [column for s in sources if (column := s.schema.column_of(name)) is not None]
    same = [c for c in columns if parquet_type(c).required() == final.required()]
    # INT96 has the type of a timestamp in micros; a file that really has micros is the better model.
    same.sort(key=lambda column: any(leaf.physical is Physical.INT96 for leaf in column.flat()))
    fitted = (_fit(column, final) for column in same)
    found = next((f for f in fitted if f is not None), None)
    return build_node(name, final) if found is None else found.with_name(name)


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
