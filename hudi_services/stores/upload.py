"""A sequential writer on obstore, whose failures (disk full, credentials expired) raise the errors of the storage."""

from typing import IO, Any, cast

import obstore

from .base import BaseStorage

_CHUNK = 8 * 1024 * 1024
_CHUNKS_AT_ONCE = 4
"""Chunks of a written file that are uploaded at once: with a slow store they must not gather in memory."""


def open_output(storage: BaseStorage, store: Any, path: str) -> IO[bytes]:
    """A writer of the file at `path` in obstore's `store`, which belongs to `storage`."""
    with storage.errors(path):
        raw = obstore.open_writer(store, path, buffer_size=_CHUNK, max_concurrency=_CHUNKS_AT_ONCE)
    return cast(IO[bytes], _Writer(storage, path, raw))


class _Writer:
    def __init__(self, storage: BaseStorage, path: str, raw: Any) -> None:
        self._storage = storage
        self._path = path
        self._raw = raw

    def write(self, data: bytes) -> int:
        with self._storage.errors(self._path):
            return int(self._raw.write(data))

    def close(self) -> None:
        with self._storage.errors(self._path):
            self._raw.close()
