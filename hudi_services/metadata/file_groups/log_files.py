"""Names of new log files in the metadata table, by table version.

Version 6: the log file is named after the slice it belongs to, or after the pending compaction of that slice, and takes
the next free number there. Versions 8 and 9: the log file is named after its own delta commit.
Source: HoodieAppendHandle, HoodieLogFormat.WriterBuilder of Apache Hudi.
"""

from dataclasses import dataclass
from functools import cached_property

from ...files.names import UNKNOWN_WRITE_TOKEN, log_file_name, parse_log_file
from ...model import FileSlice, WriteStat
from ...table.facts import compacted_file_groups
from ...table.view import FileGroupId
from ..table import MetadataTable


@dataclass(frozen=True, slots=True)
class NewLog:
    """The next log file of a file group; `stat` is its write stat, without counts and sizes."""

    name: str
    stat: WriteStat


class LogNames:
    """Names the log files that the delta commit or rollback `instant` adds to a partition."""

    def __init__(self, metadata: MetadataTable, partition: str, instant: str) -> None:
        self._naming = metadata.log_naming
        self._instant = instant
        self._partition = partition
        parsed = (parse_log_file(partition, name, size) for name, size in metadata.found_files(partition).items())
        self._stored = [log for log in parsed if log]
        self._metadata = metadata

    def next(self, group: FileSlice) -> NewLog:
        base = self.base_instant(group)
        taken = [log.version for log in self._stored if log.file_id == group.file_id and log.instant == base]
        version = max(taken, default=0) + 1
        name = log_file_name(group.file_id, base, version, UNKNOWN_WRITE_TOKEN)
        base_file, older = self._naming.appended_to(group)
        stat = WriteStat(
            partition=self._partition,
            file_id=group.file_id,
            path=f"{self._partition}/{name}",
            prev_commit=base,
            log_version=version,
            base_file=base_file,
            log_files=(*older, name),
        )
        return NewLog(name, stat)

    def base_instant(self, group: FileSlice) -> str:
        """The time in the names of the group's new log files."""
        return self._naming.instant_for(
            lambda: self._compacting.get((self._partition, group.file_id), group.base_instant), delta=self._instant
        )

    @cached_property
    def _compacting(self) -> dict[FileGroupId, str]:
        return compacted_file_groups(self._metadata.timeline)
