"""The keys of rows that a write takes away, and that other rows of the table still have.

Writes by an index whose keys are unique in partitions alone may bring one key into several partitions. A global record
index has one entry for it, and a secondary index one for its rows with the same value. Hudi deletes these entries with
any of the rows; the row that stays is then not found. Here the entry of a row that stays is kept:

    the entry names another file group    it is right, and stays
    it names a file group of the write    the other live files are searched, by footers first, when the keys are few

Source: HoodieTableMetadataUtil (getRecordIndexUpdates) of Apache Hudi, which looks at the changed files alone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.key_runs import KeyRun
from ..base_files.slices import SliceSource
from ..indexing.secondary import StayingRows
from ..metadata.record_index.key_hash import HUDI, spread
from ..metadata.record_index.key_reading import KeyRunRef, write_located
from ..metadata.record_index.locations import Location, millis_of
from ..metadata.record_index.log_writing import IndexDelta
from ..metadata.record_index.lookup import look_up
from ..model import FileSlice
from ..snapshot import Snapshot
from ..storage import Storage
from ..table.view import FileGroupId
from ..writing.tagging import tag_keys

_MOST_LOOKED_UP = 1 << 20
_MOST_SEARCHED = 100_000
_MOST_FILES = 10_000


Searched: TypeAlias = tuple[SliceSource, Sequence[FileSlice]]
"""Slices that are searched for keys, and the source that opens them."""


def kept_keys(
    table: Snapshot,
    delta: IndexDelta,
    folder: str,
    changed: Collection[FileGroupId],
    after: Sequence[Searched] | None,
) -> tuple[IndexDelta, list[StayingRows]]:
    """`delta` without the keys that go and are kept all the same, and the rows that keep them.

    `changed` are the file groups of the write, `after` their slices after it: these and all other live slices are
    searched; None: no file is. `folder` takes a run of the keys. More than a million keys are not looked up, and more
    than 100,000, or in more than 10,000 files, not searched for. Raises CorruptFile and StorageError.
    """
    count = sum(rows for run in delta.old_runs for rows in run.rows.values())
    if delta.shards.is_partitioned or not 0 < count <= _MOST_LOOKED_UP:
        # In an index of each partition a key has an entry for each of its rows.
        return delta, []
    gone = _keys(table.storage, delta.old_runs)
    gone = gone.filter(pc.invert(pc.is_in(gone, _keys(table.storage, delta.runs))))
    named, rest = _looked_up(table, gone, changed)
    found = [StayingRows(keys, table.slices, one) for one, keys in named.items()]
    if after is not None and 0 < len(rest) <= _MOST_SEARCHED:
        others = [one for one in table.view.live_slices() if (one.partition, one.file_id) not in changed]
        if len(others) <= _MOST_FILES:
            found += _searched(table.storage, [*after, (table.slices, others)], rest)
    if not found:
        return delta, []
    shards = delta.shards.of("")
    located = [
        (shards[number], key, Location(one.slice.partition, one.slice.file_id, millis_of(one.slice.base_instant)))
        for one in found
        for number, key in zip(spread(HUDI, one.keys, len(shards)).tolist(), one.keys.to_pylist(), strict=True)
    ]
    run = write_located(table.storage, f"{folder}/kept.arrow", located)
    # Written again, they are not deleted.
    return replace(delta, runs=(*delta.runs, run)), found


def _keys(storage: Storage, runs: Iterable[KeyRunRef]) -> pa.Array:
    """The keys of some runs, each once."""
    parts = [pa.array([], pa.string())]
    for run in runs:
        opened = KeyRun.open(storage, run.path)
        parts += [batch.column(0) for shard in run.rows for batch in opened.read(shard)]
    return pc.unique(pa.concat_arrays(parts))


def _looked_up(
    table: Snapshot, keys: pa.Array, changed: Collection[FileGroupId]
) -> tuple[Mapping[FileSlice, pa.Array], pa.Array]:
    """The keys by the other live slices that the record index names for them, and the rest of the keys."""
    assert table.metadata is not None, "its metadata table has the index"
    entries = look_up(table.metadata, keys)
    elsewhere: dict[FileSlice, pa.Array] = {}
    is_placed = np.zeros(len(keys), np.bool_)
    groups = [(one.partition, one.file_id) for one in entries.locations]
    others = {group for group in groups if group not in changed}
    live = {
        (one.partition, one.file_id): one
        for one in table.view.latest_slices_of(sorted({partition for partition, _ in others}))
    }
    numbers = np.array([-1 if group not in others or group not in live else n for n, group in enumerate(groups)] + [-1])
    for number in np.unique(numbers[entries.positions]).tolist():
        if number >= 0:
            here = numbers[entries.positions] == number
            is_placed |= here
            one = live[groups[number]]
            some = keys.filter(pa.array(here))
            elsewhere[one] = pa.concat_arrays([elsewhere[one], some]) if one in elsewhere else some
    return elsewhere, keys.filter(pa.array(~is_placed))


def _searched(storage: Storage, where: Sequence[Searched], keys: pa.Array) -> list[StayingRows]:
    """The keys by a slice that has them."""
    found: list[StayingRows] = []
    for source, slices in where:
        for tagged in tag_keys(storage, source, slices, keys, by_footer=True, live=True):
            found.append(StayingRows(keys.take(pa.array(tagged.positions)), source, tagged.slice))
    # Of a key in several slices the first one has the entry.
    known = pa.array([], pa.string())
    distinct = []
    for one in found:
        own = one.keys.filter(pc.invert(pc.is_in(one.keys, known)))
        known = pa.concat_arrays([known, own])
        if len(own):
            distinct.append(replace(one, keys=own))
    return distinct
