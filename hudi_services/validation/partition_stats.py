"""The check of the partition `partition_stats`: a data partition's range must hold the ranges of its live files.

It may be wider. Hudi skips whole data partitions by the ranges. The counts are compared as far as another reader may
skip by them: in filters for nulls, or for values that are not null.

Hudi computes the ranges of byte arrays by signed bytes. These ranges are too narrow for readers, which compare unsigned
bytes: 1.0.2 misses rows because of them. No release reads the ranges of byte arrays in typed statistics (index version
V2) yet: filters on byte arrays fail with 1.2.0 (ClassCastException). There either order is right.
"""

from collections.abc import Iterator, Sequence

from ..file_records.expected_state import ExpectedState
from ..file_records.footers import Described
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import PARTITION_STATS
from ..metadata.records.model import StatsRecord, merge_records
from ..metadata.statistics.column_stats import SIDES, covers_bound, holds_nulls, partition_record
from ..metadata.statistics.indexed_columns import typed_among
from ..metadata_updates.altered_columns import altered_columns, is_altered
from .causes import cause_of_range
from .column_stats import told_range
from .model import Difference, DifferenceKind


class PartitionStatsCheck:
    def __init__(self, metadata: MetadataTable, state: ExpectedState) -> None:
        self._reader = metadata.reader(PARTITION_STATS)
        self._partition: str | None = None
        self._ranges: dict[str, StatsRecord] = {}
        """The ranges of the current partition by column, over the live files until now."""
        self._merged: dict[str, StatsRecord] = {}
        """The ranges of byte arrays as Hudi merges them, in typed statistics, where they are right, too."""
        self._from_values: set[str] = set()
        """Columns whose range is not in the footer of one of these files."""
        self._typed = bool(typed_among(metadata, {PARTITION_STATS}))
        self._metadata = metadata
        self._names: list[str] = []
        """Those of the live files of the current partition."""
        self.checked = 0

    def at(self, files: Sequence[Described]) -> Iterator[Difference]:
        """Check some base files; the files of a data partition follow each other."""
        for one in files:
            if one.file.partition != self._partition:
                yield from self.at_end()
                self._partition = one.file.partition
            if one.is_live:
                self._take(one)

    def at_end(self) -> Iterator[Difference]:
        """The differences of the last data partition."""
        wanted = {record.key: record for record in self._ranges.values()}
        merged, from_values = self._merged, self._from_values
        self._ranges, self._merged, self._from_values = {}, {}, set()
        self.checked += len(wanted)
        partition, names = self._partition or "", self._names
        altered, self._names = altered_columns(self._metadata, {partition: names}), []
        for key, found in self._reader.stored(wanted):
            stored = found.merged
            known = stored if isinstance(stored, StatsRecord) and not stored.deleted else None
            column = wanted[key].column
            if is_altered(altered, partition, column):
                # Readers find no file by a range of a column that older files have under another name.
                yield from _of_altered(known)
                continue
            yield from _compare(known, wanted[key], merged.get(column), from_values=column in from_values)

    def _take(self, described: Described) -> None:
        self._from_values |= described.bounded
        self._names.append(described.file.name)
        for record in described.records:
            so_far = self._ranges.get(record.column)
            known = [record] if so_far is None else [so_far, record]
            self._ranges[record.column] = partition_record(described.file.partition, record.column, known, tight=False)
            if self._typed and isinstance(record.minimum, bytes):
                merged = merge_records(self._merged.get(record.column, record), record)
                assert isinstance(merged, StatsRecord), "statistics merge to statistics"
                self._merged[record.column] = merged


def _compare(
    stored: StatsRecord | None, files: StatsRecord, merged: StatsRecord | None, *, from_values: bool
) -> Iterator[Difference]:
    holds = f"its files hold {told_range(files)}"
    if stored is None:
        yield _difference(DifferenceKind.STATISTICS_MISSING, files, holds)
        return
    if not all(covers_bound(stored, files, merged, side) for side in SIDES):
        says = f"it says {told_range(stored)}"
        cause = cause_of_range(stored, files, from_values=from_values)
        yield _difference(DifferenceKind.NARROW_RANGE, files, f"{says}, {holds}", cause)
    if not holds_nulls(stored, files):
        says = f"it says {stored.null_count} nulls among {stored.value_count} values"
        yield _difference(
            DifferenceKind.WRONG_COUNTS, files, f"{says}, its files hold {files.null_count} among {files.value_count}"
        )


def _of_altered(stored: StatsRecord | None) -> Iterator[Difference]:
    if stored is None:
        return
    detail = f"it says {told_range(stored)}, and older files have no statistics of the column under this name"
    place = (PARTITION_STATS, DifferenceKind.NARROW_RANGE, stored.key, stored.file_name, None, stored.column)
    yield Difference(*place, detail, lambda: None)


def _difference(kind: DifferenceKind, files: StatsRecord, detail: str, cause: str | None = None) -> Difference:
    place = (PARTITION_STATS, kind, files.key, files.file_name, None, files.column)
    return Difference(*place, detail, lambda: files, cause=cause)
