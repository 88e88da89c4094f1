"""The instant of a new plan."""

from datetime import timedelta

from ..clock import SLOWEST, format_instant, parse_instant
from ..errors import ConfigError
from ..snapshot import Snapshot
from ..table.time_zone import drawing_zone

_INSTANT_DIGITS = (14, 17)


def check_new_instant(ts: str, table: Snapshot, skew_millis: int) -> None:
    """Raise ConfigError for text that is not an instant, and for an instant in the future, which hides later writes."""
    moment = parse_instant(ts, table.timeline.zone)
    if moment is None or len(ts) not in _INSTANT_DIGITS:
        raise ConfigError(f"--instant-time {ts} is no instant", hint="write it as yyyyMMddHHmmssSSS, or leave it out")
    if ts > format_instant(table.clock.now() + timedelta(milliseconds=skew_millis), table.timeline.zone):
        raise ConfigError(
            f"--instant-time {ts} is in the future: readers would prefer its files to those of all writes until then",
            hint="leave --instant-time out",
        )


def zone_warnings(given: str | None, table: Snapshot) -> list[str]:
    """A warning when the time zone of the writers had to be guessed for a new instant; `given` is the operator's."""
    if given is not None or drawing_zone(table.timeline) != SLOWEST:
        return []
    return [
        "the timeline does not show the time zone of its writers: the instant uses the slowest clock on earth "
        "(docs/runbooks/time-zone.md)"
    ]
