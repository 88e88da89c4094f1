"""Partition paths that are times: the value of a field read as a time, and shown by a pattern.

    number   EPOCHMILLISECONDS, EPOCHMICROSECONDS, UNIX_TIMESTAMP (seconds) or SCALAR (timestamp.scalar.time.unit);
             a date counts as its days since 1970 and a timestamp as its microseconds, whatever the unit is
    string   DATE_STRING or MIXED: by the first pattern of input.dateformat that fits
    null     the number 1, or for strings the first millisecond of 1970: never the default partition

A string has the zone of its own offset, else input.timezone, and is shown in output.timezone, else in its own. Where
neither is set, numbers are shown, and strings without offset are read, in the zone of the writer's process.

Java takes patterns more loosely than we do (`1` where it says `MM`): such a string is refused, never misread.
Source: TimestampBasedAvroKeyGenerator, HoodieDateTimeParser, TimestampKeyGeneratorConfig of Apache Hudi; DateTimeFormat
of Joda; java.util.TimeZone.getTimeZone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from ..derived_indexes.expression_index.time_functions import UTC_MICROS, Zone, formatted, local, strftime_pattern
from ..errors import ConfigError, UnsupportedTable
from ..options.creation_keys import TIME_PREFIX, TIME_PREFIXES
from .key_texts import UTC, Field, int64

_MILLIS = {
    "NANOSECONDS": Fraction(1, 1_000_000),
    "MICROSECONDS": Fraction(1, 1000),
    "MILLISECONDS": Fraction(1),
    "SECONDS": Fraction(1000),
    "MINUTES": Fraction(60_000),
    "HOURS": Fraction(3_600_000),
    "DAYS": Fraction(86_400_000),
}
_UNITS = {"EPOCHMILLISECONDS": "MILLISECONDS", "EPOCHMICROSECONDS": "MICROSECONDS", "UNIX_TIMESTAMP": "SECONDS"}
_STRINGS = ("DATE_STRING", "MIXED")
_LARGEST_MILLIS = 253_402_300_800_000
"""The end of the year 9999, after 1970; there is less before 1970."""
_INPUT_FIELDS = {"yyyy": r"(\d{4})", "SSS": r"(\d{3})", "Z": r"(Z|[+-]\d\d:?\d\d)"}
_INPUT_FIELDS |= dict.fromkeys(("MM", "dd", "HH", "mm", "ss"), r"(\d\d)")
_TOKEN = re.compile(r"'([^']+)'(?!')|(([A-Za-z])\3*)|([^A-Za-z'])")
_GMT = re.compile(r"GMT(?:([+-])(\d{1,2})(?::?(\d\d))?)?")


@dataclass(frozen=True, slots=True)
class _Input:
    """A pattern of strings: the expression that they match, and what makes a time of a match.

    `offset` is the part of the match that is the offset from UTC, "" for none. `of_null` is the text of null.
    """

    expression: str
    replacement: str
    offset: str
    of_null: str


@dataclass(frozen=True, slots=True)
class TimePath:
    """How a key generator makes a partition path of the time in a field.

    `shown_in` is the zone of the output, None for the clock on which a string is written; `read_in` that of strings.
    """

    field: Field
    pattern: str
    shown_in: Zone | None
    unit: str = ""
    inputs: tuple[_Input, ...] = ()
    read_in: Zone = UTC

    @classmethod
    def of(cls, raw: Mapping[str, str], field: Field, zone: Zone) -> "TimePath":
        """By the properties of a table and of a write; `zone` is that of the processes that wrote the table.

        Raises ConfigError for a missing or wrong property, UnsupportedTable for a pattern, a zone or a column of which
        we cannot make what Hudi makes.
        """
        settings = _Settings(raw)
        is_string = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        # Hudi 0.15.0 keeps every property but this one; strings are read alike by both types.
        kind = settings.get("timestamp.type", "MIXED") if is_string else settings.needed("timestamp.type")
        if kind not in (*_UNITS, *_STRINGS, "SCALAR"):
            raise ConfigError(f"{TIME_PREFIX}timestamp.type={kind} is no type of timestamps")
        java = settings.needed("output.dateformat")
        pattern = strftime_pattern(java)
        if pattern is None:
            raise _unknown(f"the output pattern {java}", "yyyy, MM, dd, HH, mm and ss")
        if is_string != (kind in _STRINGS) or pa.types.is_boolean(field.type):
            raise UnsupportedTable(
                f"the partition field {field.name} has the type {field.type}, which Hudi does not read as {kind}",
                hint=f"cast {field.name} to the type that the other rows of the table have",
            )
        output = settings.zone("output")
        if not is_string:
            unit = _UNITS.get(kind) or settings.get("timestamp.scalar.time.unit", "SECONDS").upper()
            if unit not in _MILLIS:
                raise ConfigError(f"{TIME_PREFIX}timestamp.scalar.time.unit={unit} is no unit of time")
            return cls(field, pattern, output or zone, unit)
        given = settings.zone("input")
        inputs = tuple(_input(one, given or output or UTC) for one in settings.patterns())
        return cls(field, pattern, output or given, "", inputs, given or zone)

    def texts(self, values: pa.Array) -> pa.Array:
        """The texts of these values, none null. Raises UnsupportedTable or ConfigError for values that are no times."""
        times = self._of_texts(values) if self.inputs else local(self._of_numbers(values), self.shown_in or UTC)
        units = {"%S": "second", "%M": "minute", "%H": "hour"}
        unit = next((name for letters, name in units.items() if letters in self.pattern), "day")
        # Few are left then, and formatting is slow.
        shown = pc.floor_temporal(times, unit=unit).dictionary_encode()
        return formatted(shown.dictionary, self.pattern).take(shown.indices)

    def _of_numbers(self, values: pa.Array) -> pa.Array:
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        if pa.types.is_decimal(values.type):
            values = pc.trunc(values)
        numbers = pc.fill_null(values.cast(pa.int64()), 1)
        scale = _MILLIS[self.unit]
        found = pc.min_max(numbers)
        least, most = found["min"].as_py(), found["max"].as_py()
        if least is not None and max(-least, most) > _LARGEST_MILLIS / scale:
            raise UnsupportedTable(
                f"{self.field.name} has values that, in {self.unit.lower()}, are no times up to the year 9999",
                hint=f"check the unit of {self.field.name}",
            )
        # Towards 1970, as in Java.
        millis = pc.divide(pc.multiply(numbers, int64(scale.numerator)), int64(scale.denominator))
        return pc.multiply(millis, int64(1000)).cast(UTC_MICROS)

    def _of_texts(self, values: pa.Array) -> pa.Array:
        given = pc.fill_null(values, self.inputs[0].of_null)
        left = pc.is_valid(given)
        times = pa.nulls(len(given), pa.timestamp("us"))
        for one in self.inputs:
            fits = pc.and_(left, pc.match_substring_regex(given, one.expression))
            if pc.any(fits).as_py():
                read = self._read(given.filter(fits), one)
                times = pc.replace_with_mask(times, fits, read)
            left = pc.and_not(left, fits)
        wrong = given.filter(left)
        if len(wrong):
            raise ConfigError(
                f"{self.field.name} has {len(wrong)} values that {TIME_PREFIX}input.dateformat does not "
                f"describe, as {wrong[0].as_py()!r}",
                hint="write them as the pattern says, each number with all its digits",
            )
        return times

    def _read(self, given: pa.Array, time_format: _Input) -> pa.Array:
        """The times of strings that fit, on the clock of the output."""
        plain = pc.replace_substring_regex(given, pattern=time_format.expression, replacement=time_format.replacement)
        try:
            if self.shown_in is None:
                return local(plain.cast(pa.timestamp("us")).cast(UTC_MICROS), UTC)
            if time_format.offset:
                exact = f"{time_format.replacement}{time_format.offset}"
                times = pc.replace_substring_regex(given, pattern=time_format.expression, replacement=exact).cast(
                    UTC_MICROS
                )
            else:
                clock = plain.cast(pa.timestamp("us"))
                times = pc.assume_timezone(clock, self.read_in.name, ambiguous="earliest").cast(UTC_MICROS)
                local(times, self.read_in)  # Raises where Arrow does not know the rules of the zone.
            return local(times, self.shown_in)
        except pa.ArrowInvalid as e:
            raise ConfigError(
                f"{self.field.name} has values that are no times: {str(e).splitlines()[0]}", hint="correct them"
            ) from e


def takes_texts(raw: Mapping[str, str]) -> bool:
    """Whether a table whose partition paths are times makes them of texts, and not of numbers."""
    return _Settings(raw).get("timestamp.type", "MIXED") in _STRINGS


class _Settings:
    """The properties of times, by the names behind their prefix. An older prefix counts, too."""

    def __init__(self, raw: Mapping[str, str]) -> None:
        self._raw = raw

    def get(self, name: str, default: str = "") -> str:
        keys = (prefix + name for prefix in TIME_PREFIXES)
        return next((self._raw[key] for key in keys if key in self._raw), default)

    def needed(self, name: str) -> str:
        found = self.get(name)
        if not found:
            raise ConfigError(
                f"neither the table nor the write has {TIME_PREFIX}{name}, which a partition path of a time needs",
                hint="give it with each write, as the other writers of the table do",
            )
        return found

    def zone(self, side: str) -> Zone | None:
        """The zone of the input or the output, if any."""
        name = self.get("timezone", self.get(f"{side}.timezone")).strip()
        return _zone(name) if name else None

    def patterns(self) -> list[str]:
        """The patterns of the input."""
        delimiter = self.get("input.dateformat.list.delimiter.regex").strip() or ","
        try:
            return [one.strip() for one in re.split(delimiter, self.needed("input.dateformat"))]
        except re.error:
            raise UnsupportedTable(
                f"{TIME_PREFIX}input.dateformat.list.delimiter.regex={delimiter} cannot be read",
                hint="write to this table with Apache Hudi",
            ) from None


def _zone(name: str) -> Zone:
    """The zone that Java has by this name. Raises UnsupportedTable for others, which Java takes for GMT."""
    gmt = _GMT.fullmatch(name)
    if gmt is not None:
        sign, hours, minutes = gmt.groups()
        if sign is None:
            return UTC
        if int(hours) <= 18 and int(minutes or 0) < 60:
            return Zone.parse(f"{sign}{hours}:{minutes or '00'}")
    elif name.startswith("Etc/GMT") or re.fullmatch("[A-Za-z](?:(?![+-][0-9]).)*", name):
        try:
            return Zone.parse(name)
        except ConfigError:
            pass
    raise UnsupportedTable(
        f"the time zone {name!r} of the partition paths is not known",
        hint="write to this table with Apache Hudi, which may take this zone for GMT",
    )


def _input(java: str, zone: Zone) -> _Input:
    """The input pattern. Raises UnsupportedTable for one with other fields than plain numbers."""
    expression, names = "", []
    at = 0
    while at < len(java):
        token = _TOKEN.match(java, at)
        if token is None or (token[2] and (token[2] not in _INPUT_FIELDS or token[2] in names)):
            raise _unknown(f"the input pattern {java}", "yyyy, MM, dd, HH, mm, ss, SSS and Z")
        expression += _INPUT_FIELDS[token[2]] if token[2] else re.escape(token[1] or token[4])
        names += [token[2]] if token[2] else []
        at = token.end()
    if "yyyy" not in names:
        raise _unknown(f"the input pattern {java}", "a year")
    group = {name: f"\\{i}" for i, name in enumerate(names, 1)}
    day = f"{group['yyyy']}-{group.get('MM', '01')}-{group.get('dd', '01')}"
    clock = f"{group.get('HH', '00')}:{group.get('mm', '00')}:{group.get('ss', '00')}.{group.get('SSS', '000')}"
    return _Input(f"^{expression}$", f"{day} {clock}", group.get("Z", ""), _first_milli(java, zone))


def _first_milli(java: str, zone: Zone) -> str:
    """The first millisecond of 1970 by an input pattern."""
    moment = datetime(1970, 1, 1, microsecond=1000, tzinfo=timezone.utc).astimezone(_python_zone(zone))
    fields = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "001", "Z": "%z"}

    def shown(token: re.Match[str]) -> str:
        return moment.strftime(fields[token[2]]) if token[2] else str(token[1] or token[4])

    return _TOKEN.sub(shown, java)


def _python_zone(zone: Zone) -> timezone | ZoneInfo:
    if zone.name[0] not in "+-":
        return ZoneInfo(zone.name)
    minutes = int(zone.name[1:3]) * 60 + int(zone.name[4:])
    return timezone(timedelta(minutes=minutes if zone.name[0] == "+" else -minutes))


def _unknown(what: str, known: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"{what} of the table's partition paths is not supported: known are {known}",
        hint="write to this table with Apache Hudi",
    )
