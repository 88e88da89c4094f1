"""New instants, each later than all instants of the table and of its metadata table."""

from dataclasses import replace
from datetime import timedelta

from ..clock import duration, parse_instant
from ..errors import ConfigError
from ..own_commands import own_command
from ..snapshot import Snapshot
from ..table.file_ledger import FileLedger
from ..table.time_zone import drawing_zone, latest_reading
from ..timeline.active import new_instant

_TOLERANCE = timedelta(minutes=1)
"""How far the clocks of a cluster may differ without an error."""


class Times:
    """A source of instants for one critical section; the caller holds the lock.

    An instant is drawn right before its file is published; therefore `next` also checks the lock.
    """

    def __init__(
        self, table: Snapshot, skew_millis: int, *, after: str = "", is_writer: bool = False, due: str = ""
    ) -> None:
        """The instants are also later than `after`. `is_writer`: on an empty timeline the caller's clock decides.

        `due` was drawn by this process without the lock: it is the first instant, if it is later than all others.
        """
        is_first = is_writer and not table.timeline.instants
        # In this time zone no instant is later than the next instant of the table's writers.
        zone = table.timeline.zone if is_first else drawing_zone(table.timeline)
        self._table = replace(table, ledger=FileLedger(replace(table.timeline, zone=zone)))
        self._skew = skew_millis
        self._due = due
        self._last = max(after, table.metadata.timeline.latest_time()[:17] if table.metadata else "")

    @property
    def last(self) -> str:
        """The last instant that was drawn, or an earlier time of the table."""
        return self._last

    def next(self) -> str:
        """Draw an instant. Raises ConflictError when the lock was lost."""
        drawn = self.draw()
        self._table.check_held()
        return drawn

    def draw(self) -> str:
        """An instant that nobody publishes before the lock is held."""
        due, self._due = self._due, ""
        drawn = new_instant(self._table.timeline, self._table.clock, after=self._last, skew_millis=self._skew)
        self._last = due if due > max(self._last, self._table.timeline.latest_time()) else drawn
        # One wait for the slowest clock is enough: the next instants of this section are later anyway.
        self._skew = 0
        return self._last


def refuse_ahead(table: Snapshot, instant: str) -> None:
    """Raise ConfigError for the instant of new files when it is in the future by the clocks of all writers.

    The timeline may have such an instant, which the new one follows; or a plan was published with such an instant.
    """
    if instant <= latest_reading(table.timeline, table.clock.now() + _TOLERANCE):
        return
    latest = table.timeline.latest_time()
    ahead = _millis(instant) - _millis(latest_reading(table.timeline, table.clock.now()))
    newest, hint = f"the newest time of the timeline, {latest},", "wait until then, or set the clock that is wrong"
    if instant <= latest:
        newest = f"the pending clustering {instant}"
        hint = f"plan again after {own_command('rollback', table.storage.root, f'--instant {instant}')}"
    raise ConfigError(
        f"{table.storage.root}: {newest} is {duration(ahead)} ahead of the clock here, and readers would prefer the "
        "new files to all that is written until then",
        hint=f"{hint} (docs/runbooks/time-zone.md)",
    )


def _millis(instant: str) -> float:
    """A time as a number, to compare it with another one of the same zone."""
    moment = parse_instant(instant, "UTC")
    return moment.timestamp() * 1000 if moment is not None else 0.0
