"""Runs of records: files that pass encoded records from tasks that read data files to those that write file groups.

A run is an Arrow IPC stream (key string, value binary) in LZ4, of one file group, sorted by key. Its length and its
checksum are kept beside it: Arrow gets only bytes that are right, because it trusts the lengths in them.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...base_files.key_sort import sort_keys
from ...codecs.avro import AvroSchema
from ...errors import CorruptFile, UnsupportedTable
from ...metadata.records.codec import decode_record
from ...metadata.records.model import RecordType, StatsRecord
from ...metadata.statistics.column_stats import partition_record
from ...metadata.statistics.values import NoPromotion, promote
from ...schema.widening import widest
from ...storage import Storage

SCHEMA = pa.schema([pa.field("key", pa.string(), False), pa.field("value", pa.binary(), False)])
Encode = Callable[[StatsRecord], bytes]


@dataclass(frozen=True, slots=True)
class RecordRun:
    """A run of the file group number `group` of the metadata partition `index`, `size` bytes at `path`."""

    index: str
    group: int
    path: str
    records: int
    size: int
    checksum: int

    def read(self, storage: Storage) -> pa.Table:
        """All its records. Raises CorruptFile and the StorageErrors."""
        data = storage.read_range(self.path, 0, self.size)
        if zlib.crc32(data) != self.checksum:
            raise CorruptFile(f"{storage.full_path(self.path)} is damaged")
        return pa.ipc.open_stream(data).read_all()


def write_runs(
    storage: Storage, prefix: str, records: Mapping[str, Sequence[tuple[str, bytes]]], groups: Mapping[str, int]
) -> tuple[RecordRun, ...]:
    """Write encoded records, given by metadata partition, as a run for each of its `groups` that has some.

    Raises StorageError.
    """
    # Only here: tests load this module without numpy's tables of hashes.
    from ...metadata.record_index.key_hash import HUDI, spread

    runs = []
    for index, some in records.items():
        keys = pa.array([key for key, _ in some], pa.string())
        values = pa.array([value for _, value in some], pa.binary())
        order = sort_keys(keys)
        table = pa.table([keys.take(order), values.take(order)], schema=SCHEMA)
        places = np.asarray(spread(HUDI, table.column(0), groups[index])) if len(table) else np.array([], np.int64)
        for group in np.unique(places).tolist():
            path = f"{prefix}-{index}-{group}.arrow"
            runs.append(_write(storage, path, index, group, table.filter(pa.array(places == group))))
    return tuple(runs)


def each_once(keys: pa.Array, values: pa.Array, schema: AvroSchema, encode: Encode) -> tuple[pa.Array, pa.Array]:
    """Sorted records with every key once: the ranges of a data partition become one range, and others are the same.

    `encode` gives the bytes of a range; the records are of `schema`.
    """
    if len(keys) < 2:
        return keys, values
    first = np.append(True, pc.not_equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False))
    if first.all():
        return keys, values
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(keys))
    merged = [
        values[start].as_py() if end - start == 1 else _merged(keys[start].as_py(), values[start:end], schema, encode)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return keys.take(pa.array(starts)), pa.array(merged, pa.binary())


def _merged(key: str, values: pa.Array, schema: AvroSchema, encode: Encode) -> bytes:
    records = [decode_record(key, value, schema, "a run of records") for value in values.to_pylist()]
    ranges = [one for one in records if isinstance(one, StatsRecord) and one.type is RecordType.PARTITION_STATS]
    if len(ranges) < len(records):
        return bytes(values[-1].as_py())
    one = joined_range(ranges[0].file_name, ranges[0].column, ranges)
    return encode(replace(one, key=key))


def joined_range(partition: str, column: str, ranges: Sequence[StatsRecord]) -> StatsRecord:
    """The range over ranges of files, or of parts of a data partition.

    Raises UnsupportedTable for values of types that do not compare: the column had another type before, and a range of
    some of the values would hide the others.
    """
    bound = widest([one.bound for one in ranges])
    try:
        for one in ranges:
            for value in (one.minimum, one.maximum):
                promote(value, one.bound, bound)
    except NoPromotion:
        raise UnsupportedTable(
            f"the files of the partition {partition!r} have the column {column} in types that do not compare, and no "
            "range holds all of its values",
            hint="build column_stats without partition_stats: hoodie.metadata.index.partition.stats.enable=false",
        ) from None
    return partition_record(partition, column, ranges, tight=False)


def _write(storage: Storage, path: str, index: str, group: int, table: pa.Table) -> RecordRun:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table.combine_chunks())
    data = bytes(sink.getvalue())
    storage.put(path, data)
    return RecordRun(index, group, path, table.num_rows, len(data), zlib.crc32(data))
