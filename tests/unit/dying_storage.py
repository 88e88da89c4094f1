"""Storages of any store that die: after a number of writes nothing works, as if the process had been killed."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from hudi_services.storage import FileInfo, Storage
from hudi_services.stores.base import BaseStorage

from .faulty_storage import Killed


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


class _Mortal(BaseStorage):
    """The part of a storage that writes, and looks before it does."""

    life: Life

    def create(self, path: str, data: bytes) -> None:
        self.life.write("create", path)
        super().create(path, data)

    def put(self, path: str, data: bytes) -> None:
        self.life.write("put", path)
        super().put(path, data)

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        self.life.write("replace", path)
        return super().replace(path, data, seen)

    def delete(self, path: str) -> None:
        self.life.write("delete", path)
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
        self.life.write("write", path)
        return super().open_output(path)

    def move(self, source: str, target: str) -> None:
        self.life.write("move", source)
        super().move(source, target)

    def head(self, path: str) -> FileInfo | None:
        self.life.check()
        return super().head(path)

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self.life.check()
        return super().list_dir(path)

    def elsewhere(self, url: str) -> Storage:
        return dying(super().elsewhere(url), self.life)


def dying(storage: Storage, life: Life) -> Storage:
    """The same storage, for a process that has this life."""
    kind: Any = type(storage)
    mortal = object.__new__(type(f"Mortal{kind.__name__}", (_Mortal, kind), {}))
    vars(mortal).update(vars(storage), life=life)
    found: Storage = mortal
    return found
