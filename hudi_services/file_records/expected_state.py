"""The expected state: the data files by storage and timeline, with which the metadata table must agree."""

from collections.abc import Collection

from ..computed_once import cached_property
from ..errors import CorruptFile, NotFound
from ..file_names import parse_data_file
from ..log_files.log_reader import stored_blocks
from ..metadata.records.keys import bloom_filter_key
from ..model import DataFile, LogFile
from ..snapshot import Snapshot
from ..table.partitions import Files, StorageLister
from .doubts import Doubt


class ExpectedState:
    """The expected state of `table`. Lists storage after `table` was opened: a write that begins later is not on the
    timeline of `table`, so that its files do not count as committed."""

    def __init__(self, table: Snapshot, *, drop_missing: bool = False, only: Collection[str] | None = None) -> None:
        """List all partitions, or `only` some. `drop_missing`: a partition without any file counts as deleted, despite
        the timeline."""
        self._table = table
        self._drop_missing = drop_missing
        self._missing: set[tuple[str, str]] = set()
        self._lister = StorageLister(table.storage)
        self.partitions = frozenset(self._lister.partitions() if only is None else only)
        """Folders with a partition metafile."""
        self._ledger = table.ledger

    def files(self, partition: str) -> Files:
        """All base and log files of a partition, committed or not."""
        stored = self._lister.files(partition)
        return {name: size for name, size in stored.items() if parse_data_file(partition, name, size) is not None}

    def committed(self, partition: str) -> Files:
        """The files of a partition that readers without a metadata table may open, and that a new one is to list.

        A file of which the timeline tells nothing any more is one of them, as for Hudi. What a pending clean or
        rollback deletes is none.
        """
        found = {}
        for name, size in self.files(partition).items():
            file = parse_data_file(partition, name, size)
            # What a savepoint hides is there again when the savepoint goes.
            counts = file is not None and (self.is_committed(file) or self.is_hidden(file.instant))
            if file is None or not counts or self.is_going(partition, name):
                continue
            # Of a log file that is named after its slice, readers leave out the blocks that do not count.
            if self._is_of_slice(file) or self.must_be_listed(file) is not False:
                found[name] = size
        return found

    def is_committed(self, file: DataFile) -> bool:
        """Whether the instant in the name of the file is completed; a pending compaction names log files, too."""
        is_begun = self._is_of_slice(file) and file.instant in self._ledger.begins_slices
        return is_begun or self._ledger.facts.is_committed(file.instant)

    def is_hidden(self, instant: str) -> bool:
        """Whether a savepoint hides the files of the instant for as long as the savepoint exists."""
        return self._ledger.facts.is_hidden(instant)

    def is_going(self, partition: str, name: str) -> bool:
        """Whether a pending clean or rollback will delete the file, or has deleted it already."""
        return (partition, name) in self._ledger.going

    def is_partition_going(self, partition: str) -> bool:
        """Whether a pending clean will delete the partition, or has deleted its folder already, which comes first."""
        return partition in self._ledger.going_partitions

    def must_be_listed(self, file: DataFile) -> bool | Doubt:
        """Whether the metadata table must list a file of a committed instant that it does not list.

        False when readers do not need the file; a Doubt when that is unknown.
        """
        if isinstance(file, LogFile) and self._is_of_slice(file):
            return self._has_committed_blocks(file)
        if file.instant not in self._ledger.writes:
            return Doubt.ARCHIVED
        names = self._ledger.names_of(file.instant)
        if names is None or file.name in names:
            return Doubt.SILENT_COMMIT if names is None else True
        # A log file that an upgrade has left is named after the write of its base file. Else a dead task left it.
        return isinstance(file, LogFile) and self._has_committed_blocks(file, but=file.instant)

    @property
    def is_written_to(self) -> bool:
        """Whether a write is pending."""
        return self._ledger.is_written_to

    def may_grow(self, file: DataFile) -> bool:
        """Whether a pending write may be appending to the file."""
        return self._is_of_slice(file) and self.is_written_to

    def is_missing(self, partition: str, listed: Collection[str]) -> bool:
        """Whether a partition has no files although, by commits and cleans, its `listed` files should exist.

        Its folder may not be mounted, or be invisible for a while. Its files then count as existing in the search for
        records of deleted files.
        """
        if self._drop_missing or not listed or self.files(partition):
            return False
        live = (file for one in self._table.view.latest_slices(partition) for file in one.files)
        if all((partition, file.name) in self._ledger.cleaned for file in live):
            return False
        self._missing.update((partition, name) for name in listed)
        return True

    @cached_property
    def file_keys(self) -> frozenset[str]:
        """The ends of record keys for all files that exist, are being deleted, or are in missing partitions."""
        there = {(partition, name) for partition in self.partitions for name in self.files(partition)}
        return frozenset(bloom_filter_key(*file) for file in there | self._ledger.going | self._missing)

    def _is_of_slice(self, file: DataFile) -> bool:
        """Whether it is a log file whose name has the instant of its slice; an upgrade leaves such names, too."""
        if not isinstance(file, LogFile):
            return False
        return self._table.log_naming.writer(file) is None or file.instant in self._ledger.begins_slices

    def _has_committed_blocks(self, log: LogFile, but: str = "") -> bool | Doubt:
        """Whether a log file has blocks of completed writes, or of completed rollbacks, which cancel others; `but` is
        the time of a write that does not count."""
        try:
            instants = {block.instant for block in stored_blocks(self._table.storage, log)}
        except (CorruptFile, NotFound):
            return Doubt.LOG_OF_SLICE
        cancels, is_committed = self._ledger.cancels, self._ledger.facts.is_committed
        return any(one in cancels or is_committed(one) for one in instants if one is not None and one != but)
