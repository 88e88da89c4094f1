from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_services.metadata.statistics.values import (
    NoPromotion,
    fits_v1,
    greatest,
    promote,
    smallest,
    unwrap,
    v1_bound,
    wrap,
)
from hudi_services.schema.column_type import ColumnType, Kind

INT, LONG, FLOAT, DOUBLE = map(ColumnType, (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE))
TEXT, BYTES, DATE = map(ColumnType, (Kind.STRING, Kind.BYTES, Kind.DATE))
MILLIS, MICROS = (ColumnType(Kind.TIMESTAMP, unit=unit, utc=True) for unit in ("millis", "micros"))


def decimal(precision: int, scale: int) -> ColumnType:
    return ColumnType(Kind.DECIMAL, precision=precision, scale=scale)


@pytest.mark.parametrize(
    ("value", "bound", "v1", "v2"),
    [
        (True, ColumnType(Kind.BOOLEAN), ("BooleanWrapper", True), ("BooleanWrapper", True)),
        (7, INT, ("IntWrapper", 7), ("IntWrapper", 7)),
        (7, LONG, ("LongWrapper", 7), ("LongWrapper", 7)),
        (1.5, FLOAT, ("FloatWrapper", 1.5), ("FloatWrapper", 1.5)),
        ("é", TEXT, ("StringWrapper", "é"), ("StringWrapper", "é")),
        (b"\x80", BYTES, ("BytesWrapper", b"\x80"), ("BytesWrapper", b"\x80")),
        (18262, DATE, ("DateWrapper", 18262), ("IntWrapper", 18262)),
        (1, MICROS, ("LongWrapper", 1), ("LongWrapper", 1)),
        (100, decimal(10, 2), ("DecimalWrapper", (10**15).to_bytes(7, "big")), ("BytesWrapper", b"\x64")),
        (-1, decimal(5, 0), ("DecimalWrapper", (-(10**15)).to_bytes(7, "big", signed=True)), ("BytesWrapper", b"\xff")),
        (128, decimal(5, 0), None, ("BytesWrapper", b"\x00\x80")),
        (None, LONG, None, None),
    ],
)
def test_wrappers(value: object, bound: ColumnType, v1: object, v2: object) -> None:
    assert wrap(value, bound, typed=True) == v2
    assert unwrap(wrap(value, bound, typed=True), bound) == value
    if v1 is not None:
        assert wrap(value, bound, typed=False) == v1


@given(st.integers(-(10**28), 10**28), st.integers(0, 15))
def test_a_v1_decimal_keeps_its_value(unscaled: int, scale: int) -> None:
    wrapped = wrap(unscaled, decimal(28, scale), typed=False)
    bound = v1_bound(wrapped)
    assert Decimal(unwrap(wrapped, bound)).scaleb(-bound.scale) == Decimal(unscaled).scaleb(-scale)


@pytest.mark.parametrize(
    ("bound", "fits"),
    [(decimal(10, 2), True), (decimal(25, 4), False), (decimal(15, 0), True), (decimal(20, 16), False)],
)
def test_which_decimals_fit_without_a_type(bound: ColumnType, fits: bool) -> None:
    assert fits_v1(bound) is fits


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (7, INT, LONG, 7),
        (7, INT, DOUBLE, 7.0),
        (16777217, LONG, FLOAT, 16777216.0),
        (0.10000000149011612, FLOAT, DOUBLE, 0.1),
        (3.4028234663852886e38, FLOAT, DOUBLE, 3.4028235e38),
        (5, LONG, MICROS, 5),
        (5, MILLIS, MICROS, 5000),
        (-5001, MICROS, MILLIS, -6),
        (5, ColumnType(Kind.TIME, unit="millis"), ColumnType(Kind.TIME, unit="micros"), 5000),
        (150, decimal(5, 2), decimal(7, 4), 15000),
        ("a", TEXT, BYTES, b"a"),
        (None, TEXT, INT, None),
        # What a compaction of Hudi 0.15 leaves of a DateWrapper and of a DecimalWrapper.
        (18262, INT, DATE, 18262),
        ((-15 * 10**14).to_bytes(7, "big", signed=True), BYTES, decimal(5, 2), -150),
    ],
)
def test_promotion(value: object, source: ColumnType, target: ColumnType, result: object) -> None:
    assert promote(value, source, target) == result


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        ("a", TEXT, INT),
        (1.5, DOUBLE, FLOAT),
        (7, LONG, INT),
        (155, decimal(5, 2), decimal(5, 1)),
        (b"\x01", BYTES, decimal(5, 2)),
    ],
)
def test_what_cannot_be_promoted(value: object, source: ColumnType, target: ColumnType) -> None:
    with pytest.raises(NoPromotion):
        promote(value, source, target)


def test_bounds_leave_nulls_out_and_know_negative_zero() -> None:
    assert (smallest([None, 3, 2]), greatest([None, 3, 2])) == (2, 3)
    assert (smallest([None]), greatest([])) == (None, None)
    assert str(smallest([0.0, -0.0])) == "-0.0"
    assert str(greatest([-0.0, 0.0])) == "0.0"
