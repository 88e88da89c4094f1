"""The merge itself: pure decisions about records that are given as columns; no files, no table.

`fold` merges the log records of each key, oldest first; `log_wins` and `filled` merge its result and the row of the
base file. None moves a value: they say, for each key and column, which record the value is taken from. The two levels
are not the same as one fold over all records: see `rules`.

Source: see `rules`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .rules import Final, MergeRule

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """What decides between records: one value for each record in each array."""

    ordering: tuple[Numbers, ...]
    """For each ordering field, numbers that compare as its values do."""
    nulls: Flags
    """A data record has a null in an ordering field whose nulls Hudi cannot compare with values."""
    unordered: Flags
    """The record has no ordering value: a null, or Java's Integer 0, the default of deletes."""
    deletes: Flags
    """The record deletes its key."""
    entries: Flags
    """The record is an entry of a delete block."""
    comparable: Flags
    """The ordering value has the type of the ordering field, as the owner of the table version compares types."""
    binlog: Numbers | None = None
    """The place of a record in MySQL's binary log, in order; -1 for none. Only for `Final.LATER_IN_BINLOG`."""
    holes: Mapping[str, Flags] = field(default_factory=dict)
    """The records whose value of a column is replaced by the other record's value; no other column has such values."""
    newest: Sequence[str] = ()
    """Columns whose values are always those of the newer record."""

    def greater(self, ones: Sequence[Numbers], others: Sequence[Numbers]) -> Flags:
        """Whether ordering values are greater than others, pair by pair; the records are given for each field."""
        greater = np.zeros(ones[0].size, np.bool_)
        equal = np.ones(ones[0].size, np.bool_)
        for values, one, other in zip(self.ordering, ones, others, strict=True):
            left, right = values[one], values[other]
            greater |= equal & (left > right)
            equal &= left == right
        return greater


@dataclass(slots=True)
class Merged:
    """The result for each key: the preferred record, and the record of each column that may have holes."""

    record: Numbers
    columns: dict[str, Numbers]

    def of(self, columns: Sequence[str]) -> list[Numbers]:
        """For each of the columns, the records that its values are taken from."""
        return [self.columns.get(column, self.record) for column in columns]

    def first(self, count: int) -> "Merged":
        """The first keys; changes of the result change this value."""
        return Merged(self.record[:count], {name: records[:count] for name, records in self.columns.items()})


class NullOrdering(Exception):
    """A null ordering value must be compared with a value, which fails in Hudi."""


def fold(rule: MergeRule, facts: RecordFacts, groups: Sequence[Numbers]) -> Merged:
    """Merge the log records of each key. `groups[n]` has the n-th oldest record of each key with more than n records.

    The keys are ordered by their number of records: those of `groups[n + 1]` are the first keys of `groups[n]`.
    Raises NullOrdering.
    """
    merged = Merged(groups[0].copy(), {name: groups[0].copy() for name in (*facts.holes, *facts.newest)})
    for newer in groups[1:]:
        older = merged.first(newer.size)
        wins = _newer_wins(rule, facts, older, newer)
        fills = ~(facts.deletes[older.record] | facts.deletes[newer])
        for name, before in older.columns.items():
            high, low = np.where(wins, newer, before), np.where(wins, before, newer)
            takes_low = ~wins if name in facts.newest else facts.holes[name][high]
            before[:] = np.where(takes_low & fills, low, high)
        older.record[:] = np.where(wins, newer, older.record)
    return merged


def _newer_wins(rule: MergeRule, facts: RecordFacts, merged: Merged, newer: Numbers) -> Flags:
    if not rule.ordering:
        return np.ones(newer.size, np.bool_)
    older = merged.record
    left, right = merged.of(rule.ordering_columns), [newer] * len(rule.ordering)
    less = facts.greater(left, right)
    yields = facts.deletes[older] & facts.unordered[older]
    typed = facts.comparable[older] & facts.comparable[newer]
    of_entry = ~(yields | (~facts.unordered[newer] & typed & less))
    certain = facts.deletes[newer] & (facts.nulls if rule.zero_orders else facts.unordered)[newer]
    if rule.deletes_are_forgotten:
        certain |= facts.deletes[older]
    if rule.unordered_deletes_yield:
        certain |= yields
    _check_nulls(facts, older, newer, ~certain & ~facts.entries[newer])
    of_row = certain | (facts.greater(right, left) if rule.ties_to_older else ~less)
    return np.where(facts.entries[newer], of_entry, of_row)


def log_wins(rule: MergeRule, facts: RecordFacts, base: Numbers, log: Merged) -> Flags:
    """The final merge: whether the result of `fold` is preferred to the base row of the same key, pair by pair.

    `facts` are those of the log records and of the base rows; `base` has the numbers of the base rows. A base row is
    deleted when the preferred record deletes. Raises NullOrdering.
    """
    record = log.record
    certain = facts.entries[record] & rule.entries_always_delete
    if rule.final is Final.ALWAYS or not rule.ordering:
        return np.ones(record.size, np.bool_)
    if rule.final is Final.LATER_IN_BINLOG:
        assert facts.binlog is not None
        return certain | (facts.binlog[record] > facts.binlog[base])
    certain |= facts.deletes[record] & facts.unordered[record]
    if rule.null_is_least:
        certain |= facts.nulls[base]
    _check_nulls(facts, base, record, ~certain)
    left, right = [base] * len(rule.ordering), log.of(rule.ordering_columns)
    return certain | (facts.greater(right, left) if rule.final is Final.GREATER else ~facts.greater(left, right))


def filled(holes: Flags, base: Numbers, log: Numbers, wins: Flags) -> Numbers:
    """The final merge of one column with holes: the records of its values, pair by pair; no pair deletes its row.

    `holes` says of each log record and base row whether the other one's value replaces its own.
    """
    high, low = np.where(wins, log, base), np.where(wins, base, log)
    return np.where(holes[high], low, high)


def _check_nulls(facts: RecordFacts, numbers: Numbers, other: Numbers, compared: Flags) -> None:
    if (compared & (facts.nulls[numbers] != facts.nulls[other])).any():
        raise NullOrdering
