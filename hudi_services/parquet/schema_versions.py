"""The columns of a file as a later version of the table's schema has them, by their ids.

A column has the id that the version of the file gives to its name; with this id the later version may give it another
name and another type. What has no id there is left out: readers find nulls under its name, also where another column
has this name now. The same is true inside of structs, and of the items of lists and maps.
Source: InternalSchemaMerger of Apache Hudi.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from ..computed_once import cached_property
from ..errors import UnsupportedTable
from ..schema.column_type import Column, ColumnType, Kind
from ..schema.schema_history import SchemaHistory, SchemaVersion
from ..schema.widening import altered
from . import file_schema as ps
from .conversion import convert_column
from .file_schema import FileSchema, Node
from .node_types import build_node, parquet_type

_GONE = "\0"
"""Before the names of columns that are no longer there: no column has such a name."""


@dataclass(frozen=True)
class EvolvedSchema:
    """The columns of a file in a later version. `named` is the tree of the file with the names of now, and `given` has
    those that are still there, in their types of now."""

    file: FileSchema
    named: FileSchema
    given: FileSchema

    @cached_property
    def stored(self) -> dict[str, str]:
        """The columns of `given`, each with its name in the file."""
        pairs = zip(self.named.root.children, self.file.root.children, strict=True)
        by_name = {now.name: then.name for now, then in pairs}
        return {name: by_name[name] for name in self.given.columns}

    @cached_property
    def texts(self) -> frozenset[str]:
        """The top-level columns of `given` that are texts in the file, too."""
        both = ((name, self.named.column(name), self.given.column(name)) for name in self.given.columns)
        return frozenset(name for name, own, now in both if own and now and own.converted == now.converted == ps.UTF8)

    def table(self, read: pa.Table, *, exact_floats: bool = False) -> pa.Table:
        """Columns of the file, in its raw form, as those of `given` in its raw form; `exact_floats` as of
        `convert_column`."""
        stored, arrays = self.stored, {}
        for name in self.given.columns:
            if stored[name] in read.column_names:
                own, now = self.named.column(name), self.given.column(name)
                assert own is not None and now is not None
                column, kind = read.column(stored[name]), self.given.arrow.field(name).type
                arrays[name] = convert_column(column, own, now, kind, exact_floats=exact_floats)
        fields = [self.given.arrow.field(name).with_type(column.type) for name, column in arrays.items()]
        return pa.table(list(arrays.values()), schema=pa.schema(fields))


def evolved_schema(
    file: FileSchema, history: SchemaHistory | None, instant: str | None, path: str
) -> EvolvedSchema | None:
    """The columns of a file or a log block of an instant, in the newest version of the history.

    None where all of them are as they are stored. Raises UnsupportedTable, naming `path`, for a type that cannot
    become that of now, and CorruptFile for an instant without a version.
    """
    if history is None:
        return None
    written = history.at(instant)
    if written.id == history.now.id:
        return None
    try:
        return _evolved(file, written, history.now)
    except UnsupportedTable as error:
        raise UnsupportedTable(f"{path}: {error.message}", hint=error.hint) from None


@lru_cache(maxsize=64)
def _evolved(file: FileSchema, written: SchemaVersion, now: SchemaVersion) -> EvolvedSchema | None:
    named, given = _fields(file.root.children, written.columns, now.columns, "")
    if tuple(given) == file.root.children:
        return None
    root = file.root
    return EvolvedSchema(file, FileSchema(root.with_children(named)), FileSchema(root.with_children(given)))


def _fields(
    nodes: Sequence[Node], written: Sequence[Column], now: Sequence[Column], path: str
) -> tuple[list[Node], list[Node]]:
    """The fields of a record with their names of now, and those that are still there in their types of now."""
    of_name, of_id = {one.name: one for one in written}, {one.id: one for one in now}
    named, given = [], []
    for node in nodes:
        then = of_name.get(node.name)
        today = None if then is None else of_id.get(then.id)
        if then is None or today is None:
            named.append(node.with_name(_GONE + node.name))
            continue
        renamed, retyped = _node(node.with_name(today.name), then.type, today.type, f"{path}{today.name}")
        if retyped.is_group and not retyped.children:
            # Spark takes a struct for null where the file has none of its fields.
            named.append(node.with_name(_GONE + node.name))
            continue
        named.append(renamed)
        given.append(retyped)
    return named, given


def _node(node: Node, then: ColumnType, today: ColumnType, path: str) -> tuple[Node, Node]:
    """A column with the names of now inside of it, and the same in the type of now."""
    if then.kind is not today.kind or not then.is_nested:
        if then.required() == today.required():
            return node, node
        found = parquet_type(node)
        if node.is_group or today.is_nested or not altered(found, today):
            raise UnsupportedTable(f"the column {path} became {today}, which is not read of {found}")
        kind = ColumnType(Kind.STRING) if today.kind is Kind.UUID else today
        return node, build_node(node.name, replace(kind, nullable=found.nullable))
    if then.kind is Kind.STRUCT:
        named, given = _fields(node.children, then.fields, today.fields, f"{path}.")
        return node.with_children(named), node.with_children(given)
    if then.kind is Kind.LIST and then.element is not None and today.element is not None:
        return _list(node, then.element, today.element, f"{path}.element")
    assert then.value is not None and today.value is not None
    return _map(node, then.value, today.value, f"{path}.value")


def _item(node: Node, then: ColumnType, today: ColumnType, path: str) -> tuple[Node, Node]:
    """As `_node`, of an element or a value, which cannot be left out."""
    named, given = _node(node, then, today, path)
    if given.is_group and not given.children:
        raise UnsupportedTable(f"the file has none of the fields of {path}")
    return named, given


def _list(node: Node, then: ColumnType, today: ColumnType, path: str) -> tuple[Node, Node]:
    element = node.list_element
    if element is None:
        raise UnsupportedTable(f"the column {path} is a list in the schema history, and none in the file")
    repeated = node.children[0]
    if element is repeated:
        # The form of two levels: the element is what is repeated.
        pair = _item(element.with_repetition(ps.REQUIRED), then, today, path)
        named, given = (one.with_repetition(ps.REPEATED) for one in pair)
        return node.with_children([named]), node.with_children([given])
    named, given = _item(element, then, today, path)
    return (
        node.with_children([repeated.with_children([named])]),
        node.with_children([repeated.with_children([given])]),
    )


def _map(node: Node, then: ColumnType, today: ColumnType, path: str) -> tuple[Node, Node]:
    entry = node.map_entry
    if entry is None:
        raise UnsupportedTable(f"the column {path} is a map in the schema history, and none in the file")
    key, value = entry
    pairs = node.children[0]
    named, given = _item(value, then, today, path)
    return (
        node.with_children([pairs.with_children([key, named])]),
        node.with_children([pairs.with_children([key, given])]),
    )
