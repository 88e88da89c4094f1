"""What storage and the timeline say about the data files of a table, which its metadata table must agree with."""

from collections.abc import Sequence
from functools import cached_property

from ..codecs.clean_plan import CleanerPlan
from ..errors import CorruptFile, NotFound
from ..files.names import parse_base_file, parse_log_file
from ..handle import Table
from ..metadata.keys import bloom_filter_key
from ..model import BaseFile, LogFile
from ..table.facts import TimelineFacts, written_names
from ..table.partitions import Files, StorageLister
from ..timeline.instant import Action, Instant
from .model import Doubt

DataFile = BaseFile | LogFile


class Truth:
    """Lists the storage of `table`, which was opened before: whoever begins to write afterwards is not in its timeline,
    and what he writes not committed for this look."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lister = StorageLister(table.storage)
        self.partitions = frozenset(self._lister.partitions())
        """Folders with a partition metafile."""
        self._facts = TimelineFacts(table.timeline)
        self._writes = {instant.ts: instant for instant in table.timeline.completed_writes()}
        self._names: dict[str, frozenset[str] | None] = {}

    def files(self, partition: str) -> Files:
        """All base and log files of a partition, whoever wrote them."""
        stored = self._lister.files(partition)
        return {name: size for name, size in stored.items() if parse(partition, name, size) is not None}

    def is_committed(self, instant: str) -> bool:
        return self._facts.is_committed(instant)

    def is_hidden(self, instant: str) -> bool:
        """Whether a savepoint hides the files of the instant for as long as it is there."""
        return self._facts.is_hidden(instant)

    def is_going(self, partition: str, name: str) -> bool:
        """Whether a pending clean or rollback is to delete the file, or has done so already."""
        return (partition, name) in self._going_files

    def is_partition_going(self, partition: str) -> bool:
        """Whether a pending clean is to delete the partition, or has done so already: the folder goes first."""
        return partition in self._going_partitions

    def must_be_listed(self, file: DataFile) -> bool | Doubt:
        """Of a file of a committed instant that is not listed. False: readers do not need it."""
        write = self._writes.get(file.instant)
        if write is None:
            return Doubt.ARCHIVED
        names = self._names_of(write)
        if names is None:
            return Doubt.SILENT_COMMIT
        if file.name in names:
            return True
        by_slice = isinstance(file, LogFile) and not self._table.config.version.log_files_carry_delta_instant
        return Doubt.LOG_OF_SLICE if by_slice else False

    @cached_property
    def is_written_to(self) -> bool:
        """Whether a write is pending."""
        return any(instant.action.writes_data for instant in self._table.timeline.pending())

    @cached_property
    def file_keys(self) -> frozenset[str]:
        """Of all files that are there, or are going: what the keys of their records end with."""
        there = {(partition, name) for partition in self.partitions for name in self.files(partition)}
        return frozenset(bloom_filter_key(*file) for file in there | self._going_files)

    @cached_property
    def _pending_cleans(self) -> Sequence[CleanerPlan]:
        timeline = self._table.timeline
        cleans = (*timeline.pending({Action.CLEAN}), *timeline.emptied_cleans())
        return [timeline.read_cleaner_plan(one) for one in cleans if timeline.sizes.get(timeline.requested_name(one))]

    @cached_property
    def _going_partitions(self) -> frozenset[str]:
        return frozenset(partition for plan in self._pending_cleans for partition in plan.partitions_to_delete)

    @cached_property
    def _going_files(self) -> frozenset[tuple[str, str]]:
        timeline = self._table.timeline
        found: set[tuple[str, str]] = set()
        for plan in self._pending_cleans:
            for partition, paths in plan.files.items():
                found |= {(partition, path.rpartition("/")[2]) for path in paths}
        for rollback in timeline.pending({Action.ROLLBACK}):
            if timeline.sizes.get(timeline.requested_name(rollback)):
                for request in timeline.read_rollback_plan(rollback).requests:
                    paths = (*request.files, *request.log_blocks)
                    found |= {(request.partition, path.rpartition("/")[2]) for path in paths}
        return frozenset(found)

    def _names_of(self, write: Instant) -> frozenset[str] | None:
        if write.ts not in self._names:
            try:
                self._names[write.ts] = written_names(self._table.timeline.read_commit(write))
            except (CorruptFile, NotFound):
                self._names[write.ts] = None
        return self._names[write.ts]


def parse(partition: str, name: str, size: int) -> DataFile | None:
    """The base or log file called so."""
    return parse_base_file(partition, name, size) or parse_log_file(partition, name, size)
