"""The check of the expression indexes: the function is computed anew for every live base file.

Records of files that no reader opens any more may be missing, because Hudi indexes only live files when it builds an
index. A bloom filter is wrong when it lacks a value; its size is not compared.

Hudi writes records for log files, too: 1.0.2 counts each value twice, 1.2.0 once, and none for deletes alone. These
records are not compared, nor are the ranges of data partitions with log files, because they hold the values in these.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ..base_files.bloom import parse
from ..derived_indexes.expression_index.expressions import as_texts
from ..derived_indexes.expression_index.file_records import ExpressionTask, expression_records, expression_values
from ..derived_indexes.expression_index.index import Computation, ExpressionRecord
from ..errors import NotFound, UnsupportedTable
from ..file_records.doubts import Doubt
from ..file_records.expected_state import ExpectedState
from ..file_records.footers import Described
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import bloom_filter_key, column_stats_prefix, expression_range_key
from ..metadata.records.model import BloomRecord, RecordType, StatsRecord
from ..metadata.statistics.column_stats import counts, holds_range, partition_record, same_bound
from ..model import BaseFile, FileSlice, LogFile
from .column_stats import (
    COLUMN_DIGITS,
    severity_of_bound,
    severity_of_counts,
    told_bound,
    told_counts,
    told_range,
)
from .model import Difference, DifferenceKind, Finding, Severity, Unsure

_FILES_AT_ONCE = 4
"""Each file has a row group of the column in memory."""


class ExpressionCheck:
    """The common part of the checks of both kinds of index."""

    def __init__(self, metadata: MetadataTable, state: ExpectedState, computation: Computation) -> None:
        self._storage = metadata.storage
        self._source = metadata.slices
        self._reader = metadata.reader(computation.index.partition)
        self._state = state
        self._computation = computation
        self._name = computation.index.partition
        self._column = computation.index.column
        self.checked = 0
        self.not_compared = 0
        """Log files that readers see, whose records are not compared."""
        self._logged: set[str] = set()
        """Data partitions with such log files."""

    def _live(self, files: Sequence[Described]) -> list[BaseFile]:
        """The base files with rows that readers see, while log files are counted."""
        live = [one.file for one in files if one.is_live and (one.row_groups or isinstance(one.file, LogFile))]
        logs = [file for file in live if isinstance(file, LogFile)]
        self.not_compared += len(logs)
        self._logged.update(log.partition for log in logs)
        return [file for file in live if isinstance(file, BaseFile)]

    def _record(self, file: BaseFile) -> ExpressionRecord | Unsure | None:
        """The record that a commit would write for the file; None for a file without rows or deleted meanwhile."""
        task = ExpressionTask(self._storage, self._source, file.instant, file, (self._computation,))
        try:
            return expression_records(task, "").get(self._name)
        except UnsupportedTable:
            return Unsure(self._name, file.partition, file.name, Doubt.NOT_COMPUTED)
        except NotFound:
            return None

    def _wanted(self, file: BaseFile) -> ExpressionRecord | None:
        found = self._record(file)
        return None if isinstance(found, Unsure) else found

    def _difference(
        self, kind: DifferenceKind, key: str, file: BaseFile, detail: str, severity: Severity = Severity.HARMFUL
    ) -> Difference:
        place = (self._name, kind, key, file.partition, file.name, self._column)
        return Difference(*place, detail, lambda: self._wanted(file), severity=severity)

    def _stale(self, kind: DifferenceKind, key: str, name: str | None, detail: str) -> Difference:
        self.checked += 1
        place = (self._name, kind, key, None, name, self._column)
        return Difference(*place, detail, lambda: None, severity=Severity.HARMLESS)


class ExpressionRangesCheck(ExpressionCheck):
    """Checks an index of ranges: the ranges of files, and the ranges of whole data partitions, which may be wider."""

    def __init__(self, metadata: MetadataTable, state: ExpectedState, computation: Computation) -> None:
        super().__init__(metadata, state, computation)
        self._partition: str | None = None
        self._range: StatsRecord | None = None
        """The range of the live files of the partition until now."""

    def at(self, files: Sequence[Described]) -> Iterator[Finding]:
        """Check some base files; the files of a data partition follow each other."""
        live = self._live(files)
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            found = list(pool.map(self._record, live))
        keys = {one.key for one in found if isinstance(one, StatsRecord)}
        stored = self._stored({file.partition for file in live}, keys)
        for file, true in zip(live, found, strict=True):
            if isinstance(true, Unsure):
                yield true
            elif isinstance(true, StatsRecord):
                self.checked += 1
                yield from self._compare(file, stored.get(true.key), true)
                yield from self._take(file.partition, true)

    def at_end(self) -> Iterator[Finding]:
        """The differences in the range of the last data partition, and records of deleted files."""
        yield from self._compare_range()
        alive = self._state.file_keys
        for record in self._reader.scan("", lambda key: key[COLUMN_DIGITS:] not in alive):
            # The index also has the ranges of whole partitions.
            if isinstance(record, StatsRecord) and record.type is RecordType.COLUMN_STATS and not record.deleted:
                yield self._stale(DifferenceKind.STALE_STATISTICS, record.key, record.file_name, told_range(record))

    def _stored(self, partitions: set[str], keys: set[str]) -> dict[str, StatsRecord]:
        prefixes = {column_stats_prefix(self._column, partition) for partition in partitions}
        scans = self._reader.scan_prefixes(prefixes, keys.__contains__)
        return {one.key: one for _, scan in scans for one in scan if isinstance(one, StatsRecord) and not one.deleted}

    def _compare(self, file: BaseFile, stored: StatsRecord | None, true: StatsRecord) -> Iterator[Difference]:
        if stored is None:
            yield self._difference(DifferenceKind.STATISTICS_MISSING, true.key, file, f"it holds {told_range(true)}")
            return
        if not same_bound(stored, true, "minimum"):
            detail = f"it says {told_bound(stored.minimum)}, the file {told_bound(true.minimum)}"
            yield self._difference(
                DifferenceKind.WRONG_MINIMUM, true.key, file, detail, severity_of_bound(stored, true, "minimum")
            )
        if not same_bound(stored, true, "maximum"):
            detail = f"it says {told_bound(stored.maximum)}, the file {told_bound(true.maximum)}"
            yield self._difference(
                DifferenceKind.WRONG_MAXIMUM, true.key, file, detail, severity_of_bound(stored, true, "maximum")
            )
        if counts(stored) != counts(true):
            detail = f"it says {told_counts(stored)}, the file {told_counts(true)}"
            yield self._difference(
                DifferenceKind.WRONG_COUNTS, true.key, file, detail, severity_of_counts(stored, true)
            )

    def _take(self, partition: str, record: StatsRecord) -> Iterator[Difference]:
        if partition != self._partition:
            yield from self._compare_range()
            self._partition = partition
        known = [record] if self._range is None else [self._range, record]
        self._range = replace(
            partition_record(partition, self._column, known, tight=False),
            key=expression_range_key(self._column, partition),
        )

    def _compare_range(self) -> Iterator[Difference]:
        files, self._range = self._range, None
        if files is None or files.file_name in self._logged:
            return
        self.checked += 1
        stored = next((found.merged for _, found in self._reader.stored([files.key])), None)
        known = stored if isinstance(stored, StatsRecord) and not stored.deleted else None
        holds = f"its files hold {told_range(files)}"
        if known is None:
            yield self._range_difference(DifferenceKind.STATISTICS_MISSING, files, holds)
        elif not holds_range(known, files):
            yield self._range_difference(DifferenceKind.NARROW_RANGE, files, f"it says {told_range(known)}, {holds}")
        elif files.null_count > 0 and known.null_count <= 0:
            detail = f"it says {known.null_count} nulls, its files hold {files.null_count}"
            yield self._range_difference(DifferenceKind.WRONG_COUNTS, files, detail)

    def _range_difference(self, kind: DifferenceKind, files: StatsRecord, detail: str) -> Difference:
        return Difference(self._name, kind, files.key, files.file_name, None, self._column, detail, lambda: files)


class ExpressionBloomsCheck(ExpressionCheck):
    """Checks an index of bloom filters; one filter at a time, because filters are large."""

    def at(self, files: Sequence[Described]) -> Iterator[Finding]:
        for file in self._live(files):
            key = bloom_filter_key(file.partition, file.name)
            self.checked += 1
            stored = next((found.merged for _, found in self._reader.stored([key])), None)
            if not isinstance(stored, BloomRecord) or stored.deleted:
                yield self._difference(DifferenceKind.BLOOM_MISSING, key, file, "its file has values")
                continue
            try:
                missing = self._missing(file, stored)
            except UnsupportedTable:
                yield Unsure(self._name, file.partition, file.name, Doubt.NOT_COMPUTED)
                continue
            if missing:
                yield self._difference(DifferenceKind.WRONG_BLOOM, key, file, f"it lacks {missing} values")

    def at_end(self) -> Iterator[Finding]:
        """Records of deleted files."""
        alive = self._state.file_keys
        for record in self._reader.scan("", lambda key: key not in alive):
            if isinstance(record, BloomRecord) and not record.deleted:
                detail = f"of a file that is gone, written at {record.instant}"
                yield self._stale(DifferenceKind.STALE_BLOOM, record.key, None, detail)

    def _missing(self, file: BaseFile, stored: BloomRecord) -> int:
        """The number of the file's values that the filter lacks; 0 for a file that was deleted meanwhile."""
        try:
            reader = self._source.open(FileSlice.of_base(file))
            held = parse(stored.bits.decode(), file.name)
            result = self._computation.expression().result
            return sum(held.lacks(as_texts(v, result)) for v in expression_values(reader, self._computation))
        except NotFound:
            return 0
