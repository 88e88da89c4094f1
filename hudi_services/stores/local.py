"""A folder of the local file system as a storage: it is read as `local_folder` says, and written by obstore.

obstore writes `<name>#<n>`, and makes it `<name>` when it is whole: by a hard link where no file may be overwritten,
else by a rename.
"""

import functools
import os
import sys
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import IO

import obstore
from obstore.store import LocalStore

from ..errors import NotFound
from ..limits import LARGEST_FILE
from ..request_counts import Asked, count
from ..storage import FileInfo, StoreCapabilities
from ..urls import absolute_path, local_path
from .base import BaseStorage
from .local_folder import LocalFolder
from .upload import open_output


class LocalStorage(BaseStorage):
    """`Storage` below a local folder, which may be a link; no link below it is followed."""

    capabilities = StoreCapabilities(atomic_create=True, conditional_replace=True, renames=True)

    def __init__(self, url: str) -> None:
        super().__init__(absolute_path(local_path(url) or url))
        self._folder = LocalFolder(self._root)

    @property
    def _backend(self) -> LocalStore:
        return _local_store(self._root)

    def check_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._check_way(path)

    def _check_way(self, path: str) -> None:
        """As `_check_path`, and that no folder on the way is a link."""
        self._check_path(path)
        with self.errors(path):
            self._folder.check_way(path)

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        self._check_path(path)
        count(Asked.GET)
        with self.errors(path):
            return self._folder.read(path, limit)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self._check_path(path)
        count(Asked.GET)
        with self.errors(path):
            return self._folder.read_range(path, start, length)

    def head(self, path: str) -> FileInfo | None:
        self._check_path(path)
        count(Asked.HEAD)
        try:
            with self.errors(path):
                found = self._folder.status(path)
        except NotFound:
            return None
        return None if found is None else _info(path, found)

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self._check_folder(path)
        count(Asked.LIST)
        with self.errors(path):
            return _split(self._folder.list_dir(path))

    def list_new(self, path: str, known: AbstractSet[str]) -> list[FileInfo]:
        self._check_folder(path)
        count(Asked.LIST)
        with self.errors(path):
            return [_info(*file) for file in self._folder.list_new(path, known)]

    def list_tree(self, path: str) -> list[FileInfo]:
        self._check_folder(path)
        count(Asked.LIST)
        with self.errors(path):
            return [_info(*file) for file in self._folder.list_tree(path)]

    def list_few(self, path: str, most: int) -> list[FileInfo] | None:
        self._check_folder(path)
        count(Asked.LIST)
        with self.errors(path):
            found = [_info(*file) for file in islice(self._folder.list_tree(path), most + 1)]
        return found if len(found) <= most else None

    def list_staged(self) -> list[FileInfo]:
        count(Asked.LIST)
        with self.errors(""):
            return [_info(*file) for file in self._folder.list_staged()]

    def create(self, path: str, data: bytes) -> None:
        self._check_way(path)
        count(Asked.CONDITIONAL_PUT)
        with self.errors(path):
            obstore.put(self._backend, path, data, mode="create", use_multipart=False)

    def put(self, path: str, data: bytes) -> None:
        self._check_path(path)
        count(Asked.PUT)
        with self.errors(path):
            self._folder.prepare_put(path)
            obstore.put(self._backend, path, data)

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        with self._folder.exclusive(path) as is_ours:
            found = self.head(path) if is_ours else None
            if found is None or (found, found.tag) != (seen, seen.tag):
                return False
            self.put(path, data)
            return True

    def open_output(self, path: str) -> IO[bytes]:
        self._check_way(path)
        return open_output(self, self._backend, path, sys.maxsize)

    def delete(self, path: str) -> None:
        self._check_path(path)
        count(Asked.DELETE)
        with self.errors(path):
            self._folder.unlink(path)

    def delete_output(self, path: str) -> None:
        self.delete(path)
        with self.errors(path):
            self._folder.unlink_staged(path)

    def delete_tree(self, path: str) -> None:
        self._check_path(path)
        with self.errors(path):
            if self._folder.remove_tree(path):
                count(Asked.DELETE)

    def make_folder(self, path: str) -> None:
        self._check_path(path)
        with self.errors(path):
            self._folder.make(path)

    def remove_empty_dirs(self, path: str) -> None:
        self._check_path(path)
        with self.errors(path):
            self._folder.remove_empty_dirs(path)

    def move(self, source: str, target: str) -> None:
        self._check_path(source)
        self._check_path(target)
        count(Asked.RENAME)
        with self.errors(source):
            self._folder.move(source, target)


@functools.lru_cache(maxsize=64)
def _local_store(root: str) -> LocalStore:
    return LocalStore(root)


def _split(entries: Iterable[tuple[str, os.stat_result | None]]) -> tuple[list[FileInfo], list[str]]:
    files: list[FileInfo] = []
    folders: list[str] = []
    for path, status in entries:
        if status is None:
            folders.append(path)
        else:
            files.append(_info(path, status))
    return files, folders


def _info(path: str, status: os.stat_result) -> FileInfo:
    # The tag has the time of the last change of any kind (ctime), too: programs can set the other times.
    tag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ctime_ns:x}"
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000, tag)
