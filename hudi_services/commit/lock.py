"""Hudi's table lock, held while a plan or a commit is published.

FileSystemBasedLockProvider: the file `<folder>/lock` exists while a process holds the lock. The holder creates it if it
is absent, and deletes it on release; another process may take over a lock file that is older than the expiry (minutes,
0 = never). Hudi only shows the content to people: its own lock files are empty or name a thread. Ours name their owner,
so that we recognize them: Hudi deletes without checking the owner, when a lock has expired and when a writer that
waited in vain ends.

Our lock file has not expired when `check` returns: `check` writes it anew past half of the expiry. We neither delete
nor overwrite the lock file of another process, except in one race: no store compares when it deletes, and local storage
never does, so that we compare right before.
Source: FileSystemBasedLockProvider of Apache Hudi, 0.10 to 1.2.
"""

import json
import os
import socket
import time
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from ..errors import AlreadyExists, ConflictError, CorruptFile, LockBusy, NotFound
from ..limits import SMALL_FILE
from ..paths import TABLE_FOLDER
from ..storage import Storage


class TableLock(Protocol):
    """A context manager; entering waits for the lock, and raises LockBusy when the wait time is over."""

    def check(self) -> None:
        """Raise ConflictError when the lock was lost; otherwise no other process may take it over for a while."""

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
    """No lock, as in Hudi's single-writer mode."""

    def check(self) -> None:
        return None

    def __enter__(self) -> "NoLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class FileSystemLock:
    """The lock file of FileSystemBasedLockProvider. `path` is relative to the root of `storage`."""

    def __init__(self, storage: Storage, path: str, settings: LockSettings) -> None:
        self._storage = storage
        self._path = path
        self._settings = settings
        self._content = b""
        self._written = 0.0

    def __enter__(self) -> "FileSystemLock":
        deadline = time.monotonic() + self._settings.wait_millis / 1000
        self._content = _own_content()
        while True:
            self._written = time.monotonic()
            if self._create() or self._take_expired():
                return self
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
        if self._is_ours():
            self._storage.delete(self._path)

    def check(self) -> None:
        half = self._settings.expire_minutes * 60 / 2
        if self._is_ours() and (not half or time.monotonic() - self._written < half or self._renew()):
            return
        raise ConflictError(
            f"the lock {self._storage.full_path(self._path)} was taken over or deleted by another writer",
            hint="run again; where it was held for longer than hoodie.write.lock.filesystem.expire, set that to more, "
            "here and in the writers",
        )

    def _create(self) -> bool:
        try:
            self._storage.create(self._path, self._content)
        except AlreadyExists:
            return False
        return True

    def _take_expired(self) -> bool:
        held = self._storage.head(self._path) if self._settings.expire_minutes else None
        if held is None or time.time() * 1000 - held.mtime_millis <= self._settings.expire_minutes * 60_000:
            return False
        # Read it again: where the store does not compare, two processes may both have overwritten it.
        return self._storage.replace(self._path, self._content, held) and self._is_ours()

    def _renew(self) -> bool:
        held, now = self._storage.head(self._path), time.monotonic()
        if held is None or not self._is_ours() or not self._storage.replace(self._path, self._content, held):
            return False
        self._written = now
        return True

    def _is_ours(self) -> bool:
        try:
            return self._storage.read(self._path, SMALL_FILE) == self._content
        except (NotFound, CorruptFile):
            return False


def _own_content() -> bytes:
    """The fields of Hudi's LockInfo, and an owner that is unique."""
    now = time.time()
    created = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))}.{int(now * 1000) % 1000:03d}"
    who = f"hudi_services, process {os.getpid()} on {socket.gethostname()}"
    return json.dumps({"lockCreateTime": created, "lockThreadName": who, "owner": str(uuid.uuid4())}).encode()


def table_lock(table: Storage, other: Storage | None, settings: LockSettings) -> TableLock:
    """The lock that `settings` ask for; `other` is the folder of the lock file when it is not `.hoodie`."""
    if not settings.file_system:
        return NoLock()
    if other is not None:
        return FileSystemLock(other, "lock", settings)
    return FileSystemLock(table, f"{TABLE_FOLDER}/lock", settings)
