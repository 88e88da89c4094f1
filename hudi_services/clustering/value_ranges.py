"""The range of values of file slices in a column: from the column statistics index, else from footers."""

import numbers
from collections.abc import Sequence

from ..base_files.slices import SliceFacts, describe
from ..errors import ConfigError
from ..metadata.records.keys import COLUMN_STATS, column_stats_prefix
from ..metadata.records.model import StatsRecord
from ..metadata.statistics.values import number
from ..model import FileSlice
from ..parquet.chunk_stats import ColumnStats
from ..snapshot import Snapshot
from .strategies import Range


class ValueRanges:
    """The ranges in one snapshot of a table. What is read is kept in memory for the latest partition only."""

    def __init__(self, table: Snapshot) -> None:
        self._table = table
        metadata, indexed = table.metadata, COLUMN_STATS in table.config.metadata_partitions
        self._index = metadata.reader(COLUMN_STATS) if metadata is not None and indexed else None
        self._records_of: tuple[str, dict[str, StatsRecord]] = "", {}
        """The records of the index by file name, with the prefix of their keys."""
        self._partition: str | None = None
        self._footers: dict[str, tuple[ColumnStats, ...]] = {}
        """The column statistics from the footers, by file id."""

    def __call__(self, slices: Sequence[FileSlice], column: str) -> list[Range]:
        """The range of each of the slices of one partition.

        Raises ConfigError for a column whose values do not compare, CorruptFile, NotFound and StorageError.
        """
        if not slices:
            return []
        found = self._find(slices, column)
        history = self._table.history.value
        if history is not None:
            # Statistics have the names that columns had when the files were written.
            altered = [column.partition(".")[0] in history.altered_since([one.base_instant]) for one in slices]
            found = [None if is_other else one for one, is_other in zip(found, altered, strict=True)]
        kinds = {_kind(value) for one in found if one is not None for value in one}
        if len(kinds) > 1:
            raise ConfigError(f"the column {column} has values of several types in partition {slices[0].partition!r}")
        return found

    def are_indexed(self, slices: Sequence[FileSlice], column: str) -> bool:
        """Whether the index tells the ranges of all these slices of one partition: then no footer is read."""
        return not slices or self._records(slices, column) is not None

    def _find(self, slices: Sequence[FileSlice], column: str) -> list[Range]:
        records = self._records(slices, column)
        if records is not None:
            return [_of_record(record) for record in records]
        # All ranges from one source: index and footers do not always agree on a value.
        self._read_footers(slices)
        return [_of_footer(self._footers[one.file_id], column) for one in slices]

    def _records(self, slices: Sequence[FileSlice], column: str) -> list[StatsRecord] | None:
        """The records of the index, where it has those of all slices, and no slice has log files."""
        indexed = self._indexed(slices[0].partition, column)
        records = [[indexed.get(file.name) for file in one.files] for one in slices]
        known = [of_slice[0] for of_slice in records if len(of_slice) == 1 and of_slice[0] is not None]
        return known if len(known) == len(slices) else None

    def _indexed(self, partition: str, column: str) -> dict[str, StatsRecord]:
        if self._index is None:
            return {}
        prefix = column_stats_prefix(column, partition)
        if self._records_of[0] != prefix:
            found = self._index.scan(prefix)
            told = {one.file_name: one for one in found if isinstance(one, StatsRecord) and not one.deleted}
            self._records_of = prefix, told
        return self._records_of[1]

    def _read_footers(self, slices: Sequence[FileSlice]) -> None:
        if self._partition != slices[0].partition:
            self._partition, self._footers = slices[0].partition, {}
        missing = [one for one in slices if one.file_id not in self._footers]
        self._footers.update(describe(self._table.slices, missing, _columns))


def _columns(file_slice: FileSlice, facts: SliceFacts) -> tuple[str, tuple[ColumnStats, ...]]:
    return file_slice.file_id, facts.columns


def _of_record(record: StatsRecord) -> Range:
    if record.minimum is None or record.maximum is None:
        return None
    return number(record.minimum, record.bound), number(record.maximum, record.bound)


def _of_footer(columns: Sequence[ColumnStats], column: str) -> Range:
    stats = next((one for one in columns if one.column == column), None)
    return None if stats is None or stats.min is None else (stats.min, stats.max)


def _kind(value: object) -> type:
    return numbers.Number if isinstance(value, numbers.Number) else type(value)
