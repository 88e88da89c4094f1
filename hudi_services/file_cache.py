"""Files that never change once they are written, read once by this process.

Instants, archived files and the files of the metadata table are such. A name alone proves nothing: an instant that was
rolled back may be written again under its name. So a file is known by all that the listing of the present look tells
of it, size, modification time and the store's tag; whatever differs there is another file, and is read. Where the store
gives no tags nothing is kept. What may be written anew in its place (hoodie.properties, inflight instants, leases) is
not for this cache.

Kept are bytes as they are stored, never what was made of them: what is damaged is refused anew by whoever decodes it.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from .limits import LARGEST_FILE, MIB, check_size
from .storage import FileInfo, Storage

_LIMIT = 64 * MIB
"""Bytes that a process keeps."""
_LARGEST_SHARE = 8
"""What takes more than this part of the cache would drive everything else out, and is read each time."""

_Key = tuple[Hashable, str, int, int, str, int, int]
"""Identity of the storage; path, size, modification time and tag of a file; start and length of the piece."""


class FileCache:
    """Keeps what was read last, up to `limit` bytes.

    Several threads may use it, and none waits for the read of another one: those that want the same file at the same
    moment both read it.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, storage: Storage, file: FileInfo, limit: int = LARGEST_FILE) -> bytes:
        """The whole file, which a listing told of; raises what `Storage.read` raises."""
        check_size(storage.full_path(file.path), file.size, limit)
        return self._get(_key(storage, file, 0, file.size), lambda: storage.read(file.path, limit))

    def read_range(self, storage: Storage, file: FileInfo, start: int, length: int) -> bytes:
        """A piece of the file; raises what `Storage.read_range` raises."""
        return self._get(_key(storage, file, start, length), lambda: storage.read_range(file.path, start, length))

    def forget(self) -> None:
        """Keep nothing of what was read so far."""
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
        # Of another length it is not what was listed: a writer was faster than we, or the bytes are cut off.
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
        """Another process has its own."""
        return (shared_cache, ())


def _key(storage: Storage, file: FileInfo, start: int, length: int) -> _Key | None:
    if not file.tag:
        return None
    return (storage.identity, file.path, file.size, file.mtime_millis, file.tag, start, length)


_shared = FileCache()


def shared_cache() -> FileCache:
    """The one of this process, for all tables."""
    return _shared
