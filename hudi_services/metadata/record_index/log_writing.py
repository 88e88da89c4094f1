"""Log files of a key index: keys with a new location, and deleted keys; one file for each shard.

The record index has a location for each record key. A secondary index has pairs of a value and a record key, and says
of each only that it is there.

A task writes one log file: for each range of about a million keys HFile blocks, then a delete block. Readers merge any
number of blocks, so that a task never holds more than one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from ...codecs.avro import AvroSchema, parse_schema
from ...hfile.hfile_writer import HFileStream
from ...log_files.block_contents import delete_block_content
from ...log_files.log_blocks import BlockType, HeaderKey, LogBlock
from ...log_files.log_writer import encode_block
from ...storage import Storage
from ..records.codec import encode_record
from ..records.keys import RECORD_INDEX
from ..records.model import SecondaryRecord
from .key_reading import KeyRunRef
from .locations import Location, encode_location
from .shard_keys import ShardKeys, SortedKeys
from .shards import Shards


@dataclass(frozen=True, slots=True)
class IndexLogTask:
    """One log file of `index` to write at `path`: the keys that `runs` have of a shard, without those that only
    `old_runs` have, which are deleted.

    A key to delete stays when `other_runs` have it at another location than `gone`: two files may have the same key.
    """

    storage: Storage
    path: str
    instant: str
    schema: str
    shard: int
    runs: tuple[str, ...]
    old_runs: tuple[str, ...] = ()
    other_runs: tuple[str, ...] = ()
    gone: frozenset[Location] = frozenset()
    written_millis: int | None = None
    """When all keys of `runs` were written, epoch milliseconds; None for the times in the runs."""
    index: str = RECORD_INDEX


@dataclass(frozen=True, slots=True)
class IndexDelta:
    """Keys of `index` that have a new location, in runs by `shards` as of the time when the runs were written.

    `write` runs the tasks and returns the size in bytes of the file of each task. `old_runs` are the keys before the
    change, if some of them may be deleted.
    """

    shards: Shards
    runs: tuple[KeyRunRef, ...]
    write: Callable[[Sequence[IndexLogTask]], Sequence[int]]
    old_runs: tuple[KeyRunRef, ...] = ()
    written_millis: int | None = None
    """When all keys of `runs` were written, epoch milliseconds; None for the times in the runs."""
    ahead: str = ""
    """The instant for which the log files are written already, so that `write` only moves them; "" for none."""
    index: str = RECORD_INDEX
    """The partition of the metadata table: record_index, or a secondary index."""

    def task(self, storage: Storage, path: str, instant: str, schema: str, shard: int) -> IndexLogTask:
        """Writes the keys of a shard to `path`, for the delta commit `instant`."""
        runs = tuple(run.path for run in self.runs if shard in run.rows)
        old_runs = tuple(run.path for run in self.old_runs if shard in run.rows)
        millis, index = self.written_millis, self.index
        return IndexLogTask(storage, path, instant, schema, shard, runs, old_runs, written_millis=millis, index=index)

    def counts(self) -> dict[int, int]:
        """The number of keys of each shard that has any, with the keys of `old_runs`."""
        found: dict[int, int] = {}
        for run in (*self.runs, *self.old_runs):
            for shard, rows in run.rows.items():
                found[shard] = found.get(shard, 0) + rows
        return found


def write_index_logs(tasks: Sequence[IndexLogTask]) -> list[int]:
    """Write the files of all tasks, one after the other in this process: a `IndexDelta.write` without an engine."""
    return [write_index_log(task, "") for task in tasks]


def write_index_log(task: IndexLogTask, _token: str) -> int:
    """Write the file; returns its size in bytes. Raises CorruptFile for a broken run, and StorageError."""
    schema = parse_schema(task.schema, task.path)
    encode = encoding_of(task.index)
    new = ShardKeys(task.storage, task.runs, task.shard, schema, task.written_millis, encode)
    old = ShardKeys(task.storage, task.old_runs, task.shard, schema, encode=encode)
    others = ShardKeys(task.storage, task.other_runs, task.shard, schema, encode=encode)
    splits = max((new, old), key=lambda keys: keys.rows).splits()
    header = {HeaderKey.INSTANT_TIME: task.instant, HeaderKey.SCHEMA: schema.text}
    size = 0
    output = task.storage.open_output(task.path)
    for low, high in pairwise([None, *splits, None]):
        added, before = new.read(low, high), old.read(low, high)
        gone = _without(before.keys, added.keys)
        stay = others.elsewhere(gone, task.gone)
        for entries in (added, stay):
            if len(entries.keys):
                content = _hfile(entries, schema.text)
                size += output.write(encode_block(LogBlock(BlockType.HFILE_DATA, header, content)))
        gone = _without(gone, stay.keys)
        if len(gone):
            content = delete_block_content(gone, task.index)
            size += output.write(encode_block(LogBlock(BlockType.DELETE, header, content)))
    output.close()
    return size


def encoding_of(index: str) -> Callable[[Location, AvroSchema], bytes]:
    """The values of the keys at a location in a key index: those of a secondary index say only that they are there."""
    return encode_location if index == RECORD_INDEX else _encode_pair


def _encode_pair(_location: Location, schema: AvroSchema) -> bytes:
    return encode_record(SecondaryRecord(""), schema, typed=False)


def _without(keys: pa.Array, others: pa.Array) -> pa.Array:
    return keys.filter(pc.invert(pc.is_in(keys, others)))


def _hfile(entries: SortedKeys, schema: str) -> bytes:
    content = bytearray()
    hfile = HFileStream(content.extend, schema)
    hfile.add(entries.keys, entries.values)
    hfile.close()
    return bytes(content)
