"""The rules that decide which log blocks of the metadata table count.

The metadata table is written before the table's own timeline, so a completed delta commit alone is not enough: a block
counts when its instant is completed in the table, or belongs to the metadata table alone (its initialisation, indexing,
rollbacks). Table version 6 keeps blocks of different instants in one log file, and a rolled back commit stays there
under a command block; on version 6 a block's instant must be completed on the metadata table's timeline, too.
Source: HoodieTableMetadataUtil.getValidInstantTimestamps of Apache Hudi 0.15.0 and 1.2.0. Unlike in Hudi, commits that
were rolled back never count: their command block would cancel them anyway.
"""

from collections.abc import Iterable

from ...log_files.log_blocks import BlockType, LogBlock
from ...table.file_ledger import FileLedger
from ...table.log_naming import INITIALISATION, LogNaming
from ...timeline.active import Timeline
from ...timeline.instant import Action

_DATA = frozenset({BlockType.HFILE_DATA, BlockType.DELETE})


class BlockFilter:
    """The instants whose blocks count, from one snapshot of both timelines."""

    def __init__(self, data: Timeline, metadata: FileLedger, naming: LogNaming) -> None:
        pending = {i.ts for i in data.pending()}
        own = {i.ts for i in metadata.timeline.completed({Action.DELTA_COMMIT}) if naming.is_own(i.ts, pending)}
        self._valid = {i.ts for i in data.completed()} | own | metadata.cancels
        self._is_committed = metadata.facts.is_committed
        self._naming = naming

    def counts(self, instant: str) -> bool:
        """Whether data and delete blocks of this instant are read."""
        if instant not in self._valid and not instant.startswith(INITIALISATION):
            return False
        return self._naming.is_held(instant, self._is_committed)

    def surviving(self, blocks: Iterable[LogBlock]) -> list[LogBlock]:
        """The data and delete blocks that count, in order; a command block cancels its target's blocks before it."""
        kept: list[LogBlock] = []
        for block in blocks:
            cancelled = block.rolled_back_instant
            if cancelled is not None:
                kept = [b for b in kept if b.instant != cancelled]
            elif block.type in _DATA and block.instant is not None and self.counts(block.instant):
                kept.append(block)
        return kept
