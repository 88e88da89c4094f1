"""What a transaction must know of its surroundings: the lock, clocks, and when other writers count as dead."""

from dataclasses import dataclass, field

from ..storage import Storage
from .lock import LockSettings

_PATIENCE = 10
"""Lives of a heartbeat: twenty minutes by Hudi's defaults."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Locks and times; milliseconds."""

    lock: LockSettings = field(default_factory=LockSettings)
    lock_storage: Storage | None = None
    """Where the lock file lies when its folder is not the table's `.hoodie`."""
    skew_millis: int = 200
    heartbeat_millis: int = 60_000
    heartbeat_misses: int = 2
    abandoned_millis: int = 3_600_000
    """Without a sign of life for so long, a write that gives no heartbeat counts as abandoned."""

    @property
    def patience_millis(self) -> int:
        """For short work that gives no signs between its beginning and its end: a clean, a rollback, a key look-up."""
        return _PATIENCE * self.heartbeat_expires_millis

    @property
    def heartbeat_expires_millis(self) -> int:
        return self.heartbeat_millis * self.heartbeat_misses
