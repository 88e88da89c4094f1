"""Time, and instants as text.

An instant is `yyyyMMddHHmmssSSS` (17 digits, milliseconds) in the table's zone: UTC, or LOCAL, which is the default
zone of the process that writes. Instants are ordered as strings. Very old instants have 14 digits and mean the last
millisecond of their second; instants of the metadata table may carry suffix digits.
Source: HoodieInstantTimeGenerator of Apache Hudi.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Protocol

from .errors import UnsupportedTable

SLOWEST, FASTEST = "UTC-12", "UTC+14"
"""Zones in addition to those of tables: their clocks are behind, and ahead of, all others."""

_INSTANT = re.compile(r"[0-9]{14,}")
_ZONES = {
    "UTC": timezone.utc,
    SLOWEST: timezone(timedelta(hours=-12)),
    FASTEST: timezone(timedelta(hours=14)),
}
_MILLISECOND = timedelta(milliseconds=1)
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Only Linux has two clocks: its other one, and `time.monotonic` everywhere, stand still while the machine sleeps."""


@contextmanager
def counted(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Add the wall-clock seconds that the context lasts to `seconds[phase]`."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start


def uptime() -> float:
    """Seconds since the machine was started, with those for which it slept: the age of what was seen of other ones."""
    return time.clock_gettime(_UPTIME)


def process_zone() -> str:
    """The name of this process's time zone, as Java finds it; empty when it cannot be found."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if name:
        return name
    local = Path("/etc/localtime")
    if not local.exists():
        return "UTC"
    _, _, region = local.resolve().as_posix().partition("/zoneinfo/")
    if region:
        return region
    named = Path("/etc/timezone")
    return named.read_text(encoding="utf-8").strip() if named.exists() else ""


class Clock(Protocol):
    """Reads the time and waits; tests pass their own."""

    def now(self) -> datetime:
        """The current time, with a time zone."""

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def duration(millis: float) -> str:
    """A span of time as a person says it: seconds, minutes, hours or days."""
    count, unit = millis / 86400e3, "day"
    for limit, name, size in ((120e3, "second", 1e3), (7200e3, "minute", 60e3), (172800e3, "hour", 3600e3)):
        if millis < limit:
            count, unit = millis / size, name
            break
    return f"{count:.0f} {unit}{'' if round(count) == 1 else 's'}"


def format_instant(moment: datetime, zone: str) -> str:
    """The instant of an aware `moment`, cut to the millisecond; `zone` is "UTC", "LOCAL", SLOWEST or FASTEST."""
    local = local_time(moment, zone)
    return f"{local.year:04d}" + local.strftime("%m%d%H%M%S") + f"{local.microsecond // 1000:03d}"


def local_time(moment: datetime, zone: str) -> datetime:
    """An aware `moment` as clocks in the table's zone show it."""
    return moment.astimezone(_zone(zone))


def instant_of_millis(epoch_millis: int, zone: str) -> str:
    """The instant of a file's modification time."""
    seconds, millis = divmod(epoch_millis, 1000)
    return format_instant(datetime.fromtimestamp(seconds, timezone.utc) + timedelta(milliseconds=millis), zone)


def parse_instant(text: str, zone: str) -> datetime | None:
    """The moment of an instant; None for a reserved instant (`00000000000000…`) and for text that is not a time."""
    if not text.isascii() or not _INSTANT.fullmatch(text):
        return None
    try:
        moment = datetime.strptime(text[:14], "%Y%m%d%H%M%S")
        if zone == "UTC":
            moment = moment.replace(tzinfo=timezone.utc)
        millis = int(text[14:17].ljust(3, "0")) if len(text) > 14 else 999
        return moment.astimezone() + timedelta(milliseconds=millis)
    except (ValueError, OverflowError, OSError):
        return None


def next_instant(moment: datetime, zone: str, latest: str) -> str:
    """The instant of `moment`, or the first instant after `latest` when `moment` is not later than that.

    Raises UnsupportedTable when `latest` is the later one and is not a time.
    """
    now = format_instant(moment, zone)
    if now > latest:
        return now
    # Compare by text: a suffixed metadata instant is greater than its own first 17 digits.
    after = parse_instant(latest, "UTC")
    if after is None:
        raise UnsupportedTable(f"the instant {latest} of the timeline is later than the clock and is not a time")
    bumped = format_instant(after + _MILLISECOND, "UTC")
    return bumped if bumped > latest else format_instant(after + 2 * _MILLISECOND, "UTC")


def _zone(zone: str) -> timezone | None:
    return _ZONES.get(zone)
