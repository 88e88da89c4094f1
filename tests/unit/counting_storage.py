"""Local storage that records every request, and may delay each request as an object store does."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from hudi_services.limits import LARGEST_FILE
from hudi_services.storage import FileInfo
from hudi_services.stores.local import LocalStorage

from .quiet import Quiet

READS = frozenset({"read", "read_range"})
_LEASE = re.compile(r"\.hoodie/\.locks/hudi_services/table\.[0-9]+\.json")
_RETURNED = b'"validUntil": 0'
_KINDS = {
    "lease or lock": r"\.hoodie/(\.locks/.*|lock)",
    "properties": r"(.*/)?hoodie\.properties(\.backup)?",
    "index definitions": r"\.hoodie/\.index_defs/.*",
    "archive": r"(.*/)?(history|archived)/.*",
    "inflight instant": r"\.hoodie/(metadata/\.hoodie/)?(timeline/)?[0-9_]+(\.[a-z]+)?\.inflight",
    "metadata table: instant": r"\.hoodie/metadata/\.hoodie/(timeline/)?[0-9_]+\..*",
    "instant": r"\.hoodie/(timeline/)?[0-9_]+\..*",
    "metadata table: base file": r"\.hoodie/metadata/.*\.hfile",
    "metadata table: log file": r"\.hoodie/metadata/.*\.log\..*",
    "partition metafile": r".*\.hoodie_partition_metadata",
    "own note": r"\.hoodie/\.(hudi_services|temp|heartbeat)/.*",
    "base file": r".*\.parquet",
}
_CHANGING = frozenset({"lease or lock", "properties", "index definitions", "inflight instant", "own note", "other"})
_VERSION_FILES = ("_version_",)


def kind_of(path: str) -> str:
    """What sort of file a path is of."""
    return next((kind for kind, pattern in _KINDS.items() if re.fullmatch(pattern, path)), "other")


def is_immutable(path: str) -> bool:
    """Whether a file never changes once it was written under this path."""
    return kind_of(path) not in _CHANGING and not path.endswith(_VERSION_FILES)


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `what` tells the part that was asked for. Times are seconds of one clock."""

    method: str
    path: str
    what: tuple[int, ...]
    thread: int
    started: float
    ended: float
    locked: bool
    """Whether the lease of the table was held."""

    @property
    def is_read(self) -> bool:
        return self.method in READS

    @property
    def kind(self) -> str:
        return kind_of(self.path)


class CountingStorage(LocalStorage):
    """Notes what an object store would be asked for; `delay` is how many seconds each request takes, or says when it
    ends."""

    def __init__(self, url: str, delay: float | Quiet = 0.0) -> None:
        super().__init__(url)
        self.delay = delay
        self.requests: list[Request] = []
        self._inside = threading.local()
        self._locked = self._bulk = False

    def forget(self) -> None:
        """Begin to count anew."""
        self.requests = []

    @contextmanager
    def request(self, method: str, path: str, *what: int) -> Iterator[None]:
        """A request of the caller's; those of which it is made do not count."""
        if getattr(self._inside, "busy", False):
            yield
            return
        self._inside.busy = True
        started, locked = time.monotonic(), self._locked
        try:
            if isinstance(self.delay, Quiet):
                self.delay.wait()
            elif self.delay:
                time.sleep(self.delay)
            yield
        finally:
            self._inside.busy = False
            thread = threading.get_ident()
            self.requests.append(Request(method, path, what, thread, started, time.monotonic(), locked))

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        with self.request("read", path):
            return super().read(path, limit)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        with self.request("read_range", path, start, length):
            return super().read_range(path, start, length)

    def head(self, path: str) -> FileInfo | None:
        with self.request("head", path):
            return super().head(path)

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        with self.request("list", path):
            return super().list_dir(path)

    def list_new(self, path: str, known: AbstractSet[str]) -> list[FileInfo]:
        with self.request("list", path):
            return super().list_new(path, known)

    def list_tree(self, path: str) -> list[FileInfo]:
        with self.request("list", path):
            return super().list_tree(path)

    def list_few(self, path: str, most: int) -> list[FileInfo] | None:
        with self.request("list", path):
            return super().list_few(path, most)

    def create(self, path: str, data: bytes) -> None:
        if _LEASE.fullmatch(path):
            self._locked = True
        with self.request("create", path):
            super().create(path, data)

    def put(self, path: str, data: bytes) -> None:
        with self.request("put", path):
            super().put(path, data)
        if _LEASE.fullmatch(path) and _RETURNED in data:
            self._locked = False

    def replace(self, path: str, data: bytes, seen: FileInfo) -> bool:
        with self.request("replace", path):
            return super().replace(path, data, seen)

    def delete(self, path: str) -> None:
        if self._bulk:
            super().delete(path)
            return
        with self.request("delete", path):
            super().delete(path)

    def delete_all(self, paths: Sequence[str], done: Callable[[int], None]) -> None:
        # A store takes them in one request.
        with self.request("delete", paths[0] if paths else "", len(paths)):
            self._bulk = True
            try:
                super().delete_all(paths, done)
            finally:
                self._bulk = False

    def delete_tree(self, path: str) -> None:
        with self.request("list", path):
            found = LocalStorage.list_tree(self, path)
        with self.request("delete", path) if found else _nothing():
            super().delete_tree(path)

    def open_output(self, path: str) -> IO[bytes]:
        with self.request("write", path):
            return super().open_output(path)

    def move(self, source: str, target: str) -> None:
        with self.request("move", source):
            super().move(source, target)

    def remove_empty_dirs(self, path: str) -> None:
        # Object stores have no folders.
        super().remove_empty_dirs(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return (LocalStorage, (self.root,))


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def reads_by_kind(requests: Iterable[Request]) -> Counter[str]:
    return Counter(one.kind for one in requests if one.is_read)


def repeated(requests: Iterable[Request]) -> Counter[str]:
    """Immutable objects of which the same bytes were read more than once, with how many times more."""
    counts = Counter((one.path, one.what) for one in requests if one.is_read and is_immutable(one.path))
    found: Counter[str] = Counter()
    for (path, _), count in counts.items():
        if count > 1:
            found[path] += count - 1
    return found


def rounds(requests: Iterable[Request]) -> int:
    """How many requests follow one another: the most of which none began before another had ended."""
    count, end = 0, 0.0
    for one in sorted(requests, key=lambda one: one.ended):
        if one.started >= end:
            count, end = count + 1, one.ended
    return count


def locked_seconds(requests: Iterable[Request]) -> float:
    """How long the lease of the table was held, from the first request under it to the last, each time."""
    total, began, last = 0.0, None, 0.0
    for one in sorted(requests, key=lambda one: one.started):
        if one.locked:
            began, last = one.started if began is None else began, one.ended
        elif began is not None:
            total, began = total + last - began, None
    return total if began is None else total + last - began
