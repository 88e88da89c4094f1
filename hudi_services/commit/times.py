"""Fresh times for instants, each greater than all that the table and its metadata table know."""

from ..handle import Table
from ..timeline.active import new_instant


class Times:
    """A source of instants for one critical section; the caller holds the lock.

    An instant is drawn right before its file is published, so that this is where the lock is looked at once more.
    """

    def __init__(self, table: Table, skew_millis: int) -> None:
        self._table = table
        self._skew = skew_millis
        self._last = table.metadata.timeline.latest_time()[:17] if table.metadata else ""

    def next(self) -> str:
        """Raises ConflictError when the lock was lost."""
        self._last = new_instant(self._table.timeline, self._table.clock, after=self._last, skew_millis=self._skew)
        # Waiting for the slowest clock once is enough: what follows in this section is later anyway.
        self._skew = 0
        self._table.check_held()
        return self._last
