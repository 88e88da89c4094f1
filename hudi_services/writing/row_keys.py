"""The record keys of rows in the files of a table without meta fields: made as those of new rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..base_files.keyed_slices import KeyedBaseSlices, RowKeys
from ..errors import ConfigError, UnsupportedTable
from ..keygen.key_forms import KeyForm
from ..keygen.key_maker import key_generator
from ..options.creation_keys import KeyGenerator
from ..parquet.file_schema import FileSchema
from ..snapshot import Snapshot
from ..table_config import TableConfig
from .write_index import IndexType
from .writer_schema import WriterSchema

_INDEXES = (IndexType.SIMPLE, IndexType.GLOBAL_SIMPLE, IndexType.RECORD_LEVEL_INDEX, IndexType.RECORD_INDEX)
"""Those that read the columns of keys; the record indexes because where the table has none, these take their place."""
_GENERATORS = (KeyGenerator.SIMPLE, KeyGenerator.COMPLEX, KeyGenerator.NON_PARTITION)


@dataclass(frozen=True, slots=True)
class FileKeys:
    """See `RowKeys`: keys of the form `form`, of rows in the schema of a write."""

    form: KeyForm
    writer: WriterSchema

    @property
    def columns(self) -> Sequence[str]:
        return list(dict.fromkeys(field.column for field in self.form.fields))

    @property
    def schema(self) -> FileSchema:
        return self.writer.target

    def of(self, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
        return self.form.keys(rows)


def check_made_keys(config: TableConfig, index: IndexType) -> None:
    """Raise UnsupportedTable or ConfigError where keys are not looked up in a table without meta fields."""
    without = f"the table {config.name} has no meta fields (hoodie.populate.meta.fields=false)"
    if config.is_merge_on_read:
        raise UnsupportedTable(
            f"{without}, and only inserts are written to such tables of type MERGE_ON_READ yet",
            hint="write with --operation insert or bulk_insert, or with Apache Hudi",
        )
    generator = key_generator(config)
    if generator not in _GENERATORS:
        raise UnsupportedTable(
            f"{without}, and Apache Hudi writes no such table with the key generator {generator.value}",
            hint="make a table with meta fields, or with the key generator SIMPLE, COMPLEX or NON_PARTITION",
        )
    if index is IndexType.BUCKET:
        raise UnsupportedTable(
            f"{without}, and rows are not written to buckets of such tables", hint="write with Apache Hudi"
        )
    if index not in _INDEXES:
        raise ConfigError(
            f"{without}, and hoodie.index.type={index.value} needs the record keys in its files",
            hint="set hoodie.index.type=SIMPLE, or GLOBAL_SIMPLE for keys that are unique in the table",
        )


def with_keys(table: Snapshot, keys: RowKeys | None) -> Snapshot:
    """The table, whose file slices have the record keys that `keys` makes; None where they are stored."""
    return table if keys is None else replace(table, slices=KeyedBaseSlices(table.storage, keys=keys))
