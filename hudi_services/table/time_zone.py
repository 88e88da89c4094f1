"""The comparison of this process's time zone with the zone of the table's writers.

With hoodie.table.timeline.timezone=LOCAL an instant is the wall-clock time of its writer. If this process ran in a zone
ahead of the writers, its files would have a later time than their next commits: readers would take our slice for the
newer one, and the update would be lost. The modification times of instant files show the zone, unless the files were
copied. Where they do not show it, instants are drawn from the slowest clock of any zone: no writer is behind it.
An instant right after another time of the timeline shows no zone: it was drawn to be later, not read from a clock.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, available_timezones

from ..clock import FASTEST, SLOWEST, format_instant, parse_instant
from ..errors import ConfigError
from ..timeline.active import Timeline

_LATEST = 20
"""Instants to compare: few enough not to reach back over a change to summer time."""
_SPAN = timedelta(minutes=5)
"""Instants this far apart were not copied together when the modification times of their files follow them."""
_SLACK = timedelta(seconds=60)
_SHORT_SLACK = timedelta(seconds=10)
"""The slack for instants that may have been copied together."""
_RIGHT_AFTER = (timedelta(milliseconds=1), timedelta(milliseconds=2))
"""The distances of `next_instant` from a time that is later than its clock."""
_STEP = timedelta(minutes=15)
"""Zones differ by whole quarters of an hour."""
_UNEVEN = (-9.5, -4.5, -3.5, -2.5, 3.5, 4.5, 5.5, 5.75, 6.5, 8.5, 8.75, 9.5, 10.5, 11.5, 12.75, 13.75)
_AHEAD = frozenset(timedelta(hours=one) for one in (*range(-11, 15), *_UNEVEN))
"""How far the clocks of zones are ahead of UTC, since 2015 (IANA tz database). UTC-12 is not among them: no land has
it, and our own instants have it where the zone is not known."""
_WELL_KNOWN = (
    "UTC",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Athens",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Australia/Sydney",
)
"""Zones that are named as an example before others with the same clock."""


def check_zone(timeline: Timeline, root: str) -> None:
    """Raise ConfigError when the latest instants all differ from their files' times as in one other zone."""
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
    steps = round(offset / _STEP)
    hours = abs(steps) * _STEP / timedelta(hours=1)
    raise ConfigError(
        f"{root}: its writers use a clock {hours:g} hour{'' if hours == 1 else 's'} "
        f"{'behind' if steps > 0 else 'ahead of'} the one of this process (hoodie.table.timeline.timezone=LOCAL), so "
        "that new instants would be out of order",
        hint=_hint(moments[-1], (moments[-1].utcoffset() or timedelta()) - steps * _STEP),
    )


def _hint(moment: datetime, ahead: timedelta) -> str:
    """The way out, when the writers' clock was `ahead` of UTC at the moment: with a zone where clocks show that."""
    known = available_timezones()
    names = [*(one for one in _WELL_KNOWN if one in known), *sorted(one for one in known if "/" in one)]
    at_that_time = moment.astimezone(timezone.utc)
    example = next((one for one in names if at_that_time.astimezone(ZoneInfo(one)).utcoffset() == ahead), "")
    sign, (hours, rest) = "-" if ahead < timedelta() else "+", divmod(abs(ahead), timedelta(hours=1))
    return (
        f"their clock shows UTC{sign}{hours:02d}:{rest // timedelta(minutes=1):02d}: run with the time zone of the "
        f"writers, here and on the executors{example and f', for example TZ={example}'}"
    )


def drawing_zone(timeline: Timeline) -> str:
    """The zone in which new instants are drawn: the timeline's zone, or SLOWEST where it is not known."""
    return timeline.zone if timeline.zone != "LOCAL" or _is_ours(_offsets(timeline)) else SLOWEST


def latest_reading(timeline: Timeline, now: datetime) -> str:
    """The latest time, as an instant, that the slowest of the writers' clocks may show now.

    The time is in the timeline's zone when that is fixed or one of the latest instants is of our zone, else in FASTEST.
    """
    is_known = timeline.zone != "LOCAL" or any(abs(offset) <= _SLACK for _, offset in _offsets(timeline))
    return format_instant(now, timeline.zone if is_known else FASTEST)


def _is_ours(offsets: Sequence[tuple[datetime, timedelta]]) -> bool:
    """Whether the newest instant that shows a zone shows ours. Files that were copied show none."""
    for moment, offset in reversed(offsets):
        if abs(offset) <= _SLACK:
            return True
        if _is_another_zone(moment, offset, _SLACK):
            return False
    return False


def _is_another_zone(moment: datetime, offset: timedelta, slack: timedelta) -> bool:
    """Whether an instant, read as `moment` in our zone, was drawn in a zone that is `offset` away from ours."""
    nearest = round(offset / _STEP) * _STEP
    zone = (moment.utcoffset() or timedelta()) - nearest
    return bool(nearest) and abs(offset - nearest) <= slack and zone in _AHEAD


def _offsets(timeline: Timeline) -> list[tuple[datetime, timedelta]]:
    """The latest instants as moments, oldest first, each with the time of its file minus the moment."""
    found = []
    latest = [one for one in sorted(timeline.begun.items())[-_LATEST:] if not _is_right_after(one[0], timeline)]
    for ts, written in latest:
        file_time = datetime.fromtimestamp(written / 1000, timezone.utc)
        moments = [(moment, file_time - moment) for moment in _moments(parse_instant(ts, timeline.zone))]
        if moments:
            found.append(min(moments, key=lambda one: abs(one[1])))
    return found


def _is_right_after(ts: str, timeline: Timeline) -> bool:
    moment = parse_instant(ts, "UTC")
    before = () if moment is None else tuple(format_instant(moment - one, "UTC") for one in _RIGHT_AFTER)
    return not timeline.times.isdisjoint(before)


def _moments(moment: datetime | None) -> Iterable[datetime]:
    """The moments at which local clocks showed that time: two where summer time ended."""
    if moment is not None:
        wall = moment.replace(tzinfo=None)
        yield from {wall.replace(fold=fold).astimezone() for fold in (0, 1)}
