"""A third store, which the package does not know: files in a dict of this process, below URLs `dict://…`.

It is a class and a row, as any new store is; `registered` adds the row for a while.
"""

import io
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO
from unittest.mock import patch

from hudi_services.errors import AlreadyExists, NotFound, StorageError
from hudi_services.limits import LARGEST_FILE, check_size
from hudi_services.schemes import SCHEMES, Scheme
from hudi_services.storage import FileInfo, StoreCapabilities
from hudi_services.stores.base import BaseStorage

Files = dict[str, tuple[bytes, int, int]]
"""Content, epoch milliseconds and the number of the write, by URL."""
_files: Files = {}
_writes = itertools.count(1)
_lock = threading.Lock()


@contextmanager
def registered(kind: str = "DictStorage") -> Iterator[Files]:
    """A context in which the store is one of those that URLs can name; its files, which are as before afterwards."""
    before = dict(_files)
    with patch.dict(SCHEMES, {"dict": Scheme(f"{__name__}:{kind}", "dict", takes_options=False)}):
        yield _files
    _files.clear()
    _files.update(before)


class DictStorage(BaseStorage):
    capabilities = StoreCapabilities(atomic_create=True, conditional_replace=True, renames=True)

    def __init__(self, url: str) -> None:
        super().__init__(url.rstrip("/"))

    def _get(self, path: str) -> bytes:
        self._check_path(path)
        try:
            return _files[self.full_path(path)][0]
        except KeyError:
            raise NotFound(f"{self.full_path(path)} does not exist") from None

    def _put(self, path: str, data: bytes) -> None:
        _files[self.full_path(path)] = (bytes(data), int(time.time() * 1000), next(_writes))

    def _info(self, path: str) -> FileInfo:
        data, millis, number = _files[self.full_path(path)]
        return FileInfo(path, len(data), millis, str(number))

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        data = self._get(path)
        check_size(self.full_path(path), len(data), limit)
        return data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self._check_path(path)
        if not length:
            return b""
        data = self._get(path)
        if start >= len(data):
            raise StorageError(f"{self.full_path(path)} has {len(data)} bytes, and none at {start}")
        return data[start : start + length]

    def head(self, path: str) -> FileInfo | None:
        self._check_path(path)
        return self._info(path) if self.full_path(path) in _files else None

    def list_tree(self, path: str) -> list[FileInfo]:
        self._check_folder(path)
        below = f"{self.full_path(path)}/"
        return [self._info(url.removeprefix(f"{self.root}/")) for url in sorted(_files) if url.startswith(below)]

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        depth = path.count("/") + 1 if path else 0
        found = [(file, file.path.split("/")) for file in self.list_tree(path)]
        folders = {"/".join(names[: depth + 1]) for _, names in found if len(names) > depth + 1}
        return [file for file, names in found if len(names) == depth + 1], sorted(folders)

    def create(self, path: str, data: bytes) -> None:
        self._check_path(path)
        with _lock:
            if self.full_path(path) in _files:
                raise AlreadyExists(f"{self.full_path(path)} exists already")
            self._put(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._check_path(path)
        with _lock:
            self._put(path, data)

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        self._check_path(path)
        with _lock:
            found = self.head(path)
            is_same = found is not None and found.tag == seen.tag
            if is_same:
                self._put(path, data)
        return is_same

    def open_output(self, path: str) -> IO[bytes]:
        self._check_path(path)
        return _Output(self, path)

    def delete(self, path: str) -> None:
        self._check_path(path)
        _files.pop(self.full_path(path), None)

    def move(self, source: str, target: str) -> None:
        data = self._get(source)
        self.create(target, data)
        self.delete(source)


class WithoutAtomicCreate(DictStorage):
    capabilities = replace(DictStorage.capabilities, atomic_create=False)

    def create(self, path: str, data: bytes) -> None:
        raise AssertionError(f"it was declared that {path} cannot be created")


class WithoutConditionalReplace(DictStorage):
    capabilities = replace(DictStorage.capabilities, conditional_replace=False)

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        raise AssertionError(f"it was declared that {path} cannot be replaced")


class _Output(io.BytesIO):
    def __init__(self, storage: DictStorage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path

    def close(self) -> None:
        self._storage.put(self._path, self.getvalue())
        super().close()
