"""A sequential writer on obstore, whose failures (disk full, credentials expired) raise the errors of the storage."""

from typing import IO, Any, cast

import obstore

from ..request_counts import count_upload
from .base import BaseStorage

_CHUNK = 8 * 1024 * 1024
_CHUNKS_AT_ONCE = 4
"""Chunks of a written file that are uploaded at once: with a slow store they must not gather in memory."""
CHUNKS_BYTES = _CHUNKS_AT_ONCE * _CHUNK
"""What may be on its way at the same time."""


def open_output(storage: BaseStorage, store: Any, path: str, part: int = _CHUNK) -> IO[bytes]:
    """A writer of the file at `path` in obstore's `store`, which belongs to `storage`.

    The store uploads files from `part` bytes on in parts.
    """
    with storage.errors(path):
        raw = obstore.open_writer(store, path, buffer_size=_CHUNK, max_concurrency=_CHUNKS_AT_ONCE)
    return cast(IO[bytes], _Writer(storage, path, raw, part))


class _Writer:
    def __init__(self, storage: BaseStorage, path: str, raw: Any, part: int) -> None:
        self._storage = storage
        self._path = path
        self._raw = raw
        self._part = part
        self._bytes = 0

    def write(self, data: bytes) -> int:
        with self._storage.errors(self._path):
            written = int(self._raw.write(data))
        self._bytes += written
        return written

    def close(self) -> None:
        with self._storage.errors(self._path):
            self._raw.close()
        count_upload(self._bytes, self._part)
