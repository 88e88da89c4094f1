"""Names of new log files, by table version.

Version 6: the log file is named after the slice it belongs to, or after the pending compaction of that slice, and takes
the next free number there. Versions 8 and 9: the log file is named after its own delta commit.
Source: HoodieAppendHandle, HoodieLogFormat.WriterBuilder of Apache Hudi.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..file_names import UNKNOWN_WRITE_TOKEN, log_file_name, parse_log_file
from ..model import FileSlice, WriteStat, path_in
from .log_naming import LogNaming
from .view import FileGroupId

LogNumbers: TypeAlias = Mapping[tuple[str, str], int]
"""The greatest number of a log file by file id and time in its name."""


def log_numbers(names: Iterable[str], known: LogNumbers | None = None) -> LogNumbers:
    """The numbers of the log files among files of a partition, and those that are `known`."""
    found = dict(known or {})
    for name in names:
        log = parse_log_file("", name, 0)
        if log is not None:
            key = (log.file_id, log.instant)
            found[key] = max(log.version, found.get(key, 0))
    return found


@dataclass(frozen=True, slots=True)
class NewLog:
    """The next log file of a file group; `stat` is its write stat, without counts and sizes."""

    name: str
    stat: WriteStat

    def written(self, size: int, updates: int, inserts: int = 0, deletes: int = 0, millis: int = 0) -> WriteStat:
        """The write stat when the file is written: its bytes, and the records and deletes in it."""
        return replace(
            self.stat,
            num_writes=updates + inserts,
            num_update_writes=updates,
            num_inserts=inserts,
            num_deletes=deletes,
            total_write_bytes=size,
            file_size=size,
            create_millis=millis,
        )


class LogNames:
    """Names the log files that the delta commit or rollback `instant` adds to a partition."""

    def __init__(
        self,
        naming: LogNaming,
        partition: str,
        instant: str,
        numbers: LogNumbers,
        compacting: Callable[[], Mapping[FileGroupId, str]],
        *,
        tells_slice: bool = False,
    ) -> None:
        """`numbers` are those of the log files in the partition, also of those that readers do not see.

        `compacting` gives the instant of the pending compaction of each file group that has one. `tells_slice`: write
        stats name the slice that readers see before the log file, whatever its name says; change data capture needs it.
        """
        self._naming = naming
        self._instant = instant
        self._partition = partition
        self._numbers = numbers
        self._compacting = compacting
        self._tells_slice = tells_slice

    def next(self, group: FileSlice, token: str = UNKNOWN_WRITE_TOKEN) -> NewLog:
        """The next log file of a file group, whose newest slice is given: one without files, for one that it begins."""
        base = self.base_instant(group)
        version = self._numbers.get((group.file_id, base), 0) + 1
        name = log_file_name(group.file_id, base, version, token)
        own, before = self._own(group, base), base
        base_file, older = self._naming.appended_to(own)
        if self._tells_slice and self._naming.tells_writers:
            before = group.base_instant or base
            base_file, older = group.base_name, tuple(log.name for log in group.log_files)
        stat = WriteStat(
            partition=self._partition,
            file_id=group.file_id,
            path=path_in(self._partition, name),
            prev_commit=before,
            log_version=version,
            base_file=base_file,
            log_files=(*older, name),
        )
        return NewLog(name, stat)

    def base_instant(self, group: FileSlice) -> str:
        """The time in the names of the group's new log files."""
        return self._naming.instant_for(
            lambda: self._compacting().get((self._partition, group.file_id), group.base_instant or self._instant),
            delta=self._instant,
        )

    def _own(self, group: FileSlice, base: str) -> FileSlice:
        """The slice that the log file belongs to: one that a pending compaction has begun has no base file."""
        if base == group.base_instant:
            return group
        logs = tuple(log for log in group.log_files if log.instant == base)
        return replace(group, base_instant=base, base_file=None, log_files=logs)
