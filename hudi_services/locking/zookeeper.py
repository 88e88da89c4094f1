"""ZookeeperBasedLockProvider: the lock of Curator's InterProcessMutex, with kazoo.

A process waits in line: it creates the ephemeral node `<base path>/<lock key>/_c_<uuid>-lock-<ten digits>`, whose
digits ZooKeeper counts up. The node with the least digits holds the lock. A node goes when its owner deletes it, or
when the owner's session has ended. Its data names the owner (`application_id=…`), for people.

ZookeeperBasedImplicitBasePathLockProvider is the same at `/tmp/<XXH64 of the table's base path>/lock_key`.
Source: BaseZookeeperBasedLockProvider of Apache Hudi, 0.15 to 1.2; InterProcessMutex and LockInternals of Curator.
"""

import logging
import os
import socket
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from ..errors import ConflictError, HudiServicesError, StorageError
from ..extras import imported
from ..options import lock_keys, value_of
from ..storage import Storage
from .clients import failing_as_storage
from .holders import readable
from .implicit_names import implicit_name
from .protocol import LockWait, PolledLock, TableLock

_log = logging.getLogger(__name__)

_WHAT = "the lock in ZooKeeper"
_PREFIX = "-lock-"
_MOST_SESSIONS = 4
"""That may break while one process waits in line: LockManager of Hudi tries again, too."""
_IMPLICIT_FOLDER, _IMPLICIT_KEY = "/tmp", "lock_key"


@dataclass(frozen=True, slots=True)
class ZooKeeperProvider:
    """`hosts` is ZooKeeper's connect string; an empty `base_path` derives path and key from the table's base path."""

    hosts: str
    base_path: str
    key: str
    session_millis: int = value_of(lock_keys.ZOOKEEPER_SESSION_MILLIS)
    connection_millis: int = value_of(lock_keys.ZOOKEEPER_CONNECTION_MILLIS)
    is_shared = True

    def lock(self, table: Storage, wait: LockWait) -> TableLock:
        path = f"{self.base_path.rstrip('/')}/{self.key}" if self.base_path else implicit_path(table.root)
        kazoo = imported("kazoo.client", "zookeeper", _WHAT)

        def session() -> Any:
            return kazoo.KazooClient(hosts=self.hosts, timeout=self.session_millis / 1000, logger=_log)

        return ZooKeeperLock(session, self.hosts, path, self.connection_millis / 1000, wait)


def implicit_path(base_path: str) -> str:
    """The path of the lock of ZookeeperBasedImplicitBasePathLockProvider."""
    return f"{_IMPLICIT_FOLDER}/{implicit_name(base_path)}/{_IMPLICIT_KEY}"


class ZooKeeperLock(PolledLock):
    """A place in the line of one lock; `new_session` makes a client of kazoo that is not started."""

    advice = "wait for that writer; a lock whose holder died is free when the holder's session has timed out"

    def __init__(
        self, new_session: Callable[[], Any], hosts: str, path: str, connection_seconds: float, wait: LockWait
    ) -> None:
        super().__init__(f"{path} in ZooKeeper at {hosts}", wait)
        self._new_session = new_session
        self._session = new_session()
        self._broken = 0
        """How many sessions ended while this process waited."""
        self._path = path
        self._connection_seconds = connection_seconds
        self._node = ""
        """The name of our node in the line."""

    def check(self) -> None:
        with self._errors():
            if self._session.connected and self._line()[:1] == [self._node]:
                return
        raise ConflictError(
            f"the lock {self.name} was lost: the session with ZooKeeper has ended",
            hint="run again: nothing was published",
        )

    def _try(self) -> bool:
        if not self._node:
            # Where not even this succeeds, another try is of no use.
            with self._errors():
                self._session.start(timeout=self._connection_seconds)
        while True:
            lost: HudiServicesError
            try:
                with self._errors():
                    self._join()
                    line = self._line()
                if self._node in line:
                    return line[0] == self._node
                lost = ConflictError(f"sessions with ZooKeeper end while this process waits for {self.name}")
            except StorageError as error:
                lost = error
            self._start_again(lost)

    def _join(self) -> None:
        if not self._node:
            self._session.ensure_path(self._path)
            who = f"application_id=hudi_services, process {os.getpid()} on {socket.gethostname()}".encode()
            node = f"{self._path}/_c_{uuid.uuid4()}{_PREFIX}"
            created = self._session.create(node, who, ephemeral=True, sequence=True)
            self._node = str(created).rpartition("/")[2]

    def _start_again(self, lost: HudiServicesError) -> None:
        """Begin a new session, at the end of the line. Raises `lost` after the last one, and StorageError."""
        self._broken += 1
        if self._broken >= _MOST_SESSIONS:
            raise lost
        _log.warning("the session with ZooKeeper ended while this process waited for %s; it waits again", self.name)
        # The node of an answer that was lost goes with its session.
        self._release()
        self._session, self._node = self._new_session(), ""
        with self._errors():
            self._session.start(timeout=self._connection_seconds)

    def _line(self) -> list[str]:
        """The nodes that wait for the lock, its holder first."""
        nodes = [name for name in self._session.get_children(self._path) if _PREFIX in name]
        return sorted(nodes, key=lambda name: name.rpartition(_PREFIX)[2])

    def _holder(self) -> str:
        # The holder may go at any time.
        with suppress(Exception):
            data, facts = self._session.get(f"{self._path}/{self._line()[0]}")
            who = data.decode("utf-8", "replace").removeprefix("application_id=")[:80]
            return f"another writer ({who}), since {readable(facts.ctime)}"
        return "another writer"

    def _release(self) -> None:
        # Without a connection, the server deletes the node when the session times out.
        with suppress(Exception):
            if self._node:
                self._session.delete(f"{self._path}/{self._node}")
        with suppress(Exception):
            self._session.stop()
            self._session.close()

    def _errors(self) -> AbstractContextManager[None]:
        exceptions = imported("kazoo.exceptions", "zookeeper", _WHAT)
        timeouts = imported("kazoo.handlers.threading", "zookeeper", _WHAT)
        return failing_as_storage(
            self.name,
            (exceptions.KazooException, timeouts.KazooTimeoutError),
            hint="check hoodie.write.lock.zookeeper.url, and whether ZooKeeper answers from here",
        )
