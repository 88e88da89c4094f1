"""One look at a metadata table: every partition of it is computed anew from storage and compared.

The timeline is read before storage is listed, and storage is listed before the metadata table is read, so that a
writer at work may make a difference for one look, but not for two looks one after the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from ..errors import CorruptFile
from ..metadata.expression_index.index import Computation
from ..metadata.file_groups.committed_files import REBUILD_HINT, DamagedLog
from ..metadata.records.keys import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from ..metadata.table import MetadataTable
from ..model import BaseFile
from ..snapshot import Snapshot
from ..table.facts import TimelineFacts
from ..table.view import slices_of
from ..table_config import METADATA_TABLE_FOLDER
from .bloom_filters import BloomFiltersCheck
from .column_stats import ColumnStatsCheck
from .expected_state import ExpectedState
from .expressions import ExpressionBloomsCheck, ExpressionRangesCheck
from .files import FilesCheck
from .footers import Broken, Described, FooterReader
from .key_index import KeyIndexCheck
from .model import Difference, Doubt, Finding, Findings, Kind, Unsure
from .partition_stats import PartitionStatsCheck
from .record_index import RecordIndexCheck
from .secondary_index import SecondaryIndexCheck

_FILES_IN_MEMORY = 1000
"""With the statistics of all their columns."""


class Check(Protocol):
    """The check of one metadata partition."""

    checked: int
    """Records so far."""

    def at(self, files: Sequence[Described]) -> Iterator[Finding]:
        """Of some of the base files that readers may open, in the order of their data partitions."""

    def at_end(self) -> Iterator[Finding]:
        """What only shows when all were there."""


Progress = Callable[[str, int, int], None]

CHECKS: dict[str, Callable[[MetadataTable, ExpectedState], Check]] = {
    COLUMN_STATS: ColumnStatsCheck,
    PARTITION_STATS: PartitionStatsCheck,
    BLOOM_FILTERS: BloomFiltersCheck,
}
"""By metadata partition. `files` comes before them: it says which base files they are about."""
KEY_CHECKS: dict[str, type[KeyIndexCheck]] = {
    RECORD_INDEX: RecordIndexCheck,
    SECONDARY_INDEX_PREFIX: SecondaryIndexCheck,
}
"""By what the names of the metadata partitions begin with. A second look at these is at the keys of the first only."""


def look(
    table: Snapshot,
    metadata: MetadataTable,
    progress: Progress,
    again: Findings | None = None,
    expressions: Sequence[Computation] = (),
    *,
    drop_missing: bool = False,
) -> Findings:
    """What is wrong with `metadata`, the metadata table of `table`: everything, or what may be in `again`, too.

    Of expression indexes, those are checked that `expressions` computes. `progress` gets what is done, how much of it,
    and all of it. `drop_missing`: a partition of which nothing is there is gone for good, whatever the commits say.
    Raises CorruptFile for a metadata table, or a plan on the timeline, that cannot be read, and NotFound for files of
    the metadata table that are cleaned meanwhile.
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
    again: Findings | None,
    expressions: Sequence[Computation],
    truth: ExpectedState,
) -> Findings:
    damaged: set[DamagedLog] = set()
    metadata = metadata.tolerant(damaged.add)
    listing = FilesCheck(metadata, truth)
    ready = table.config.metadata_partitions
    checks: dict[str, Check] = {name: CHECKS[name](metadata, truth) for name in ready if name in CHECKS}
    for computation in expressions:
        of_ranges = computation.index.kind == COLUMN_STATS
        made = (ExpressionRangesCheck if of_ranges else ExpressionBloomsCheck)(metadata, truth, computation)
        checks[computation.index.partition] = made
    key_checks = _key_checks(ready)
    for name, kind in key_checks.items():
        keys = None if again is None else again.keys(name)
        if keys is None or keys:
            checks[name] = kind(metadata, name, partial(progress, f"compare {name}"), keys)
    known = {FILES, *key_checks, *checks}
    findings = Findings(unchecked=tuple(name for name in metadata.partitions if name not in known))
    findings.add(listing.run(None if again is None else again.partitions))
    findings.add(Unsure(name, one, None, Doubt.MISSING_PARTITION) for name in key_checks for one in listing.missing)
    hidden = [one for one in findings.unsure if one.reason is Doubt.HIDDEN]
    # Their keys are in the indexes, rightly or not.
    findings.add(replace(one, index=name) for name in key_checks for one in hidden)
    if checks:
        for described in _batches(metadata, _with_life(table, listing.committed), partial(progress, "look")):
            for one in described:
                if isinstance(one, Broken):
                    findings.add(Unsure(n, one.file.partition, one.file.name, Doubt.BROKEN_FILE) for n in checks)
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
    findings.checked = {FILES: listing.checked} | {name: check.checked for name, check in checks.items()}
    return findings


def _read_again(metadata: MetadataTable, again: Findings | None) -> None:
    """The log files that were damaged at the first look: no other difference may have led there."""
    differences = again.differences if again is not None else []
    for index in sorted({one.index for one in differences if one.kind is Kind.DAMAGED_LOG}):
        _ = metadata.reader(index).groups


def _of_log(damaged: DamagedLog) -> Difference:
    """Readers of Hudi pass over what is damaged, and so do the checks: the other differences are its effects."""
    detail = f"it {damaged.problem}, and the deltacommit {damaged.instant} is completed"
    return Difference(damaged.partition, Kind.DAMAGED_LOG, damaged.name, None, damaged.name, None, detail, lambda: None)


def _key_checks(ready: Sequence[str]) -> Mapping[str, type[KeyIndexCheck]]:
    """The checks of the key indexes that are ready."""
    return {name: kind for name in ready for prefix, kind in KEY_CHECKS.items() if name.startswith(prefix)}


def _unjudged(findings: Findings) -> set[str]:
    """What a file that cannot be judged belongs to: of an index of keys, any entry may be right then."""
    return {one.index for one in findings.unsure}


def _batches(
    metadata: MetadataTable, files: Sequence[tuple[BaseFile, bool]], progress: Callable[[int, int], None]
) -> Iterator[list[Described | Broken]]:
    """What the footers of (base file, is live) say, some at a time."""
    footers = FooterReader(metadata)
    for start in range(0, len(files), _FILES_IN_MEMORY):
        batch = files[start : start + _FILES_IN_MEMORY]
        yield footers.read(batch)
        progress(start + len(batch), len(files))


def _with_life(table: Snapshot, committed: Mapping[str, Sequence[BaseFile]]) -> list[tuple[BaseFile, bool]]:
    """Each file with whether it belongs to the newest slice of a file group that was not replaced."""
    facts = TimelineFacts(table.timeline)
    found: list[tuple[BaseFile, bool]] = []
    for partition in sorted(committed):
        files = committed[partition]
        groups = slices_of(partition, {file.name: file.size for file in files}, facts, table.log_naming)
        newest = {file_id: slices[-1].base_file for file_id, slices in groups.items()}
        for file in files:
            is_newest = newest[file.file_id] == file
            found.append((file, is_newest and table.view.replaced_at(partition, file.file_id) is None))
    return found
