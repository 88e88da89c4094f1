"""From base files to runs of record keys: which keys lie where, grouped by their shard of the record index.

A run is a file of `files.key_runs`; its note `locations` lists what its location numbers mean. The tasks that write the
shards read their part of each run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...codecs.json_text import parse_json
from ...errors import CorruptFile
from ...files.key_runs import KeyRun, write_key_run
from ...files.parquet_reader import open_base_file
from ...model import BaseFile
from ...storage import Storage
from .key_hash import HUDI, spread
from .locations import Location, millis_of
from .shards import Shards

RECORD_KEY = "_hoodie_record_key"
_LOCATIONS = "locations"
_KEYS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class KeyTask:
    """Base files whose keys are to be read, with the time at which their rows count as written, epoch milliseconds.

    Runs are named after `prefix`, relative to the storage. `hash_name` is the function that spreads keys over shards.
    """

    storage: Storage
    files: tuple[tuple[BaseFile, int], ...]
    shards: Shards
    prefix: str
    hash_name: str = HUDI


@dataclass(frozen=True, slots=True)
class KeyRunRef:
    """A run of keys on storage, and how many it has of each shard that it has any of."""

    path: str
    rows: Mapping[int, int]


def key_tasks(storage: Storage, files: Iterable[BaseFile], shards: Shards, prefix: str) -> list[KeyTask]:
    """One task for each file, its rows written at the file's instant."""
    return [
        KeyTask(storage, ((file, millis_of(file.instant)),), shards, f"{prefix}-{number}")
        for number, file in enumerate(files)
    ]


def read_keys(task: KeyTask, token: str) -> list[KeyRunRef]:
    """Write the runs of a task, each of about a million keys or one row group.

    Raises CorruptFile for base files that cannot be read or have null keys, CheckFailed for a hash that is not Hudi's,
    and StorageError.
    """
    runs: list[KeyRunRef] = []
    pending: list[tuple[int, pa.ChunkedArray]] = []

    def flush() -> None:
        if pending:
            runs.append(_write_run(task, f"{task.prefix}-{token}-{len(runs)}.arrow", pending))
            pending.clear()

    for number, (file, _) in enumerate(task.files):
        for keys in record_keys(task.storage, file):
            if sum(len(one) for _, one in pending) + len(keys) > _KEYS_AT_ONCE:
                flush()
            pending.append((number, keys))
    flush()
    return runs


def write_located(storage: Storage, path: str, keys: Sequence[tuple[int, str, Location]]) -> KeyRunRef:
    """Write a run of these (shard, key, location)."""
    places: dict[Location, int] = {}
    numbers = [places.setdefault(location, len(places)) for _, _, location in keys]
    shards = np.array([shard for shard, _, _ in keys], np.int32)
    texts = pa.array([key for _, key, _ in keys], pa.string())
    write_key_run(storage, path, shards, texts, np.array(numbers, np.int32), _notes(places))
    return _ref(path, shards)


def run_locations(run: KeyRun) -> list[Location]:
    """What the location numbers of a run mean. Raises CorruptFile."""
    try:
        return [Location(*entry) for entry in parse_json(run.notes[_LOCATIONS])]
    except (KeyError, ValueError, TypeError) as e:
        raise CorruptFile(f"a run of keys does not say what its locations are: {e}") from e


def record_keys(storage: Storage, file: BaseFile) -> Iterator[pa.ChunkedArray]:
    """The record keys of a base file as strings, row group by row group. Raises CorruptFile and StorageError."""
    reader = open_base_file(storage, file.path, file.size)
    for group in range(len(reader.row_groups)):
        keys = reader.read_row_group(group, [RECORD_KEY]).column(RECORD_KEY)
        if keys.null_count:
            raise CorruptFile(f"{reader.full_path} has rows without a record key")
        yield keys.cast(pa.string())


def _write_run(task: KeyTask, path: str, pending: list[tuple[int, pa.ChunkedArray]]) -> KeyRunRef:
    numbers = sorted({number for number, _ in pending})
    locations = [_location(*task.files[number]) for number in numbers]
    keys = pa.chunked_array([chunk for _, one in pending for chunk in one.chunks], pa.string())
    lengths = [len(one) for _, one in pending]
    places = np.repeat([numbers.index(number) for number, _ in pending], lengths).astype(np.int32)
    shards = np.concatenate([_shards(task, number, one) for number, one in pending])
    write_key_run(task.storage, path, shards, keys.combine_chunks(), places, _notes(locations))
    return _ref(path, shards)


def _notes(locations: Iterable[Location]) -> dict[str, str]:
    return {_LOCATIONS: json.dumps([[one.partition, one.file_id, one.instant_millis] for one in locations])}


def _ref(path: str, shards: npt.NDArray[np.int32]) -> KeyRunRef:
    present, counts = np.unique(shards, return_counts=True)
    return KeyRunRef(path, dict(zip(present.tolist(), counts.tolist(), strict=True)))


def _shards(task: KeyTask, number: int, keys: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    of_partition: npt.NDArray[np.int32] = np.asarray(task.shards.of(task.files[number][0].partition), np.int32)
    return of_partition[spread(task.hash_name, keys, len(of_partition))]


def _location(file: BaseFile, instant_millis: int) -> Location:
    return Location(file.partition, file.file_id, instant_millis)
