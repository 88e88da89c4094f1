"""Locations of record keys after a rollback, for a record index that keeps the instant.

The keys are read before the first file is deleted, and stored in the marker folder of the rollback, in case it resumes:

    .hoodie/.temp/<rollback>/record_keys/run-*.arrow    keys of the files that are read again, and of deleted files
    .hoodie/.temp/<rollback>/record_keys/noted.json     which run is which; written last

Where inserts were allowed to repeat keys, another live file may also have a key of a deleted file: the key stays there.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.slices import SliceSource
from ..codecs.json_text import parse_json
from ..commit.markers import marker_folder
from ..errors import CorruptFile, NotFound
from ..metadata.record_index.key_hash import HUDI, spread
from ..metadata.record_index.key_reading import KeyRunRef, key_tasks, read_keys, write_located
from ..metadata.record_index.locations import Location, millis_of
from ..metadata.record_index.log_writing import IndexDelta, write_index_logs
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..model import FileSlice
from ..snapshot import Snapshot

_P = TypeVar("_P")
_T = TypeVar("_T")
_Located = tuple[int, str, Location]


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of keys with their locations after the rollback (`new`), and of keys of deleted files (`old`)."""

    new: tuple[KeyRunRef, ...]
    old: tuple[KeyRunRef, ...]


def restored_keys(
    table: Snapshot, rollback: str, slices: Sequence[FileSlice], gone: Sequence[FileSlice], source: SliceSource
) -> IndexDelta:
    """The keys that move in the record index when readers see `slices` instead of `gone`, whose files still exist.

    `source` opens the slices of `gone`. The runs of an earlier attempt are used as they are. Raises CorruptFile
    and StorageError.
    """
    assert table.metadata is not None, "a record index is a part of the metadata table"
    shards = Shards.of_groups(table.metadata.file_groups(RECORD_INDEX))
    folder = f"{marker_folder(rollback)}/record_keys"
    runs = _load(table, folder)
    if runs is None:
        runs = _read(table, folder, shards, slices, gone, source)
        _save(table, folder, runs)
    return IndexDelta(shards, runs.new, write_index_logs, runs.old)


def _read(
    table: Snapshot,
    folder: str,
    shards: Shards,
    slices: Sequence[FileSlice],
    gone: Sequence[FileSlice],
    source: SliceSource,
) -> _Runs:
    def read(name: str, some: Sequence[FileSlice], opened_by: SliceSource) -> list[list[KeyRunRef]]:
        tasks = key_tasks(table.storage, opened_by, some, shards, f"{folder}/run")
        return _in_threads(partial(read_keys, token=name), tasks)

    new, old = read("new", slices, table.slices), read("old", gone, source)
    stay = list(_stay(table, shards, slices, gone, source))
    if stay:
        new.append([write_located(table.storage, f"{folder}/run-stay.arrow", stay)])
    return _Runs(*(tuple(run for of_slice in some for run in of_slice) for some in (new, old)))


def _stay(
    table: Snapshot, shards: Shards, slices: Sequence[FileSlice], gone: Sequence[FileSlice], source: SliceSource
) -> Iterator[_Located]:
    """Keys of deleted slices that other live slices have, without the keys of slices that are read again."""
    scopes = sorted({one.partition for one in gone}) if shards.is_partitioned else [None] if gone else []
    for scope in scopes:
        going, back = ([one for one in some if scope in (None, one.partition)] for some in (gone, slices))
        keys = _unique(chunk for one in going for chunk in source.open(one).record_keys())
        known = _unique(chunk for found in _in_threads(partial(_among, table, keys), back) for chunk in found)
        keys = keys.filter(pc.invert(pc.is_in(keys, known)))
        if len(keys):
            known_slices = {*slices, *gone}
            others = [one for one in table.view.live_slices(scope) if one not in known_slices]
            for located in _in_threads(partial(_located, table, shards, keys), others):
                yield from located


def _located(table: Snapshot, shards: Shards, values: pa.Array, file_slice: FileSlice) -> list[_Located]:
    """The keys of `values` that the slice has, each with its shard and location."""
    found: list[_Located] = []
    of_partition = shards.of(file_slice.partition)
    place = Location(file_slice.partition, file_slice.file_id, millis_of(file_slice.base_instant))
    for hits in _among(table, values, file_slice):
        where = spread(HUDI, hits, len(of_partition))
        found += [(of_partition[i], key, place) for i, key in zip(where.tolist(), hits.to_pylist(), strict=True)]
    return found


def _among(table: Snapshot, values: pa.Array, file_slice: FileSlice) -> list[pa.ChunkedArray]:
    """The keys of `values` that the slice has."""
    return [keys.filter(pc.is_in(keys, values)) for keys in table.slices.open(file_slice).record_keys()]


def _unique(keys: Iterable[pa.ChunkedArray]) -> pa.Array:
    chunks = [chunk for some in keys for chunk in some.chunks]
    return pc.unique(pa.chunked_array(chunks, pa.string()))


def _in_threads(function: Callable[[_P], _T], parts: Iterable[_P]) -> list[_T]:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(function, parts))


def _save(table: Snapshot, folder: str, runs: _Runs) -> None:
    content = {
        name: [[run.path, sorted(run.rows.items())] for run in some]
        for name, some in (("new", runs.new), ("old", runs.old))
    }
    table.storage.put(f"{folder}/noted.json", json.dumps(content).encode())


def _load(table: Snapshot, folder: str) -> _Runs | None:
    path = f"{folder}/noted.json"
    try:
        content = parse_json(table.storage.read(path))
        return _Runs(
            *(tuple(KeyRunRef(run, dict(map(tuple, rows))) for run, rows in content[n]) for n in ("new", "old"))
        )
    except NotFound:
        return None
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptFile(f"{table.storage.full_path(path)} does not name runs of keys: {e}") from e
