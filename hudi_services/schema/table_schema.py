"""The schema of a table's rows as one value; it is text only where a commit, a footer or a log block has it.

Hudi writes it as an Avro record. The meta columns are those of base files: commits do not have them.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..codecs.avro_schema_check import check_json_depth
from ..codecs.json_text import parse_json
from ..computed_once import cached_property
from ..errors import CorruptFile
from .avro_type import avro_columns, avro_type_of
from .column_type import Column, ColumnType
from .hudi_types import Vector

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
    "_hoodie_operation",
)
"""In the order of base files; a table has the last column only if it keeps operations (HoodieRecord)."""
ROW_META_COLUMNS = META_COLUMNS[:5]
"""Those of every row."""
_KEY, _LATEST = "schema", "latest_schema"


@dataclass(frozen=True)
class TableSchema:
    """A schema; equal to any other of the same text. It is read when it is first used, which raises CorruptFile, naming
    `source`, for a text that is no Avro record, and UnsupportedTable for types that are not supported."""

    text: str
    """The Avro record as JSON."""
    source: str = field(default="", repr=False, compare=False)
    version: str = ""
    """The version of it in the schema history of the table, as JSON (`schema_history`); "" without a history."""

    @classmethod
    def of_commit(cls, extra: Mapping[str, str], source: str) -> "TableSchema | None":
        """That in the extra metadata of a commit; None where it has none."""
        text, version = extra.get(_KEY), extra.get(_LATEST, "")
        found = cls(text, source) if text else None
        # Beside its version, Hudi stores the schema with meta columns.
        return found and replace(found.without_meta(), version=version) if version else found

    @property
    def in_commit(self) -> dict[str, str]:
        """The entries of the extra metadata of a commit with this schema."""
        if not self.version:
            return {_KEY: self.text}
        return {_KEY: self.for_files(ROW_META_COLUMNS).text, _LATEST: self.version}

    @classmethod
    def of(cls, avro: Mapping[str, Any], source: str = "") -> "TableSchema":
        """The schema of an Avro record (parsed JSON); its text has no blanks, as commits of Hudi have it."""
        return cls(json.dumps(avro, separators=(",", ":")), source)

    def __reduce__(self) -> tuple[Any, ...]:
        return (TableSchema, (self.text, self.source, self.version))

    @cached_property
    def avro(self) -> Mapping[str, Any]:
        """The Avro record as parsed JSON."""
        try:
            schema = parse_json(self.text)
            check_json_depth(schema)
        except ValueError as e:
            raise CorruptFile(f"{self.source}: the table schema is no JSON: {e}") from e
        if not isinstance(schema, dict) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
            raise CorruptFile(f"{self.source}: the table schema is no Avro record")
        return schema

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, also where their types are not supported."""
        return tuple(str(one["name"]) for one in self.avro["fields"])

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return avro_columns(self.avro)

    @cached_property
    def types(self) -> Mapping[str, ColumnType]:
        """The types of the columns by name."""
        return {one.name: one.type for one in self.columns}

    def type_of(self, name: str) -> ColumnType | None:
        """The type of one column, also where those of others are not supported; None when there is no such column."""
        return avro_type_of(self.avro, name)

    @cached_property
    def vectors(self) -> Mapping[str, Vector]:
        """The VECTOR columns."""
        return {one.name: one.type.hudi for one in self.columns if isinstance(one.type.hudi, Vector)}

    def without_meta(self) -> "TableSchema":
        """The schema without meta columns, which deletes of partitions by Hudi 0.15.0 leave in their commits."""
        own = [one for one in self.avro["fields"] if one["name"] not in META_COLUMNS]
        return TableSchema.of({**self.avro, "fields": own}, self.source)

    def for_files(self, columns: Collection[str], dropped: Collection[str] = ()) -> "TableSchema":
        """The schema of base files: the meta columns in `columns` first, and no `dropped` column that files lack."""
        fields = self.avro["fields"]
        meta = [
            {"name": name, "type": ["null", "string"], "doc": "", "default": None}
            for name in META_COLUMNS
            if name in columns and name not in self.names
        ]
        kept = [one for one in fields if one["name"] not in dropped or one["name"] in columns]
        return TableSchema.of({**self.avro, "fields": meta + kept}, self.source)
