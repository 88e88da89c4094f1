"""The base file of one bucket of a record index that is being built: an HFile of all its keys, sorted."""

from dataclasses import dataclass

from ..codecs.avro import parse_schema
from ..files.hfile_writer import HFileStream
from ..storage import Storage
from .bucket_keys import BucketKeys


@dataclass(frozen=True, slots=True)
class IndexBaseTask:
    """The base file to write at `path`, with the keys that `runs` have of a bucket; at least one."""

    storage: Storage
    path: str
    schema: str
    bucket: int
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrittenBase:
    """A base file: its size in bytes, its entries, and how many keys had been there more than once."""

    bucket: int
    path: str
    size: int
    entries: int
    repeated: int


def write_index_base(task: IndexBaseTask, _token: str) -> WrittenBase:
    """Write the file, a range of about a million keys at a time. Raises CorruptFile and StorageError."""
    schema = parse_schema(task.schema, task.path)
    keys = BucketKeys(task.storage, task.runs, task.bucket, schema)
    entries = 0
    output = task.storage.open_output(task.path)
    hfile = HFileStream(output.write, schema.text)
    for some in keys.read_all(keys.splits()):
        hfile.add(some.keys, some.values)
        entries += len(some.keys)
    size = hfile.close()
    output.close()
    return WrittenBase(task.bucket, task.path, size, entries, keys.rows - entries)
