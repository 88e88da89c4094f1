"""Which partitions and files a table has, by listing its storage.

A folder is a partition when it holds `.hoodie_partition_metadata`; one marked folder may lie below another only in
tables that changed their partitioning, and both count (HoodieTableMetadata listing, FSUtils).
"""

from collections.abc import Mapping
from typing import Protocol

from ..files.names import TABLE_FOLDER, is_partition_metafile
from ..storage import Storage

Files = Mapping[str, int]
"""File name -> size in bytes."""


class Lister(Protocol):
    """Where a view learns of files: from storage, or from the metadata table."""

    def partitions(self) -> list[str]:
        """Partition paths, sorted; [""] for a table without partitions."""

    def files(self, partition: str) -> Files: ...


class StorageLister:
    """Lists folders when asked, one request per folder; nothing is cached."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def partitions(self) -> list[str]:
        found: list[str] = []
        pending = [""]
        while pending:
            folder = pending.pop()
            files, folders = self._storage.list_dir(folder)
            if any(is_partition_metafile(file.name) for file in files):
                found.append(folder)
            pending += [f for f in folders if f != TABLE_FOLDER]
        return sorted(found)

    def files(self, partition: str) -> Files:
        files, _ = self._storage.list_dir(partition)
        return {file.name: file.size for file in files}
