"""The key/value metadata of a new base file: which entries of the files that it replaces still hold.

    made anew      parquet.avro.schema, writer.model.name   from the table's schema, where it describes the file
                   hoodie.vector.columns                    from the table's schema, as Hudi 1.2.0 makes it
                   org.apache.hudi.bloomfilter, hoodie_bloom_filter_type_code,
                   hoodie_min_record_key, hoodie_max_record_key     from the keys of the rows (`record_keys`)
    kept           org.apache.spark.version, legacyDateTime, legacyINT96, timeZone: how dates count (`calendar`)
                   hoodie.*, which are not known here: when all files have the same value
    dropped        com.uber.hoodie.bloomfilter: readers take the new name first
                   org.apache.spark.sql.parquet.row.metadata: the columns of the old file; Hudi 1.2.0 writes none
                   ARROW:schema, pandas and all others: they describe the file of another writer

docs/clustering.md tells the same. Sources: HoodieAvroWriteSupport, HoodieRowParquetWriteSupport,
HoodieBloomFilterWriteSupport, HoodieFileMetadataMerger of Apache Hudi 0.15.0 to 1.2.0.
"""

import json
from collections.abc import Mapping, Sequence

from ..parquet.file_schema import FileSchema
from ..parquet.node_types import parquet_type
from ..parquet.schema_evolution import agrees
from ..schema.column_type import Kind
from ..schema.hudi_types import VECTOR_COLUMNS, Vector, listed
from ..schema.table_schema import TableSchema
from .record_keys import AVRO_SCHEMA, WRITER_MODEL

_OF_HUDI = "hoodie."


def footer_entries(
    files: Sequence[Mapping[str, str]], target: FileSchema, schema: TableSchema | None
) -> dict[str, str]:
    """The entries of a file with the schema `target`, but those of its keys and its calendar.

    `files` are the key/value metadata of the files that it replaces; `schema` is the table's, in the form that files
    have, None for a table without one.
    """
    entries = _kept(files)
    if schema is None:
        return entries
    # A reader that trusts this schema would read millis as micros; without it, the reader uses the parquet schema.
    if agrees(target, schema):
        entries |= {AVRO_SCHEMA: json.dumps(schema.avro), WRITER_MODEL: "avro"}
    entries.pop(VECTOR_COLUMNS, None)
    vectors = {name: one for name, one in schema.vectors.items() if _has(target, name, one)}
    return entries | ({VECTOR_COLUMNS: listed(vectors)} if vectors else {})


def _kept(files: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The entries of Hudi that all files have in common."""
    first = files[0] if files else {}
    return {
        key: value
        for key, value in first.items()
        if key.startswith(_OF_HUDI) and all(one.get(key) == value for one in files)
    }


def _has(target: FileSchema, name: str, vector: Vector) -> bool:
    column = target.column(name)
    if column is None:
        return False
    found = parquet_type(column)
    return found.kind is Kind.FIXED and found.size == vector.width
