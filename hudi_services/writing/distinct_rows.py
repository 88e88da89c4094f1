"""One row of each key of a write, by the table's merge rule, as it merges the records of log files.

Rows that do not fit into memory are divided by key among temporary files, and read again a file at a time.
Source: HoodieWriteHelper.deduplicateRecords of Apache Hudi.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigError
from ..merging.fold import Flags, NullOrdering
from ..merging.log_records import DELETES, KEY, PARTITION, LogRecords
from ..merging.merged_logs import Merger
from ..merging.ordering import ordering_fields, with_ordering
from ..merging.rules import MergeRule
from ..merging.spill import by_key
from ..rows.memory import TaskMemory
from .kept_rows import NUMBER, KeptRows
from .row_store import Place

_SHARE = 8
"""Rows of one part of the memory in so many are looked up at once: they are copied while they are divided."""
_MOST_PARTS = 256


class DistinctRows:
    """The rows of `kept`, one of each key; `rule` is the table's, `table_name` is for messages."""

    def __init__(self, kept: KeptRows, rule: MergeRule, memory: TaskMemory, table_name: str) -> None:
        """Raises ConfigError when an ordering field is no column, UnsupportedTable for one that has no order."""
        schema = kept.schema.target
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
        self._most_bytes = memory.limit // _SHARE
        self._records = LogRecords(schema, "", self.rule, ordering)
        self.merger = Merger(schema, self.rule, ordering, self._records.subsets)

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
        count = min(_MOST_PARTS, -(-sum(kept.sizes[Place(name)] for name in partitions) // self._most_bytes))
        tables = (_with_path(rows, name) for name in partitions for rows in kept.read(Place(name)))
        if not partitions:
            return
        if count <= 1:
            yield pa.concat_tables(tables)
            return
        parts = by_key(tables, count)
        try:
            for spill in parts.spills:
                part = spill.read()
                spill.close()
                if part.num_rows:
                    yield part
        finally:
            parts.close()

    def _one_of_each(self, rows: pa.Table) -> tuple[pa.Table, Flags]:
        """One record of each key, in the order of the rows, and which of them delete."""
        if self._kept.keys_only:
            positions = np.unique(rows.column(KEY).combine_chunks().dictionary_encode().indices, return_index=True)[1]
            return rows.take(pa.array(np.sort(positions))), np.ones(positions.size, np.bool_)
        if self._kept.numbered:
            rows = rows.sort_by(NUMBER)
        else:
            rows = rows.append_column(NUMBER, pa.array(np.arange(rows.num_rows)))
        records = self._records.of_rows(rows)
        if pc.count_distinct(rows.column(KEY)).as_py() < rows.num_rows:
            with self.null_orderings():
                records = self.merger.folded(records).sort_by(NUMBER)
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


def _with_path(rows: pa.Table, partition: str) -> pa.Table:
    return rows.append_column(PARTITION, pa.chunked_array([pa.repeat(partition, rows.num_rows)], pa.string()))
