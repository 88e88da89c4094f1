"""Reads of a file in ranges, of which a small file needs one."""

import threading
from dataclasses import replace

from .concurrency import at_once
from .model import FileSlice
from .storage import FileReads

SMALL_FILE_BYTES = 64 << 10
"""A file of so many bytes is read whole, and kept by whoever reads it."""
_MOST_HELD = 4 << 20
_held = threading.BoundedSemaphore(_MOST_HELD >> 16)
"""Larger files that were read whole with their footer are kept for the next read of them: so many bytes in a process,
counted in pieces of 64 KiB."""


class FileRanges:
    """Gives ranges of a file of `size` bytes: called with start and length. A small file is read once, whole."""

    def __init__(self, storage: FileReads, path: str, size: int, content: bytes = b"") -> None:
        """`content` is the whole file, if it is known."""
        self._storage = storage
        self._path = path
        self.size = size
        self._whole = content if content and len(content) == size else None
        self._held_pieces = 0

    def __call__(self, start: int, length: int) -> bytes:
        """The bytes; fewer at the end of the file. Raises StorageError."""
        if start + length > self.size:
            return self._storage.read_range(self._path, start, length)
        if self.size <= SMALL_FILE_BYTES:
            return self.fetch()[start : start + length]
        if self._whole is not None:
            found = self._whole[start : start + length]
            self._let_go()
            return found
        found = self._storage.read_range(self._path, start, length)
        if length == self.size:
            self._hold(found)
        return found

    def _hold(self, whole: bytes) -> None:
        """Keep the file until the next read, if there is room."""
        pieces = -(-len(whole) // SMALL_FILE_BYTES)
        for taken in range(pieces):
            if not _held.acquire(blocking=False):
                for _ in range(taken):
                    _held.release()
                return
        self._whole, self._held_pieces = whole, pieces

    def _let_go(self) -> None:
        pieces, self._held_pieces = self._held_pieces, 0
        if pieces:
            self._whole = None
            _held.release(pieces)

    def __del__(self) -> None:
        self._let_go()

    def fetch(self) -> bytes:
        """The whole of a small file; b"" of any other one."""
        if self._whole is None and self.size <= SMALL_FILE_BYTES:
            self._whole = self._storage.read_range(self._path, 0, self.size)
        return self._whole or b""


def with_small_files(storage: FileReads, file_slice: FileSlice) -> FileSlice:
    """The slice with the content of its small files, which are read at the same time. Raises StorageError."""
    files = [file for file in file_slice.files if 0 < file.size <= SMALL_FILE_BYTES]
    read = at_once(lambda file: FileRanges(storage, file.path, file.size, file.content).fetch(), files)
    known = {file.path: content for file, content in zip(files, read, strict=True)}
    base, logs = file_slice.base_file, file_slice.log_files
    return replace(
        file_slice,
        base_file=base and replace(base, content=known.get(base.path, b"")),
        log_files=tuple(replace(log, content=known.get(log.path, b"")) for log in logs),
    )
