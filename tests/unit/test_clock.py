"""Instant text and times."""

import os
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.clock import format_instant, instant_of_millis, next_instant, parse_instant, uptime
from hudi_services.errors import UnsupportedTable

MOMENTS = st.datetimes(datetime(1971, 1, 2), datetime(9998, 1, 1), timezones=st.just(timezone.utc))


@pytest.fixture
def in_new_york() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@given(MOMENTS)
def test_round_trip_to_the_millisecond(moment: datetime) -> None:
    text = format_instant(moment, "UTC")
    assert len(text) == 17
    assert parse_instant(text, "UTC") == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@given(MOMENTS, MOMENTS)
def test_text_orders_as_time(one: datetime, two: datetime) -> None:
    assert (format_instant(one, "UTC") < format_instant(two, "UTC")) == (
        one.timestamp() * 1000 // 1 < two.timestamp() * 1000 // 1
    )


def test_local_is_the_zone_of_the_process(in_new_york: None) -> None:
    moment = datetime(2026, 11, 21, 6, 5, 0, 7000, timezone.utc)
    assert format_instant(moment, "LOCAL") == "20261121010500007"
    assert format_instant(moment, "UTC") == "20261121060500007"
    assert parse_instant("20261121010500007", "LOCAL") == moment
    assert parse_instant("20261121060500007", "UTC") == moment


def test_old_and_suffixed_instants() -> None:
    assert parse_instant("20200102030405", "UTC") == datetime(2020, 1, 2, 3, 4, 5, 999000, timezone.utc)
    assert parse_instant("20200102030405006001", "UTC") == datetime(2020, 1, 2, 3, 4, 5, 6000, timezone.utc)


@pytest.mark.parametrize(
    "text", ["00000000000000", "00000000000000010", "", "001", "2026112106050000x", "20261399" * 2]
)
def test_what_is_no_time(text: str) -> None:
    assert parse_instant(text, "UTC") is None
    assert parse_instant(text, "LOCAL") is None


def test_modification_time() -> None:
    assert instant_of_millis(1_700_000_000_123, "UTC") == "20231114221320123"


@given(MOMENTS, st.timedeltas(timedelta(0), timedelta(days=400)), st.sampled_from(["", "001"]))
def test_next_is_greater_than_the_latest(moment: datetime, ahead: timedelta, more: str) -> None:
    latest = format_instant(moment + ahead, "UTC") + more if moment.year < 9990 else ""
    following = next_instant(moment, "UTC", latest)
    assert following > latest
    assert len(following) == 17


def test_next_is_the_present_when_it_can_be() -> None:
    moment = datetime(2026, 11, 21, tzinfo=timezone.utc)
    assert next_instant(moment, "UTC", "20261120235959999") == "20261121000000000"
    assert next_instant(moment, "UTC", "20261121000000000") == "20261121000000001"
    assert next_instant(moment, "UTC", "20261231235959999") == "20270101000000000"


def test_an_instant_that_cannot_be_followed() -> None:
    with pytest.raises(UnsupportedTable, match="99999999999999999"):
        next_instant(datetime(2026, 1, 1, tzinfo=timezone.utc), "UTC", "99999999999999999")


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="another system has one clock of this kind")
def test_the_uptime_goes_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {time.CLOCK_BOOTTIME: 500.0, time.CLOCK_MONOTONIC: 200.0}
    monkeypatch.setattr(time, "clock_gettime", known.__getitem__)
    assert uptime() == 500
