"""One look at a metadata table: every partition of it is computed anew from storage and compared.

The timeline is read before storage is listed, and storage is listed before the metadata table is read, so that a
writer at work may make a difference for one look, but not for two looks one after the other.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from ..errors import CorruptFile
from ..handle import Table
from ..metadata.expression_index import Computation
from ..metadata.keys import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS
from ..metadata.table import REBUILD_HINT, MetadataTable
from ..model import BaseFile
from ..table.facts import TimelineFacts
from ..table.view import SlicingRules, slices_of
from ..table_config import METADATA_TABLE_FOLDER
from .bloom_filters import BloomFiltersCheck
from .column_stats import ColumnStatsCheck
from .expressions import ExpressionBloomsCheck, ExpressionRangesCheck
from .files import FilesCheck
from .footers import Broken, Described, FooterReader
from .model import Doubt, Finding, Findings, Unsure
from .partition_stats import PartitionStatsCheck
from .truth import Truth

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


CHECKS: dict[str, Callable[[MetadataTable, Truth], Check]] = {
    COLUMN_STATS: ColumnStatsCheck,
    PARTITION_STATS: PartitionStatsCheck,
    BLOOM_FILTERS: BloomFiltersCheck,
}
"""By metadata partition. `files` comes before them: it says which base files they are about."""


def look(
    table: Table,
    metadata: MetadataTable,
    progress: Callable[[int, int], None],
    only: Collection[str] | None = None,
    expressions: Sequence[Computation] = (),
) -> Findings:
    """What is wrong with `metadata`, the metadata table of `table`, in all data partitions or in those of `only`.

    Of expression indexes, those are checked that `expressions` computes. `progress` gets base files read, and all of
    them. Raises CorruptFile for a metadata table, or a plan on the timeline, that cannot be read, and NotFound for
    files of the metadata table that are cleaned meanwhile.
    """
    try:
        return _look(table, metadata, progress, only, expressions)
    except CorruptFile as error:
        if METADATA_TABLE_FOLDER not in error.message:
            raise
        raise CorruptFile(error.message, hint=REBUILD_HINT) from error


def _look(
    table: Table,
    metadata: MetadataTable,
    progress: Callable[[int, int], None],
    only: Collection[str] | None,
    expressions: Sequence[Computation],
) -> Findings:
    truth = Truth(table)
    listing = FilesCheck(metadata, truth)
    ready = table.config.metadata_partitions
    checks = {name: CHECKS[name](metadata, truth) for name in ready if name in CHECKS}
    for computation in expressions:
        kind = ExpressionRangesCheck if computation.index.kind == COLUMN_STATS else ExpressionBloomsCheck
        checks[computation.index.partition] = kind(metadata, truth, computation)
    findings = Findings(unchecked=tuple(name for name in metadata.partitions if name != FILES and name not in checks))
    findings.add(listing.run(only))
    if checks:
        for described in _batches(metadata, _with_life(table, listing.committed), progress):
            for one in described:
                if isinstance(one, Broken):
                    findings.add(Unsure(n, one.file.partition, one.file.name, Doubt.BROKEN_FILE) for n in checks)
            for check in checks.values():
                findings.add(check.at([one for one in described if isinstance(one, Described)]))
    for check in checks.values():
        findings.add(check.at_end())
    findings.checked = {FILES: listing.checked} | {name: check.checked for name, check in checks.items()}
    return findings


def _batches(
    metadata: MetadataTable, files: Sequence[tuple[BaseFile, bool]], progress: Callable[[int, int], None]
) -> Iterator[list[Described | Broken]]:
    """What the footers of (base file, is live) say, some at a time."""
    footers = FooterReader(metadata)
    for start in range(0, len(files), _FILES_IN_MEMORY):
        batch = files[start : start + _FILES_IN_MEMORY]
        yield footers.read(batch)
        progress(start + len(batch), len(files))


def _with_life(table: Table, committed: Mapping[str, Sequence[BaseFile]]) -> list[tuple[BaseFile, bool]]:
    """Each file with whether it belongs to the newest slice of a file group that was not replaced."""
    facts, rules = TimelineFacts(table.timeline), SlicingRules(table.config.version.log_files_carry_delta_instant)
    found: list[tuple[BaseFile, bool]] = []
    for partition in sorted(committed):
        files = committed[partition]
        groups = slices_of(partition, {file.name: file.size for file in files}, facts, rules)
        newest = {file_id: slices[-1].base_file for file_id, slices in groups.items()}
        for file in files:
            is_newest = newest[file.file_id] == file
            found.append((file, is_newest and table.view.replaced_at(partition, file.file_id) is None))
    return found
