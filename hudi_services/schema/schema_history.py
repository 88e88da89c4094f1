"""The history of a table's schema (`hoodie.schema.on.read.enable`): its versions, whose columns have ids.

A file has the columns of the version that its writer knew, under their names of then. A column that was renamed keeps
its id; one that was dropped, and added again under the same name, has another id.

    {"schemas": [version, ...]}                                    newest first, of all `.schemacommit` files
    {"max_column_id", "version_id", "type": "record", "fields"}    a version, also in commits (latest_schema)

`version_id` is the instant of the commit that made the version, as a number, 0 for the columns of before.
Source: InternalSchema, SerDeHelper, InternalSchemaCache of Apache Hudi 0.15.0 to 1.2.0.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count, pairwise
from typing import Any

from ..codecs.avro_schema_check import check_json_depth
from ..codecs.json_text import parse_json
from ..computed_once import cached_property
from ..errors import CorruptFile, UnsupportedTable
from .avro_schema import record_schema, with_fields
from .column_type import Column, ColumnType, Kind
from .internal_types import ids_of, new_fields, parse_columns, type_name
from .table_schema import META_COLUMNS, TableSchema

_HISTORY_LOST = "Hudi would take columns of older files for others; use Apache Hudi on this table"


@dataclass(frozen=True)
class SchemaVersion:
    """One version; `text` is its JSON, as in the extra metadata of commits."""

    id: int
    text: str
    columns: tuple[Column, ...] = field(compare=False, repr=False)
    """With meta columns, and with ids."""
    max_column_id: int = field(compare=False)

    @classmethod
    def of(cls, tree: Any, source: str) -> "SchemaVersion":
        """The version of parsed JSON. Raises CorruptFile and UnsupportedTable, naming `source`."""
        try:
            columns = parse_columns(tree["fields"])
            version, most, ids = int(tree["version_id"]), int(tree["max_column_id"]), ids_of(tree["fields"])
            if len(ids) != len(set(ids)) or max(ids, default=0) > most:
                raise ValueError("its ids are not unique, or larger than the largest one")
        except UnsupportedTable as error:
            raise UnsupportedTable(f"{source} has {error.message}", hint=_HISTORY_LOST) from None
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptFile(f"{source} has no schema history: {error}") from error
        return cls(version, _text(tree), columns, most)

    @classmethod
    def parse(cls, text: str, source: str) -> "SchemaVersion":
        """The version in the extra metadata of a commit. Raises as `of`."""
        try:
            tree = parse_json(text)
            check_json_depth(tree)
        except ValueError as error:
            raise CorruptFile(f"{source} has no version of a schema: {error}") from error
        return cls.of(tree, source)

    def is_same(self, other: "SchemaVersion") -> bool:
        """Whether both are one version, with the same columns under the same ids."""
        names = _names(self.columns), _names(other.columns)
        return self.id == other.id and self.columns == other.columns and names[0] == names[1]

    @property
    def tree(self) -> dict[str, Any]:
        return dict(json.loads(self.text))


@dataclass(frozen=True)
class SchemaHistory:
    """All versions, newest first; the first one is that of the table. A plain value, which is sent to the executors.

    `exact_floats`: whether floats of log blocks become doubles of the same value (1.0.2), not of their shortest texts.
    """

    versions: tuple[SchemaVersion, ...]
    exact_floats: bool = False

    @classmethod
    def parse(cls, text: str, source: str, *, exact_floats: bool = False) -> "SchemaHistory":
        """The history of a `.schemacommit` file. Raises CorruptFile, and UnsupportedTable for one whose ids mean
        different columns."""
        try:
            tree = parse_json(text)
            check_json_depth(tree)
            trees = tree["schemas"]
            if not isinstance(trees, list) or not trees:
                raise ValueError("no schemas")
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptFile(f"{source} is no schema history: {error}") from error
        versions = sorted((SchemaVersion.of(one, source) for one in trees), key=lambda one: one.id, reverse=True)
        for newer, older in pairwise(versions):
            _check_ids(older, newer, source)
        return cls(tuple(versions), exact_floats)

    @property
    def now(self) -> SchemaVersion:
        return self.versions[0]

    @property
    def text(self) -> str:
        """The content of a `.schemacommit` file."""
        return '{"schemas":[' + ",".join(one.text for one in self.versions) + "]}"

    def at(self, instant: str | None) -> SchemaVersion:
        """The version of files and log blocks of an instant. Raises CorruptFile for an instant before all versions."""
        number = int(instant) if instant is not None and instant.isdecimal() else 0
        found = next((one for one in self.versions if one.id <= number), None)
        if found is None:
            raise CorruptFile(f"the schema history of the table has no version for the instant {instant}")
        return found

    def until(self, instant: str) -> "SchemaHistory":
        """The history as it was at an instant."""
        last = self.at(instant)
        return replace(self, versions=tuple(one for one in self.versions if one.id <= last.id))

    def altered_since(self, instants: Iterable[str]) -> frozenset[str]:
        """The names of columns of now whose values files of these instants have under another name or in another type,
        and names under which they have another column."""
        versions = {one.id: one for one in map(self.at, instants)}
        return frozenset().union(*(_altered(one, self.now) for one in versions.values() if one.id != self.now.id))

    def has(self, version: SchemaVersion) -> bool:
        """Whether it has this version, with the same columns."""
        return any(one.is_same(version) for one in self.versions)

    def schema(self, table_name: str) -> TableSchema:
        """The schema of the newest version, without meta columns, as Hudi makes it of a history."""
        own = [one for one in self.now.columns if one.name not in META_COLUMNS]
        return replace(TableSchema.of(with_fields(record_schema(table_name), own)), version=self.now.text)

    def grown(self, schema: TableSchema, instant: str) -> "SchemaHistory":
        """The history after a commit at `instant`, whose schema has new columns or wider types.

        Raises UnsupportedTable for a type that a history does not hold.
        """
        tree = self.now.tree
        wanted, known = schema.types, {one["name"] for one in tree["fields"]}
        numbers = count(self.now.max_column_id + 1)
        fields = [_widened(one, wanted) for one in tree["fields"]]
        fields += new_fields([one for one in schema.columns if one.name not in known], lambda: next(numbers))
        if fields == tree["fields"]:
            return self
        most = max(self.now.max_column_id, *ids_of(fields))
        new = {"max_column_id": most, "version_id": int(instant), "type": "record", "fields": fields}
        return replace(self, versions=(SchemaVersion.of(new, f"the schema of {instant}"), *self.versions))


class KnownHistory:
    """The history of a table, which is read when it is first asked for, and before it is sent to executors."""

    def __init__(self, load: Callable[[], SchemaHistory | None]) -> None:
        self._load = load

    @cached_property
    def value(self) -> SchemaHistory | None:
        """None for a table without a history. Raises what reads it: CorruptFile, UnsupportedTable, StorageError."""
        return self._load()

    def until(self, instant: str) -> "KnownHistory":
        """The history as it was at an instant."""
        return KnownHistory(lambda: self.value and self.value.until(instant))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_known, (self.value,))


def _known(value: SchemaHistory | None) -> KnownHistory:
    return KnownHistory(lambda: value)


NO_HISTORY = _known(None)


@lru_cache(maxsize=64)
def _altered(then: SchemaVersion, now: SchemaVersion) -> frozenset[str]:
    by_id, by_name = {one.id: one for one in then.columns}, {one.name: one for one in then.columns}
    found = set()
    for one in now.columns:
        before, namesake = by_id.get(one.id), by_name.get(one.name)
        is_other = namesake is not None and namesake.id != one.id
        if is_other or (before is not None and _shape(before) != _shape(one)):
            found.add(one.name)
    return frozenset(found)


def _shape(column: Column) -> tuple[str, ColumnType, dict[int, str]]:
    """What a column has to keep for its statistics to keep their names and their order."""
    return column.name, column.type.required(), _names_inside(column.type)


def _text(tree: Any) -> str:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def _widened(tree: Mapping[str, Any], types: Mapping[str, ColumnType]) -> dict[str, Any]:
    """A field with the type that a commit's schema has for it, where that is another primitive type."""
    kind = types.get(tree["name"])
    if kind is None or kind.is_nested or not isinstance(tree["type"], str):
        return dict(tree)
    (known,) = parse_columns([tree])
    same = known.type.kind is kind.kind or (known.type.kind, kind.kind) == (Kind.STRING, Kind.ENUM)
    return dict(tree) if same else {**tree, "type": type_name(kind)}


def _check_ids(older: SchemaVersion, newer: SchemaVersion, source: str) -> None:
    """Raise UnsupportedTable where ids were given anew, as after writes that did not know the history.

    One ALTER TABLE renames one column, or drops some, or adds some, whose ids are larger than those that are there. An
    id that a dropped column had may come again: Hudi then gives the new column its values.
    """
    before, after = _names(older.columns), _names(newer.columns)
    renamed = [number for number, name in before.items() if after.get(number, name) != name]
    added = after.keys() - before.keys()
    is_one = len(renamed) <= 1 and (not renamed or before.keys() == after.keys())
    if is_one and all(number > max(before, default=-1) for number in added):
        return
    raise UnsupportedTable(
        f"{source}: the version {newer.id} of the schema gives ids to columns that the version {older.id} has given "
        "to other ones",
        hint=_HISTORY_LOST,
    )


def _names(columns: Sequence[Column]) -> dict[int, str]:
    """The names of columns and fields by id."""
    found: dict[int, str] = {}
    for one in columns:
        if one.id is not None:
            found[one.id] = one.name
        found |= _names_inside(one.type)
    return found


def _names_inside(kind: ColumnType) -> dict[int, str]:
    found = _names(kind.fields)
    for part in (kind.element, kind.value):
        found |= {} if part is None else _names_inside(part)
    return found
