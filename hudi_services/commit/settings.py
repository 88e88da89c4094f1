"""The settings of a transaction: the lock, clocks, and when other writers count as dead."""

from dataclasses import dataclass, field

from ..locking.protocol import LockProvider, LockWait, NoLockProvider

_PATIENCE = 10
"""In expiries of a heartbeat: twenty minutes by Hudi's defaults."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Lock and times; all times are milliseconds."""

    lock: LockProvider = field(default_factory=NoLockProvider)
    lock_wait: LockWait = field(default_factory=LockWait)
    skew_millis: int = 200
    heartbeat_millis: int = 60_000
    heartbeat_misses: int = 2
    abandoned_millis: int = 3_600_000
    """A write without a heartbeat counts as abandoned when it gives no sign of life for this long."""

    @property
    def patience_millis(self) -> int:
        """For short work that gives no signs of life while it runs: a clean, a rollback, a key look-up."""
        return _PATIENCE * self.heartbeat_expires_millis

    @property
    def heartbeat_expires_millis(self) -> int:
        return self.heartbeat_millis * self.heartbeat_misses
