"""Tables in a temporary file on the local disk: each an Arrow IPC stream of its own (LZ4), read again by its number."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import IO, TypeAlias

import pyarrow as pa

from .temporary_files import disk_errors, temporary_file

Place: TypeAlias = tuple[int, int]
"""The first byte of a table in the file, and how many there are."""


class StoredTables:
    """No file is open until a table is appended; close it to free the disk. `task` says what the disk is needed for.

    When all tables are appended, several threads may read them.

    Raises StorageError when the disk is full or fails.
    """

    def __init__(self, task: str, path: Path | None = None) -> None:
        """The file has no name, and is gone when it is closed; unless `path` names it."""
        self._task = task
        self._path = path
        self._places: list[Place] = []
        self._file: IO[bytes] | None = None
        self._lock = Lock()

    @classmethod
    def written(cls, task: str, path: Path, places: Sequence[Place]) -> "StoredTables":
        """Tables that another one has written to the file `path`."""
        found = cls(task, path)
        found._places += places
        if places:
            with disk_errors(task):
                found._file = path.open("rb")
        return found

    @property
    def places(self) -> Sequence[Place]:
        """Where the tables are, by number."""
        return self._places

    def __len__(self) -> int:
        return len(self._places)

    def append(self, table: pa.Table) -> int:
        """Append a table, whose number is that of the tables before it; the bytes that were written."""
        with disk_errors(self._task):
            if self._file is None:
                self._file = temporary_file() if self._path is None else self._path.open("x+b")
            place = self._file.seek(0, 2)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with pa.ipc.new_stream(self._file, table.schema, options=options) as writer:
                writer.write_table(table)
            self._file.flush()
            length = self._file.tell() - place
        self._places.append((place, length))
        return length

    def read(self, number: int) -> pa.Table:
        """The table of this number."""
        place, length = self._places[number]
        with disk_errors(self._task):
            assert self._file is not None, "a table was appended"
            with self._lock:
                self._file.seek(place)
                data = self._file.read(length)
        return pa.ipc.open_stream(data).read_all()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
