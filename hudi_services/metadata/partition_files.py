"""The files of the metadata table's partitions, as a snapshot first listed them, and what their names tell."""

from collections.abc import Iterable, Mapping, Sequence

from ..concurrency import at_once
from ..file_names import parse_data_file
from ..paths import bare_name
from ..recent import Recent
from ..storage import FileInfo, Storage
from ..table.log_naming import INITIALISATION
from ..table.new_logs import LogNumbers, log_numbers
from ..table_config import METADATA_TABLE_FOLDER


class PartitionFiles:
    """The files of each partition by name; a partition is listed when it is asked for."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._listed: dict[str, dict[str, FileInfo]] = {}
        self._numbers: dict[str, LogNumbers] = {}
        self._earliest: dict[str, frozenset[str]] = {}
        self._seen: dict[str, set[str]] = {}
        self._look: dict[str, Recent[None]] = {}

    def __contains__(self, partition: str) -> bool:
        """Whether the partition was listed."""
        return partition in self._listed

    def know(self, folders: Mapping[str, Sequence[FileInfo]], partitions: Iterable[str]) -> None:
        """Take all that is in these partitions from files that were listed already, by folder."""
        for partition in partitions:
            self._listed[partition] = {file.name: file for file in folders.get(_folder(partition), ())}

    def take(self, other: "PartitionFiles") -> None:
        """Take what another snapshot listed, of which nothing has changed since."""
        self._listed, self._numbers, self._earliest = dict(other._listed), dict(other._numbers), dict(other._earliest)

    def of(self, partition: str) -> Mapping[str, FileInfo]:
        """The files of the partition by name, as they were first listed."""
        if partition not in self._listed:
            self._listed[partition] = self.stored(partition)
        return self._listed[partition]

    def stored(self, partition: str) -> dict[str, FileInfo]:
        """The files of the partition by name now."""
        return {file.name: file for file in self._storage.list_dir(_folder(partition))[0]}

    def look_into(self, partitions: Iterable[str]) -> None:
        """List these partitions at the same time."""
        at_once(self.of, (partition for partition in partitions if partition not in self))

    def names_now(self, partition: str) -> Iterable[str]:
        """The names in the partition's folder lately, see `Recent`, and those that were ever seen there."""
        if partition not in self:
            return self.of(partition).keys()
        if partition not in self._look:
            seen = self._seen[partition] = {*self.of(partition)}

            def look() -> None:
                seen.update(file.name for file in self._storage.list_new(_folder(partition), seen))

            self._look[partition] = Recent(look)
        self._look[partition]()
        return self._seen[partition]

    def log_numbers(self, partition: str) -> LogNumbers:
        """The numbers that the log files of the partition have."""
        if partition not in self._numbers:
            self._numbers[partition] = log_numbers(self.of(partition))
        return self._numbers[partition]

    def earliest_instants(self, partition: str) -> frozenset[str]:
        """The earliest instant in the names of the partition's files, and those at which it was initialised."""
        if partition not in self._earliest:
            instants = {_instant(name) for name in self.of(partition)} - {""}
            first = {min(instants)} if instants else set[str]()
            self._earliest[partition] = frozenset(
                first.union(instant for instant in instants if instant.startswith(INITIALISATION))
            )
        return self._earliest[partition]

    def handed_on(self, written: Iterable[FileInfo], deleted: Iterable[str]) -> "PartitionFiles":
        """These files with those that the caller has `written` since, without those that it has `deleted` (paths)."""
        found = PartitionFiles(self._storage)
        found.take(self)
        found._seen, found._look = dict(self._seen), dict(self._look)
        for file in written:
            found._add(partition_in(file.path), file)
        for path in deleted:
            found._remove(partition_in(path), bare_name(path))
        return found

    def _add(self, partition: str, file: FileInfo) -> None:
        if partition not in self:
            return
        self._listed[partition] = {**self._listed[partition], file.name: file}
        if partition in self._seen:
            self._seen[partition].add(file.name)
        if partition in self._numbers:
            self._numbers[partition] = log_numbers([file.name], self._numbers[partition])
        instant = _instant(file.name)
        if instant.startswith(INITIALISATION) or instant <= min(self._earliest.get(partition, ()), default=instant):
            self._earliest.pop(partition, None)

    def _remove(self, partition: str, name: str) -> None:
        if partition not in self:
            return
        self._listed[partition] = {one: file for one, file in self._listed[partition].items() if one != name}
        if _instant(name) in self._earliest.get(partition, ()):
            del self._earliest[partition]


def partition_in(path: str) -> str:
    """The metadata partition of a file of the metadata table."""
    return path[len(METADATA_TABLE_FOLDER) + 1 :].rpartition("/")[0]


def _instant(name: str) -> str:
    file = parse_data_file("", name, 0)
    return "" if file is None else file.instant


def _folder(partition: str) -> str:
    return f"{METADATA_TABLE_FOLDER}/{partition}"
