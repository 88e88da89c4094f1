"""Finds rows for log files that nobody could merge with the rows of their keys: one has a null ordering value.

Hudi's readers fail on such a slice, so that the rows must not be appended. Log files are looked at only where a row
that is given has a null.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UnsupportedTable
from ..files.parquet_schema import FileSchema
from ..files.slices import BaseFileSlices, SliceFacts, SliceReader, SliceSource
from ..merging.fold import Flags, NullOrdering
from ..merging.log_records import KEY, LogRecords
from ..merging.merged_logs import Merger
from ..merging.ordering import OrderingField
from ..merging.rules import MergeRule
from ..model import FileSlice
from ..storage import Storage


@dataclass
class ComparableRows:
    """The rows of one slice, whose columns are those of `schema`, beside rows that are appended to it."""

    storage: Storage
    source: SliceSource
    slice: FileSlice
    schema: FileSchema
    rule: MergeRule
    ordering: tuple[OrderingField, ...]
    _records: LogRecords = field(init=False)
    _merger: Merger = field(init=False)

    def __post_init__(self) -> None:
        self._records = LogRecords(self.schema, "", self.rule, self.ordering)
        self._merger = Merger(self.schema, self.rule, self.ordering, self._records.subsets)

    def check(self, rows: pa.Table) -> None:
        """Raise UnsupportedTable when one of the rows cannot be compared with the row of its key in the slice."""
        if not self._merger.deciding_columns or rows.column_names == [KEY]:
            return
        is_null = _has_null(rows, self.rule.ordering_columns)
        suspect = is_null
        if self._keys_with_nulls is not None:
            suspect = is_null | pc.is_in(rows.column(KEY), self._keys_with_nulls).to_numpy(zero_copy_only=False)
        # Readers merge the base file with what the log files come to.
        if self._base is not None and suspect.any():
            self._compare(rows.filter(pa.array(suspect)), BaseFileSlices(self.storage).open(self._base))
        if self.slice.log_files and is_null.any():
            self._compare(rows.filter(pa.array(is_null)), self.source.open(self.slice))

    @property
    def _base(self) -> FileSlice | None:
        """The base file alone."""
        return replace(self.slice, log_files=()) if self.slice.base_file is not None else None

    @cached_property
    def _keys_with_nulls(self) -> pa.Array | None:
        """The keys of the rows of the base file that have a null; None for none."""
        source = BaseFileSlices(self.storage)
        if self._base is None or not source.facts(self._base, self._may_have_nulls):
            return None
        reader, found = source.open(self._base), list[pa.Array]()
        for _, rows in reader.tables([KEY, *self.rule.ordering_columns], self.schema):
            found += rows.column(KEY).filter(pa.array(_has_null(rows, self.rule.ordering_columns))).chunks
        reader.release()
        return pa.concat_arrays(found) if found else None

    def _may_have_nulls(self, facts: SliceFacts) -> bool:
        nulls = {one.column: one.null_count for one in facts.columns}
        return any(nulls.get(name) != 0 for name in self.rule.ordering_columns)

    def _compare(self, rows: pa.Table, reader: SliceReader) -> None:
        given = self._records.of_rows(rows)
        keys = given.column(KEY).combine_chunks()
        for _, there in reader.tables([KEY, *self._merger.deciding_columns], self.schema):
            found = pc.index_in(there.column(KEY), value_set=keys)
            at = np.flatnonzero(pc.is_valid(found).to_numpy())
            pairs = pa.array(np.asarray(found.drop_null().to_numpy()).astype(np.int64))
            try:
                self._merger.wins(given.take(pairs), there.take(pa.array(at)))
            except NullOrdering:
                fields = ", ".join(self.rule.ordering)
                raise UnsupportedTable(
                    f"{self.storage.root}: a null in the ordering field {fields} would have to be compared with a "
                    f"value: of a row in the file group {self.slice.file_id} of the partition "
                    f"{self.slice.partition!r}, or of the row of its key that is to be written",
                    hint="nothing was committed; give every row a value. Rows without one can be deleted, and written "
                    "again after a compaction",
                ) from None
        reader.release()


def _has_null(rows: pa.Table, names: Sequence[str]) -> Flags:
    """Whether a row has a null in one of the columns."""
    found = np.zeros(rows.num_rows, np.bool_)
    for name in names:
        found |= pc.is_null(rows.column(name)).to_numpy()
    return found
