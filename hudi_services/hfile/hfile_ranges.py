"""Where the bytes of an HFile come from."""

from dataclasses import dataclass
from typing import Protocol

from ..errors import NotFound, Outdated
from ..storage import Storage


class RangeReader(Protocol):
    """A file that is read in pieces. `read` returns exactly `length` bytes or raises."""

    @property
    def size(self) -> int: ...

    def read(self, start: int, length: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class StoredRanges:
    """`RangeReader` of the file `path` of a storage, listed with its size; raises Outdated when it is gone."""

    storage: Storage
    path: str
    size: int

    def read(self, start: int, length: int) -> bytes:
        try:
            return self.storage.read_range(self.path, start, length)
        except NotFound as error:
            raise Outdated.of(error) from error
