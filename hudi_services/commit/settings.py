"""The settings of a transaction: the lock, clocks, and when other writers count as dead."""

from dataclasses import dataclass, field

from ..locking.protocol import LockProvider, LockWait, NoLockProvider
from ..locking.registry import lock_provider
from ..options import Options, commit_keys, settings, value_of
from ..storage import Storage

_PATIENCE = 10
"""In expiries of a heartbeat: twenty minutes by Hudi's defaults."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Lock and times; all times are milliseconds."""

    lock: LockProvider = field(default_factory=NoLockProvider)
    lock_wait: LockWait = settings(LockWait)
    skew_millis: int = value_of(commit_keys.CLOCK_SKEW_MILLIS)
    heartbeat_millis: int = value_of(commit_keys.HEARTBEAT_INTERVAL_MILLIS)
    heartbeat_misses: int = value_of(commit_keys.HEARTBEAT_TOLERABLE_MISSES)
    abandoned_millis: int = value_of(commit_keys.ABANDONED_AFTER_MINUTES, lambda minutes: minutes * 60_000)
    """A write without a heartbeat counts as abandoned when it gives no sign of life for this long."""

    @property
    def patience_millis(self) -> int:
        """For short work that gives no signs of life while it runs: a clean, a rollback, a key look-up."""
        return _PATIENCE * self.heartbeat_expires_millis

    @property
    def heartbeat_expires_millis(self) -> int:
        return self.heartbeat_millis * self.heartbeat_misses


def transaction_settings(options: Options, storage: Storage) -> TransactionSettings:
    """The settings of transactions on the table in `storage`."""
    lock = lock_provider(options, storage)
    if lock.is_shared:
        return options.of(TransactionSettings, lock)
    # As Hudi: without a lock there is one writer at a time, and no other clock to wait for.
    return options.of(TransactionSettings, lock, skew_millis=0)
