"""The instants of plans: of a new one, and of the pending one that is executed."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from ..clock import SLOWEST, format_instant, parse_instant
from ..errors import ConfigError, NothingToDo
from ..snapshot import Snapshot
from ..table.time_zone import drawing_zone
from ..timeline.instant import Instant

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
        "the timeline does not show in which time zone its writers work, as after a copy that does not keep the times "
        "of files: the new instant is up to 26 hours in the past, so that no writer's next commit is earlier. Nothing "
        "is to be done: the next commit of a writer shows the zone"
    ]


def choose_pending(
    table: Snapshot, ts: str | None, service: str, pending: Sequence[Instant], is_own: Callable[[Instant], bool]
) -> Instant:
    """The plan of `ts` among the `pending` ones of a service, or the earliest one.

    `is_own` says whether a completed instant is one of the service. Raises NothingToDo when none is pending or `ts` is
    completed, and ConfigError for any other `ts`.
    """
    if ts is None:
        if not pending:
            raise NothingToDo(f"there is no pending {service} plan")
        return pending[0]
    found = next((instant for instant in pending if instant.ts == ts), None)
    if found is not None:
        return found
    if any(instant.is_completed and is_own(instant) for instant in table.timeline.at(ts)):
        raise NothingToDo(f"the {service} {ts} is completed already")
    known = ", ".join(instant.ts for instant in pending) or "none"
    raise ConfigError(
        f"there is no pending {service} with the instant {ts} in {table.storage.root}", hint=f"pending are: {known}"
    )
