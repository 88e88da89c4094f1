"""Partition metafiles: they say that a folder is a partition of the table, or of its metadata table.

    .hoodie_partition_metadata            Java properties: commitTime, partitionDepth
    .hoodie_partition_metadata.parquet    the same as key/value metadata of a parquet file without rows

Readers that list the storage skip a folder without one. Source: HoodiePartitionMetadata of Apache Hudi.
"""

import io
from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from ..base_files.slices import RECORD_KEY
from ..concurrency import at_once
from ..errors import AlreadyExists
from ..file_names import PARTITION_METAFILE
from ..model import path_in
from ..storage import Storage


def create_metafiles(storage: Storage, partitions: Iterable[str], instant: str, *, in_base_format: bool) -> None:
    """Create the metafile of each partition that has none; to be called before data files are written there."""
    name = f"{PARTITION_METAFILE}.parquet" if in_base_format else PARTITION_METAFILE

    def create(partition: str) -> None:
        depth = len(partition.split("/")) if partition else 0
        with suppress(AlreadyExists):
            storage.create(path_in(partition, name), (_as_parquet if in_base_format else metafile)(instant, depth))

    at_once(create, sorted(partitions))


def metafile(instant: str, depth: int) -> bytes:
    """The plain metafile of a partition `depth` folders below the table, which `instant` makes."""
    lines = [f"{key}={value}\n" for key, value in _properties(instant, depth).items()]
    return "".join(["#partition metadata\n", *lines]).encode()


def _properties(instant: str, depth: int) -> dict[str, str]:
    return {"commitTime": instant, "partitionDepth": str(depth)}


def _as_parquet(instant: str, depth: int) -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([pa.field(RECORD_KEY, pa.string())], metadata=_properties(instant, depth))
    # With the schema of Arrow: without it, the metadata would not be stored either.
    pq.ParquetWriter(sink, schema).close()
    return sink.getvalue()
