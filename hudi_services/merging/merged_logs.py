"""The two levels of a merge on Arrow tables, without files: records of one key become one, then one with the base row.

`folded` takes records as `log_records` describes them, oldest first, and returns records of the same form, one for each
key, so that its result can be folded again with newer records.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.row_selection import take_rows, take_table, value_codes, with_few_chunks
from ..parquet.file_schema import FileSchema
from .fold import Flags, Merged, Numbers, RecordFacts, filled, fold, log_wins
from .log_records import COMPARABLE, DELETES, ENTRY, KEY, ORDER, SUBSET, UNORDERED
from .ordering import OrderingField, numbers
from .rules import BINLOG_PLACE, META_COLUMNS, Fill, Final, MergeRule


class Merger:
    """Merges tables whose data columns are those of `schema` (raw form); `subsets` are those of `LogRecords`."""

    def __init__(
        self,
        schema: FileSchema,
        rule: MergeRule,
        ordering: Sequence[OrderingField],
        subsets: list[frozenset[str]],
    ) -> None:
        self._schema = schema
        self._rule = rule
        self._ordering = ordering
        self._subsets = subsets
        self._newest = [c for c in schema.columns if c.startswith(META_COLUMNS)] if rule.newest_meta_columns else []

    def folded(self, table: pa.Table) -> pa.Table:
        """One record for each key, in no defined order. Raises NullOrdering."""
        groups = _by_key(table.column(KEY))
        if len(groups) < 2:
            return with_few_chunks(table)
        lacking = self._lacking(table)
        holes = self._holes(table, lacking, self._rule.fills_logs)
        merged = fold(self._rule, self._facts(table, holes), groups)
        sources = {f"{ORDER}{i}": name for i, name in enumerate(self._rule.ordering_columns)}
        columns = []
        for name in table.column_names:
            (records,) = merged.of([sources.get(name, name)])
            columns.append(take_rows(table.column(name), pa.array(records)))
        if lacking:
            columns[table.column_names.index(SUBSET)] = pa.chunked_array([self._subsets_of(merged, lacking)])
        return pa.table(columns, schema=table.schema)

    @property
    def deciding_columns(self) -> list[str]:
        """The columns of a base row that decide whether a log record is preferred."""
        if self._rule.final is Final.ALWAYS or not self._rule.ordering:
            return []
        binlog = [BINLOG_PLACE] if self._rule.final is Final.LATER_IN_BINLOG else []
        return list(dict.fromkeys((*self._rule.ordering_columns, *binlog)))

    @property
    def is_partial(self) -> bool:
        """Whether some records have only some of the columns."""
        return len(self._subsets) > 1

    @property
    def merges_each(self) -> bool:
        """Whether all base rows of one key are merged, and not only the first one."""
        return self._rule.each_base_row

    @property
    def losers_matter(self) -> bool:
        """Whether a log record may change a base row that is preferred to it."""
        return self._rule.fills_base_rows or bool(self._newest) or self.is_partial

    @property
    def deciding_facts(self) -> list[str]:
        """The columns of a folded record that decide whether it is preferred to a base row."""
        order = [f"{ORDER}{i}" for i in range(len(self._ordering))]
        return [ENTRY, DELETES, UNORDERED, *order, *([BINLOG_PLACE] if BINLOG_PLACE in self.deciding_columns else [])]

    def wins(self, log: pa.Table, base: pa.Table) -> Flags:
        """Whether folded records are preferred to base rows, pair by pair. Raises NullOrdering.

        `log` has at least the `deciding_facts`, `base` the `deciding_columns`.
        """
        pairs = log.num_rows
        if not self.deciding_columns:
            return np.ones(pairs, np.bool_)
        order, nulls = [], np.zeros(2 * pairs, np.bool_)
        for i, values in enumerate(one.values(base) for one in self._ordering):
            both = pa.chunked_array([*log.column(f"{ORDER}{i}").chunks, *values.chunks], type=values.type)
            if self._ordering[i].is_int:
                both = pc.fill_null(both, 0)
            order.append(numbers(both))
            nulls |= pc.is_null(both).to_numpy()
        unordered = np.concatenate((_flags(log, UNORDERED), np.zeros(pairs, np.bool_)))
        entries = np.concatenate((_flags(log, ENTRY), np.zeros(pairs, np.bool_)))
        deletes = np.concatenate((_flags(log, DELETES), np.zeros(pairs, np.bool_)))
        nulls[:pairs] &= ~(entries & unordered)[:pairs]
        binlog = None
        if self._rule.final is Final.LATER_IN_BINLOG:
            binlog = np.concatenate((_binlog(log), _binlog(base)))
        facts = RecordFacts(tuple(order), nulls, unordered, deletes, entries, np.ones(2 * pairs, np.bool_), binlog)
        return log_wins(self._rule, facts, np.arange(pairs, 2 * pairs), Merged(np.arange(pairs), {}))

    def rows(self, base: pa.Table, at: Numbers, log: pa.Table, wins: Flags) -> pa.Table:
        """The rows of a table after the final merge, in its order and with its columns, without the deleted ones.

        Columns that are dictionaries stay so; none of the `deciding_columns` is one, nor is one that is filled.

        `at` are the row numbers of the pairs, ascending; `log` has the folded record of each pair, `wins` whether it is
        preferred.
        """
        deletes = _flags(log, DELETES) & wins
        kept = np.ones(base.num_rows, np.bool_)
        kept[at[deletes]] = False
        rows = np.flatnonzero(kept)
        lives = ~_flags(log, DELETES)
        holes = self._final_holes(base, at, log)
        pairs = np.arange(log.num_rows)
        columns = []
        for name in base.column_names:
            source = np.arange(base.num_rows)
            found = np.where(wins, base.num_rows + pairs, at)
            if name in self._newest:
                found = np.where(lives, base.num_rows + pairs, at)
            elif name in holes:
                changed = filled(holes[name], log.num_rows + pairs, pairs, wins)
                found = np.where(lives, np.where(changed < log.num_rows, base.num_rows + pairs, at), found)
            source[at] = found
            columns.append(_chosen(base.column(name), log.column(name), source[rows]))
        return pa.table(columns, schema=base.schema)

    def lacks_columns(self, log: pa.Table) -> bool:
        """Whether a record that would be a row by itself has only some of the columns."""
        return bool((~_flags(log, DELETES) & (log.column(SUBSET).to_numpy() > 0)).any())

    def _facts(self, table: pa.Table, holes: Mapping[str, Flags]) -> RecordFacts:
        order = [table.column(f"{ORDER}{i}") for i in range(len(self._ordering))]
        entries, unordered = _flags(table, ENTRY), _flags(table, UNORDERED)
        nulls = np.zeros(table.num_rows, np.bool_)
        for values in order:
            nulls |= pc.is_null(values).to_numpy()
        return RecordFacts(
            tuple(numbers(values) for values in order),
            nulls & ~(entries & unordered),
            unordered,
            _flags(table, DELETES),
            entries,
            _flags(table, COMPARABLE),
            holes={name: found for name, found in holes.items() if name not in self._newest},
            newest=self._newest,
        )

    def _final_holes(self, base: pa.Table, at: Numbers, log: pa.Table) -> dict[str, Flags]:
        """For each column that is filled: the holes of the log records, and then those of their base rows."""
        of_log = self._holes(log.select([*base.column_names, SUBSET]), self._lacking(log), self._rule.fills_base)
        of_base = self._holes(take_table(base, at), {}, True) if self._rule.fills_base_rows else {}
        none = np.zeros(log.num_rows, np.bool_)
        names = dict.fromkeys((*of_log, *of_base))
        return {name: np.concatenate((of_log.get(name, none), of_base.get(name, none))) for name in names}

    def _lacking(self, table: pa.Table) -> dict[str, Flags]:
        """The columns of partial updates: which records lack them."""
        names = sorted(frozenset().union(*self._subsets))
        numbers_of = table.column(SUBSET).to_numpy()
        return {name: np.array([name in lacking for lacking in self._subsets])[numbers_of] for name in names}

    def _holes(self, table: pa.Table, lacking: Mapping[str, Flags], fills: bool) -> dict[str, Flags]:
        found = dict(lacking)
        if fills and self._rule.fill is not Fill.NOTHING:
            for name in self._schema.columns:
                if name not in table.column_names:
                    continue
                holes = self._unset(table.column(name))
                if holes.any():
                    found[name] = found[name] | holes if name in found else holes
        return found

    def _unset(self, values: pa.ChunkedArray) -> Flags:
        if self._rule.fill is Fill.NULLS:
            return np.asarray(pc.is_null(values).to_numpy())
        if not _is_text(values.type):
            return np.zeros(len(values), np.bool_)
        equal = pc.equal(values, pa.scalar(self._rule.placeholder).cast(values.type))
        return np.asarray(pc.fill_null(equal, False).to_numpy())

    def _subsets_of(self, merged: Merged, lacking: Mapping[str, Flags]) -> npt.NDArray[np.int16]:
        """The numbers of the sets of columns that the merged records lack."""
        names = list(lacking)
        bits = np.stack([lacking[name][merged.of([name])[0]] for name in names], axis=1)
        rows, numbers_of = np.unique(bits, axis=0, return_inverse=True)
        known = []
        for row in rows:
            lacks = frozenset(name for name, is_lacking in zip(names, row, strict=True) if is_lacking)
            if lacks not in self._subsets:
                self._subsets.append(lacks)
            known.append(self._subsets.index(lacks))
        return np.array(known, np.int16)[numbers_of.reshape(-1)]


def _by_key(keys: pa.ChunkedArray) -> list[Numbers]:
    """For `fold`: the oldest record of each key, the second oldest of each key that has one, and so on."""
    codes = value_codes(keys)
    if not codes.size:
        return []
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    by_count = np.argsort(-counts, kind="stable")
    starts, counts = starts[by_count], counts[by_count]
    ends = np.searchsorted(-counts, -np.arange(counts[0]), "left")
    return [order[starts[:end] + number] for number, end in enumerate(ends.tolist())]


def with_dictionaries(table: pa.Table, names: Collection[str]) -> pa.Table:
    """`table` with the columns `names` as dictionaries."""
    for i, name in enumerate(table.column_names):
        if name in names:
            table = table.set_column(i, name, table.column(i).dictionary_encode())
    return table


def _chosen(base: pa.ChunkedArray, log: pa.ChunkedArray, rows: Numbers) -> pa.ChunkedArray:
    if pa.types.is_dictionary(base.type):
        log = log.dictionary_encode()
    both = pa.chunked_array([*base.chunks, *log.chunks], type=base.type).unify_dictionaries()
    return take_rows(both, pa.array(rows))


def _flags(table: pa.Table, name: str) -> Flags:
    return np.asarray(table.column(name).to_numpy())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _binlog(table: pa.Table) -> Numbers:
    """The file number and the position in `_event_seq`, as one number; -1 for a null."""
    parts = pc.extract_regex(table.column(BINLOG_PLACE), r"^(?P<file>[0-9]+)\.(?P<place>[0-9]+)$")
    file, place = (pc.struct_field(parts, name).cast(pa.int64()) for name in ("file", "place"))
    found = pc.add(pc.shift_left(file, 40), place)
    return np.asarray(pc.fill_null(found, -1).to_numpy())
