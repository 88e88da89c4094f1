"""The schema of a parquet file as a tree, and the Arrow form in which its values are copied unchanged.

A FileSchema keeps every SchemaElement as it stands in the footer. Its *raw* form differs only in leaves that pyarrow
cannot write back as they were:

    INT96                                 FIXED_LEN_BYTE_ARRAY(12), the same 12 bytes
    DECIMAL on INT32, INT64, BYTE_ARRAY,  the bare physical type
      or on more bytes than it needs
    INTEGER signed                        bare INT32 or INT64
    ENUM, JSON, BSON, UUID, INTERVAL, ..  the bare physical type
    unknown annotations of groups         a bare group

Pages of a column are the same bytes in both forms, so a file is read through a footer in the raw form, and written
by putting the true elements into the footer of a raw file.
Source: apache/parquet-format LogicalTypes.md.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ..codecs import thrift
from ..codecs.thrift import ListValue, Struct
from ..computed_once import cached_property
from ..errors import CorruptFile, UnsupportedTable
from ..schema.column_type import decimal_width
from .footer import Footer, Physical

REQUIRED, OPTIONAL, REPEATED = range(3)

# ConvertedType
UTF8, MAP, MAP_KEY_VALUE, LIST, ENUM, DECIMAL, DATE, TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS = (
    range(11)
)
UINT_8, UINT_16, UINT_32, UINT_64, INT_8, INT_16, INT_32, INT_64, JSON, BSON, INTERVAL = range(11, 22)
_UNSIGNED = (UINT_8, UINT_16, UINT_32, UINT_64)
_SIGNED = (INT_8, INT_16, INT_32, INT_64)

# Field ids of the union LogicalType
L_STRING, L_MAP, L_LIST, L_ENUM, L_DECIMAL, L_DATE, L_TIME, L_TIMESTAMP = range(1, 9)
L_INTEGER, L_UNKNOWN, L_JSON, L_BSON, L_UUID, L_FLOAT16 = 10, 11, 12, 13, 14, 15

_MAX_DEPTH = 64
_CONVERTED_OF_LOGICAL = {L_STRING: UTF8, L_MAP: MAP, L_LIST: LIST, L_ENUM: ENUM, L_DECIMAL: DECIMAL, L_DATE: DATE}
_CONVERTED_OF_LOGICAL |= {L_JSON: JSON, L_BSON: BSON}
# Types whose values order as unsigned bytes, as the bare BYTE_ARRAY does.
_BYTE_ORDERED = (UTF8, ENUM, JSON, BSON)


@dataclass(frozen=True, slots=True)
class Node:
    """One SchemaElement with its children; `element` is shared and must not be changed."""

    element: Struct
    name: str
    repetition: int
    physical: Physical | None
    """None: a group."""
    children: "tuple[Node, ...]" = ()

    @property
    def is_group(self) -> bool:
        return self.physical is None

    @property
    def type_length(self) -> int:
        return int(self.element.get(2) or 0)

    @property
    def logical(self) -> int | None:
        """The field id of the LogicalType union, None when there is none."""
        union = self.element.get(10)
        return next(iter(union.fields), None) if isinstance(union, Struct) else None

    @property
    def logical_value(self) -> Struct:
        union = self.element.get(10)
        value = next(iter(union.fields.values()))[1] if isinstance(union, Struct) and union.fields else None
        return value if isinstance(value, Struct) else Struct()

    @property
    def converted(self) -> int | None:
        """The ConvertedType, taken from the logical type where only that is given."""
        value = self.element.get(6)
        if isinstance(value, int):
            return value
        return _CONVERTED_OF_LOGICAL.get(self.logical or 0)

    @property
    def precision_and_scale(self) -> tuple[int, int]:
        if self.logical == L_DECIMAL:
            value = self.logical_value
            return int(value.get(2) or 0), int(value.get(1) or 0)
        return int(self.element.get(8) or 0), int(self.element.get(7) or 0)

    def with_repetition(self, repetition: int) -> "Node":
        element = Struct(dict(self.element.fields))
        element.set(3, thrift.I32, repetition)
        return replace(self, element=element, repetition=repetition)

    def with_name(self, name: str) -> "Node":
        """The same column under another name."""
        if name == self.name:
            return self
        element = Struct(dict(self.element.fields))
        element.set(4, thrift.BINARY, name.encode())
        return replace(self, element=element, name=name)

    def with_children(self, children: "Sequence[Node]") -> "Node":
        element = Struct(dict(self.element.fields))
        element.set(5, thrift.I32, len(children))
        return replace(self, element=element, children=tuple(children))

    def flat(self) -> "Iterator[Node]":
        yield self
        for child in self.children:
            yield from child.flat()

    @property
    def list_element(self) -> "Node | None":
        """The element of a group annotated LIST (2 or 3 levels, by the backward-compatibility rules), else None.

        A REPEATED result is an element of its own: the 2-level form, never null.
        """
        if self.converted != LIST or len(self.children) != 1 or self.children[0].repetition != REPEATED:
            return None
        repeated = self.children[0]
        if len(repeated.children) != 1 or repeated.name in ("array", f"{self.name}_tuple"):
            return repeated
        only = repeated.children[0]
        return repeated if only.repetition == REPEATED else only

    @property
    def map_entry(self) -> "tuple[Node, Node] | None":
        """Key and value of a group annotated MAP, else None."""
        if self.converted not in (MAP, MAP_KEY_VALUE) or len(self.children) != 1:
            return None
        entry = self.children[0]
        if entry.repetition != REPEATED or len(entry.children) != 2:
            return None
        return entry.children[0], entry.children[1]


def node(
    name: str, repetition: int, physical: Physical | None = None, children: Sequence[Node] = (), **extra: Any
) -> Node:
    """A new node. `extra`: type_length, converted, scale, precision (numbers), logical (the union's Struct)."""
    fields: dict[int, tuple[int, Any]] = {}
    if physical is not None:
        fields[1] = (thrift.I32, int(physical))
    if "type_length" in extra:
        fields[2] = (thrift.I32, extra["type_length"])
    fields[3] = (thrift.I32, repetition)
    fields[4] = (thrift.BINARY, name.encode())
    if physical is None:
        fields[5] = (thrift.I32, len(children))
    for key, field_id in (("converted", 6), ("scale", 7), ("precision", 8)):
        if key in extra:
            fields[field_id] = (thrift.I32, extra[key])
    if "logical" in extra:
        fields[10] = (thrift.STRUCT, extra["logical"])
    return Node(Struct(fields), name, repetition, physical, tuple(children))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column."""

    path: tuple[str, ...]
    node: Node
    levels: tuple[int, ...]
    """The repetitions other than REQUIRED from the root down: what definition and repetition levels count."""

    @property
    def max_def(self) -> int:
        return len(self.levels)

    @property
    def max_rep(self) -> int:
        return self.levels.count(REPEATED)

    @property
    def dotted(self) -> str:
        return ".".join(self.path)

    @property
    def physical(self) -> Physical:
        assert self.node.physical is not None
        return self.node.physical

    @property
    def type_length(self) -> int:
        return self.node.type_length if self.physical is Physical.FIXED_LEN_BYTE_ARRAY else 0


ColumnMap: TypeAlias = Mapping[str, str | None]
"""The wanted columns of a table, in order, each with the name of its column in a file; None where the file lacks it."""


class FileSchema:
    """The columns of one base file, exactly as its footer has them. Immutable; equal when every element is."""

    def __init__(self, root: Node) -> None:
        self.root = root

    @classmethod
    def of(cls, footer: Footer) -> "FileSchema":
        """The schema in a footer. Raises CorruptFile when its elements do not form a tree.

        Files with the same columns share one: a schema is most of a reader's memory, and much is made of it once.
        """
        elements = footer.elements
        root, end = _read_node(elements, 0, footer.path, 0)
        if end != len(elements) or not root.is_group:
            raise CorruptFile(f"{footer.path}: the schema in its footer is not one tree")
        return _shared(cls(root))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileSchema) and self._encoded == other._encoded

    def __hash__(self) -> int:
        return hash(self._encoded)

    def __reduce__(self) -> tuple[Any, ...]:
        # Files of a task share one, and so do those of all tasks where their outlines meet.
        return (_shared_by_root, (self.root,))

    @cached_property
    def _encoded(self) -> bytes:
        return b"".join(thrift.encode_struct(e) for e in self.elements[1:])

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(child.name for child in self.root.children)

    @cached_property
    def elements(self) -> tuple[Struct, ...]:
        return tuple(n.element for n in self.root.flat())

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaf for child in self.root.children for leaf in _leaves(child, (), ()))

    @cached_property
    def raw(self) -> "FileSchema":
        """The schema whose Arrow form is written back as the same physical values."""
        return FileSchema(_raw_node(self.root, is_root=True))

    @cached_property
    def arrow(self) -> pa.Schema:
        """Arrow types of the raw form."""
        return arrow_schema(self.raw)

    def column(self, name: str) -> Node | None:
        """The column that has this name in the file."""
        return self._by_name.get(name)

    def column_of(self, name: str) -> Node | None:
        """The column with the values of the table's column `name`, None where the file lacks it: that of this name.

        Files with columns of older names have got those of now before (`schema_versions`).
        """
        return self.column(name)

    def columns_of(self, names: Iterable[str]) -> ColumnMap:
        """The columns with the values of these columns of the table."""
        found = ((name, self.column_of(name)) for name in names)
        return {name: None if column is None else column.name for name, column in found}

    def path_of(self, leaf: Leaf) -> str:
        """The dotted path of a leaf in the table, by which statistics are kept."""
        return leaf.dotted

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        # Of two columns of one name the first counts.
        return {child.name: child for child in reversed(self.root.children)}

    def select(self, names: Sequence[str]) -> "FileSchema":
        """The same schema with only the columns `names`, in that order."""
        by_name = {child.name: child for child in self.root.children}
        return FileSchema(self.root.with_children([by_name[name] for name in names]))


@lru_cache(maxsize=64)
def _shared(schema: FileSchema) -> FileSchema:
    """The schema that came first of those that are equal to `schema`."""
    return schema


def _shared_by_root(root: Node) -> FileSchema:
    return _shared(FileSchema(root))


def arrow_schema(schema: FileSchema) -> pa.Schema:
    """The schema that pyarrow makes of `schema`. Raises UnsupportedTable for types that pyarrow does not know."""
    tree = Struct(
        {
            1: (thrift.I32, 2),
            2: (thrift.LIST, ListValue(thrift.STRUCT, list(schema.elements))),
            3: (thrift.I64, 0),
            4: (thrift.LIST, ListValue(thrift.STRUCT, [])),
        }
    )
    try:
        return pq.read_schema(io.BytesIO(Footer(tree, "").as_file()))
    except (pa.ArrowException, OSError) as e:
        raise UnsupportedTable(f"a column type is not supported: {str(e).splitlines()[0]}") from e


def keeps_order(true: Node) -> bool:
    """Whether statistics of the raw form of this leaf have the order of the true type.

    False for INT96, for decimals kept as bytes, and for types whose order is not known.
    """
    raw = _raw_leaf(true)
    if raw is true or true.converted in _BYTE_ORDERED or true.logical == L_UUID:
        return True
    return true.physical in (Physical.INT32, Physical.INT64)


def _read_node(elements: list[Struct], index: int, path: str, depth: int) -> tuple[Node, int]:
    if depth > _MAX_DEPTH or index >= len(elements):
        raise CorruptFile(f"{path}: the schema in its footer is not a tree")
    element = elements[index]
    name, count, physical = element.get(4), element.get(5), element.get(1)
    repetition = element.get(3, REQUIRED)
    if not isinstance(name, bytes) or repetition not in (REQUIRED, OPTIONAL, REPEATED):
        raise CorruptFile(f"{path}: element {index} of its schema has no name or an unknown repetition")
    _check_numbers(element, index, path)
    children = []
    next_index = index + 1
    if physical is None:
        for _ in range(count if isinstance(count, int) else 0):
            child, next_index = _read_node(elements, next_index, path, depth + 1)
            children.append(child)
    try:
        kind = None if physical is None else Physical(physical)
        return Node(element, name.decode(), repetition, kind, tuple(children)), next_index
    except ValueError:
        raise CorruptFile(f"{path}: element {index} of its schema has an unknown type or name") from None


def _check_numbers(element: Struct, index: int, path: str) -> None:
    for field_id in (2, 5, 6, 7, 8):
        value = element.get(field_id, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise CorruptFile(f"{path}: element {index} of its schema has a bad field {field_id}")
    logical = element.get(10)
    if logical is None:
        return
    members = [m for _, m in logical.fields.values()] if isinstance(logical, Struct) else []
    if len(members) != 1 or not isinstance(members[0], Struct):
        raise CorruptFile(f"{path}: element {index} of its schema has a bad logical type")


def _leaves(at: Node, parents: tuple[str, ...], levels: tuple[int, ...]) -> Iterator[Leaf]:
    path = (*parents, at.name)
    if at.repetition != REQUIRED:
        levels = (*levels, at.repetition)
    if at.is_group:
        for child in at.children:
            yield from _leaves(child, path, levels)
    else:
        yield Leaf(path, at, levels)


def _raw_node(true: Node, *, is_root: bool = False) -> Node:
    if not true.is_group:
        return _raw_leaf(true)
    children = [_raw_node(child) for child in true.children]
    raw = true.with_children(children)
    if is_root or true.converted in (LIST, MAP, MAP_KEY_VALUE) or (true.converted is None and true.logical is None):
        return raw
    return replace(raw, element=_bare(raw.element))


def _raw_leaf(true: Node) -> Node:
    """`true` itself when pyarrow writes it back as it was, else the leaf without annotation."""
    if true.physical is Physical.INT96:
        element = _bare(true.element)
        element.set(1, thrift.I32, int(Physical.FIXED_LEN_BYTE_ARRAY))
        element.set(2, thrift.I32, 12)
        return replace(true, element=element, physical=Physical.FIXED_LEN_BYTE_ARRAY)
    if _is_natural(true):
        return true
    return replace(true, element=_bare(true.element))


def _is_natural(leaf: Node) -> bool:
    converted, logical = leaf.converted, leaf.logical
    if converted is None and logical is None:
        return True
    if converted == DECIMAL:
        precision, _ = leaf.precision_and_scale
        width = leaf.type_length if leaf.physical is Physical.FIXED_LEN_BYTE_ARRAY else None
        return 0 < precision <= 76 and width == decimal_width(precision)
    if converted in _UNSIGNED:
        return True
    if logical == L_INTEGER:
        return not leaf.logical_value.get(2, True)
    kept = (UTF8, DATE, TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS)
    return converted in kept or logical in (L_TIME, L_TIMESTAMP)


def _bare(element: Struct) -> Struct:
    return Struct({k: v for k, v in element.fields.items() if k not in (6, 7, 8, 10)})
