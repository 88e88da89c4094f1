"""What the log records of a slice do to its base file: the rows that they touch, in order, and the rows that they add.

`find_updates` merges the log records of each key, and finds the rows of the base file by their keys. When the records
do not fit into the given memory, they and the keys of the base file are divided among temporary files by their keys,
merged a file at a time, and the results are divided among temporary files by the numbers of the rows that they touch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.row_selection import in_parts, take_table, with_few_chunks
from ..model import LogCounts
from .fold import Flags, Numbers
from .log_records import DELETES, KEY
from .merged_logs import Merger
from .spill import Partitions, Spill, by_key

_ROW, _WINS = "hudi_services row", "hudi_services wins"
_MOST_PARTITIONS = 256
_MOST_BYTES = 1 << 30
"""Of records that are merged at once, whatever the memory: joined columns of 2 GiB would not fit into arrays."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Rows of the base file that log records touch."""

    at: Numbers
    """Their numbers, ascending."""
    log: pa.Table
    """Their folded records."""
    wins: Flags
    """Whether the folded records are preferred."""

    @property
    def deletes(self) -> Flags:
        """Whether the row is deleted."""
        deletes: Flags = np.asarray(self.log.column(DELETES).to_numpy())
        return self.wins & deletes


@dataclass(slots=True)
class Effects:
    """What the log records of a slice do, in numbers: `added` counts rows, `counts` all but the blocks."""

    row_groups: "ChangedRowGroups"
    added: int
    counts: LogCounts


class Updates(Protocol):
    """All that the log records of a slice do."""

    effects: Effects

    @property
    def spilled_bytes(self) -> int:
        """Bytes that were written to the local disk."""

    def touched(self, start: int, end: int) -> Touched | None:
        """The rows from number `start` to `end` that are touched, numbered from `start` on; None for none."""

    def inserts(self) -> Iterator[pa.Table]:
        """The folded records that are rows by themselves."""


def find_updates(
    merger: Merger,
    records: Iterable[pa.Table],
    expected: int,
    base: Iterable[pa.Table],
    row_groups: Sequence[int],
    memory: int,
) -> Updates:
    """Merge `records` (as `log_records` describes them, oldest first) of about `expected` bytes.

    `base` are tables of the record keys, and of the columns that decide, of the base file; `row_groups` are the numbers
    of rows of its row groups. `memory` in bytes. Raises NullOrdering and StorageError.
    """
    changed, memory = ChangedRowGroups(row_groups), min(memory, _MOST_BYTES)
    if expected <= memory:
        return _InMemory(merger, records, base, changed)
    partitions = min(_MOST_PARTITIONS, -(-expected // memory))
    return _OnDisk(merger, records, base, changed, partitions)


class ChangedRowGroups:
    """How many rows of each row group of a base file log records touch, and how many of those they delete."""

    def __init__(self, rows: Sequence[int]) -> None:
        """`rows` of each row group."""
        self._ends = np.cumsum(np.array(rows, np.int64))
        self.touched = np.zeros(len(rows), np.int64)
        self.deleted = np.zeros(len(rows), np.int64)

    @property
    def rows(self) -> int:
        """Rows of all row groups."""
        return int(self._ends[-1]) if self._ends.size else 0

    def add(self, touched: Numbers, deletes: Flags) -> None:
        """Count rows with these numbers in the base file, some of which are deleted."""
        groups = np.searchsorted(self._ends, touched, "right")
        self.touched += np.bincount(groups, minlength=self.touched.size)
        self.deleted += np.bincount(groups[deletes], minlength=self.deleted.size)


@dataclass(frozen=True, slots=True)
class _Found:
    """Pairs of rows of the base file and folded records."""

    rows: Numbers
    log: Numbers
    wins: Flags


class _Join:
    """Finds base rows for the folded records of some keys; of base rows with the same key, the rule says which."""

    def __init__(self, merger: Merger, records: pa.Table, changed: ChangedRowGroups) -> None:
        self._merger = merger
        self._changed = changed
        self._records = records.num_rows
        # Rows are taken from it for each part of the base file.
        folded = with_few_chunks(merger.folded(records))
        self.folded = folded
        self._facts = folded.select(merger.deciding_facts)
        self._deletes = np.asarray(folded.column(DELETES).to_numpy())
        self._seen = np.zeros(folded.num_rows, np.bool_)
        self._deleted = self._updated = 0

    def find(self, base: pa.Table) -> _Found:
        """The pairs in a part of the base file, in its order; it has the numbers of its rows."""
        found = pc.index_in(base.column(KEY), self.folded.column(KEY))
        at = np.flatnonzero(pc.is_valid(found).to_numpy())
        log = np.asarray(found.drop_null().to_numpy()).astype(np.int64)
        if not self._merger.merges_each:
            is_first = np.zeros(log.size, np.bool_)
            is_first[np.unique(log, return_index=True)[1]] = True
            is_first &= ~self._seen[log]
            at, log = at[is_first], log[is_first]
        self._seen[log] = True
        wins = self._merger.wins(take_table(self._facts, log), take_table(base, at))
        deletes = wins & self._deletes[log]
        deleted = int(deletes.sum())
        self._deleted += deleted
        self._updated += int(wins.sum()) - deleted
        matters = wins | self._merger.losers_matter
        rows = np.asarray(base.column(_ROW).to_numpy())[at]
        self._changed.add(rows[matters], deletes[matters])
        return _Found(rows[matters], log[matters], wins[matters])

    @property
    def counts(self) -> LogCounts:
        """What the records do, after all parts of the base file; without their blocks."""
        unknown = int((~self._seen & self._deletes).sum())
        inserts = int((~self._seen & ~self._deletes).sum())
        return LogCounts(0, self._records, self.folded.num_rows, self._updated, self._deleted + unknown, inserts)

    def inserts(self) -> pa.Table:
        """The folded records that no base row was found for, without deletes."""
        return take_table(self.folded, np.flatnonzero(~self._seen & ~self._deletes))


class _InMemory:
    """Updates whose records fit into memory."""

    spilled_bytes = 0

    def __init__(
        self, merger: Merger, records: Iterable[pa.Table], base: Iterable[pa.Table], changed: ChangedRowGroups
    ) -> None:
        join = _Join(merger, pa.concat_tables(records), changed)
        none = _Found(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
        # Each look-up hashes all records.
        found = [none, *map(join.find, _joined(_numbered(base), 2 * join.folded.num_rows))]
        self._folded = join.folded
        self._rows = np.concatenate([one.rows for one in found])
        self._log = np.concatenate([one.log for one in found])
        self._wins = np.concatenate([one.wins for one in found])
        self._inserts = join.inserts()
        self.effects = Effects(changed, self._inserts.num_rows, join.counts)

    def touched(self, start: int, end: int) -> Touched | None:
        low, high = np.searchsorted(self._rows, (start, end))
        if low == high:
            return None
        log = take_table(self._folded, self._log[low:high])
        return Touched(self._rows[low:high] - start, log, self._wins[low:high])

    def inserts(self) -> Iterator[pa.Table]:
        yield from in_parts(self._inserts)


class _OnDisk:
    """Updates in temporary files: the touched rows by ranges of row numbers, and the inserts."""

    def __init__(
        self,
        merger: Merger,
        records: Iterable[pa.Table],
        base: Iterable[pa.Table],
        changed: ChangedRowGroups,
        partitions: int,
    ) -> None:
        self.effects = Effects(changed, 0, LogCounts())
        self._width = max(1, -(-changed.rows // partitions))
        self._ranges: Partitions | None = None
        self._inserts: Spill | None = None
        self._loaded: tuple[int, Touched] | None = None
        self._divided_bytes = 0
        logs, keys = by_key(records, partitions), by_key(_numbered(base), partitions)
        try:
            for log, key in zip(logs.spills, keys.spills, strict=True):
                self._merge(merger, log, key, partitions)
        finally:
            self._divided_bytes = logs.stored_bytes + keys.stored_bytes
            logs.close()
            keys.close()

    @property
    def spilled_bytes(self) -> int:
        ranges = self._ranges.stored_bytes if self._ranges is not None else 0
        return self._divided_bytes + ranges + (self._inserts.stored_bytes if self._inserts is not None else 0)

    def _merge(self, merger: Merger, log: Spill, base: Spill, partitions: int) -> None:
        """Merge the records of one partition of the keys."""
        join = _Join(merger, log.read(), self.effects.row_groups)
        log.close()
        for part in base.tables():
            found = join.find(part)
            table = take_table(join.folded, found.log)
            table = table.append_column(_ROW, pa.array(found.rows)).append_column(_WINS, pa.array(found.wins))
            if self._ranges is None:
                self._ranges = Partitions(table.schema, partitions)
            self._ranges.add(table, found.rows // self._width)
        base.close()
        inserts = join.inserts()
        if self._inserts is None:
            self._inserts = Spill(inserts.schema)
        self._inserts.add(inserts)
        self.effects.added += inserts.num_rows
        self.effects.counts += join.counts

    def touched(self, start: int, end: int) -> Touched | None:
        if self._ranges is None:
            return None
        parts = [self._part(number, start, end) for number in range(start // self._width, (end - 1) // self._width + 1)]
        found = [part for part in parts if part.at.size]
        if not found:
            return None
        at, wins = np.concatenate([part.at for part in found]), np.concatenate([part.wins for part in found])
        return Touched(at - start, pa.concat_tables([part.log for part in found]), wins)

    def _part(self, number: int, start: int, end: int) -> Touched:
        """The touched rows from `start` to `end` in the range with this number."""
        if self._loaded is None or self._loaded[0] != number:
            self._loaded = None
            self._loaded = number, self._load(number)
        one = self._loaded[1]
        low, high = np.searchsorted(one.at, (start, end))
        return Touched(one.at[low:high], one.log.slice(low, high - low), one.wins[low:high])

    def _load(self, number: int) -> Touched:
        assert self._ranges is not None
        table = self._ranges.spills[number].read()
        table = take_table(table, np.argsort(table.column(_ROW).to_numpy(), kind="stable"))
        at, wins = (np.asarray(table.column(name).to_numpy()) for name in (_ROW, _WINS))
        return Touched(at, table.drop_columns([_ROW, _WINS]), wins)

    def inserts(self) -> Iterator[pa.Table]:
        return self._inserts.tables() if self._inserts is not None else iter(())


def _numbered(base: Iterable[pa.Table]) -> Iterator[pa.Table]:
    start = 0
    for part in base:
        yield part.append_column(_ROW, pa.array(np.arange(start, start + part.num_rows)))
        start += part.num_rows


def _joined(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of at least `rows` rows, but for the last one."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(one.num_rows for one in waiting) >= rows:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
