"""The check of the partition `files`: the listing against the committed files on storage, with their sizes.

Where names are not enough the commit decides: a file of its instant that the commit does not name was left by a
repeated task. The differences of a partition that has no files, but should have some by the commits, are reported and
withheld from the repair.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from ..file_names import parse_data_file
from ..file_records.doubts import Doubt
from ..file_records.expected_state import ExpectedState
from ..metadata.metadata_table import MetadataTable
from ..metadata.records.keys import ALL_PARTITIONS_KEY, FILES, partition_id, partition_of
from ..metadata.records.model import FileEntry, FilesRecord, Record, RecordType
from ..model import DataFile
from ..table.view import CHANGE_DATA
from .model import Difference, DifferenceKind, Finding, Unsure

_GONE = FileEntry(0, deleted=True)
_MISSING = "no file of the partition is stored, although commits list files in it"


class FilesCheck:
    """Compares the partitions of the table one by one; `committed` are the base and log files that readers may open."""

    def __init__(self, metadata: MetadataTable, state: ExpectedState) -> None:
        self._state = state
        listings = {record.key: _names(record) for record in metadata.reader(FILES).scan()}
        listed = listings.pop(ALL_PARTITIONS_KEY, {})
        self._listed = frozenset(map(partition_of, listed))
        self._listings = {partition_of(key): names for key, names in listings.items() if names}
        self.checked = 0
        self.committed: dict[str, list[DataFile]] = {}
        self.missing: list[str] = []
        """Partitions that have no files, but should have some."""

    def run(self, only: Collection[str] | None) -> Iterator[Finding]:
        """All differences, or those of the partitions `only`."""
        partitions = sorted(self._state.partitions | self._listed | self._listings.keys())
        for partition in partitions if only is None else sorted(only):
            if not self._state.is_missing(partition, self._listings.get(partition, {})):
                yield from self._at(partition)
                continue
            self.missing.append(partition)
            for one in self._at(partition):
                yield (
                    replace(one, withheld=True, detail=f"{one.detail}; {_MISSING}")
                    if isinstance(one, Difference)
                    else one
                )

    def _at(self, partition: str) -> Iterator[Finding]:
        stored, listed = self._state.files(partition), self._listings.get(partition, {})
        self.checked += len(listed) + (partition in self._listed)
        committed: list[DataFile] = []
        for name in sorted(stored.keys() | listed.keys()):
            found = self._compare(partition, name, stored.get(name), listed.get(name))
            if found is not None:
                yield found
            file = parse_data_file(partition, name, stored.get(name, 0))
            if file is not None and name in stored and self._is_readable(file, found):
                committed.append(file)
        self.committed[partition] = committed
        if partition not in self._listed and committed:
            yield _of_partition(DifferenceKind.PARTITION_MISSING, partition, FileEntry(0))
        if partition in self._listed - self._state.partitions and not stored and partition:
            if self._state.is_partition_going(partition):
                yield Unsure(FILES, partition, None, Doubt.GOING)
            elif self._state.is_written_to:
                yield Unsure(FILES, partition, None, Doubt.PENDING_WRITES)
            else:
                yield _of_partition(DifferenceKind.STALE_PARTITION, partition, _GONE)

    def _compare(self, partition: str, name: str, stored: int | None, listed: int | None) -> Finding | None:
        if stored is None:
            if self._state.is_going(partition, name):
                return Unsure(FILES, partition, name, Doubt.GOING)
            return _of_file(
                DifferenceKind.STALE_FILE, partition, name, _GONE, f"{listed} bytes are listed, nothing is stored"
            )
        file = parse_data_file(partition, name, stored)
        if file is None or self._state.is_going(partition, name):
            return None
        is_committed = self._state.is_committed(file)
        if listed is None:
            needed = is_committed and self._state.must_be_listed(file)
            if isinstance(needed, Doubt):
                return Unsure(FILES, partition, name, needed)
            detail = f"{stored} bytes are stored, nothing is listed"
            return _of_file(DifferenceKind.FILE_MISSING, partition, name, FileEntry(stored), detail) if needed else None
        if not is_committed:
            is_hidden = self._state.is_hidden(file.instant)
            return Unsure(FILES, partition, name, Doubt.HIDDEN if is_hidden else Doubt.GONE_INSTANT)
        if listed != stored:
            if stored > listed and self._state.may_grow(file):
                return Unsure(FILES, partition, name, Doubt.GROWING)
            detail = f"{listed} bytes are listed, {stored} are stored"
            return _of_file(DifferenceKind.WRONG_SIZE, partition, name, FileEntry(stored), detail)
        return None

    def _is_readable(self, file: DataFile, finding: Finding | None) -> bool:
        """Whether the file's other records must be right: it is or should be listed, and no pending plan deletes it."""
        if file.name.endswith(CHANGE_DATA) or self._state.is_going(file.partition, file.name):
            return False
        if isinstance(finding, Unsure):
            return finding.reason is Doubt.GROWING
        return finding is not None or file.name in self._listings.get(file.partition, {})


def _names(record: Record) -> dict[str, int]:
    entries = record.entries.items() if isinstance(record, FilesRecord) else ()
    return {name: entry.size for name, entry in entries if not entry.deleted}


def _of_file(kind: DifferenceKind, partition: str, name: str, entry: FileEntry, detail: str) -> Difference:
    key = partition_id(partition)
    wanted = FilesRecord(key, RecordType.FILES, {name: entry})
    return Difference(FILES, kind, key, partition, name, None, detail, lambda: wanted)


def _of_partition(kind: DifferenceKind, partition: str, entry: FileEntry) -> Difference:
    wanted = FilesRecord(ALL_PARTITIONS_KEY, RecordType.ALL_PARTITIONS, {partition_id(partition): entry})
    detail = "listed, and there is no such folder" if entry.deleted else "not listed, and has committed files"
    return Difference(FILES, kind, ALL_PARTITIONS_KEY, partition, None, None, detail, lambda: wanted)
