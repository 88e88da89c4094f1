"""The rows of a write, in the form of the table, with their record keys, by partition: nothing is written yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..rows.output import RECORD_KEY_FIELD
from ..table_config import TableConfig
from .keys import KeyMaker
from .row_store import RowStore
from .schema import WriterSchema


@dataclass(frozen=True, slots=True)
class KeptRows:
    """`store` has tables of the record key (with meta fields) and the data columns of `schema`."""

    schema: WriterSchema
    store: RowStore

    @property
    def count(self) -> int:
        return sum(self.store.counts.values())

    def add(self, rows: pa.RecordBatchReader, maker: KeyMaker) -> None:
        """Keep all rows. Raises ConfigError for a row that the table cannot take, StorageError for the local disk."""
        for batch in rows:
            data = self.schema.conform(pa.Table.from_batches([batch]))
            record_keys, paths = maker.record_keys(data), maker.partition_paths(data)
            if self.schema.has_meta:
                data = data.add_column(0, RECORD_KEY_FIELD, record_keys)
            self.store.add(data, paths)


def writer_schema(
    rows: pa.Schema, config: TableConfig, table_schema: Mapping[str, Any] | None, *, nulls_for_missing: bool
) -> WriterSchema:
    """The schema of a write of `rows` to a table, whose Avro schema may be None. Raises ConfigError."""
    return WriterSchema.deduce(
        rows,
        table_schema,
        table_name=config.name,
        has_meta=config.populate_meta_fields,
        local_timestamps=config.version.local_timestamps,
        nulls_for_missing=nulls_for_missing,
    )
