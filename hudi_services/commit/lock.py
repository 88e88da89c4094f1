"""Hudi's table lock, held while a plan or a commit is published.

FileSystemBasedLockProvider: `<folder>/lock` exists while somebody holds it; created if absent, deleted on release; a
lock file older than the expiry (minutes, 0 = never) may be taken over. Source: FileSystemBasedLockProvider.
"""

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from ..errors import AlreadyExists, LockBusy
from ..files.names import TABLE_FOLDER
from ..storage import Storage


class TableLock(Protocol):
    """A context manager; entering waits, and raises LockBusy when the time is over."""

    def __enter__(self) -> "TableLock": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class LockSettings:
    """`hoodie.write.lock.*`; times in milliseconds, expiry in minutes."""

    file_system: bool = False
    expire_minutes: int = 0
    wait_millis: int = 60_000
    retry_wait_millis: int = 1_000


class NoLock:
    """Hudi's single-writer mode takes no lock."""

    def __enter__(self) -> "NoLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class FileSystemLock:
    """The lock file of FileSystemBasedLockProvider. `storage` is rooted where `path` is relative to."""

    def __init__(self, storage: Storage, path: str, settings: LockSettings) -> None:
        self._storage = storage
        self._path = path
        self._settings = settings

    def __enter__(self) -> "FileSystemLock":
        deadline = time.monotonic() + self._settings.wait_millis / 1000
        while True:
            try:
                self._storage.create(self._path, b"")
                return self
            except AlreadyExists:
                self._drop_expired()
            if time.monotonic() >= deadline:
                raise LockBusy(
                    f"the lock {self._storage.full_path(self._path)} is held by another writer "
                    f"(waited {self._settings.wait_millis} ms)",
                    hint="wait for that writer; if none is running, delete the file or set "
                    "hoodie.write.lock.filesystem.expire",
                )
            time.sleep(min(self._settings.retry_wait_millis, self._settings.wait_millis) / 1000)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._storage.delete(self._path)

    def _drop_expired(self) -> None:
        if not self._settings.expire_minutes:
            return
        held = self._storage.head(self._path)
        if held and time.time() * 1000 - held.mtime_millis > self._settings.expire_minutes * 60_000:
            self._storage.delete(self._path)


def table_lock(table: Storage, other: Storage | None, settings: LockSettings) -> TableLock:
    """The lock that `settings` ask for; `other` is where the lock file lies when not in `.hoodie`."""
    if not settings.file_system:
        return NoLock()
    if other is not None:
        return FileSystemLock(other, "lock", settings)
    return FileSystemLock(table, f"{TABLE_FOLDER}/lock", settings)
