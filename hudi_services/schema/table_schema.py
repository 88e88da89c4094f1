"""The table's Avro schema: with and without Hudi's meta columns."""

from collections.abc import Collection
from typing import Any

from ..codecs.avro_schema_check import check_json_depth
from ..codecs.json_text import parse_json
from ..errors import CorruptFile

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


def parse_table_schema(text: str, source: str) -> dict[str, Any]:
    """The record that `text` (Avro JSON) describes. Raises CorruptFile, naming `source`, when it is not a record."""
    try:
        schema = parse_json(text)
        check_json_depth(schema)
    except ValueError as e:
        raise CorruptFile(f"{source}: the table schema is no JSON: {e}") from e
    if not isinstance(schema, dict) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        raise CorruptFile(f"{source}: the table schema is no Avro record")
    return schema


def without_meta(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without meta columns, which deletes of partitions by Hudi 0.15.0 leave in their commits."""
    return {**schema, "fields": [field for field in schema["fields"] if field["name"] not in META_COLUMNS]}


def for_files(schema: dict[str, Any], columns: Collection[str], dropped: Collection[str] = ()) -> dict[str, Any]:
    """The schema of base files: the meta columns in `columns` first, and no `dropped` column that files lack."""
    present = {field["name"] for field in schema["fields"]}
    meta = [
        {"name": name, "type": ["null", "string"], "doc": "", "default": None}
        for name in META_COLUMNS
        if name in columns and name not in present
    ]
    kept = [field for field in schema["fields"] if field["name"] not in dropped or field["name"] in columns]
    return {**schema, "fields": meta + kept}
