"""Key runs: files that pass record keys from the tasks that read them to the tasks that write one shard (file group).

    segments   for each shard with rows, in ascending order: an Arrow IPC stream (key string, location int32) in LZ4,
               of record batches of at most 65536 rows
    index      JSON: {"notes": {name: text}, "shards": [[shard, rows, bytes, CRC32 of the segment], ...]}
    tail       big-endian: uint32 CRC32 of the index, uint32 its bytes, "KEYRUN01"

One range holds the rows of a run for a shard. Arrow gets only bytes whose checksum is right, because it trusts the
lengths in them.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..codecs.json_text import parse_json
from ..errors import CheckFailed, CorruptFile, NotFound
from ..storage import Storage
from .row_selection import by_number

_BATCH_ROWS = 1 << 16
_SCHEMA = pa.schema([pa.field("key", pa.string(), False), pa.field("location", pa.int32(), False)])
_MAGIC = b"KEYRUN01"
_TAIL = struct.Struct(">II8s")
# One range usually has the whole index.
_FIRST_READ = 64 << 10

_Ints = npt.NDArray[np.int32]


def write_key_run(
    storage: Storage, path: str, shards: _Ints, keys: pa.Array, locations: _Ints, notes: Mapping[str, str]
) -> None:
    """Write a run of rows (shard, string key, location); the rows of a shard keep their order.

    `locations` are positions in a list that `notes` has, or that the reader of the run has. Raises CheckFailed when the
    columns differ in length or a key is null, and StorageError.
    """
    if not len(shards) == len(keys) == len(locations) or keys.null_count:
        raise CheckFailed(f"a key run of {len(shards)} shards, {len(keys)} keys and {len(locations)} locations")
    counts = np.bincount(shards)
    order = by_number(shards)
    output, index, start = storage.open_output(path), [], 0
    for shard in np.flatnonzero(counts).tolist():
        rows = order[start : start + counts[shard]]
        start += len(rows)
        segment = _segment(rows, keys, locations)
        output.write(segment)
        index.append([shard, len(rows), len(segment), zlib.crc32(segment)])
    text = json.dumps({"notes": dict(notes), "shards": index}, sort_keys=True).encode()
    output.write(text + _TAIL.pack(zlib.crc32(text), len(text), _MAGIC))
    output.close()


@dataclass(frozen=True, slots=True)
class _Segment:
    rows: int
    start: int
    length: int
    checksum: int


@dataclass(frozen=True, slots=True)
class KeyRun:
    """One run; only its index is in memory."""

    notes: Mapping[str, str]
    _segments: Mapping[int, _Segment]
    _storage: Storage
    _path: str

    @classmethod
    def open(cls, storage: Storage, path: str) -> "KeyRun":
        """Read the index. Raises CorruptFile, NotFound and the other StorageErrors."""
        info, name = storage.head(path), storage.full_path(path)
        if info is None:
            raise NotFound(f"{name} does not exist")
        tail = storage.read_range(path, max(0, info.size - _FIRST_READ), min(info.size, _FIRST_READ))
        if tail[-len(_MAGIC) :] != _MAGIC or len(tail) < _TAIL.size:
            raise CorruptFile(f"{name} does not end like a key run at byte {info.size}")
        checksum, length, _ = _TAIL.unpack(tail[-_TAIL.size :])
        end = info.size - _TAIL.size
        if length > end:
            raise CorruptFile(f"{name} says its index has {length} bytes at byte {end}, more than the file")
        if length + _TAIL.size > len(tail):
            tail = storage.read_range(path, end - length, length + _TAIL.size)
        text = tail[-_TAIL.size - length : -_TAIL.size]
        if zlib.crc32(text) != checksum:
            raise CorruptFile(f"{name} has a damaged index at byte {end - length}")
        try:
            return cls(*_index(parse_json(text)), storage, path)
        except (ValueError, KeyError, TypeError) as e:
            raise CorruptFile(f"{name} has no index at byte {end - length}: {e}") from e

    def rows(self, shard: int) -> int:
        """The number of rows that the run has for a shard."""
        return self._segments[shard].rows if shard in self._segments else 0

    def bytes(self, shard: int) -> int:
        """The number of bytes that the run has for a shard."""
        return self._segments[shard].length if shard in self._segments else 0

    def read(self, shard: int) -> Iterator[pa.RecordBatch]:
        """The rows of a shard: `key` string, `location` int32. All bytes are read now, and decoded batch by batch.

        Raises CorruptFile and the StorageErrors.
        """
        if shard not in self._segments:
            return iter(())
        segment = self._segments[shard]
        data = self._storage.read_range(self._path, segment.start, segment.length)
        if zlib.crc32(data) != segment.checksum:
            name = self._storage.full_path(self._path)
            raise CorruptFile(f"{name} is damaged in the {segment.length} bytes from byte {segment.start} on")
        return iter(pa.ipc.open_stream(data))


def _index(tree: Any) -> tuple[Mapping[str, str], Mapping[int, _Segment]]:
    segments, start = {}, 0
    for shard, rows, size, checksum in tree["shards"]:
        if not all(isinstance(number, int) and number >= 0 for number in (shard, rows, size, checksum)):
            raise ValueError("a segment has a value that is not a non-negative number")
        segments[shard] = _Segment(rows, start, size, checksum)
        start += size
    notes = tree["notes"]
    if not isinstance(notes, dict) or not all(isinstance(text, str) for text in notes.values()):
        raise TypeError("its notes are no texts")
    return notes, segments


def _segment(rows: npt.NDArray[np.int64], keys: pa.Array, locations: _Ints) -> bytes:
    """The Arrow IPC stream of these rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        for start in range(0, len(rows), _BATCH_ROWS):
            some = rows[start : start + _BATCH_ROWS]
            columns = [keys.take(pa.array(some)), pa.array(locations[some], pa.int32())]
            stream.write_batch(pa.record_batch(columns, schema=_SCHEMA))
    return bytes(sink.getvalue())
