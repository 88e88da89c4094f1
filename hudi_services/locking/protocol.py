"""Hudi's table lock: the protocol of a provider and of a lock, and the wait that all locks have in common.

A lock is held while a plan or a commit is published, and its holder makes sure, before each step that cannot be rolled
back, that it still holds the lock (`TableLock.check`).
"""

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from ..errors import LockBusy
from ..options import lock_keys, value_of
from ..storage import Storage
from ..waiting import OnWait, Waiting, unseen


class TableLock(Protocol):
    """A context manager; entering waits for the lock, and raises LockBusy when the wait time is over."""

    def check(self) -> None:
        """Raise ConflictError when the lock was lost; otherwise no other process may take it over for a while."""

    def __enter__(self) -> "TableLock": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class LockWait:
    """How long to wait for a lock, and between two tries; in milliseconds. Whoever waits says so to `on_wait`."""

    wait_millis: int = value_of(lock_keys.LOCK_WAIT_MILLIS)
    retry_wait_millis: int = value_of(lock_keys.LOCK_RETRY_WAIT_MILLIS)
    on_wait: OnWait = unseen


class LockProvider(Protocol):
    """How the writers of a table exclude each other; a plain value."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes take the same lock."""

    def lock(self, table: Storage, wait: LockWait) -> TableLock:
        """The lock of a table, which is not held yet. Raises ConfigError when its client is not installed."""


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


@dataclass(frozen=True, slots=True)
class NoLockProvider:
    """The provider of a table without a lock."""

    is_shared = False

    def lock(self, table: Storage, wait: LockWait) -> TableLock:
        return NoLock()


class PolledLock:
    """A lock that is tried until it is free, or until the wait time is over."""

    advice = "wait for that writer"
    """What an operator can do about a lock that stays held."""

    def __init__(self, name: str, wait: LockWait) -> None:
        """`name`: the lock's place, for messages."""
        self.name = name
        self._wait = wait

    def __enter__(self) -> "PolledLock":
        deadline = time.monotonic() + self._wait.wait_millis / 1000
        try:
            with Waiting(self._wait.on_wait) as waiting:
                while not self._try():
                    holder = self._holder()
                    if time.monotonic() >= deadline + self._more_seconds():
                        raise LockBusy(
                            f"the lock {self.name} is held by {holder} (waited {self._wait.wait_millis} ms)",
                            hint=self.advice,
                        )
                    waiting.tell(f"the lock {self.name}, held by {holder}")
                    time.sleep(min(self._wait.retry_wait_millis, self._wait.wait_millis) / 1000)
        except BaseException:
            self._give_up()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def check(self) -> None:
        raise NotImplementedError

    def _try(self) -> bool:
        """Take the lock if it is free."""
        raise NotImplementedError

    def _holder(self) -> str:
        """Who holds the lock, and since when, for people."""
        raise NotImplementedError

    def _more_seconds(self) -> float:
        """How much longer to wait, because the holder may have died."""
        return 0.0

    def _give_up(self) -> None:
        """Stop waiting, after an error: a try may have taken the lock all the same."""
        self._release()

    def _release(self) -> None:
        """Give the lock back, if it is still ours."""
        raise NotImplementedError
