"""Reads of a file in ranges, of which a small file needs one."""

from .storage import FileReads

SMALL_FILE_BYTES = 64 << 10
"""A file of so many bytes is read whole, and kept by whoever reads it."""


class FileRanges:
    """Gives ranges of a file of `size` bytes: called with start and length. A small file is read once, whole."""

    def __init__(self, storage: FileReads, path: str, size: int) -> None:
        self._storage = storage
        self._path = path
        self.size = size
        self._whole: bytes | None = None

    def __call__(self, start: int, length: int) -> bytes:
        """The bytes; fewer at the end of the file. Raises StorageError."""
        if self.size > SMALL_FILE_BYTES or start + length > self.size:
            return self._storage.read_range(self._path, start, length)
        if self._whole is None:
            self._whole = self._storage.read_range(self._path, 0, self.size)
        return self._whole[start : start + length]
