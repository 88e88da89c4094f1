"""What statistics say of columns in file slices, and which slices a predicate reads by them.

The ranges are those of the metadata table, as readers with data skipping take them. Of a column, or a file, without
statistics there, the footer tells the range; readers of Hudi then read the file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..base_files.slices import SliceFacts, describe
from ..errors import UnsupportedTable
from ..metadata.records.keys import COLUMN_STATS
from ..metadata.records.model import StatsRecord
from ..metadata.statistics.partition_ranges import live_records
from ..model import FileSlice
from ..schema.column_type import ColumnType
from ..snapshot import Snapshot
from ..writing.path_columns import path_columns
from .column_values import (
    UNKNOWN_RANGE,
    FileRange,
    literal_value,
    range_of_footer,
    range_of_record,
)
from .predicates import Chances, Exists, Predicate, Test, chances


@dataclass(frozen=True, slots=True)
class RangedSlice:
    """A file slice and the ranges of some columns in it."""

    slice: FileSlice
    ranges: Mapping[str, FileRange]

    def of(self, column: str) -> FileRange:
        return self.ranges.get(column, UNKNOWN_RANGE)


@dataclass
class SliceRanges:
    """Reads the ranges of `columns` in file slices; `from_footers` counts the ranges that no statistics told."""

    table: Snapshot
    columns: Mapping[str, ColumnType]
    from_footers: dict[str, int] = field(default_factory=dict)

    def read(self, slices: Sequence[FileSlice]) -> list[RangedSlice]:
        """The slices with their ranges, in order. Raises CorruptFile and StorageError."""
        records = self._records(slices)
        told = [self._told(one, records) for one in slices]
        missing = [one for one, ranges in zip(slices, told, strict=True) if _may_tell(one, ranges, self.columns)]
        footers = dict(describe(self.table.slices, missing, self._footer)) if missing else {}
        found = []
        for one, ranges in zip(slices, told, strict=True):
            for column, footer in footers.get((one.partition, one.file_id, one.base_instant), {}).items():
                if column not in ranges:
                    ranges[column] = footer
                    self.from_footers[column] = self.from_footers.get(column, 0) + 1
            found.append(RangedSlice(one, ranges))
        return found

    def _records(self, slices: Sequence[FileSlice]) -> Mapping[tuple[str, str], Mapping[str, StatsRecord]]:
        """The records of the column statistics by data partition and column, each by file name."""
        metadata = self.table.metadata
        if metadata is None or COLUMN_STATS not in self.table.config.metadata_partitions:
            return {}
        names: dict[str, list[str]] = {}
        for one in slices:
            names.setdefault(one.partition, []).extend(file.name for file in one.files)
        found = live_records(metadata.reader(COLUMN_STATS), dict.fromkeys(names, self.columns), names)
        return {key: {record.file_name: record for record in records} for key, records in found.items()}

    def _told(
        self, file_slice: FileSlice, records: Mapping[tuple[str, str], Mapping[str, StatsRecord]]
    ) -> dict[str, FileRange]:
        """The ranges that need no footer: of the partition path, of statistics, and of what has changed its name."""
        found = self._of_path(file_slice.partition)
        history = self.table.history.value
        altered = frozenset() if history is None else history.altered_since([file_slice.base_instant])
        for column, kind in self.columns.items():
            if column in found:
                continue
            known = records.get((file_slice.partition, column), {})
            of_files = [known.get(file.name) for file in file_slice.files]
            if column in altered:
                # Statistics have the names that columns had when the files were written.
                found[column] = UNKNOWN_RANGE
            elif None not in of_files:
                found[column] = union(range_of_record(record, kind) for record in of_files if record is not None)
        return found

    def _of_path(self, partition: str) -> dict[str, FileRange]:
        """The columns that only the partition path has."""
        try:
            texts = path_columns(self.table.config, partition)
        except UnsupportedTable:
            return {}
        found = {}
        for column, text in texts:
            if column in self.columns:
                try:
                    value = None if text is None else literal_value(self.columns[column], text)
                    found[column] = FileRange(value, value, has_nulls=text is None)
                except ValueError:
                    found[column] = UNKNOWN_RANGE
        return found

    def _footer(self, file_slice: FileSlice, facts: SliceFacts) -> tuple[tuple[str, str, str], Mapping[str, FileRange]]:
        columns = {one.column: one for one in facts.columns}
        ranges = {name: range_of_footer(columns[name]) for name in self.columns if name in columns}
        return (file_slice.partition, file_slice.file_id, file_slice.base_instant), ranges


def _may_tell(file_slice: FileSlice, ranges: Mapping[str, FileRange], columns: Iterable[str]) -> bool:
    """Whether the footer of a slice tells more; of a slice with log files it does not tell all."""
    return not file_slice.log_files and any(column not in ranges for column in columns)


def union(ranges: Iterable[FileRange]) -> FileRange:
    """The range over several files, or groups."""
    given = list(ranges)
    if not given or not all(one.is_known for one in given):
        return UNKNOWN_RANGE
    has_nulls = any(one.has_nulls for one in given)
    told = [one for one in given if one.low is not None]
    if not told:
        return FileRange(has_nulls=has_nulls)
    try:
        return FileRange(min(one.low for one in told), max(one.high for one in told), has_nulls)
    except TypeError:
        return UNKNOWN_RANGE


def may_have(known: FileRange, atom: Exists) -> bool:
    """Whether a file with this range of the column of an atom may have a row that passes its test."""
    if not known.is_known:
        return True
    if atom.test is Test.NULL:
        return known.has_nulls
    if known.low is None or atom.test is Test.VALUE:
        return known.low is not None
    low, high, value = known.low, known.high, atom.value
    try:
        if atom.test is Test.BELOW:
            return bool(low < value)
        if atom.test is Test.UP_TO:
            return bool(low <= value)
        if atom.test is Test.FROM:
            return bool(high >= value)
        if atom.test is Test.ABOVE:
            return bool(high > value)
        return not (low == value and high == value)
    except TypeError:
        # The column had another type when the file was written.
        return True


def chances_by_ranges(predicate: Predicate, slices: Sequence[RangedSlice]) -> Chances:
    """Which of the slices a predicate reads: 1 for those that it reads, 0 for those that it skips."""

    def of_atom(atom: Exists) -> Chances:
        return np.array([may_have(one.of(atom.column), atom) for one in slices], np.float64)

    return chances(predicate.condition, of_atom, len(slices))
