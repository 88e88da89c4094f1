"""Partition metafiles: they say that a folder is a partition of the table.

    .hoodie_partition_metadata            Java properties: commitTime, partitionDepth
    .hoodie_partition_metadata.parquet    the same as key/value metadata of a parquet file without rows

Readers that list the storage skip a folder without one. Source: HoodiePartitionMetadata of Apache Hudi.
"""

import io
from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from ..concurrency import at_once
from ..errors import AlreadyExists
from ..files.names import PARTITION_METAFILE
from ..model import path_in
from ..storage import Storage


def create_metafiles(storage: Storage, partitions: Iterable[str], instant: str, *, in_base_format: bool) -> None:
    """Create the metafile of each partition that has none; to be called before data files are written there."""
    name = f"{PARTITION_METAFILE}.parquet" if in_base_format else PARTITION_METAFILE

    def create(partition: str) -> None:
        depth = len(partition.split("/")) if partition else 0
        properties = {"commitTime": instant, "partitionDepth": str(depth)}
        with suppress(AlreadyExists):
            storage.create(path_in(partition, name), _parquet(properties) if in_base_format else _text(properties))

    at_once(create, sorted(partitions))


def _text(properties: dict[str, str]) -> bytes:
    lines = [f"{key}={value}\n" for key, value in properties.items()]
    return "".join(["#partition metadata\n", *lines]).encode()


def _parquet(properties: dict[str, str]) -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([pa.field("_hoodie_record_key", pa.string())], metadata=properties)
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    return sink.getvalue()
