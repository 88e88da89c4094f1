"""The checksum of the rows that a file slice must have, by other code than that which merges the rows.

It shares with the merge the records and ordering values as they were read (`log_records`, `ordering`) and what is
known of the table (`rules`), but none of its decisions: here the records of a key are sorted, and the best one is
taken; where a key has a delete and several records, or where values are filled, the rule is followed record by record,
for all such keys at once.
Keys and values are known by their hashes. A log record takes about 60 bytes of memory; where values are filled, 10
more for each column.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..codecs.row_hash import Hashes, all_row_hashes, column_hashes, mix, row_and_key_hashes
from ..files.parquet_convert import converted_table
from ..files.parquet_schema import FileSchema
from .fold import Flags, Numbers
from .log_records import COMPARABLE, DELETES, ENTRY, KEY, ORDER, SUBSET, UNORDERED
from .ordering import OrderingField, numbers
from .rules import BINLOG_PLACE, META_COLUMNS, Fill, Final, MergeRule

_FLAGS = (ENTRY, DELETES, COMPARABLE, UNORDERED)
_MODULUS = 1 << 64


@dataclass(slots=True)
class _Records:
    """Log records; each array has a value, or a row of values, for each record."""

    keys: Hashes
    values: Hashes
    """The hash of the row, or those of its columns."""
    holes: Flags
    """The columns that are filled from another record."""
    entry: Flags
    deletes: Flags
    comparable: Flags
    unordered: Flags
    order: pa.Table
    binlog: list[tuple[int, int]]

    def take(self, rows: Numbers) -> "_Records":
        return _Records(
            self.keys[rows],
            self.values[rows],
            self.holes[rows],
            self.entry[rows],
            self.deletes[rows],
            self.comparable[rows],
            self.unordered[rows],
            self.order.take(pa.array(rows)),
            [self.binlog[row] for row in rows.tolist()] if self.binlog else [],
        )


class ExpectedRows:
    """Counts the rows of one slice: give it the log records, then the rows of the base file, both in order.

    Log records have the raw form of `schema`; `is_partial` says that some have only some of the columns. Rows have the
    columns `names` in the raw form of `target`.
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
    ) -> None:
        self._rule = rule
        self._ordering = ordering
        self._schema = schema
        self._subsets = subsets
        self._names = names
        self._target = target
        self._added: list[pa.Table] = []
        self._parts: list[tuple[Hashes, Hashes, Flags, list[tuple[int, int]]]] = []
        self._fills = is_partial or rule.fill is not Fill.NOTHING
        self._newest = np.array(
            [rule.newest_meta_columns and name.startswith(META_COLUMNS) for name in names], np.bool_
        )
        self._rows = self._total = 0

    def add_records(self, table: pa.Table) -> None:
        """Add log records, as `log_records` describes them."""
        rows = converted_table(table, table.num_rows, self._schema, self._names, self._target)
        facts = [name for name in table.column_names if name not in self._schema.columns]
        values, keys = self._values(rows)
        self._parts.append((keys, values, self._holes(rows, table), _places(rows)))
        self._added.append(table.select(facts))

    def decide(self) -> None:
        """Find one record for each key; to be called between the last log record and the first base row."""
        facts = pa.concat_tables(self._added)
        keys, values, holes = (np.concatenate([part[i] for part in self._parts]) for i in range(3))
        entry, deletes, typed, free = (np.asarray(facts.column(name).to_numpy()) for name in _FLAGS)
        order = facts.select([f"{ORDER}{i}" for i in range(len(self._ordering))])
        binlog = [place for part in self._parts for place in part[3]]
        self._winners = self._decided(_Records(keys, values, holes, entry, deletes, typed, free, order, binlog))
        self._seen = np.zeros(len(self._winners.keys), np.bool_)
        self._added, self._parts = [], []

    def add_base(self, rows: pa.Table) -> None:
        """Add rows of the base file."""
        (values, keys), winners = self._values(rows), self._winners
        self._count(self._joined(values), 1)
        if not len(winners.keys):
            return
        found = pc.index_in(pa.array(keys), pa.array(winners.keys))
        hits, place = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False)), found.drop_null().to_numpy()
        # Of rows with the same key, only the first one is merged.
        first = np.sort(np.unique(place, return_index=True)[1])
        first = first[~self._seen[place[first]]]
        hits, place = hits[first], place[first]
        self._seen[place] = True
        log, base = winners.take(place), rows.take(pa.array(hits))
        wins = self._beats(log, base)
        of_log, of_base, prefers = log.values, values[hits], wins[:, None]
        high, low = np.where(prefers, of_log, of_base), np.where(prefers, of_base, of_log)
        holes = np.where(prefers, log.holes, self._holes(base, None))
        may_fill = np.where(prefers, self._rule.fills_base, self._rule.fills_base_rows) | (len(self._subsets) > 1)
        fills = holes & may_fill & ~log.deletes[:, None]
        if self._newest.any():
            fills = np.where(self._newest, ~prefers & ~log.deletes[:, None], fills)
        self._count(self._joined(of_base), -1)
        self._count(self._joined(np.where(fills, low, high))[~(wins & log.deletes)], 1)

    def finish(self) -> tuple[int, int]:
        """The number of rows and the sum of their hashes modulo 2**64, with the rows that only log records have."""
        alone = ~self._seen & ~self._winners.deletes
        self._count(self._joined(self._winners.values[alone]), 1)
        return self._rows, self._total % _MODULUS

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
            later = [one > other for one, other in zip(log.binlog, _places(base), strict=True)]
            return (log.entry & rule.entries_always_delete) | np.array(later, np.bool_)
        more, less = np.zeros(pairs, np.bool_), np.zeros(pairs, np.bool_)
        nulls = np.zeros(pairs, np.bool_)
        for i, one in enumerate(self._ordering):
            of_base = one.values(self._in_schema(base))
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
        names = list(dict.fromkeys(self._rule.ordering_columns))
        return converted_table(base, base.num_rows, self._target, names, self._schema)

    # ---- hashes

    def _values(self, rows: pa.Table) -> tuple[Hashes, Hashes]:
        """The hashes of rows, or of their columns, and those of their keys."""
        if self._fills:
            return np.stack(column_hashes(rows), axis=1), all_row_hashes(rows.select([KEY]))
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


def _places(rows: pa.Table) -> list[tuple[int, int]]:
    """File and position in MySQL's binary log; [] for tables without such a column."""
    if BINLOG_PLACE not in rows.column_names:
        return []
    texts = rows.column(BINLOG_PLACE).to_pylist()
    return [(-1, -1) if text is None else (int(text.split(".")[0]), int(text.split(".")[1])) for text in texts]
