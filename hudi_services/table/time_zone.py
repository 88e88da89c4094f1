"""Whether this process counts time in the zone of the table's writers.

With hoodie.table.timeline.timezone=LOCAL an instant is the wall clock of whoever writes it. A process in a zone ahead
of the writers' would give its files a time that their next commits are older than, and readers would take our slice
for the newer one: the update would be lost. The modification times of instant files tell the zone, unless they were
copied. Where they do not tell it, instants are drawn by the slowest clock there is: no writer is behind that.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

from ..clock import FASTEST, SLOWEST, format_instant, parse_instant
from ..errors import ConfigError
from ..timeline.active import Timeline

_LATEST = 20
"""Instants to look at: few enough not to reach back over a change to summer time."""
_SPAN = timedelta(minutes=5)
"""Instants that lie so far apart were not copied at once when their files' times follow them."""
_SLACK = timedelta(seconds=60)
_SHORT_SLACK = timedelta(seconds=10)
"""Of instants that may have been copied at once."""
_STEP = timedelta(minutes=15)
"""Zones lie whole quarters of an hour apart."""
_WEST, _EAST = timedelta(hours=-12), timedelta(hours=14)
"""Between these from UTC; at the first there is open sea, and our own instants where the zone is not known."""


def check_zone(timeline: Timeline, root: str) -> None:
    """Raise ConfigError when the latest instants all lie the same quarters of an hour beside their files' times."""
    if timeline.zone != "LOCAL":
        return
    found = _offsets(timeline)
    if not found:
        return
    moments, offsets = zip(*found, strict=True)
    slack = _SLACK if len(found) > 2 and max(moments) - min(moments) >= _SPAN else _SHORT_SLACK
    offset = sorted(offsets)[len(offsets) // 2]
    if max(offsets) - min(offsets) >= slack or not all(_is_another_zone(*one, slack) for one in found):
        return
    hours = round(offset / timedelta(hours=1), 2)
    raise ConfigError(
        f"{root}: its writers use a clock {abs(hours):g} hours {'behind' if hours > 0 else 'ahead of'} the one of this "
        "process (hoodie.table.timeline.timezone=LOCAL), so that new instants would be out of order",
        hint="run with their zone, for example TZ=America/New_York, here and on the executors",
    )


def drawing_zone(timeline: Timeline) -> str:
    """The zone in whose clocks new instants are drawn: the timeline's, or, where that is not known, SLOWEST."""
    return timeline.zone if timeline.zone != "LOCAL" or _is_ours(_offsets(timeline)) else SLOWEST


def latest_reading(timeline: Timeline, now: datetime) -> str:
    """What the slowest of the writers' clocks may show now, at most, as an instant.

    As soon as one of the latest instants is of our zone, that is ours.
    """
    is_known = timeline.zone != "LOCAL" or any(abs(offset) <= _SLACK for _, offset in _offsets(timeline))
    return format_instant(now, timeline.zone if is_known else FASTEST)


def _is_ours(offsets: Sequence[tuple[datetime, timedelta]]) -> bool:
    """Whether the newest instant that tells a zone tells ours. Files that were copied tell none."""
    for moment, offset in reversed(offsets):
        if abs(offset) <= _SLACK:
            return True
        if _is_another_zone(moment, offset, _SLACK):
            return False
    return False


def _is_another_zone(moment: datetime, offset: timedelta, slack: timedelta) -> bool:
    """Whether an instant, which we take for `moment`, is one of a zone so far from ours."""
    nearest = round(offset / _STEP) * _STEP
    zone = (moment.utcoffset() or timedelta()) - nearest
    return bool(nearest) and abs(offset - nearest) <= slack and _WEST < zone <= _EAST


def _offsets(timeline: Timeline) -> list[tuple[datetime, timedelta]]:
    """The latest instants as moments, oldest first, each with its file's time less itself."""
    found = []
    for ts, written in sorted(timeline.begun.items())[-_LATEST:]:
        file_time = datetime.fromtimestamp(written / 1000, timezone.utc)
        moments = [(moment, file_time - moment) for moment in _moments(parse_instant(ts, timeline.zone))]
        if moments:
            found.append(min(moments, key=lambda one: abs(one[1])))
    return found


def _moments(moment: datetime | None) -> Iterable[datetime]:
    """When clocks here showed that time: twice, where summer time ended."""
    if moment is not None:
        wall = moment.replace(tzinfo=None)
        yield from {wall.replace(fold=fold).astimezone() for fold in (0, 1)}
