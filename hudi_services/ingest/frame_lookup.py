"""The look-up of the keys of a data frame, by tasks of its engine: where each of its rows goes.

    look at keys    the keys of the frame, when they are few, or their ranges: what matters of the files
    read keys       the keys of the base files, each of which is read by one task; in parts, as the rows
    divide          the rows in parts by key; by a record index in parts that need few of its file groups each
    assign          one row of each key; rows by file group, and new rows

By an index in the metadata table, and by a bucket index, there are only the last two steps.
Source: HoodieSimpleIndex, HoodieBloomIndex of Apache Hudi.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.slices import SliceSource
from ..codecs.java_hash import file_group_indexes
from ..codecs.row_hash import all_row_hashes
from ..engine import Frame, Labelled, Pieces
from ..merging.fold import Numbers
from ..merging.log_records import KEY
from ..merging.rules import MergeRule
from ..metadata.record_index.shards import Shards
from ..metadata.records.keys import RECORD_INDEX
from ..model import FileSlice
from ..packing import pack
from ..snapshot import Snapshot
from ..storage import Storage
from ..writing.assignment import Assigner, DuplicatePolicy
from ..writing.distinct_rows import DistinctRows
from ..writing.kept_rows import KeptRows
from ..writing.keys_of_files import StoredKeys, Wanted, keys_of, scope_of
from ..writing.row_store import Place, RowStore, joined
from ..writing.tagging import KeyRange
from ..writing.write_index import Index
from .frame_pieces import divided, pieces_of, runs_of
from .write_rows import KeepTask, Progress

_FEW_KEYS, _FEW_BYTES = 500_000, 1 << 30
"""So many keys, and bytes of them, are sent to every task that reads files."""
_TASK_BYTES = 256 << 20
"""Bytes of the base files whose keys one task reads, about at most."""

Found: TypeAlias = "Mapping[str, pa.Array | KeyRange | None]"
"""By partition, or for all of them, keys or their range."""


@dataclass(frozen=True, slots=True)
class AssignTask:
    """What the tasks that look keys up have in common; the fields are those of `Assigner`."""

    table: Snapshot
    keep: KeepTask
    index: Index
    known: DuplicatePolicy
    rule: MergeRule
    table_name: str

    @property
    def stores_keys(self) -> bool:
        """Whether the keys of files come with the rows."""
        return self.known is not DuplicatePolicy.WRITE and self.index.reads_files(exact=self.known.is_exact)

    @property
    def live(self) -> bool:
        """As for `tag_keys`."""
        return self.index.is_live(exact=self.known.is_exact)


@dataclass(frozen=True, slots=True)
class LookTask:
    """`gives_keys`: the keys themselves; otherwise their ranges. `is_global`: of all partitions together."""

    is_global: bool
    gives_keys: bool


@dataclass(frozen=True, slots=True)
class Division:
    """Rows of one key go to one of `parts`, those of a shard of the record index (`shards`) to as few as can be."""

    parts: int
    shards: Shards | None = None

    @classmethod
    def of(cls, parts: int, task: AssignTask) -> "Division":
        """The division of rows that are looked up, into about so many parts."""
        metadata = task.table.metadata
        if not task.index.asks_metadata or metadata is None:
            return cls(parts)
        shards = Shards.of_groups(metadata.file_groups(RECORD_INDEX))
        count = len(shards.file_ids)
        return cls(parts if parts < count else parts // count * count, shards)

    def numbers(self, place: Place, table: pa.Table) -> Numbers:
        """The part of each row of a place."""
        return self.of_rows(place.partition, table.column(KEY))

    def of_rows(self, partition: str, keys: pa.ChunkedArray) -> Numbers:
        """The part of each row of a partition path."""
        if self.shards is None or not self.shards.has(partition):
            return _hashed(keys, self.parts)
        count, of_partition = len(self.shards.file_ids), self.shards.of(partition)
        numbers = np.asarray(of_partition, np.int64)[file_group_indexes(keys, len(of_partition))]
        if self.parts < count:
            return numbers * self.parts // count
        each = self.parts // count
        return numbers * each + _hashed(keys, each)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """How the keys of files are read; the other fields are those of `keys_of`."""

    storage: Storage
    source: SliceSource
    keys: Wanted
    by_footer: bool
    live: bool
    division: Division


def _hashed(keys: pa.ChunkedArray, count: int) -> Numbers:
    """A number below `count` for each key.

    Not by the bits that `merging.spill` divides by: it could not divide the rows of one part again.
    """
    return (all_row_hashes(pa.table({KEY: keys})) // np.uint64(1 << 32) % np.uint64(count)).astype(np.int64)


def looked_up(frame: Frame, rows: Pieces, kept: KeptRows, parts: int, task: AssignTask, progress: Progress) -> Pieces:
    """Pieces that have the rows by where they go, of `rows`, whose labels are places, in about so many parts.

    `kept` says what is known of the rows. Raises StorageError; what `Assigner.assign` raises comes with the pieces.
    """
    view, is_global = task.table.view, task.index.kind.is_global
    # The listing of the table is read once, here, and sent to the tasks.
    partitions = view.partitions() if is_global else kept.partitions
    view.load(partitions)
    division = Division.of(parts, task)
    divided_rows = rows.then(divide, division)
    slices = view.latest_slices_of(partitions) if task.stores_keys else []
    if slices:
        few = kept.count <= _FEW_KEYS
        wanted = Wanted(is_global)
        if few or task.index.by_footer:
            wanted = _wanted(rows, LookTask(is_global, few), progress)
        read = ReadTask(task.table.storage, task.table.slices, wanted, task.index.by_footer, task.live, division)
        divided_rows = divided_rows.joined(frame.engine.labels(_batches(slices)).then(read_keys, read))
    return divided_rows.divided(division.parts, "divide rows by key").then(assign, task)


def divide(task: Division, rows: Labelled, token: str) -> Labelled:
    """The rows of one partition in parts by key."""
    return divided(rows, task.numbers)


def look_at_keys(task: LookTask, rows: Labelled, token: str) -> Iterator[Found]:
    """The keys of one partition, or their ranges; None for keys of too many bytes."""
    keys: dict[str, list[pa.ChunkedArray]] = {}
    ranges: dict[str, KeyRange | None] = {}
    for place, table in rows:
        name = scope_of(place.partition, is_global=task.is_global)
        if task.gives_keys:
            keys.setdefault(name, []).append(table.column(KEY))
        else:
            ranges[name] = _wider(ranges, name, KeyRange.of(table.column(KEY)))
    if sum(one.nbytes for some in keys.values() for one in some) > _FEW_BYTES:
        yield dict.fromkeys(keys)
    else:
        yield {name: pa.concat_arrays([chunk for one in some for chunk in one.chunks]) for name, some in keys.items()}
    yield ranges


def read_keys(task: ReadTask, slices: Labelled, token: str) -> Labelled:
    """The keys of the slices that the labels name, by the slice that has them, in the parts of the rows."""

    def keys() -> Iterator[tuple[Place, pa.Table]]:
        for batch, _ in slices:
            for one in batch:
                tables = keys_of(task.storage, task.source, one, task.keys, by_footer=task.by_footer, live=task.live)
                yield from ((StoredKeys.place(one), table) for table in joined(tables))

    return divided(keys(), task.division.numbers)


def assign(task: AssignTask, rows: Labelled, token: str) -> Labelled:
    """The rows of one part of the keys by where they go."""
    memory, view = task.keep.memory, task.table.view
    share = memory.limit // (6 if task.stores_keys else 4)
    with RowStore(share) as store, RowStore(share) as keys, RowStore(share) as found:
        for runs, piece in rows:
            for place, table in runs_of(runs, piece):
                (keys if place.file_id else store).add(place, table)
        kept = task.keep.kept(store)
        distinct = DistinctRows(kept, task.rule, memory, task.table_name)
        stored = None
        if task.stores_keys:
            slices = view.latest_slices_of(sorted({place.partition for place in keys.counts}))
            stored = StoredKeys(task.table.slices, slices, keys, live=task.live)
        Assigner(task.table, kept, task.index, distinct, task.known, stored).assign(found)
        for place in found.counts:
            for piece in pieces_of(found.read(place)):
                yield place, piece


def _wanted(rows: Pieces, task: LookTask, progress: Progress) -> Wanted:
    found: list[Found] = rows.results(look_at_keys, task, "look at keys", partial(progress, "look at keys"))
    keys: dict[str, list[pa.Array]] = {}
    ranges: dict[str, KeyRange | None] = {}
    for one in found:
        for name, some in one.items():
            if isinstance(some, pa.Array):
                keys.setdefault(name, []).append(some)
            else:
                ranges[name] = _wider(ranges, name, some)
    if task.gives_keys:
        if ranges or sum(one.nbytes for some in keys.values() for one in some) > _FEW_BYTES:
            return Wanted(task.is_global)
        return Wanted(task.is_global, keys={name: pc.unique(pa.concat_arrays(some)) for name, some in keys.items()})
    return Wanted(task.is_global, ranges=ranges)


def _wider(ranges: Mapping[str, KeyRange | None], name: str, more: KeyRange | None) -> KeyRange | None:
    """The range of a name and one more; None when one of them is not known."""
    known = ranges.get(name, more)
    return known.joined(more) if known is not None and more is not None else None


def _batches(slices: Sequence[FileSlice]) -> list[list[FileSlice]]:
    """The slices, so many to a task as it reads."""
    return pack(slices, attrgetter("size"), _TASK_BYTES)
