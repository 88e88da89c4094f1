"""The settings of a transaction: the lock, clocks, and when other writers count as dead."""

from dataclasses import dataclass, field, replace

from ..locking.protocol import LockProvider, LockWait, NoLockProvider
from ..locking.registry import lock_provider
from ..options import Options
from ..options import commit_keys as keys
from ..options.fields import settings, value_of
from ..storage import Storage

_PATIENCE = 10
"""In expiries of a heartbeat: twenty minutes by Hudi's defaults."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Lock and times; all times are milliseconds."""

    lock: LockProvider = field(default_factory=NoLockProvider)
    lock_wait: LockWait = settings(LockWait)
    skew_millis: int = value_of(keys.CLOCK_SKEW_MILLIS)
    heartbeat_millis: int = value_of(keys.HEARTBEAT_INTERVAL_MILLIS)
    heartbeat_misses: int = value_of(keys.HEARTBEAT_TOLERABLE_MISSES)
    abandoned_millis: int = value_of(keys.ABANDONED_AFTER_MINUTES, lambda minutes: minutes * 60_000)
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
    found = options.of(TransactionSettings, lock_provider(options, storage))
    # As Hudi: without a lock there is one writer at a time, and no other clock to wait for.
    return found if found.lock.is_shared else replace(found, skew_millis=0)
