"""The check of a metadata table: every partition of it is computed anew from storage and compared.

The timeline is read before storage is listed, and storage is listed before the metadata table is read. Therefore a
writer at work may cause a difference in one check, but not in two checks one after the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from ..derived_indexes.expression_index.index import Computation
from ..errors import CorruptFile
from ..file_records.doubts import Doubt
from ..file_records.expected_state import ExpectedState
from ..file_records.footers import Broken, Described, FileSource, FooterReader
from ..file_records.members import Member, members_of
from ..metadata.file_groups.committed_files import REBUILD_HINT, DamagedLog
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from ..metadata.statistics.indexed_columns import NO_COLUMNS, index_columns
from ..model import LogFile
from ..snapshot import Snapshot
from ..table_config import METADATA_TABLE_FOLDER
from .bloom_filters import BloomFiltersCheck
from .column_stats import ColumnStatsCheck
from .expression_indexes import (
    ExpressionBloomsCheck,
    ExpressionCheck,
    ExpressionRangesCheck,
)
from .files import FilesCheck
from .key_index import KeyIndexCheck
from .model import Difference, DifferenceKind, Finding, Unsure, ValidationFindings
from .partition_stats import PartitionStatsCheck
from .record_index import RecordIndexCheck
from .secondary_index import SecondaryIndexCheck

_FILES_IN_MEMORY = 1000
"""The number of files whose statistics are in memory at once."""


class PartitionCheck(Protocol):
    """The check of one metadata partition."""

    checked: int
    """The number of records checked until now."""

    def at(self, files: Sequence[Described]) -> Iterator[Finding]:
        """Check some of the data files that readers may open, in the order of their data partitions."""

    def at_end(self) -> Iterator[Finding]:
        """The findings that need all files; called after the last `at`."""


Progress = Callable[[str, int, int], None]

CHECKS: dict[str, Callable[[MetadataTable, ExpectedState], PartitionCheck]] = {
    COLUMN_STATS: ColumnStatsCheck,
    PARTITION_STATS: PartitionStatsCheck,
    BLOOM_FILTERS: BloomFiltersCheck,
}
"""The checks by metadata partition. The check of `files` runs before them, and finds the files to check."""
KEY_CHECKS: dict[str, type[KeyIndexCheck]] = {
    RECORD_INDEX: RecordIndexCheck,
    SECONDARY_INDEX_PREFIX: SecondaryIndexCheck,
}
"""The checks by the prefix of metadata partitions. A second check compares only the keys that differed in the first."""


def look(
    table: Snapshot,
    metadata: MetadataTable,
    progress: Progress,
    again: ValidationFindings | None = None,
    expressions: Sequence[Computation] = (),
    *,
    drop_missing: bool = False,
) -> ValidationFindings:
    """Check `metadata`, the metadata table of `table`: all of it, or only where `again`, an earlier result, differs.

    Expression indexes are checked if `expressions` has their computation. `progress` is called with the step, the
    number of items done, and the number of all items. `drop_missing`: a partition without any file is deleted for good,
    despite the commits. Raises CorruptFile for a metadata table, or a plan on the timeline, that cannot be read, and
    NotFound for files of the metadata table that are cleaned meanwhile.
    """
    try:
        return _look(table, metadata, progress, again, expressions, ExpectedState(table, drop_missing=drop_missing))
    except CorruptFile as error:
        if METADATA_TABLE_FOLDER not in error.message:
            raise
        raise CorruptFile(error.message, hint=REBUILD_HINT) from error


def _look(
    table: Snapshot,
    metadata: MetadataTable,
    progress: Progress,
    again: ValidationFindings | None,
    expressions: Sequence[Computation],
    state: ExpectedState,
) -> ValidationFindings:
    damaged: set[DamagedLog] = set()
    metadata = metadata.tolerant(damaged.add)
    listing = FilesCheck(metadata, state)
    ready = table.config.metadata_partitions
    checks: dict[str, PartitionCheck] = {name: CHECKS[name](metadata, state) for name in ready if name in CHECKS}
    for computation in expressions:
        of_ranges = computation.index.kind == COLUMN_STATS
        made = (ExpressionRangesCheck if of_ranges else ExpressionBloomsCheck)(metadata, state, computation)
        checks[computation.index.partition] = made
    # Without meta fields, files store no keys to compare an index with.
    key_checks = _key_checks(ready) if table.config.populate_meta_fields else {}
    for name, kind in key_checks.items():
        keys = None if again is None else again.keys(name)
        if keys is None or keys:
            checks[name] = kind(metadata, name, partial(progress, f"compare {name}"), keys)
    known = {FILES, *key_checks, *checks}
    findings = ValidationFindings(unchecked=tuple(name for name in metadata.partitions if name not in known))
    findings.add(listing.run(None if again is None else again.partitions))
    findings.add(Unsure(name, one, None, Doubt.MISSING_PARTITION) for name in key_checks for one in listing.missing)
    hidden = [one for one in findings.unsure if one.reason is Doubt.HIDDEN]
    # The keys of hidden files are in the indexes; it is unknown whether they should be.
    findings.add(replace(one, index=name) for name in key_checks for one in hidden)
    members = members_of(table.view, listing.committed)
    if not checks:
        # Of log files, each block is looked at.
        members = [one for one in members if isinstance(one.file, LogFile)]
    for described in _batches(metadata, members, partial(progress, "look")):
        for one in described:
            if isinstance(one, Broken):
                findings.add(Unsure(n, one.file.partition, one.file.name, one.doubt) for n in checks if one.concerns(n))
                findings.add(_of_lost_records(one))
        for check in checks.values():
            findings.add(check.at([one for one in described if isinstance(one, Described)]))
    unjudged = _unjudged(findings) & key_checks.keys()
    for name, check in checks.items():
        if name not in unjudged:
            findings.add(check.at_end())
    for name in sorted(_unjudged(findings) & key_checks.keys()):
        checks.pop(name, None)
        findings.unchecked += (name,)
    _read_again(metadata, again)
    findings.add(map(_of_log, sorted(damaged, key=lambda one: (one.partition, one.name))))
    findings.cut = tuple(
        name for name, check in checks.items() if isinstance(check, KeyIndexCheck) and not check.is_whole
    )
    findings.not_compared = {
        name: check.not_compared
        for name, check in checks.items()
        if isinstance(check, ExpressionCheck) and check.not_compared
    }
    findings.checked = {FILES: listing.checked} | {name: check.checked for name, check in checks.items()}
    return findings


def _read_again(metadata: MetadataTable, again: ValidationFindings | None) -> None:
    """Read the file groups with log files that were damaged in the first check: no other difference may cause it."""
    differences = again.differences if again is not None else []
    for index in sorted({one.index for one in differences if one.kind is DifferenceKind.DAMAGED_LOG}):
        _ = metadata.reader(index).groups


def _of_log(damaged: DamagedLog) -> Difference:
    """The difference for a damaged log file. Hudi's readers and the checks skip the damage: it causes the others."""
    detail = f"it {damaged.problem}, and the deltacommit {damaged.instant} is completed"
    return Difference(
        damaged.partition, DifferenceKind.DAMAGED_LOG, damaged.name, None, damaged.name, None, detail, lambda: None
    )


def _of_lost_records(broken: Broken) -> Iterator[Difference]:
    """The difference for a log file of the table, which no record of the metadata table can mend."""
    if broken.problem:
        place = (FILES, DifferenceKind.LOST_RECORDS, broken.file.name, broken.file.partition, broken.file.name)
        yield Difference(*place, None, broken.problem, lambda: None)


def _key_checks(ready: Sequence[str]) -> Mapping[str, type[KeyIndexCheck]]:
    """The checks of the key indexes that are ready."""
    return {name: kind for name in ready for prefix, kind in KEY_CHECKS.items() if name.startswith(prefix)}


def _unjudged(findings: ValidationFindings) -> set[str]:
    """The metadata partitions with a file that cannot be judged: in an index of keys, any entry may then be right."""
    return {one.index for one in findings.unsure}


def _batches(
    metadata: MetadataTable, members: Sequence[Member], progress: Callable[[int, int], None]
) -> Iterator[list[Described | Broken]]:
    """The descriptions of files by their footers and log blocks, in batches."""
    source = FileSource.of(metadata.storage, metadata.slices, metadata.table_config, metadata.data_timeline)
    has_statistics = COLUMN_STATS in metadata.table_config.metadata_partitions
    footers = FooterReader(
        source, partial(index_columns, metadata) if has_statistics else lambda candidates: NO_COLUMNS
    )
    for start in range(0, len(members), _FILES_IN_MEMORY):
        batch = members[start : start + _FILES_IN_MEMORY]
        yield footers.read(batch)
        progress(start + len(batch), len(members))
