"""The base file of one shard of a record index that is being built: an HFile of all its keys, sorted."""

from dataclasses import dataclass

from ...codecs.avro import parse_schema
from ...hfile.hfile_writer import HFileStream
from ...storage import Storage
from .shard_keys import ShardKeys


@dataclass(frozen=True, slots=True)
class IndexBaseTask:
    """The base file to write at `path`, with the keys that `runs` have of a shard; at least one."""

    storage: Storage
    path: str
    schema: str
    shard: int
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrittenBase:
    """A base file: its size in bytes, its entries, and how many more keys the runs had, which were repeated."""

    shard: int
    path: str
    size: int
    entries: int
    repeated: int


def write_index_base(task: IndexBaseTask, _token: str) -> WrittenBase:
    """Write the file, a range of about a million keys at a time. Raises CorruptFile and StorageError."""
    schema = parse_schema(task.schema, task.path)
    keys = ShardKeys(task.storage, task.runs, task.shard, schema)
    entries = 0
    output = task.storage.open_output(task.path)
    hfile = HFileStream(output.write, schema.text)
    for some in keys.read_all(keys.splits()):
        hfile.add(some.keys, some.values)
        entries += len(some.keys)
    size = hfile.close()
    output.close()
    return WrittenBase(task.shard, task.path, size, entries, keys.rows - entries)
