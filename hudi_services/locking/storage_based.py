"""StorageBasedLockProvider: `.hoodie/.locks/table_lock.json`, which only conditional puts change.

    {"expired": false, "validUntil": <epoch milliseconds>, "owner": "<uuid of one provider>"}

The lock is free when the file is absent, says that it is expired, or when `validUntil` has passed by more than clocks
may differ, and, for us, by two renewals: Hudi 1.0.2 takes the seconds of the validity for milliseconds, so that only
renewals show that its holder is alive. A process takes the lock by creating the file, or by replacing exactly the file
that it has read. The holder replaces it to renew the lock, every few seconds, and to release it (expired: true); the
file is never deleted.

On local storage nothing compares: there the file is read right before it is overwritten. Hudi has no such lock there.
Source: StorageBasedLockProvider, StorageLockClient and StorageBasedLockConfig of Apache Hudi, 1.0.2 to 1.2.
"""

import json
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass

from ..errors import AlreadyExists, ConflictError, CorruptFile, NotFound, PermissionDenied, StorageError
from ..limits import SMALL_FILE
from ..options import lock_keys, value_of
from ..paths import TABLE_FOLDER
from ..storage import FileInfo, Storage
from .holders import fields, readable
from .protocol import LockWait, PolledLock, TableLock

LOCK_FILE = f"{TABLE_FOLDER}/.locks/table_lock.json"
_CLOCKS_DIFFER_MILLIS = 500
_MISSED_RENEWALS = 2
"""Of a dead holder, whose lock Hudi itself takes over so much earlier."""


@dataclass(frozen=True, slots=True)
class StorageBasedProvider:
    """StorageBasedLockProvider; a lock is valid for some seconds, and renewed long before they are over."""

    valid_seconds: int = value_of(lock_keys.STORAGE_VALID_SECONDS)
    renew_seconds: int = value_of(lock_keys.STORAGE_RENEW_SECONDS)
    is_shared = True

    def lock(self, table: Storage, wait: LockWait) -> TableLock:
        return StorageLock(table, self.valid_seconds, self.renew_seconds, wait)


class StorageLock(PolledLock):
    """The lock file of a table; a thread renews it while the lock is held."""

    advice = "wait for that writer; a lock whose holder died is free two renewals after its end"

    def __init__(self, storage: Storage, valid_seconds: float, renew_seconds: float, wait: LockWait) -> None:
        super().__init__(storage.full_path(LOCK_FILE), wait)
        self._storage = storage
        self._valid_seconds = valid_seconds
        self._renew_seconds = renew_seconds
        self._owner = str(uuid.uuid4())
        self._until = 0
        """What `validUntil` of our file says."""
        self._lost = False
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._renewal: threading.Thread | None = None

    def check(self) -> None:
        with self._writing:
            if not self._lost and self._is_ours(self._read()) and time.time() * 1000 < self._until:
                return
        raise ConflictError(
            f"the lock {self.name} was taken over by another writer",
            hint="run again; where this process was stopped for longer than "
            "hoodie.write.lock.storage.validity.timeout.secs, set that to more, here and in the writers",
        )

    def _try(self) -> bool:
        # An error that says nothing of the lock: the next try may find more, as in Hudi.
        try:
            taken = self._take()
        except PermissionDenied:
            raise
        except StorageError:
            return False
        if taken:
            self._renewal = threading.Thread(target=self._renew_until_end, name="renews a lock", daemon=True)
            self._renewal.start()
        return taken

    def _take(self) -> bool:
        seen = self._storage.head(LOCK_FILE)
        if seen is None:
            return self._put(None, expired=False)
        held = self._read()
        if self._is_ours(held):
            # The store reported an error for a try of ours that had succeeded.
            self._until = int(held["validUntil"])  # type: ignore[call-overload]
            return True
        until, late = held.get("validUntil"), _CLOCKS_DIFFER_MILLIS + _MISSED_RENEWALS * self._renew_seconds * 1000
        is_free = held.get("expired") is True or (type(until) is int and time.time() * 1000 > until + late)
        return is_free and self._put(seen, expired=False)

    def _holder(self) -> str:
        held: dict[str, object] = {}
        with suppress(StorageError):
            held = self._read()
        until, owner = held.get("validUntil"), held.get("owner")
        if type(until) is not int:
            return "another writer"
        return f"another writer ({owner}), valid until {readable(until)}"

    def _renew_until_end(self) -> None:
        while not self._ended.wait(self._renew_seconds):
            with self._writing:
                if self._ended.is_set():
                    return
                try:
                    seen = self._storage.head(LOCK_FILE)
                    self._lost = seen is None or not self._is_ours(self._read()) or not self._put(seen, expired=False)
                except StorageError:
                    continue
                if self._lost:
                    return

    def _release(self) -> None:
        self._ended.set()
        # The lock that cannot be given back is free at the end of its validity.
        with self._writing, suppress(StorageError):
            seen = self._storage.head(LOCK_FILE)
            if seen is not None and self._is_ours(self._read()):
                self._put(seen, expired=True)
        if self._renewal is not None:
            self._renewal.join()

    def _put(self, seen: FileInfo | None, *, expired: bool) -> bool:
        """Write our file in the place of the one that was seen; False when that is no longer there."""
        until = self._until if expired else int((time.time() + self._valid_seconds) * 1000)
        content = {"expired": expired, "validUntil": until, "owner": self._owner}
        data = json.dumps(content, separators=(",", ":")).encode()
        try:
            if seen is None:
                self._storage.create(LOCK_FILE, data)
            elif not self._storage.replace(LOCK_FILE, data, seen):
                return False
        except AlreadyExists:
            return False
        self._until = until
        return True

    def _read(self) -> dict[str, object]:
        """The fields of the lock file; {} when there is none."""
        try:
            return fields(self._storage.read(LOCK_FILE, SMALL_FILE))
        except (NotFound, CorruptFile):
            return {}

    def _is_ours(self, held: dict[str, object]) -> bool:
        return held.get("owner") == self._owner and held.get("expired") is False
