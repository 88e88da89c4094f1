"""Runs of keys from file slices: keys and their locations, grouped by their shard of the index.

A run is a file of `base_files.key_runs`; its text `locations` lists the locations that its location numbers stand for.
The tasks that write the shards read their part of each run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...base_files.key_runs import KeyRun, write_key_run
from ...codecs.json_text import parse_json
from ...errors import CorruptFile
from ...model import FileSlice
from ...packing import pack
from ...storage import Storage
from .key_hash import HUDI, spread
from .locations import Location, millis_of
from .shards import Shards

_LOCATIONS = "locations"
_KEYS_AT_ONCE = 1 << 20
_SLICES_PER_TASK, _BYTES_PER_TASK = 32, 32 << 20
"""The most that slices which share a task have: it opens them one after the other."""


HashedPart: TypeAlias = Callable[[pa.ChunkedArray], pa.ChunkedArray]
"""Gives the part of each key that is hashed."""


class KeyReader(Protocol):
    """An open slice, as far as its keys are concerned: record keys, or what a secondary index has in their place."""

    def record_keys(self) -> Iterator[pa.ChunkedArray]: ...

    def release(self) -> None: ...


class KeySource(Protocol):
    """Opens slices for their keys."""

    def open(self, file_slice: FileSlice) -> KeyReader: ...


@dataclass(frozen=True, slots=True)
class KeyTask:
    """File slices whose keys are to be read, with the time at which their rows count as written, epoch milliseconds.

    Runs are named after `prefix`, relative to the storage. `hash_name` is the function that spreads keys over shards,
    by the part of each key that `hashed_part` gives, if it is not None.
    """

    storage: Storage
    source: KeySource
    slices: tuple[tuple[FileSlice, int], ...]
    shards: Shards
    prefix: str
    hash_name: str = HUDI
    hashed_part: HashedPart | None = None

    @property
    def bytes(self) -> int:
        return sum(one.size for one, _ in self.slices)


@dataclass(frozen=True, slots=True)
class KeyRunRef:
    """A run of keys on storage, and its number of keys of each shard that it has any keys of.

    `hashes`: of entries that were read from an index, the sum of their hashes modulo 2**64, by shard.
    """

    path: str
    rows: Mapping[int, int]
    hashes: Mapping[int, int] = field(default_factory=dict)


def key_tasks(
    storage: Storage,
    source: KeySource,
    slices: Iterable[FileSlice],
    shards: Shards,
    prefix: str,
    hashed_part: HashedPart | None = None,
) -> list[KeyTask]:
    """Tasks for the slices, whose rows were written at their base instants; small slices share a task.

    Each writer of a shard reads all runs, and a task whose keys are few makes one run.
    """

    def task(number: int, some: Sequence[FileSlice]) -> KeyTask:
        dated = tuple((one, millis_of(one.base_instant)) for one in some)
        return KeyTask(storage, source, dated, shards, f"{prefix}-{number}", hashed_part=hashed_part)

    packed = pack(slices, lambda one: one.size, _BYTES_PER_TASK, _SLICES_PER_TASK)
    return [task(number, some) for number, some in enumerate(packed)]


def read_keys(task: KeyTask, token: str) -> list[KeyRunRef]:
    """Write the runs of a task, each of about a million keys or one row group.

    Raises CorruptFile for slices that cannot be read or have null keys, CheckFailed for a hash that is not Hudi's,
    and StorageError.
    """
    runs: list[KeyRunRef] = []
    pending: list[tuple[int, pa.ChunkedArray]] = []

    def flush() -> None:
        if pending:
            runs.append(_write_run(task, f"{task.prefix}-{token}-{len(runs)}.arrow", pending))
            pending.clear()

    for number, (one, _) in enumerate(task.slices):
        for keys in task.source.open(one).record_keys():
            if sum(len(some) for _, some in pending) + len(keys) > _KEYS_AT_ONCE:
                flush()
            pending.append((number, keys))
    flush()
    return runs


def write_located(storage: Storage, path: str, keys: Sequence[tuple[int, str, Location]]) -> KeyRunRef:
    """Write a run of tuples (shard, key, location)."""
    places: dict[Location, int] = {}
    numbers = [places.setdefault(location, len(places)) for _, _, location in keys]
    shards = np.array([shard for shard, _, _ in keys], np.int32)
    texts = pa.array([key for _, key, _ in keys], pa.string())
    write_key_run(storage, path, shards, texts, np.array(numbers, np.int32), location_notes(places))
    return _ref(path, shards)


def run_locations(run: KeyRun) -> list[Location]:
    """The locations that the location numbers of a run stand for. Raises CorruptFile."""
    try:
        return [Location(*entry) for entry in parse_json(run.notes[_LOCATIONS])]
    except (KeyError, ValueError, TypeError) as e:
        raise CorruptFile(f"a run of keys does not say what its locations are: {e}") from e


def _write_run(task: KeyTask, path: str, pending: list[tuple[int, pa.ChunkedArray]]) -> KeyRunRef:
    numbers = sorted({number for number, _ in pending})
    locations = [_location(*task.slices[number]) for number in numbers]
    keys = pa.chunked_array([chunk for _, one in pending for chunk in one.chunks], pa.string())
    lengths = [len(one) for _, one in pending]
    places = np.repeat([numbers.index(number) for number, _ in pending], lengths).astype(np.int32)
    shards = np.concatenate([_shards(task, number, one) for number, one in pending])
    write_key_run(task.storage, path, shards, keys.combine_chunks(), places, location_notes(locations))
    return _ref(path, shards)


def location_notes(locations: Iterable[Location]) -> dict[str, str]:
    """The text of a run that lists its locations."""
    return {_LOCATIONS: json.dumps([[one.partition, one.file_id, one.instant_millis] for one in locations])}


def _ref(path: str, shards: npt.NDArray[np.int32]) -> KeyRunRef:
    present, counts = np.unique(shards, return_counts=True)
    return KeyRunRef(path, dict(zip(present.tolist(), counts.tolist(), strict=True)))


def _shards(task: KeyTask, number: int, keys: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    of_partition: npt.NDArray[np.int32] = np.asarray(task.shards.of(task.slices[number][0].partition), np.int32)
    hashed = keys if task.hashed_part is None else task.hashed_part(keys)
    return of_partition[spread(task.hash_name, hashed, len(of_partition))]


def _location(file_slice: FileSlice, instant_millis: int) -> Location:
    return Location(file_slice.partition, file_slice.file_id, instant_millis)
