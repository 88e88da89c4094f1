"""Who wrote the log files that are named after their slice (table version 6): the headers of their blocks tell.

A rollback of a delta commit leaves its blocks, and appends a command that cancels them: the blocks and the command stay
together, because without the command readers see the blocks again once the timeline begins after them. Source:
HoodieRollbackCommandBlock, AbstractHoodieLogRecordReader of Apache Hudi 0.15.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import CorruptFile, NotFound
from ..file_names import log_order, parse_log_file
from ..log_files.log_blocks import BlockPlace, BlockType
from ..log_files.log_reader import stored_blocks
from ..model import LogFile
from ..storage import Storage


@dataclass(frozen=True, slots=True)
class LogWriters:
    """What the blocks of one log file tell. `instants`: those of blocks that no command cancels."""

    instants: frozenset[str]
    is_cancelled: bool = False
    """Whether it has a command, or blocks that a command cancels."""


class SliceLogs:
    """Reads the log files of one slice at a time; the last slice is kept, because files come by partition."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._partition: tuple[str, list[LogFile]] | None = None
        self._slice: tuple[str, str, str] | None = None
        self._writers: Mapping[str, LogWriters] = {}

    def writers(self, log: LogFile) -> LogWriters | None:
        """None when a log file of the slice cannot be read, or a block does not tell its instant."""
        of = (log.partition, log.file_id, log.instant)
        if of != self._slice:
            try:
                self._writers = self._read(log)
            except (CorruptFile, NotFound):
                self._writers = {}
            self._slice = of
        return self._writers.get(log.name)

    def _read(self, log_file: LogFile) -> dict[str, LogWriters]:
        logs = self._logs_of(log_file.partition)
        own = sorted(
            (log for log in logs if (log.file_id, log.instant) == (log_file.file_id, log_file.instant)), key=log_order
        )
        return _writers({log.name: list(stored_blocks(self._storage, log)) for log in own})

    def _logs_of(self, partition: str) -> list[LogFile]:
        if self._partition is None or self._partition[0] != partition:
            files, _ = self._storage.list_dir(partition)
            found = (parse_log_file(partition, file.name, file.size) for file in files)
            self._partition = (partition, [log for log in found if log is not None])
        return self._partition[1]


def _writers(blocks: Mapping[str, list[BlockPlace]]) -> dict[str, LogWriters]:
    """By the blocks of each log file of a slice, in the order of merging."""
    instants: dict[str, set[str | None]] = {}
    cancelled: set[str] = set()
    for name, own in blocks.items():
        instants[name] = set()
        for block in own:
            target = block.rolled_back_instant
            if target is not None:
                for earlier, found in instants.items():
                    if target in found:
                        found.discard(target)
                        cancelled.add(earlier)
                cancelled.add(name)
            elif block.type is BlockType.COMMAND:
                instants[name].add(None)
            else:
                instants[name].add(block.instant)
    return {
        name: LogWriters(frozenset(one for one in found if one is not None), name in cancelled)
        for name, found in instants.items()
        if None not in found
    }
