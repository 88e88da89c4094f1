"""The check of the partition `column_stats`: each record against the footer of its file; records of deleted files.

Where a footer has no range, the range is computed from the values: the stored range must hold them, and may be wider. A
missing record is a difference, too: in a query on two columns, readers take a column without a record for null in all
rows (seen with 1.0.2). Readers always read a log file without any record; so Hudi leaves log files: 0.15 all of them,
and later releases those with deletes alone, when it builds the index.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from ..file_records.doubts import Doubt
from ..file_records.expected_state import ExpectedState
from ..file_records.footers import Described
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import COLUMN_STATS, PARTITION_STATS, column_stats_prefix
from ..metadata.records.model import StatsRecord
from ..metadata.statistics.column_stats import Side, counts, holds_bound, holds_nulls, same_bound
from ..metadata.statistics.text_ranges import as_told
from ..model import LogFile
from .causes import cause_of_range
from .model import Difference, DifferenceKind, Finding, Severity, Unsure

COLUMN_DIGITS = len(column_stats_prefix("", "")) // 2
"""The length of the column's part at the start of a key; the rest is the file's part, as in its bloom filter's key."""


class ColumnStatsCheck:
    def __init__(self, metadata: MetadataTable, state: ExpectedState) -> None:
        self._reader = metadata.reader(COLUMN_STATS)
        self._state = state
        # Writers compute the ranges of partitions from these records, and forget files without one.
        ranges = PARTITION_STATS in metadata.partitions
        self._severity_without_any = Severity.HARMFUL if ranges else Severity.HARMLESS
        self.checked = 0

    def at(self, files: Sequence[Described]) -> Iterator[Finding]:
        """Check some base files; the files of a data partition follow each other."""
        for one in files:
            if one.unreadable:
                yield Unsure(COLUMN_STATS, one.file.partition, one.file.name, Doubt.UNREADABLE_VALUES)
        expected = {record.key: (one, record) for one in files for record in one.records}
        self.checked += len(expected)
        prefixes = {column_stats_prefix(record.column, one.file.partition) for one, record in expected.values()}
        for _, records in self._reader.scan_prefixes(prefixes, expected.__contains__):
            for stored in records:
                if isinstance(stored, StatsRecord) and not stored.deleted:
                    one, true = expected.pop(stored.key)
                    yield from _compare(one, stored, as_told(true, stored))
        missing = Counter(one.file.path for one, _ in expected.values())
        for one, record in expected.values():
            severity = Severity.HARMFUL
            if isinstance(one.file, LogFile) and missing[one.file.path] == len(one.records):
                if not one.row_groups:
                    continue
                severity = self._severity_without_any
            yield _difference(
                DifferenceKind.STATISTICS_MISSING, one, record, f"it holds {told_range(record)}", severity
            )

    def at_end(self) -> Iterator[Difference]:
        """Records of deleted files."""
        alive = self._state.file_keys
        for record in self._reader.scan("", lambda key: key[COLUMN_DIGITS:] not in alive):
            if isinstance(record, StatsRecord) and not record.deleted:
                self.checked += 1
                yield Difference(
                    COLUMN_STATS, DifferenceKind.STALE_STATISTICS, record.key, None, record.file_name, record.column,
                    told_range(record), lambda: None, severity=Severity.HARMLESS,
                )  # fmt: skip


def _compare(described: Described, stored: StatsRecord, true: StatsRecord) -> Iterator[Difference]:
    cause = cause_of_range(stored, true, from_values=true.column in described.bounded)
    if not _agrees(described, stored, true, "minimum"):
        detail = f"it says {told_bound(stored.minimum)}, the file {told_bound(true.minimum)}"
        yield _difference(
            DifferenceKind.WRONG_MINIMUM, described, true, detail, severity_of_bound(stored, true, "minimum"), cause
        )
    if not _agrees(described, stored, true, "maximum"):
        detail = f"it says {told_bound(stored.maximum)}, the file {told_bound(true.maximum)}"
        yield _difference(
            DifferenceKind.WRONG_MAXIMUM, described, true, detail, severity_of_bound(stored, true, "maximum"), cause
        )
    if counts(stored) != counts(true):
        detail = f"it says {told_counts(stored)}, the file {told_counts(true)}"
        yield _difference(DifferenceKind.WRONG_COUNTS, described, true, detail, severity_of_counts(stored, true), cause)


def _agrees(described: Described, stored: StatsRecord, true: StatsRecord, side: Side) -> bool:
    """Whether Hudi may have written the stored bound.

    For a row group that has only nulls Hudi takes zero as bounds, except for texts, byte arrays and decimals, as does
    parquet-mr (Statistics.genericGetMin).
    """
    if same_bound(stored, true, side):
        return True
    if true.column in described.bounded and holds_bound(stored, true, side):
        return True
    says, is_ = (getattr(record, side) for record in (stored, true))
    has_null_group = true.null_count == true.value_count or (described.row_groups > 1 and true.null_count > 0)
    if not has_null_group or isinstance(says, str | bytes) or says != 0:
        return False
    return is_ is None or bool(says < is_ if side == "minimum" else says > is_)


def severity_of_bound(stored: StatsRecord, true: StatsRecord, side: Side) -> Severity:
    """The severity of a wrong bound: harmless if it makes the range wider, because readers only skip by ranges."""
    is_wider = holds_bound(stored, true, side, incomparable=False)
    return Severity.HARMLESS if is_wider else Severity.HARMFUL


def severity_of_counts(stored: StatsRecord, true: StatsRecord) -> Severity:
    """The severity of wrong counts: harmless if nulls and values still show, because readers use nothing else."""
    return Severity.HARMLESS if holds_nulls(stored, true) else Severity.HARMFUL


def _difference(
    kind: DifferenceKind,
    described: Described,
    record: StatsRecord,
    detail: str,
    severity: Severity = Severity.HARMFUL,
    cause: str | None = None,
) -> Difference:
    place = (COLUMN_STATS, kind, record.key, described.file.partition, described.file.name, record.column)
    return Difference(*place, detail, lambda: record, severity=severity, cause=cause)


def told_bound(value: object) -> str:
    return "null" if value is None else repr(value)


def told_range(record: StatsRecord) -> str:
    return f"{told_bound(record.minimum)} to {told_bound(record.maximum)}"


def told_counts(record: StatsRecord) -> str:
    values, nulls, size, uncompressed = counts(record)
    return f"{values} values, {nulls} nulls, {size} bytes, {uncompressed} uncompressed"
