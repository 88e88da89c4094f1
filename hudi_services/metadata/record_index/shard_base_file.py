"""The base file of one shard of a record index that is being built: an HFile of all its keys, sorted."""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from ...codecs.avro import AvroSchema, parse_schema
from ...errors import CheckFailed
from ...hfile.hfile_ranges import StoredRanges
from ...hfile.hfile_reader import HFileReader
from ...hfile.hfile_writer import HFileStream
from ...storage import Storage
from ..records.keys import RECORD_INDEX
from .entry_reading import entry_hashes
from .log_writing import encoding_of
from .shard_entries import LocationNumbers
from .shard_keys import ShardKeys

_UNTOUCHED = "the table is unchanged; run again"


@dataclass(frozen=True, slots=True)
class IndexBaseTask:
    """The base file to write at `path`, with the keys that `runs` have of a shard; at least one.

    `hashes`: the sum of the hashes of its entries, with which what storage holds is compared; None for no comparison.
    """

    storage: Storage
    path: str
    schema: str
    shard: int
    runs: tuple[str, ...]
    hashes: int | None = None
    index: str = RECORD_INDEX
    """The partition of the metadata table: record_index, or a secondary index."""


@dataclass(frozen=True, slots=True)
class WrittenBase:
    """A base file: its size in bytes, its entries, and how many more keys the runs had, which were repeated."""

    shard: int
    path: str
    size: int
    entries: int
    repeated: int


def write_index_base(task: IndexBaseTask, _token: str) -> WrittenBase:
    """Write the file, a range of about a million keys at a time.

    Raises CorruptFile, StorageError, and CheckFailed for a file that does not hold the entries.
    """
    schema = parse_schema(task.schema, task.path)
    keys = ShardKeys(task.storage, task.runs, task.shard, schema, encode=encoding_of(task.index))
    entries = 0
    output = task.storage.open_output(task.path)
    hfile = HFileStream(output.write, schema.text)
    for some in keys.read_all(keys.splits()):
        hfile.add(some.keys, some.values)
        entries += len(some.keys)
    size = hfile.close()
    output.close()
    if task.hashes is not None:
        check_stored(task.storage, task.path, size, schema, keys.rows, task.hashes)
    return WrittenBase(task.shard, task.path, size, entries, keys.rows - entries)


def check_stored(storage: Storage, path: str, size: int, schema: AvroSchema, entries: int, hashes: int) -> None:
    """Read the stored file, and compare: every key once, in order, and so many entries with this sum of hashes.

    Raises CheckFailed.
    """
    full_path, numbers = storage.full_path(path), LocationNumbers()
    found, total, last = 0, 0, b""
    for keys, values in HFileReader(StoredRanges(storage, path, size), full_path).scan_columns():
        if not len(keys):
            continue
        places = numbers(values, schema, full_path)
        own = entry_hashes(keys, places, numbers.hashes())
        ordered = pc.all(pc.less(keys[:-1], keys[1:])).as_py() is not False
        if not ordered or (found and keys[0].as_py() <= last):
            raise CheckFailed(f"{full_path} does not have its keys in order, each once", hint=_UNTOUCHED)
        found, last = found + len(keys), keys[-1].as_py()
        total = (total + int(own.sum(dtype=np.uint64))) % (1 << 64)
    if (found, total) != (entries, hashes):
        raise CheckFailed(f"{full_path} holds {found} entries, not the {entries} that were read", hint=_UNTOUCHED)
