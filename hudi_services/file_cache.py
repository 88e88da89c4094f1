"""A cache in this process for files that never change once they are written.

Such files are instants, archive files and the files of the metadata table. A name does not identify a file: an instant
that was rolled back may be written again under its name. So the key of a file also has its size, modification time and
the store's tag, all from the listing; a file that differs in one of them is read. A file without a tag is never kept.
Files that may be overwritten (hoodie.properties, inflight instants, leases) do not belong in this cache.

The cache keeps the stored bytes, never decoded values: the decoder refuses a damaged file each time.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from .limits import LARGEST_FILE, MIB, check_size
from .storage import FileInfo, Storage

_LIMIT = 64 * MIB
"""Bytes that a process keeps."""
_LARGEST_SHARE = 8
"""A piece of more than the limit divided by this is read each time: it would displace everything else."""

_Key = tuple[Hashable, str, int, int, str, int, int]
"""Identity of the storage; path, size, modification time and tag of a file; start and length of the piece."""


class FileCache:
    """Keeps the pieces of files that were used last, up to `limit` bytes.

    Several threads may use it, and none waits for the read of another: two threads that want the same piece at the
    same moment both read it.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, storage: Storage, file: FileInfo, limit: int = LARGEST_FILE) -> bytes:
        """The whole of a listed file; raises what `Storage.read` raises."""
        check_size(storage.full_path(file.path), file.size, limit)
        return self._get(_key(storage, file, 0, file.size), lambda: storage.read(file.path, limit))

    def read_range(self, storage: Storage, file: FileInfo, start: int, length: int) -> bytes:
        """A piece of the file; raises what `Storage.read_range` raises."""
        return self._get(_key(storage, file, start, length), lambda: storage.read_range(file.path, start, length))

    def forget(self) -> None:
        """Drop everything that is kept."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    @property
    def kept_bytes(self) -> int:
        return self._bytes

    def _get(self, key: _Key | None, read: Callable[[], bytes]) -> bytes:
        if key is None or key[-1] > self._limit // _LARGEST_SHARE:
            return read()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        # Not under the lock: others must not wait for this read.
        data = read()
        # With another length, the data is not the listed file: a writer has replaced it, or the bytes are cut off.
        if len(data) == key[-1]:
            self._keep(key, data)
        return data

    def _keep(self, key: _Key, data: bytes) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = data
            self._bytes += len(data)
            while self._bytes > self._limit:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= len(dropped)

    def __reduce__(self) -> tuple[Callable[[], "FileCache"], tuple[()]]:
        """Pickle as a reference to the cache of the process that unpickles it."""
        return (shared_cache, ())


def _key(storage: Storage, file: FileInfo, start: int, length: int) -> _Key | None:
    if not file.tag:
        return None
    return (storage.identity, file.path, file.size, file.mtime_millis, file.tag, start, length)


_shared = FileCache()


def shared_cache() -> FileCache:
    """The cache of this process, for all tables."""
    return _shared
