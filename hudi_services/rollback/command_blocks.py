"""Cancelling the blocks that an instant appended to log files of older slices (table version 6).

A log file of version 6 is named after its slice and may hold blocks of several instants, so that it cannot be deleted.
A ROLLBACK command block, in the next log file of the slice, makes readers ignore the blocks of one instant.
Source: BaseRollbackHelper (0.15.0), RollbackHelperV1 (1.2.0), HoodieLogFormatWriter of Apache Hudi.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..codecs.rollback_plan import PartitionRollback
from ..file_names import UNKNOWN_WRITE_TOKEN, log_file_name, parse_log_file
from ..limits import LARGEST_LOG
from ..log_files.log_reader import read_log_blocks
from ..log_files.log_writer import encode_rollback_command
from ..model import LogFile, path_in
from ..snapshot import Snapshot
from ..storage import Storage


@dataclass(frozen=True, slots=True)
class CommandLog:
    """The log file that cancels the blocks of an instant in one file slice; `size` in bytes."""

    path: str
    size: int


class LogsBySlice:
    """The log files of slices, for many rollbacks: of a partition that was listed only new files are looked at."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen: dict[str, set[str]] = {}
        self._logs: dict[tuple[str, str, str], list[LogFile]] = {}

    def of(self, partition: str, file_id: str, instant: str) -> Sequence[LogFile]:
        """The log files of the slice of `instant` that are there now, or were when its partition was listed before."""
        seen = self._seen.setdefault(partition, set())
        for file in self._storage.list_new(partition, seen):
            seen.add(file.name)
            log = parse_log_file(partition, file.name, file.size)
            if log is not None:
                self._logs.setdefault((partition, log.file_id, log.instant), []).append(log)
        return self._logs.get((partition, file_id, instant), ())


def cancel_blocks(
    table: Snapshot, rollback: str, target: str, request: PartitionRollback, known: LogsBySlice, *, is_new: bool
) -> CommandLog:
    """Write the command block of the rollback at `rollback` into the slice of `request`, unless it exists already.

    Returns the log file of the command block; `target` is the instant whose blocks it cancels. `is_new`: the rollback
    has just begun, and no such block exists.
    """
    logs = known.of(request.partition, request.file_id, request.base_instant)
    for log in () if is_new else logs:
        if log.write_token == UNKNOWN_WRITE_TOKEN and _is_ours(table, log, rollback, target):
            return CommandLog(log.path, log.size)
    data = encode_rollback_command(rollback, target)
    version = max((log.version for log in logs), default=0) + 1
    name = log_file_name(request.file_id, request.base_instant, version, UNKNOWN_WRITE_TOKEN)
    path = path_in(request.partition, name)
    table.storage.create(path, data)
    return CommandLog(path, len(data))


def _is_ours(table: Snapshot, log: LogFile, rollback: str, target: str) -> bool:
    blocks = read_log_blocks(table.storage.read(log.path, LARGEST_LOG), table.storage.full_path(log.path))
    return any((block.instant, block.rolled_back_instant) == (rollback, target) for block in blocks)
