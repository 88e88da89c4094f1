"""The partitions and files of a table, listed from its storage.

A folder is a partition when it holds `.hoodie_partition_metadata`. A marked folder may be below another one only in
tables that changed their partitioning, and both count (HoodieTableMetadata listing, FSUtils).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from ..concurrency import at_once
from ..errors import UnsupportedTable
from ..file_names import is_partition_metafile
from ..paths import TABLE_FOLDER, is_addressable
from ..storage import Storage

_REQUESTS_AT_ONCE = 32
_MOST_KEPT = 1_000_000
"""The files that a lister keeps of those that it saw while it looked for partitions; others are listed again."""

Files = Mapping[str, int]
"""File name -> size in bytes."""


class Lister(Protocol):
    """The source of a view's file listings: storage, or the metadata table."""

    def partitions(self) -> list[str]:
        """Partition paths, sorted; [""] for a table without partitions."""

    def files(self, partition: str) -> Files: ...

    def load(self, partitions: Sequence[str]) -> None:
        """Prepare for calls of `files` for these partitions: listing many at once costs less than one by one."""

    def each(self, partitions: Sequence[str]) -> Iterator[tuple[str, Files]]:
        """These partitions, which ascend, with their files, one after the other; what was read is not kept."""


class ListedFiles:
    """A lister of files that are known already, by partition."""

    def __init__(self, files: Mapping[str, Files]) -> None:
        self._files = files

    def partitions(self) -> list[str]:
        return sorted(self._files)

    def files(self, partition: str) -> Files:
        return self._files[partition]

    def load(self, partitions: Sequence[str]) -> None:
        pass

    def each(self, partitions: Sequence[str]) -> Iterator[tuple[str, Files]]:
        return ((one, self._files[one]) for one in partitions)


def check_addressable(root: str, partitions: Iterable[str]) -> None:
    """Raise UnsupportedTable for a partition whose path stores refuse."""
    odd = next((partition for partition in partitions if not is_addressable(partition)), None)
    if odd is not None:
        raise UnsupportedTable(
            f"{root} has the partition {odd!r}, and control characters in paths are not supported",
            hint="rewrite its rows with hoodie.datasource.write.partitionpath.urlencode=true (%XX in the path), or "
            "delete the folder if it is not the table's",
        )


class StorageLister:
    """Lists folders on demand, one request per folder; keeps the listings of `load`, and of `partitions` the first."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen: dict[str, Files] = {}

    def partitions(self) -> list[str]:
        self._seen = {}
        found: list[str] = []
        kept = 0
        level = [""]
        while level:
            below: list[str] = []
            listed = at_once(self._storage.list_dir, level, _REQUESTS_AT_ONCE)
            for folder, (files, folders) in zip(level, listed, strict=True):
                if any(is_partition_metafile(file.name) for file in files):
                    found.append(folder)
                    kept += len(files)
                    if kept <= _MOST_KEPT:
                        self._seen[folder] = {file.name: file.size for file in files}
                below += [f for f in folders if f != TABLE_FOLDER]
            level = below
        check_addressable(self._storage.root, found)
        return sorted(found)

    def has(self, partition: str) -> bool:
        """Whether the partition was listed, and is not listed again."""
        return partition in self._seen

    def files(self, partition: str) -> Files:
        seen = self._seen.get(partition)
        if seen is not None:
            return seen
        return self._list(partition)

    def load(self, partitions: Sequence[str]) -> None:
        missing = [partition for partition in partitions if partition not in self._seen]
        self._seen.update(zip(missing, at_once(self._list, missing, _REQUESTS_AT_ONCE), strict=True))

    def each(self, partitions: Sequence[str]) -> Iterator[tuple[str, Files]]:
        for start in range(0, len(partitions), _REQUESTS_AT_ONCE):
            batch = partitions[start : start + _REQUESTS_AT_ONCE]
            yield from zip(batch, at_once(self.files, batch, _REQUESTS_AT_ONCE), strict=True)

    def _list(self, partition: str) -> Files:
        files, _ = self._storage.list_dir(partition)
        return {file.name: file.size for file in files}
