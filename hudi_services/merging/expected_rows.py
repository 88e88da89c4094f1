"""The checksum of the rows that a file slice must have, by other code than that which merges the rows.

It shares with the merge the records and ordering values as they were read (`log_records`, `ordering`) and what is
known of the table (`rules`), but none of its decisions: here the records of a key are sorted, and the best one is
taken; where a key has a delete and several records, or where values are filled, the rule is followed record by record,
for all such keys at once.
Keys and values are known by their hashes. What is known of log records, and then of base rows with their keys, is a
table with the columns below. It is divided among temporary files by key when memory has no room for it.

    KEY_HASH   uint64
    VALUES     uint64 each: the hash of the row, or those of its columns where values are filled
    HOLES      bool each: the columns that are filled from another record
    ENTRY, DELETES, COMPARABLE, UNORDERED, ORDER + n    as in `log_records`; of base rows only ORDER
    BINLOG     int64 each: file and position in MySQL's binary log, -1 for none
    COPIED     of base rows only: the row is copied as it is stored; it has no VALUES, and all its columns are HOLES
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.row_selection import take_table
from ..codecs.row_hash import Hashes, all_row_hashes, column_hashes, mix, row_and_key_hashes
from ..parquet.conversion import converted_table
from ..parquet.file_schema import FileSchema
from .fold import Flags, Numbers
from .log_records import COMPARABLE, DELETES, ENTRY, KEY, ORDER, SUBSET, UNORDERED
from .ordering import OrderingField, numbers
from .rules import BINLOG_PLACE, META_COLUMNS, Fill, Final, MergeRule
from .spill import Partitions

_KEY_HASH, _VALUES, _HOLES, _BINLOG, _COPIED = (
    f"hudi_services {name}" for name in ("key hash", "values", "holes", "binlog", "copied")
)
_FLAGS = (ENTRY, DELETES, COMPARABLE, UNORDERED)
_MODULUS = 1 << 64
_RECORD_BYTES, _FILLED_BYTES = 240, 40
"""The memory that the decision about a log record takes, and what each column adds where values are filled; four times
the bytes of its facts."""
_MOST_PARTITIONS = 128
_COPIED_BYTES = 8 << 20
"""Bytes of the facts of copied rows that are made at once: a whole row group of them may come."""


@dataclass(slots=True)
class _Records:
    """Log records; each array has a value, or a row of values, for each record."""

    keys: Hashes
    values: Hashes
    holes: Flags
    entry: Flags
    deletes: Flags
    comparable: Flags
    unordered: Flags
    order: pa.Table
    binlog: Numbers

    def take(self, rows: Numbers) -> "_Records":
        return _Records(
            self.keys[rows],
            self.values[rows],
            self.holes[rows],
            self.entry[rows],
            self.deletes[rows],
            self.comparable[rows],
            self.unordered[rows],
            take_table(self.order, rows),
            self.binlog[rows],
        )


class _Winners:
    """One record for each key; `seen` says for which keys the first base row was found."""

    def __init__(self, records: _Records) -> None:
        self.records = records
        self.keys = pa.array(records.keys)
        self.seen = np.zeros(len(records.keys), np.bool_)


class ExpectedRows:
    """Counts the rows of one slice: give it the log records, then the rows of the base file, both in order.

    Rows of the base file that are copied as they are stored are not counted, but compared with the log records.

    Log records have the raw form of `schema`; `is_partial` says that some have only some of the columns. Rows have the
    columns `names` in the raw form of `target`. When `memory` (in bytes) has no room for what is known of all `records`
    log records, they are divided by key, and one part at a time is in memory. Raises StorageError when the local disk
    has no room for them.
    """

    def __init__(
        self,
        rule: MergeRule,
        ordering: Sequence[OrderingField],
        schema: FileSchema,
        subsets: Sequence[frozenset[str]],
        names: Sequence[str],
        target: FileSchema,
        *,
        is_partial: bool,
        records: int,
        memory: int,
    ) -> None:
        self._rule = rule
        self._ordering = ordering
        self._schema = schema
        self._subsets = subsets
        self._names = names
        self._target = target
        self._added: list[pa.Table] = []
        self._winners: _Winners | None = None
        self._logs: Partitions | None = None
        self._bases: Partitions | None = None
        self._fills = is_partial or rule.fill is not Fill.NOTHING
        needed = records * (_RECORD_BYTES + (_FILLED_BYTES * len(names) if self._fills else 0))
        self._partitions = min(_MOST_PARTITIONS, max(1, -(-needed // max(1, memory))))
        self._newest = np.array(
            [rule.newest_meta_columns and name.startswith(META_COLUMNS) for name in names], np.bool_
        )
        self._compares = bool(rule.ordering) and rule.final not in (Final.ALWAYS, Final.LATER_IN_BINLOG)
        """Whether the ordering values of base rows decide."""
        self._rows = self._total = 0
        self.changed_copies = 0
        """Rows of `add_copied` that log records change; known after `finish`."""

    def add_records(self, table: pa.Table) -> None:
        """Add log records, as `log_records` describes them."""
        columns = self._schema.columns_of(self._names)
        rows = converted_table(table, table.num_rows, self._schema, columns, self._target)
        values, keys = self._values(rows, table)
        orders = [f"{ORDER}{i}" for i in range(len(self._ordering))]
        facts = _facts(keys, values, self._holes(rows, table), self._places(rows), table.select([*_FLAGS, *orders]))
        if self._partitions == 1:
            self._added.append(facts)
        else:
            self._logs = _spilled(self._logs, facts, self._partitions)

    def decide(self) -> None:
        """To be called between the last log record and the first base row."""
        if self._partitions == 1:
            self._winners = self._winners_of(pa.concat_tables(self._added))
            self._added = []

    def add_base(self, rows: pa.Table, keyed: pa.Table) -> None:
        """Add rows of the base file; `keyed` has their record keys."""
        values, keys = self._values(rows, keyed)
        self._count(self._joined(values), 1)
        self._compare(rows, keys, values, copied=False)

    def add_copied(self, rows: pa.Table) -> None:
        """Add rows of the base file that are copied: their keys, and the columns that decide about log records."""
        width = len(self._names) if self._fills else 1
        step = max(1, _COPIED_BYTES // (9 * width))
        for start in range(0, rows.num_rows, step):
            part = rows.slice(start, step)
            keys = all_row_hashes(part.select([KEY]))
            self._compare(part, keys, np.zeros((part.num_rows, width), np.uint64), copied=True)

    def _compare(self, rows: pa.Table, keys: Hashes, values: Hashes, *, copied: bool) -> None:
        if self._winners is None:
            facts = self._base_facts(rows, keys, values, copied=copied)
            self._bases = _spilled(self._bases, facts, self._partitions)
        else:

            def touched(hits: Numbers) -> pa.Table:
                return self._base_facts(_taken(rows, hits), keys[hits], values[hits], copied=copied)

            self._merge(self._winners, keys, touched)

    @property
    def spilled_bytes(self) -> int:
        """Bytes that were written to the local disk."""
        return sum(parts.stored_bytes for parts in (self._logs, self._bases) if parts is not None)

    def finish(self) -> tuple[int, int]:
        """The number of rows and the sum of their hashes modulo 2**64, with the rows that only log records have."""
        if self._winners is not None:
            self._count_alone(self._winners)
        for number, spill in enumerate(self._logs.spills if self._logs is not None else ()):
            winners = self._winners_of(spill.read())
            for part in self._bases.spills[number].tables() if self._bases is not None else ():
                keys = part.column(_KEY_HASH).to_numpy()
                self._merge(winners, keys, partial(_taken, part))
            self._count_alone(winners)
        for parts in (self._logs, self._bases):
            if parts is not None:
                parts.close()
        return self._rows, self._total % _MODULUS

    def _winners_of(self, facts: pa.Table) -> _Winners:
        return _Winners(self._decided(_records(facts, len(self._ordering))))

    def _base_facts(self, rows: pa.Table, keys: Hashes, values: Hashes, *, copied: bool) -> pa.Table:
        more = {}
        if self._compares:
            in_schema = self._in_schema(rows)
            more = {f"{ORDER}{i}": one.values(in_schema) for i, one in enumerate(self._ordering)}
        more[_COPIED] = pa.array(np.full(rows.num_rows, copied))
        holes = np.ones(values.shape, np.bool_) if copied else self._holes(rows, None)
        return _facts(keys, values, holes, self._places(rows), pa.table(more))

    def _merge(self, winners: _Winners, keys: Hashes, facts: Callable[[Numbers], pa.Table]) -> None:
        """Count what log records change in base rows with these keys; `facts` gives the facts of some of the rows."""
        if not len(winners.keys):
            return
        found = pc.index_in(pa.array(keys), winners.keys)
        hits, place = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False)), found.drop_null().to_numpy()
        if not self._rule.each_base_row:
            # Of rows with the same key, only the first one is merged.
            first = np.sort(np.unique(place, return_index=True)[1])
            first = first[~winners.seen[place[first]]]
            hits, place = hits[first], place[first]
        winners.seen[place] = True
        log, base = winners.records.take(place), facts(hits)
        wins = self._beats(log, base)
        of_log, of_base, prefers = log.values, _rows_of(base, _VALUES), wins[:, None]
        high, low = np.where(prefers, of_log, of_base), np.where(prefers, of_base, of_log)
        holes = np.where(prefers, log.holes, _rows_of(base, _HOLES))
        may_fill = np.where(prefers, self._rule.fills_base, self._rule.fills_base_rows) | (len(self._subsets) > 1)
        fills = holes & may_fill & ~log.deletes[:, None]
        if self._newest.any():
            fills = np.where(self._newest, ~prefers & ~log.deletes[:, None], fills)
        copied = np.asarray(base.column(_COPIED).to_numpy(), np.bool_)
        self.changed_copies += int((copied & (wins | fills.any(axis=1))).sum())
        self._count(self._joined(of_base)[~copied], -1)
        self._count(self._joined(np.where(fills, low, high))[~(copied | (wins & log.deletes))], 1)

    def _count_alone(self, winners: _Winners) -> None:
        """Count the rows that only log records have."""
        alone = ~winners.seen & ~winners.records.deletes
        self._count(self._joined(winners.records.values[alone]), 1)

    # ---- one record for each key

    def _decided(self, logs: _Records) -> _Records:
        by_key = np.argsort(logs.keys, kind="stable")
        begins = np.concatenate(([True], np.diff(logs.keys[by_key]) != 0)) if len(by_key) else np.zeros(0, np.bool_)
        starts = np.flatnonzero(begins)
        ends = np.concatenate((starts[1:], [len(by_key)])).astype(np.int64)[: len(starts)]
        number = np.cumsum(begins) - 1
        ranks = [numbers(column) for column in logs.order.columns]
        place = np.arange(len(by_key))
        newest = -place if self._rule.ties_to_older and ranks else place
        best = np.lexsort((newest, *reversed([rank[by_key] for rank in ranks]), number))
        winners = by_key[best[ends - 1]]
        result = logs.take(winners)
        follow = self._to_follow(logs, by_key, starts, ends)
        if follow.size:
            state = self._followed(logs, ranks, by_key, starts[follow], ends[follow])
            winners[follow] = state.record
            result.values[follow], result.holes[follow] = state.values, state.holes
        chosen = logs.take(winners)
        chosen.values, chosen.holes = result.values, result.holes
        return chosen

    def _to_follow(self, logs: _Records, by_key: Numbers, starts: Numbers, ends: Numbers) -> Numbers:
        """The keys with several records of which the best is not always the one that counts."""
        if not len(starts) or not (self._rule.ordering or self._fills):
            return np.zeros(0, np.int64)
        some = np.logical_or.reduceat(logs.deletes[by_key], starts) | self._fills
        return np.flatnonzero(some & (ends - starts > 1))

    def _followed(
        self, logs: _Records, ranks: Sequence[Numbers], by_key: Numbers, starts: Numbers, ends: Numbers
    ) -> "_State":
        """The records of some keys as the rule reads: of each key the next one, until there are no more."""
        state = _state(logs, ranks, by_key[starts])
        for number in range(1, int((ends - starts).max())):
            keys = np.flatnonzero(ends - starts > number)
            old, new = state.take(keys), _state(logs, ranks, by_key[starts[keys] + number])
            wins = self._replaces(logs, old, new)
            high, low = new.where(wins, old), old.where(wins, new)
            both_live = ~(logs.deletes[old.record] | logs.deletes[new.record])
            if self._fills:
                takes = high.holes & (self._rule.fills_logs or len(self._subsets) > 1)
                takes = (takes | (self._newest & ~wins[:, None])) & both_live[:, None]
                places = [list(self._names).index(name) for name in self._rule.ordering_columns]
                high.values = np.where(takes, low.values, high.values)
                high.holes = np.where(takes, low.holes, high.holes)
                high.rank = np.where(takes[:, places], low.rank, high.rank)
            state.put(keys, high)
        return state

    def _replaces(self, logs: _Records, old: "_State", new: "_State") -> Flags:
        """Whether records replace older ones, pair by pair."""
        rule, older, newer = self._rule, old.record, new.record
        if not rule.ordering:
            return np.ones(len(older), np.bool_)
        less, more = _compared(new.rank, old.rank)
        forgotten = logs.deletes[older] & logs.unordered[older]
        typed = logs.comparable[older] & logs.comparable[newer]
        by_entry = ~forgotten & (logs.unordered[newer] | ~typed | ~less)
        by_row = (more if rule.ties_to_older else ~less) | (logs.deletes[newer] & logs.unordered[newer])
        if rule.deletes_are_forgotten:
            by_row |= logs.deletes[older]
        if rule.unordered_deletes_yield:
            by_row |= forgotten
        return np.where(logs.entry[newer], by_entry, by_row)

    # ---- the base file

    def _beats(self, log: _Records, base: pa.Table) -> Flags:
        """Whether records replace, or delete, base rows, pair by pair."""
        rule, pairs = self._rule, len(log.keys)
        always = (log.entry & rule.entries_always_delete) | (log.deletes & log.unordered)
        if rule.final is Final.ALWAYS or not rule.ordering:
            return np.ones(pairs, np.bool_)
        if rule.final is Final.LATER_IN_BINLOG:
            less, _ = _compared(_rows_of(base, _BINLOG), log.binlog)
            return (log.entry & rule.entries_always_delete) | less
        more, less = np.zeros(pairs, np.bool_), np.zeros(pairs, np.bool_)
        nulls = np.zeros(pairs, np.bool_)
        for i, one in enumerate(self._ordering):
            of_base = base.column(f"{ORDER}{i}")
            nulls |= pc.is_null(of_base).to_numpy()
            both = pa.chunked_array([*log.order.column(i).chunks, *of_base.chunks], type=of_base.type)
            found = numbers(pc.fill_null(both, 0) if one.is_int else both)
            undecided = ~(more | less)
            more |= undecided & (found[:pairs] > found[pairs:])
            less |= undecided & (found[:pairs] < found[pairs:])
        if rule.null_is_least:
            always |= nulls
        return always | (more if rule.final is Final.GREATER else ~less)

    def _in_schema(self, base: pa.Table) -> pa.Table:
        """The ordering columns in the form of the log records."""
        columns = self._target.columns_of(self._rule.ordering_columns)
        return converted_table(base, base.num_rows, self._target, columns, self._schema)

    # ---- hashes

    def _values(self, rows: pa.Table, keyed: pa.Table) -> tuple[Hashes, Hashes]:
        """The hashes of rows, or of their columns, and those of their keys, which `keyed` has."""
        if self._fills:
            return np.stack(column_hashes(rows), axis=1), all_row_hashes(keyed.select([KEY]))
        if KEY not in rows.column_names:
            return all_row_hashes(rows)[:, None], all_row_hashes(keyed.select([KEY]))
        values, keys = row_and_key_hashes(rows, KEY)
        return values[:, None], keys

    def _joined(self, values: Hashes) -> Hashes:
        return mix(values.sum(axis=1, dtype=np.uint64)) if self._fills else values[:, 0]

    def _holes(self, rows: pa.Table, log: pa.Table | None) -> Flags:
        """The columns of rows that are filled from another record; `log` has the facts of log records."""
        if not self._fills:
            return np.zeros((rows.num_rows, 1), np.bool_)
        found = [self._unset(rows.column(name)) for name in self._names]
        if log is not None and len(self._subsets) > 1:
            subset = log.column(SUBSET).to_numpy()
            lacks = [np.array([name in lacking for lacking in self._subsets])[subset] for name in self._names]
            found = [one | other for one, other in zip(found, lacks, strict=True)]
        return np.stack(found, axis=1)

    def _places(self, rows: pa.Table) -> Numbers:
        """BINLOG; without columns where it decides nothing."""
        if self._rule.final is not Final.LATER_IN_BINLOG or not self._rule.ordering:
            return np.zeros((rows.num_rows, 0), np.int64)
        return _places(rows)

    def _unset(self, values: pa.ChunkedArray) -> Flags:
        texts = pa.types.is_string(values.type) or pa.types.is_binary(values.type)
        if self._rule.fill is Fill.NULLS:
            return np.asarray(pc.is_null(values).to_numpy())
        if self._rule.fill is Fill.PLACEHOLDER and texts:
            equal = pc.equal(values.cast(pa.binary()), pa.scalar(self._rule.placeholder.encode()))
            return np.asarray(pc.fill_null(equal, False).to_numpy())
        return np.zeros(len(values), np.bool_)

    def _count(self, hashes: Hashes, sign: int) -> None:
        self._rows += sign * len(hashes)
        self._total += sign * int(hashes.sum(dtype=np.uint64))


@dataclass(slots=True)
class _State:
    """What is known of some keys after some of their records; `rank` has a column for each ordering field."""

    record: Numbers
    values: Hashes
    holes: Flags
    rank: Numbers

    def take(self, keys: Numbers) -> "_State":
        return _State(self.record[keys], self.values[keys], self.holes[keys], self.rank[keys])

    def put(self, keys: Numbers, new: "_State") -> None:
        self.record[keys], self.values[keys] = new.record, new.values
        self.holes[keys], self.rank[keys] = new.holes, new.rank

    def where(self, flags: Flags, other: "_State") -> "_State":
        """This state where a flag is set, the other one elsewhere."""
        of_columns = flags[:, None]
        return _State(
            np.where(flags, self.record, other.record),
            np.where(of_columns, self.values, other.values),
            np.where(of_columns, self.holes, other.holes),
            np.where(of_columns, self.rank, other.rank),
        )


def _state(logs: _Records, ranks: Sequence[Numbers], records: Numbers) -> _State:
    rank = np.zeros((len(records), len(ranks)), np.int64)
    for field, values in enumerate(ranks):
        rank[:, field] = values[records]
    return _State(records.copy(), logs.values[records], logs.holes[records], rank)


def _compared(ones: Numbers, others: Numbers) -> tuple[Flags, Flags]:
    """Whether rows of numbers are less, and greater, than others: the first number that differs decides."""
    less, more = np.zeros(len(ones), np.bool_), np.zeros(len(ones), np.bool_)
    for one, other in zip(ones.T, others.T, strict=True):
        undecided = ~(less | more)
        less |= undecided & (one < other)
        more |= undecided & (one > other)
    return less, more


def _places(rows: pa.Table) -> Numbers:
    """File and position in MySQL's binary log of each row."""
    parts = pc.split_pattern(rows.column(BINLOG_PLACE).cast(pa.string()), ".")
    numbers_of = (pc.fill_null(pc.list_element(parts, n).cast(pa.int64()), -1) for n in range(2))
    return np.stack([one.to_numpy() for one in numbers_of], axis=1)


def _facts(keys: Hashes, values: Hashes, holes: Flags, places: Numbers, more: pa.Table) -> pa.Table:
    """What is known of records or rows; `more` has further columns."""
    columns = {
        _KEY_HASH: pa.array(keys),
        _VALUES: _lists(values),
        _HOLES: _lists(holes.view(np.uint8)),
        _BINLOG: _lists(places),
    }
    return pa.table(columns | dict(zip(more.column_names, more.columns, strict=True)))


def _lists(rows: npt.NDArray[Any]) -> pa.Array:
    """An array of lists, one for each row of a matrix."""
    flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
    kind = pa.list_(flat.type, rows.shape[1])
    return pa.Array.from_buffers(kind, len(rows), [None], null_count=0, children=[flat])


def _rows_of(facts: pa.Table, name: str) -> Any:
    """The matrix that `_lists` made a column of; HOLES as flags."""
    column = facts.column(name).combine_chunks()
    width = column.type.list_size
    flat = column.values.slice(column.offset * width, len(column) * width).to_numpy()
    matrix = flat.reshape(len(column), width)
    return matrix.view(np.bool_) if name == _HOLES else matrix


def _records(facts: pa.Table, fields: int) -> _Records:
    entry, deletes, comparable, unordered = (np.asarray(facts.column(name).to_numpy()) for name in _FLAGS)
    return _Records(
        facts.column(_KEY_HASH).to_numpy(),
        _rows_of(facts, _VALUES),
        _rows_of(facts, _HOLES),
        entry,
        deletes,
        comparable,
        unordered,
        facts.select([f"{ORDER}{i}" for i in range(fields)]),
        _rows_of(facts, _BINLOG),
    )


def _taken(facts: pa.Table, rows: Numbers) -> pa.Table:
    return take_table(facts, rows)


def _spilled(parts: Partitions | None, facts: pa.Table, count: int) -> Partitions:
    parts = Partitions(facts.schema, count) if parts is None else parts
    parts.add(facts, (facts.column(_KEY_HASH).to_numpy() % np.uint64(count)).astype(np.int64))
    return parts
