"""Spark SQL's functions of dates and timestamps on Arrow arrays, and the patterns that they format with.

Zones: a timestamp is read on the clock of the session's zone. Arrow knows no summer time after 2037, and before 1900
cities had times of their own: in a zone that is not a fixed offset, only timestamps between these years are computed.
Source: DateTimeUtils, TimestampFormatter, DateTimeFormatterHelper of Apache Spark 3.5.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from ...clock import process_zone
from ...errors import ConfigError, UnsupportedTable
from ...options import Options
from ...options.file_keys import SESSION_TIME_ZONE

UTC_MICROS = pa.timestamp("us", "UTC")
DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"
_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_OF_DAYS = frozenset({"%Y", "%m", "%d"})
_TOKEN = re.compile(r"'[^']+'(?!')|([A-Za-z])\1*|[ !\"$%&(-@\\^_`|~]")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_UTC_NAMES = frozenset({"UTC", "GMT", "UT", "Z", "Etc/UTC", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu"})
_DAY_MICROS = 86_400_000_000


def _micros(*date: int) -> int:
    seconds = int(datetime(*date, tzinfo=timezone.utc).timestamp())  # type: ignore[misc, arg-type]
    return seconds * 1_000_000


_YEARS = (_micros(1, 1, 1), _micros(9999, 12, 31) + _DAY_MICROS - 1)
"""Years of four digits."""
_KNOWN_RULES = (_micros(1900, 1, 2), _micros(2037, 12, 31))


@dataclass(frozen=True, slots=True)
class Zone:
    """The zone of a session, by the name that Arrow takes."""

    name: str
    is_fixed: bool

    @classmethod
    def of_session(cls, options: Options) -> "Zone":
        """The zone that is set, else this process's, as in Spark. Raises ConfigError for text that is no time zone."""
        return cls.parse(options[SESSION_TIME_ZONE] or process_zone())

    @classmethod
    def parse(cls, text: str) -> "Zone":
        """The zone of a text as in spark.sql.session.timeZone: a region, or an offset. Raises ConfigError."""
        offset = _OFFSET.fullmatch(text)
        if text in _UTC_NAMES:
            return cls("UTC", is_fixed=True)
        if offset is not None:
            sign, hours, minutes = offset.groups()
            if int(hours) <= 18 and int(minutes or 0) < 60:
                return cls(f"{sign}{int(hours):02d}:{minutes or '00'}", is_fixed=True)
        try:
            ZoneInfo(text)
            pa.scalar(0, UTC_MICROS).cast(pa.timestamp("us", text))
        except (ValueError, OSError, KeyError, pa.ArrowException):
            raise ConfigError(
                f"{text!r} is no time zone",
                hint="set spark.sql.session.timeZone to a region or to an offset, as Europe/Berlin or +02:00",
            ) from None
        return cls(text, is_fixed=False)


def local(times: pa.Array, zone: Zone) -> pa.Array:
    """The times on the zone's clock, as timestamps without zone. Raises UnsupportedTable outside of known years."""
    low, high = _YEARS if zone.is_fixed else _KNOWN_RULES
    _require_between(times.cast(pa.int64()), low, high, f"in the zone {zone.name}")
    shown = pc.local_timestamp(times.cast(pa.timestamp("us", zone.name)))
    _require_between(shown.cast(pa.int64()), *_YEARS, "with a year of four digits")
    return shown


def from_seconds(seconds: pa.Array) -> pa.Array:
    """Seconds since 1970 as timestamps. Raises UnsupportedTable for years of more than four digits."""
    numbers = seconds.cast(pa.int64())
    _require_between(numbers, _YEARS[0] // 1_000_000, _YEARS[1] // 1_000_000, "with a year of four digits")
    return pc.multiply(numbers, pa.scalar(1_000_000, pa.int64())).cast(UTC_MICROS)


def to_seconds(times: pa.Array) -> pa.Array:
    """Whole seconds since 1970, rounded towards 1970."""
    return pc.divide(times.cast(pa.int64()), pa.scalar(1_000_000, pa.int64()))


def days(values: pa.Array) -> pa.Array:
    """The date of a local timestamp."""
    return pc.floor_temporal(values, unit="day").cast(pa.date32())


def add_days(dates: pa.Array, count: int) -> pa.Array:
    # Wraps around at the end of time, as in Java.
    return pc.add(dates.cast(pa.int32()), pa.scalar(count, pa.int32())).cast(pa.date32())


def of_days(dates: pa.Array) -> pa.Array:
    """Midnights, as local timestamps. Raises UnsupportedTable for years of more than four digits."""
    low, high = _YEARS
    _require_between(dates.cast(pa.int32()), low // _DAY_MICROS, high // _DAY_MICROS, "with a year of four digits")
    return dates.cast(pa.timestamp("us"))


def formatted(values: pa.Array, pattern: str) -> pa.Array:
    """Local timestamps as texts, in a pattern of `strftime`."""
    # With a finer unit, %S would show its fraction.
    whole = pc.floor_temporal(values, unit="second").cast(pa.timestamp("s"))
    return pc.strftime(whole, format=pattern)


def strftime_pattern(java: str, *, only_days: bool = False) -> str | None:
    """The pattern for `formatted` that stands for a pattern of Java.

    None for a pattern that is empty, has more than the plain numbers, or has times of day despite `only_days`.
    """
    found, at = [], 0
    while at < len(java):
        token = _TOKEN.match(java, at)
        if token is None:
            return None
        text, at = token[0], token.end()
        if text[0] == "'":
            found.append(text[1:-1].replace("%", "%%"))
        elif token[1] is None:
            found.append(text.replace("%", "%%"))
        elif text not in _FIELDS or (only_days and _FIELDS[text] not in _OF_DAYS):
            return None
        else:
            found.append(_FIELDS[text])
    return "".join(found) or None


def _require_between(numbers: pa.Array, low: int, high: int, what: str) -> None:
    found = pc.min_max(numbers)
    least, most = found["min"].as_py(), found["max"].as_py()
    if least is not None and (least < low or most > high):
        raise UnsupportedTable(f"there are values that are no times between 0001 (1900) and 9999 (2037) {what}")
