"""Local storage for tests that read a great many small files: without the store's threads, which cost most of it."""

import os
import re

from hudi_services.limits import LARGEST_FILE
from hudi_services.storage import FileInfo

from .faulty_storage import FaultyStorage

_STAGED = re.compile(r".+#[0-9]+")


class QuickStorage(FaultyStorage):
    """As FaultyStorage, but it reads and lists with plain calls. Writes are the store's own."""

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes:
        self._alive()
        with self.errors(path), open(f"{self.root}/{path}", "rb") as file:
            return file.read()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        with self.errors(path), open(f"{self.root}/{path}", "rb") as file:
            file.seek(start)
            return file.read(length)

    def head(self, path: str) -> FileInfo | None:
        try:
            return _info(path, os.stat(f"{self.root}/{path}"))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def list_dir(self, path: str) -> tuple[list[FileInfo], list[str]]:
        self._alive()
        files, folders = [], []
        try:
            with os.scandir(f"{self.root}/{path}") as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    below = f"{path}/{entry.name}" if path else entry.name
                    if entry.is_dir():
                        folders.append(below)
                    elif not _STAGED.fullmatch(entry.name):
                        files.append(_info(below, entry.stat()))
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        return files, folders


def _info(path: str, status: os.stat_result) -> FileInfo:
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)
