"""FileSystemBasedLockProvider: the file `<folder>/lock` exists while a process holds the lock.

The holder creates it if it is absent, and deletes it on release; another process may take over a lock file that is
older than the expiry (minutes, 0 = never). Hudi only shows the content to people: its own lock files are empty or name
a thread. Ours name their owner, so that we recognize them: Hudi deletes without checking the owner, when a lock has
expired and when a writer that waited in vain ends.

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

from ..clock import uptime
from ..errors import AlreadyExists, ConflictError, CorruptFile, NotFound
from ..limits import SMALL_FILE
from ..options import lock_keys, value_of
from ..paths import TABLE_FOLDER
from ..storage import Storage
from .holders import named, readable
from .protocol import LockWait, PolledLock, TableLock


@dataclass(frozen=True, slots=True)
class FileSystemProvider:
    """FileSystemBasedLockProvider; `folder` has the lock file when it is not the table's `.hoodie`."""

    folder: Storage | None = None
    expire_minutes: int = value_of(lock_keys.LOCK_EXPIRE_MINUTES)
    is_shared = True

    def lock(self, table: Storage, wait: LockWait) -> TableLock:
        storage, path = (self.folder, "lock") if self.folder is not None else (table, f"{TABLE_FOLDER}/lock")
        return FileSystemLock(storage, path, self.expire_minutes, wait)


class FileSystemLock(PolledLock):
    """The lock file of FileSystemBasedLockProvider. `path` is relative to the root of `storage`."""

    advice = "wait for that writer; if none is running, delete the file or set hoodie.write.lock.filesystem.expire"

    def __init__(self, storage: Storage, path: str, expire_minutes: int, wait: LockWait) -> None:
        super().__init__(storage.full_path(path), wait)
        self._storage = storage
        self._path = path
        self._expire_minutes = expire_minutes
        self._content = _own_content()
        self._written = 0.0

    def _try(self) -> bool:
        self._written = uptime()
        return self._create() or self._take_expired()

    def _holder(self) -> str:
        try:
            held, text = self._storage.head(self._path), self._storage.read(self._path, SMALL_FILE)
        except (NotFound, CorruptFile):
            return "another writer"
        since = f", since {readable(held.mtime_millis)}" if held is not None else ""
        return f"another writer{named(text, 'lockThreadName')}{since}"

    def _release(self) -> None:
        if self._is_ours():
            self._storage.delete(self._path)

    def check(self) -> None:
        half = self._expire_minutes * 60 / 2
        if self._is_ours() and (not half or uptime() - self._written < half or self._renew()):
            return
        raise ConflictError(
            f"the lock {self.name} was taken over or deleted by another writer",
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
        held = self._storage.head(self._path) if self._expire_minutes else None
        if held is None or time.time() * 1000 - held.mtime_millis <= self._expire_minutes * 60_000:
            return False
        # Read it again: where the store does not compare, two processes may both have overwritten it.
        return self._storage.replace(self._path, self._content, held) and self._is_ours()

    def _renew(self) -> bool:
        held, now = self._storage.head(self._path), uptime()
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
