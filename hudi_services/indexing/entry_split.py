"""Splitting and joining file groups of the record index: their entries go straight into the new base files.

Where the old and the new number of file groups have a common divisor d, the entries of the old file groups whose
position is c modulo d are those of the new ones whose position is c modulo d: a task for each c reads some old file
groups, merged, and writes some new ones. Entries stay in order: nothing is sorted, and nothing is written twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base_files.row_selection import by_number
from ..codecs.avro import AvroSchema, parse_schema
from ..codecs.java_hash import file_group_indexes
from ..hfile.hfile_writer import HFileStream
from ..metadata.file_groups.reader import FileGroupReader, Layer
from ..metadata.record_index.entry_reading import (
    EntryTask,
    SeenBlocks,
    entry_hashes,
    in_pieces,
    refuse_misplaced,
)
from ..metadata.record_index.shard_base_file import WrittenBase, check_stored
from ..metadata.record_index.shard_entries import LocationNumbers, ShardEntries
from ..storage import Storage

_KEYS_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True)
class SplitTask:
    """The old file groups `sources`, whose entries become the base files at `paths`, by shard.

    `divisor` divides the numbers of old and new file groups.
    """

    storage: Storage
    sources: tuple[EntryTask, ...]
    divisor: int
    paths: tuple[tuple[int, str], ...]
    schema: str

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.sources)


@dataclass(frozen=True, slots=True)
class Split:
    """The base files of shards that have entries, and the log blocks that were read of each source."""

    bases: tuple[WrittenBase, ...]
    seen: tuple[SeenBlocks, ...]


def split_entries(task: SplitTask, _token: str) -> Split:
    """Write the base files, read them back, and compare; a repeated task writes the same files.

    Raises CheckFailed for a key that another file group should have, or a file that does not hold its entries;
    CorruptFile and StorageError.
    """
    schema = parse_schema(task.schema, task.paths[0][1])
    groups = [one.group.open(task.storage) for one in task.sources]
    numbers = LocationNumbers()
    files = [_File(task.storage, shard, path, schema) for shard, path in task.paths]
    for some in in_pieces(ShardEntries(_Joined(groups), numbers).read(), _KEYS_AT_ONCE):
        places = _places(task, some.keys)
        order, counts = by_number(places), np.bincount(places, minlength=len(files))
        keys, located = some.keys.take(pa.array(order)), some.places[order]
        hashes = entry_hashes(keys, located, numbers.hashes())
        encoded = pa.DictionaryArray.from_arrays(pa.array(located), numbers.values(schema))
        ends = np.cumsum(counts).tolist()
        for file, start, end in zip(files, [0, *ends], ends, strict=False):
            if end > start:
                file.add(keys[start:end], encoded[start:end], hashes[start:end])
    bases = tuple(file.close() for file in files if file.entries)
    return Split(bases, tuple(SeenBlocks.of(group.log_blocks) for group in groups))


def _places(task: SplitTask, keys: pa.Array) -> npt.NDArray[np.int32]:
    """The number of the file of each key. Raises CheckFailed for a key that no source should have."""
    one = task.sources[0]
    new = file_group_indexes(keys.cast(pa.string()), len(one.targets))
    wrong = np.flatnonzero(new % task.divisor != one.position % task.divisor)
    if len(wrong):
        refuse_misplaced(one, keys, int(wrong[0]))
    found: npt.NDArray[np.int32] = new // task.divisor
    return found


class _Joined:
    """The layers of several file groups, of which no two have the same key."""

    def __init__(self, groups: Sequence[FileGroupReader]) -> None:
        self._groups = groups

    def newest_first(self, first: int = 0) -> Iterator[Layer]:
        return chain.from_iterable(group.newest_first(first) for group in self._groups)


class _File:
    """A base file that is being written, begun with its first entries."""

    def __init__(self, storage: Storage, shard: int, path: str, schema: AvroSchema) -> None:
        self._storage, self._shard, self._path, self._schema = storage, shard, path, schema
        self._output: IO[bytes] | None = None
        self._hfile: HFileStream | None = None
        self.entries = 0
        self._sum = 0

    def add(self, keys: pa.Array, values: pa.Array, hashes: npt.NDArray[np.uint64]) -> None:
        if self._output is None or self._hfile is None:
            self._output = self._storage.open_output(self._path)
            self._hfile = HFileStream(self._output.write, self._schema.text)
        self._hfile.add(keys, values)
        self.entries += len(keys)
        self._sum = (self._sum + int(hashes.sum(dtype=np.uint64))) % (1 << 64)

    def close(self) -> WrittenBase:
        assert self._output is not None and self._hfile is not None, "it has entries"
        size = self._hfile.close()
        self._output.close()
        check_stored(self._storage, self._path, size, self._schema, self.entries, self._sum)
        return WrittenBase(self._shard, self._path, size, self.entries, 0)
