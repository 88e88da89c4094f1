"""The functions of expression indexes against Python's own; against Spark's: tests/interop/test_expressions.py."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.derived_indexes.expression_index.expressions import (
    Expression,
    NotComputed,
    as_texts,
    compile_expression,
)
from hudi_services.derived_indexes.expression_index.time_functions import Zone, strftime_pattern
from hudi_services.errors import ConfigError, UnsupportedTable
from hudi_services.schema.column_type import ColumnType, Kind

from .expression_samples import CALLS, TYPES, samples

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
NEW_YORK = "America/New_York"
TEXTS = st.lists(st.none() | st.text(st.sampled_from("aB zÉßŉİΣΑς中🚀ж "), max_size=9), max_size=12)
SECONDS = st.integers(-2_208_900_000, 2_145_800_000)
MICROS = SECONDS.flatmap(lambda s: st.integers(s * 1_000_000, s * 1_000_000 + 999_999))
DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31))


def compiled(function: str, kind: Kind | ColumnType, zone: str = "UTC", **options: str) -> Expression:
    column = kind if isinstance(kind, ColumnType) else ColumnType(kind)
    return compile_expression(function, options, column, Zone.parse(zone))


def values(expression: Expression, given: list[Any]) -> list[Any]:
    found = expression.apply(pa.array(given, expression.source)).to_pylist()
    assert [one is None for one in found] == [one is None for one in given]
    return [one for one in found if one is not None]


def known(given: list[Any]) -> list[Any]:
    return [one for one in given if one is not None]


@given(TEXTS)
def test_texts_by_their_letters(given: list[str | None]) -> None:
    real = known(given)
    try:
        assert values(compiled("lower", Kind.STRING), given) == [one.lower() for one in real]
    except UnsupportedTable:
        assert any("Σ" in one for one in real)
    assert values(compiled("upper", Kind.STRING), given) == [one.upper() for one in real]
    assert values(compiled("length", Kind.STRING), given) == [len(one) for one in real]
    assert values(compiled("trim", Kind.STRING), given) == [one.strip(" ") for one in real]
    assert values(compiled("ltrim", Kind.STRING, trimString="Ba "), given) == [one.lstrip("Ba ") for one in real]
    assert values(compiled("rtrim", Kind.STRING, trimString="É"), given) == [one.rstrip("É") for one in real]
    assert values(compiled("rtrim", Kind.STRING, trimString=""), given) == real


@given(TEXTS, st.integers(-12, 12), st.integers(-2, 12))
def test_substrings(given: list[str | None], position: int, count: int) -> None:
    def cut(text: str) -> str:
        start = position - 1 if position > 0 else max(0, position + len(text)) if position < 0 else 0
        # What would stand before the beginning counts.
        end = (position + len(text) if position < 0 else start) + count
        return text[start : max(start, end)]

    found = values(compiled("substring", Kind.STRING, pos=str(position), len=str(count)), given)
    assert found == [cut(one) for one in known(given)]


@given(st.lists(st.none() | MICROS, max_size=12), st.sampled_from(["UTC", NEW_YORK, "Europe/Berlin", "+05:30"]))
def test_timestamps_are_read_on_the_clock_of_the_zone(given: list[int | None], zone: str) -> None:
    at = ColumnType(Kind.TIMESTAMP, unit="micros", utc=True)
    tz = timezone(timedelta(hours=5, minutes=30)) if zone[0] == "+" else ZoneInfo(zone)
    local = [(EPOCH + timedelta(microseconds=one)).astimezone(tz) for one in known(given)]
    for function in ("year", "month", "day", "hour"):
        assert values(compiled(function, at, zone), given) == [getattr(one, function) for one in local]
    assert values(compiled("to_date", at, zone), given) == [one.date() for one in local]
    assert values(compiled("date_add", at, zone, days="3"), given) == [one.date() + timedelta(3) for one in local]
    found = values(compiled("date_format", at, zone, format="yyyy-MM-dd'T'HH:mm:ss %"), given)
    assert found == [one.strftime("%Y-%m-%dT%H:%M:%S %%") for one in local]
    assert values(compiled("unix_timestamp", at, zone), given) == [int(one / 1_000_000) for one in known(given)]
    kept = compiled("to_timestamp", at, zone)
    assert kept.apply(pa.array(given, kept.source)).cast(pa.int64()).to_pylist() == given


@given(st.lists(st.none() | SECONDS, max_size=12), st.sampled_from([Kind.INT, Kind.LONG]))
def test_seconds_of_1970(given: list[int | None], kind: Kind) -> None:
    given = [one if one is None or kind is Kind.LONG else one % 2_000_000_000 for one in given]
    local = [datetime.fromtimestamp(one, ZoneInfo(NEW_YORK)) for one in known(given)]
    assert values(compiled("from_unixtime", kind, NEW_YORK), given) == [f"{one:%Y-%m-%d %H:%M:%S}" for one in local]
    found = values(compiled("from_unixtime", kind, NEW_YORK, format="dd.MM.yyyy"), given)
    assert found == [f"{one:%d.%m.%Y}" for one in local]


@given(st.lists(st.none() | DAYS, max_size=12))
def test_dates(given: list[date | None]) -> None:
    real = known(given)
    assert values(compiled("year", Kind.DATE, NEW_YORK), given) == [one.year for one in real]
    found = values(compiled("date_format", Kind.DATE, NEW_YORK, format="yyyyMMdd"), given)
    assert found == [one.isoformat().replace("-", "") for one in real]
    back = compiled("date_sub", Kind.DATE, days="400")
    there = compiled("date_add", Kind.DATE, days="400")
    assert there.apply(back.apply(pa.array(given, back.source))).to_pylist() == given
    assert as_texts(pa.array(given, pa.date32()), there.result).to_pylist() == [
        one and one.isoformat() for one in given
    ]


def test_every_sample_is_computed() -> None:
    rows = samples(NEW_YORK, 50)
    for call in CALLS:
        expression = compile_expression(call.function, call.options, call.column_type, Zone.parse(NEW_YORK))
        found = expression.apply(rows[call.column].combine_chunks().cast(expression.source))
        assert len(found) == rows.num_rows, call


REFUSED: list[tuple[str, ColumnType, Mapping[str, str], str]] = [
    ("split", TYPES["text"], {"pattern": ","}, "the function split is not among"),
    ("regexp_replace", TYPES["text"], {"pattern": ",", "replacement": ""}, "regexp_replace is not among"),
    ("lower", TYPES["seconds"], {}, "lower of a column of type long"),
    ("hour", TYPES["day"], {}, "hour of a column of type date"),
    ("to_date", TYPES["text"], {}, "to_date of a column of type string"),
    ("to_date", TYPES["at"], {"format": "yyyy"}, "no option format"),
    ("year", ColumnType(Kind.TIMESTAMP, unit="micros"), {}, "local-timestamp-micros"),
    ("identity", ColumnType(Kind.DECIMAL, precision=5, scale=2), {}, r"decimal\(5,2\)"),
    ("identity", ColumnType(Kind.BYTES), {}, "bytes"),
    ("trim", TYPES["text"], {"side": "left"}, "no option side"),
    ("substring", TYPES["text"], {"pos": "1"}, "option len"),
    ("substring", TYPES["text"], {"pos": "one", "len": "1"}, "option pos"),
    ("date_add", TYPES["day"], {"days": "2147483648"}, "32 bits"),
    ("date_format", TYPES["at"], {}, "format ''"),
    ("date_format", TYPES["day"], {"format": "yyyy HH"}, "yyyy, MM and dd"),
    ("from_unixtime", TYPES["seconds"], {"format": "EEE"}, "'EEE'"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]} {case[1]} {dict(case[2])}")
def test_what_is_not_computed_is_refused(case: tuple[str, ColumnType, Mapping[str, str], str]) -> None:
    function, column, options, text = case
    with pytest.raises(NotComputed, match=text):
        compile_expression(function, options, column, Zone.parse("UTC"))


@pytest.mark.parametrize(
    "pattern", ["", "yy", "MMM", "yyyy-MM-dd'T", "''", "'a''b'", "[HH]", "hh", "SSS", "yyyy#", "é"]
)
def test_patterns_that_are_not_plain(pattern: str) -> None:
    assert strftime_pattern(pattern) is None


@pytest.mark.parametrize(
    ("function", "kind", "zone", "value"),
    [
        ("lower", TYPES["text"], "UTC", "ΑΣ-Β"),
        ("lower", TYPES["text"], "UTC", "\U00010570"),
        ("upper", TYPES["text"], "UTC", "\u019b"),
        ("from_unixtime", TYPES["seconds"], "UTC", 253_402_300_800),
        ("from_unixtime", TYPES["seconds"], "+01:00", 253_402_300_799),
        ("from_unixtime", TYPES["seconds"], NEW_YORK, 2_200_000_000),
        ("hour", TYPES["at"], NEW_YORK, -2_300_000_000_000_000),
        ("identity", ColumnType(Kind.DOUBLE), "UTC", float("nan")),
    ],
)
def test_values_that_are_not_computed(function: str, kind: ColumnType, zone: str, value: object) -> None:
    expression = compiled(function, kind, zone)
    with pytest.raises(UnsupportedTable):
        expression.apply(pa.array([value], expression.source))


def test_bloom_filters_hold_what_java_writes() -> None:
    assert as_texts(pa.array([True, None, False]), ColumnType(Kind.BOOLEAN)).to_pylist() == ["true", None, "false"]
    assert as_texts(pa.array([-7], pa.int64()), ColumnType(Kind.LONG)).to_pylist() == ["-7"]
    with pytest.raises(NotComputed, match="double"):
        as_texts(pa.array([1.5]), ColumnType(Kind.DOUBLE))


@pytest.mark.parametrize(
    ("text", "name"), [("Z", "UTC"), ("GMT+8", "+08:00"), ("-05:30", "-05:30"), ("UTC+0130", "+01:30")]
)
def test_zones_of_a_fixed_offset(text: str, name: str) -> None:
    assert Zone.parse(text) == Zone(name, is_fixed=True)


@pytest.mark.parametrize("text", ["", "Mars/Phobos", "+25:00", "CET-1CEST", "../etc/passwd"])
def test_what_is_no_zone(text: str) -> None:
    with pytest.raises(ConfigError, match="is no time zone"):
        Zone.parse(text)
