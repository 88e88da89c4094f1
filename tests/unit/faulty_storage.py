"""A storage that dies: after a number of writes, everything fails, as if the process had been killed."""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hudi_services.limits import LARGEST_FILE
from hudi_services.storage import FileInfo, Storage
from hudi_services.stores.base import BaseStorage
from hudi_services.stores.local import LocalStorage

from .shares import share


class Killed(BaseException):
    """Not an Exception: no handler of ours may swallow it."""


@dataclass
class Life:
    """How many files a process may still write, and what it has written; None: all, or those up to the first whose path
    has the pattern `last`."""

    left: int | None = None
    last: str | None = None
    log: list[str] = field(default_factory=list)

    def write(self, what: str, path: str) -> None:
        """Raise Killed for the write that the process does not live to see."""
        self.check()
        if self.left == 0:
            self.left = -1
            raise Killed(f"{what} {path}")
        if self.left is not None:
            self.left -= 1
        self.log.append(f"{what} {path}")
        if self.last is not None and re.search(self.last, path):
            self.left = 0

    @property
    def is_over(self) -> bool:
        return self.left == -1

    def check(self) -> None:
        if self.is_over:
            raise Killed("dead already")


class Mortal(BaseStorage):
    """The part of a storage that writes files, as long as its process lives."""

    life: Life

    def _write(self, what: str, path: str) -> None:
        self.life.write(what, path)

    def create(self, path: str, data: bytes) -> None:
        self._write("create", path)
        super().create(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._write("put", path)
        super().put(path, data)

    def delete(self, path: str) -> None:
        self._write("delete", path)
        super().delete(path)

    def delete_all(self, paths: Sequence[str], done: Callable[[int], None]) -> None:
        for path in paths:
            self.delete(path)
            done(1)

    def delete_tree(self, path: str) -> None:
        for file in self.list_tree(path):
            self.delete(file.path)
        super().delete_tree(path)

    def open_output(self, path: str) -> IO[bytes]:
        self._write("write", path)
        return super().open_output(path)

    def move(self, source: str, target: str) -> None:
        self._write("move", source)
        super().move(source, target)

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self.life.check()
        return super().list_dir(path)


class FaultyStorage(Mortal, LocalStorage):
    """Local storage that lets `writes` changes through; the next one does not happen, and nothing works after it."""

    def __init__(self, url: str, writes: int | None = None) -> None:
        super().__init__(url)
        self.life = Life(writes)

    @property
    def left(self) -> int | None:
        return self.life.left

    @left.setter
    def left(self, writes: int | None) -> None:
        self.life.left = writes

    @property
    def log(self) -> list[str]:
        return self.life.log

    def _alive(self) -> None:
        self.life.check()

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        self._alive()
        return super().read(path, limit)

    def list_new(self, path: str, known: AbstractSet[str]) -> Any:
        self._alive()
        return super().list_new(path, known)

    def remove_empty_dirs(self, path: str) -> None:
        self._alive()
        super().remove_empty_dirs(path)

    def elsewhere(self, url: str) -> "Storage":
        return _Elsewhere(url, self)


class _Elsewhere(LocalStorage):
    """Another folder, of the same process."""

    def __init__(self, url: str, of: FaultyStorage) -> None:
        super().__init__(url)
        self._of = of

    def open_output(self, path: str) -> IO[bytes]:
        self._of._write("write", path)
        return super().open_output(path)


def killed_anywhere(path: Path, run: Callable[[FaultyStorage], object], number: int, of: int) -> Iterator[int]:
    """Runs of a job on the table at `path`, each killed after another number of writes, which is yielded.

    Each begins with the table as it is now; `number` and `of` as for `share`.
    """
    made = shutil.copytree(path, path.with_name(f"{path.name}, as made"))

    def killed(writes: int | None) -> FaultyStorage:
        shutil.rmtree(path)
        shutil.copytree(made, path)
        storage = FaultyStorage(str(path), writes)
        with suppress(Killed):
            run(storage)
        return storage

    total = len(killed(None).log)
    assert total > 20
    for survived in share(range(total), number, of):
        killed(survived)
        yield survived
