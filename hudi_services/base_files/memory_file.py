"""A base file in memory: written, and read again, by the same process."""

import io
from typing import IO

from ..storage import FileInfo
from .file_reader import BaseFileReader


class MemoryFile:
    """As a storage of one file; it has any path."""

    def __init__(self, full_path: str) -> None:
        """`full_path`: for messages."""
        self._full_path = full_path
        self._data = b""

    def full_path(self, path: str) -> str:
        return self._full_path

    def open_output(self, path: str) -> IO[bytes]:
        return _Output(self)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self._data[start : start + length]

    def head(self, path: str) -> FileInfo:
        return FileInfo(path, len(self._data), 0)

    def open(self, path: str) -> BaseFileReader:
        """A reader of the base file that was written."""
        return BaseFileReader.open(self, path)

    def publish(self, data: bytes) -> None:
        """What the file holds from now on."""
        self._data = data


class _Output(io.BytesIO):
    """The file has its bytes when it is closed."""

    def __init__(self, file: MemoryFile) -> None:
        super().__init__()
        self._file = file

    def close(self) -> None:
        self._file.publish(self.getvalue())
        super().close()
