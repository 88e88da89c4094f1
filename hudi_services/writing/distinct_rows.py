"""One row of each key of a write, by the table's merge rule, as it merges the records of log files.

Rows that do not fit into memory are divided by key among temporary files, and read again a file at a time.
Source: HoodieWriteHelper.deduplicateRecords of Apache Hudi.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base_files.row_selection import take_table, value_codes, with_few_chunks
from ..errors import ConfigError
from ..merging.fold import Flags, NullOrdering
from ..merging.log_records import DELETES, KEY, PARTITION, LogRecords
from ..merging.merged_logs import Merger
from ..merging.ordering import ordering_fields, with_ordering
from ..merging.rules import MergeRule
from ..merging.spill import by_key
from ..rows.memory import TaskMemory
from .kept_rows import NUMBER, KeptRows
from .row_store import Place, RowStore

_SHARE = 8
"""Rows of one part of the memory in so many are looked up at once: they are copied while they are divided."""
_MOST_BYTES = 1 << 30
"""Of the rows that are looked up at once, whatever the memory: joined columns of 2 GiB would not fit into arrays."""
_MOST_PARTS = 256
_HASHES = 1 << 64
"""So many parts are those of single keys."""
_OFFSET_BYTES = 4
_UNEVEN = 1.5
"""A part with so many times the bytes that it should have is divided again."""


class DistinctRows:
    """The rows of `kept`, one of each key; `rule` is the table's, `table_name` is for messages."""

    def __init__(self, kept: KeptRows, rule: MergeRule, memory: TaskMemory, table_name: str) -> None:
        """Raises ConfigError when an ordering field is no column, UnsupportedTable for one that has no order."""
        schema = kept.schema.keyed
        for name in rule.ordering_columns:
            if schema.column(name) is None:
                raise ConfigError(
                    f"neither the rows nor the table {table_name} have its ordering field {name}",
                    hint=f"add the column {name}: it decides between two rows of one key",
                )
        self.schema = schema
        ordering = ordering_fields(rule, schema, table_name)
        self.rule = with_ordering(rule, ordering)
        self._kept = kept
        self._most_bytes = min(memory.limit // _SHARE, _MOST_BYTES)
        self._records = LogRecords(schema, "", self.rule, ordering)
        self.merger = Merger(schema, self.rule.of_rows, ordering, self._records.subsets)

    def check(self) -> None:
        """Raise ConfigError when two rows of one key cannot be compared; for use before anything is written."""
        nulls = self._kept.null_columns.intersection(self.rule.ordering_columns)
        if nulls and not self._kept.keys_only:
            for _ in self.parts(self._kept.partitions):
                pass

    def parts(self, partitions: Sequence[str]) -> Iterator[tuple[pa.Table, Flags]]:
        """The records of partitions in which keys are unique, and which of them delete, some keys at a time.

        They have the columns of `LogRecords` that are no meta columns, the record key and the partition path.
        """
        return map(self._one_of_each, self._divided(partitions))

    def _divided(self, partitions: Sequence[str]) -> Iterator[pa.Table]:
        """The rows with their partition paths; all rows of one key are in one table."""
        kept = self._kept.here
        tables = (_with_path(rows, name) for name in partitions for rows in kept.read(Place(name)))
        if partitions:
            yield from self._parts(tables, sum(_size_with_path(kept, name) for name in partitions))

    def _parts(self, tables: Iterable[pa.Table], size: int, before: int = 1) -> Iterator[pa.Table]:
        """The rows of some tables, of `size` bytes, in parts by key; they are one of `before` such parts."""
        count = min(_MOST_PARTS, -(-size // self._most_bytes))
        if count <= 1:
            yield pa.concat_tables(tables)
            return
        parts, before = by_key(tables, count, before), before * count
        try:
            for number, spill in enumerate(parts.spills):
                is_large = spill.size > self._most_bytes * _UNEVEN and before < _HASHES
                if is_large and parts.has_several_keys(number):
                    yield from self._parts(spill.tables(), spill.size, before)
                elif spill.rows:
                    part = spill.read()
                    spill.close()
                    yield part
                spill.close()
        finally:
            parts.close()

    def _one_of_each(self, rows: pa.Table) -> tuple[pa.Table, Flags]:
        """One record of each key, in the order of the rows, and which of them delete."""
        rows = with_few_chunks(rows)
        if self._kept.keys_only:
            positions = np.unique(value_codes(rows.column(KEY)), return_index=True)[1]
            return take_table(rows, np.sort(positions)), np.ones(positions.size, np.bool_)
        if self._kept.numbered:
            rows = _by_number(rows)
        else:
            rows = rows.append_column(NUMBER, pa.array(np.arange(rows.num_rows)))
        records = self._records.of_rows(rows)
        if pc.count_distinct(rows.column(KEY)).as_py() < rows.num_rows:
            with self.null_orderings():
                records = _by_number(self.merger.folded(records))
        return records, np.asarray(records.column(DELETES).to_numpy())

    @contextmanager
    def null_orderings(self) -> Iterator[None]:
        """Say what to do about a null that would have to be compared with a value."""
        try:
            yield
        except NullOrdering:
            raise ConfigError(
                "rows of one record key have a null and a value in the ordering field "
                f"{', '.join(self.rule.ordering)}, which Hudi cannot compare",
                hint="give every row a value",
            ) from None


def _size_with_path(kept: RowStore, partition: str) -> int:
    place = Place(partition)
    return kept.sizes[place] + kept.counts[place] * (len(partition.encode()) + _OFFSET_BYTES)


def _by_number(rows: pa.Table) -> pa.Table:
    return take_table(rows, np.argsort(rows.column(NUMBER).to_numpy(), kind="stable"))


def _with_path(rows: pa.Table, partition: str) -> pa.Table:
    return rows.append_column(PARTITION, pa.chunked_array([pa.repeat(partition, rows.num_rows)], pa.string()))
