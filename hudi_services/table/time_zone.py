"""Whether this process counts time in the zone of the table's writers.

With hoodie.table.timeline.timezone=LOCAL an instant is the wall clock of whoever writes it. A process in a zone ahead
of the writers' would give its files a time that their next commits are older than, and readers would take our slice
for the newer one: the update would be lost. The modification times of instant files tell the zone, unless they were
copied.
"""

from datetime import timedelta

from ..clock import parse_instant
from ..errors import ConfigError
from ..timeline.active import Timeline

_LATEST = 20
"""Instants to look at: few enough not to reach back over a change to summer time."""
_SPAN = timedelta(minutes=5)
"""How long they must last: files that were copied at once would differ by that."""
_SLACK = timedelta(seconds=60)
_STEP = timedelta(minutes=15)
"""Zones lie whole quarters of an hour apart."""


def check_zone(timeline: Timeline, root: str) -> None:
    """Raise ConfigError when the latest instants all lie the same quarters of an hour beside their files' times."""
    if timeline.zone != "LOCAL":
        return
    offset = _offset(timeline)
    if offset is None or abs(offset) < _STEP - _SLACK:
        return
    if abs(offset - round(offset / _STEP) * _STEP) > _SLACK:
        return
    hours = round(offset / timedelta(hours=1), 2)
    raise ConfigError(
        f"{root}: its writers use a clock {abs(hours):g} hours {'behind' if hours > 0 else 'ahead of'} the one of this "
        "process (hoodie.table.timeline.timezone=LOCAL), so that new instants would be out of order",
        hint="run with their zone, for example TZ=America/New_York, here and on the executors",
    )


def _offset(timeline: Timeline) -> timedelta | None:
    """File time minus instant, where it is the same for enough instants."""
    times = []
    for ts, written in sorted(timeline.begun.items())[-_LATEST:]:
        moment = parse_instant(ts, timeline.zone)
        if moment is not None:
            times.append((moment, timedelta(milliseconds=written - moment.timestamp() * 1000)))
    if len(times) < 3 or times[-1][0] - times[0][0] < _SPAN:
        return None
    offsets = sorted(offset for _, offset in times)
    return offsets[len(offsets) // 2] if offsets[-1] - offsets[0] < _SLACK else None
