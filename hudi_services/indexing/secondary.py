"""The keys that a write brings to secondary indexes, and those that it takes away.

All keys of a new file group come, all keys of a replaced one go. Of a file group that is changed, the keys of its slice
before and after are compared, so that only those that came or went are written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..base_files.slices import SliceSource
from ..commit.new_files import NewFiles
from ..derived_indexes.secondary_index import SecondaryIndex, SecondaryPairs, secondary_indexes
from ..engine import Engine
from ..file_names import written_slice
from ..metadata.record_index.log_writing import IndexDelta
from ..metadata.record_index.shards import Shards
from ..model import FileSlice, WriteStat
from ..snapshot import Snapshot
from .new_keys import compared_runs, key_runs, log_writer, with_log


@dataclass(frozen=True, slots=True)
class ChangedGroups:
    """What a write did to file groups.

    `new` are base files of new groups, `replaced` slices of groups that are gone; `updated` are slices with the base
    file of the next slice of each, `appended` slices with the log file that each of them got.
    """

    new: Sequence[WriteStat]
    replaced: Sequence[FileSlice]
    updated: Sequence[tuple[FileSlice, WriteStat]]
    appended: Sequence[tuple[FileSlice, WriteStat]]


@dataclass(frozen=True, slots=True)
class StayingRows:
    """Rows of a slice that stay, with these record keys, while a write takes other rows of the keys away."""

    keys: pa.Array
    source: SliceSource
    slice: FileSlice


def moved_pairs(
    engine: Engine, table: Snapshot, files: NewFiles, groups: ChangedGroups, kept: Sequence[StayingRows]
) -> tuple[IndexDelta, ...]:
    """The keys that came to each secondary index of the table, and those that went; those of `kept` rows stay.

    Raises UnsupportedTable for values that have no known texts, CorruptFile and StorageError.
    """
    if table.metadata is None:
        return ()
    return tuple(_moved(engine, table, files, groups, kept, one) for one in secondary_indexes(table.metadata))


def _moved(
    engine: Engine,
    table: Snapshot,
    files: NewFiles,
    groups: ChangedGroups,
    kept: Sequence[StayingRows],
    index: SecondaryIndex,
) -> IndexDelta:
    assert table.metadata is not None, "its metadata table has the index"
    shards = Shards.of_groups(table.metadata.file_groups(index.partition))
    runs = key_runs(engine, table, shards, f"{files.scratch}/{index.partition}", index.hashed_part)
    before, after, grown = (
        SecondaryPairs(source, index) for source in (table.slices, files.source, table.slices.counting(files.instant))
    )
    came = runs(after, [written_slice(one) for one in groups.new], "new")
    went = runs(before, groups.replaced, "replaced")
    # Written again, they are not deleted with the pair of another row.
    for number, one in enumerate(kept):
        came += runs(SecondaryPairs(one.source, index, one.keys), [one.slice], f"kept{number}")
    updated = [(old, written_slice(base)) for old, base in groups.updated]
    appended = [(old, with_log(old, log)) for old, log in groups.appended]
    for name, source, changes in (("updated-", after, updated), ("appended-", grown, appended)):
        more, less = compared_runs(runs, before, source, changes, name)
        came, went = came + more, went + less
    return IndexDelta(shards, came, log_writer(engine, "write secondary indexes"), went, index=index.partition)
