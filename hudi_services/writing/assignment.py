"""Decides where each row of an upsert or delete goes: to the file slices that have its key, or to new rows.

Of a key that is in another partition than its row, the row moves or stays, as the index says.
Source: HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded of Apache Hudi.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.row_selection import take_table
from ..errors import ConfigError, UnsupportedTable
from ..merging.fold import Flags, Numbers
from ..merging.log_records import KEY, PARTITION
from ..merging.rules import Fill
from ..model import FileSlice
from ..snapshot import Snapshot
from .distinct_rows import DistinctRows
from .kept_rows import KeptRows, divided, store_inserts
from .keys_of_files import StoredKeys
from .row_store import CountedRows, Place, Portion, RowStore
from .tagging import Tagged
from .write_index import Index


@dataclass(slots=True)
class Assigned:
    """The rows by their places; `slices` are those that get rows."""

    store: CountedRows
    slices: dict[tuple[str, str], FileSlice] = field(default_factory=dict)

    @property
    def inserts(self) -> dict[Place, int]:
        """The number of rows that are new, by partition, and by bucket where there are buckets."""
        found = {place: count for place, count in self.store.counts.items() if not place.file_id}
        return dict(sorted(found.items(), key=lambda item: (item[0].partition, item[0].bucket or 0)))

    def count(self, file_slice: FileSlice) -> int:
        """The number of rows, and keys to delete, for a slice."""
        return sum(self.store.counts.get(place, 0) for place in _places(file_slice))

    def size(self, file_slice: FileSlice) -> int:
        """Their bytes in memory."""
        return sum(self.store.sizes.get(place, 0) for place in _places(file_slice))

    def size_of_inserts(self, place: Place, count: int) -> int:
        """About how many bytes in memory `count` of the inserts of a place have."""
        return self.store.sizes.get(place, 0) * count // max(1, self.store.counts.get(place, 0))

    def portions(self, file_slice: FileSlice) -> tuple[Portion, ...]:
        """The rows for a slice, and the keys to delete in it, which are in tables of their own."""
        return tuple(Portion(place) for place in _places(file_slice) if place in self.store.counts)


def _positions(tagged: Sequence[Tagged]) -> Numbers:
    """Those of all keys that are there."""
    return np.unique(np.concatenate([one.positions for one in tagged]))


def _places(file_slice: FileSlice) -> list[Place]:
    return [Place(file_slice.partition, file_slice.file_id, deletes) for deletes in (False, True)]


class DuplicatePolicy(enum.Enum):
    """What a write does with a row whose key is there."""

    MERGE = "merge"
    WRITE = "write it, too, without looking"
    DROP = "leave it out"
    FAIL = "write nothing"

    @property
    def is_exact(self) -> bool:
        """Whether keys must be known to be there, and not only where they would be."""
        return self in (DuplicatePolicy.DROP, DuplicatePolicy.FAIL)


class Assigner:
    """Assigns the rows of one write to the file groups of a table; `stored` are the keys of its files, if given."""

    def __init__(
        self,
        table: Snapshot,
        kept: KeptRows,
        index: Index,
        rows: DistinctRows,
        known: DuplicatePolicy = DuplicatePolicy.MERGE,
        stored: StoredKeys | None = None,
    ) -> None:
        self._stored = stored
        self._known = known
        self._table = table
        self._kept = kept
        self._index = index
        self._rows = rows

    def assign(self, store: RowStore) -> Assigned:
        """Put all rows into `store`.

        Raises ConfigError for rows that cannot be merged, or whose keys may not be there, UnsupportedTable for rows
        that would move to another partition under a rule that fills values, CorruptFile and StorageError.
        """
        found = Assigned(store)
        if self._index.kind.is_global:
            self._assign(self._kept.partitions, store, found)
        else:
            for partition in self._kept.partitions:
                self._assign([partition], store, found)
        return found

    def _assign(self, partitions: Sequence[str], store: RowStore, assigned: Assigned) -> None:
        """Assign the rows of some partitions, in which keys are unique."""
        for records, deletes in self._rows.parts(partitions):
            keys, tagged = records.column(KEY).combine_chunks(), list[Tagged]()
            if self._known is not DuplicatePolicy.WRITE:
                tagged = self._index.find(self._table, partitions[0], keys, self._stored, exact=self._known.is_exact)
            if tagged and self._known is DuplicatePolicy.FAIL:
                key = keys[int(_positions(tagged)[0])].as_py()
                raise ConfigError(
                    f"{self._table.storage.root} has rows whose keys are to be inserted, such as {key!r}",
                    hint="nothing was written: upsert the rows, or leave them out with "
                    "hoodie.datasource.insert.dup.policy=drop",
                )
            if tagged and self._known is DuplicatePolicy.DROP:
                rest = np.ones(records.num_rows, np.bool_)
                rest[_positions(tagged)] = False
                records, deletes, tagged = records.filter(pa.array(rest)), deletes[rest], []
            self._place(records, deletes, tagged, store, assigned)

    def _place(
        self, records: pa.Table, deletes: Flags, tagged: list[Tagged], store: RowStore, assigned: Assigned
    ) -> None:
        known, moves, home, loses = (np.zeros(records.num_rows, np.bool_) for _ in range(4))
        paths = records.column(PARTITION)
        moving: list[tuple[FileSlice, Numbers]] = []
        for one in tagged:
            at, slice_ = one.positions, one.slice
            known[at] = True
            stays = np.ones(at.size, np.bool_)
            if self._index.kind.is_global and self._index.moves_rows and not self._kept.keys_only:
                is_here = pc.equal(paths.take(pa.array(at)), slice_.partition).to_numpy()
                home[at[is_here]] = True
                stays = is_here | deletes[at]
            self._add(store, assigned, slice_, take_table(records, at[stays]), deletes=self._kept.keys_only)
            if not stays.all():
                moving.append((slice_, at[~stays]))
        for slice_, at in moving:
            moves[at] = True
            loses[at] |= ~self._wins(slice_, take_table(records, at))
        for slice_, at in moving:
            self._add(store, assigned, slice_, take_table(records, at[~loses[at]]), deletes=True)
        new = np.flatnonzero(~deletes & (~known | (moves & ~home & ~loses)))
        inserted = take_table(records, new)
        for path, rows in divided(inserted, inserted.column(PARTITION).dictionary_encode()):
            store_inserts(store, path, self._plain(rows), self._index.buckets)

    def _add(
        self, store: RowStore, assigned: Assigned, file_slice: FileSlice, records: pa.Table, *, deletes: bool
    ) -> None:
        if records.num_rows:
            assigned.slices[file_slice.partition, file_slice.file_id] = file_slice
            rows = records.select([KEY]) if deletes else self._plain(records)
            store.add(Place(file_slice.partition, file_slice.file_id, deletes), rows)

    def _plain(self, records: pa.Table) -> pa.Table:
        """Records without what was added to their rows."""
        return records.select([KEY, *self._kept.schema.arrow.names])

    def _wins(self, holder: FileSlice, records: pa.Table) -> Flags:
        """Whether records that would leave the partition of a slice are preferred to its rows of the same keys."""
        if self._rows.rule.fill is not Fill.NOTHING:
            raise UnsupportedTable(
                f"{self._table.storage.root}: a row would move from partition {holder.partition!r} to "
                f"{records.column(PARTITION)[0].as_py()!r}, and the table's merge rule fills values from the old row",
                hint="keep such rows where they are: set hoodie.simple.index.update.partition.path, "
                "hoodie.bloom.index.update.partition.path or hoodie.record.index.update.partition.path, as the index "
                "is, to false; or write with Apache Hudi",
            )
        wins = np.ones(records.num_rows, np.bool_)
        columns = self._rows.merger.deciding_columns
        if not columns:
            return wins
        reader, keys = self._table.slices.open(holder), records.column(KEY).combine_chunks()
        for _, rows in reader.tables([KEY, *columns], self._rows.schema):
            found = pc.index_in(rows.column(KEY), value_set=keys)
            at = np.flatnonzero(pc.is_valid(found).to_numpy())
            pairs = np.asarray(found.drop_null().to_numpy()).astype(np.int64)
            log, base = take_table(records, pairs), take_table(rows, at)
            with self._rows.null_orderings():
                wins[pairs[~self._rows.merger.wins(log, base)]] = False
        reader.release()
        return wins
