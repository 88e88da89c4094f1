"""Fresh times for instants, each greater than all that the table and its metadata table know."""

from dataclasses import replace
from datetime import timedelta

from ..errors import ConfigError
from ..snapshot import Snapshot
from ..table.time_zone import drawing_zone, latest_reading
from ..timeline.active import new_instant

_TOLERANCE = timedelta(minutes=1)
"""By how much clocks of a cluster may differ, and nobody worries."""


class Times:
    """A source of instants for one critical section; the caller holds the lock.

    An instant is drawn right before its file is published, so that this is where the lock is looked at once more.
    """

    def __init__(self, table: Snapshot, skew_millis: int) -> None:
        # Drawn by the clocks of this zone, none is later than what the writers draw next.
        self._table = replace(table, timeline=replace(table.timeline, zone=drawing_zone(table.timeline)))
        self._skew = skew_millis
        self._last = table.metadata.timeline.latest_time()[:17] if table.metadata else ""

    def next(self) -> str:
        """Raises ConflictError when the lock was lost."""
        self._last = new_instant(self._table.timeline, self._table.clock, after=self._last, skew_millis=self._skew)
        # Waiting for the slowest clock once is enough: what follows in this section is later anyway.
        self._skew = 0
        self._table.check_held()
        return self._last


def refuse_ahead(table: Snapshot, instant: str) -> None:
    """Raise ConfigError for the instant of new files when no clock of a writer shows it yet.

    It may follow one on the timeline that is ahead; and it may be that of a plan which was written so.
    """
    if instant <= latest_reading(table.timeline, table.clock.now() + _TOLERANCE):
        return
    latest = table.timeline.latest_time()
    newest, hint = f"the newest time of the timeline, {latest},", "wait until then, or set the clock that is wrong"
    if instant <= latest:
        newest, hint = f"the pending clustering {instant}", "roll it back with hudi-services rollback, and plan again"
    raise ConfigError(
        f"{table.storage.root}: {newest} is ahead of the clock here, and readers would prefer the new files to all "
        "that is written until then",
        hint=f"{hint} (docs/runbooks/time-zone.md)",
    )
