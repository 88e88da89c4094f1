"""Minimum and maximum values in column statistics: how they are wrapped, compared and promoted.

A bound is stored as one of the *Wrapper records {value}. Table version 9 stores its type, too: an ordinal, and for
decimals "precision,scale" (V2). Earlier versions have only the wrapper (V1).

    type                        V1 wrapper                       V2 wrapper            V2 ordinal
    boolean .. double, string   Boolean Int Long Float Double String      the same      2 .. 7
    bytes, fixed                Bytes                            the same              8, 9
    decimal                     Decimal: scale 15, 30 digits     Bytes: own scale      10
    uuid                        String                           String                11
    date                        Date: days since 1970            Int                   12
    time millis, micros         Int, Long                        the same              13, 14
    timestamp millis .. nanos   Long: raw units                  Long                  15, 16, 17
    the same without zone       Long                             Long                  18, 19, 20

A compaction of Hudi before 1.1 leaves only the Avro type of a V1 wrapper: Decimal becomes Bytes (the same bytes), Date
becomes Int. So a V1 value is read by the type of its column: see `promote` and `number`.

Decimals are unscaled two's complement integers of the least width. Values here are plain Python: bool, int (also
dates, times and unscaled decimals), float, str, bytes. Source: ValueType, ValueMetadata, HoodieAvroWrapperUtils of
Apache Hudi 1.2.0; HoodieAvroUtils.wrapValueIntoAvro of 0.15.0 and 1.0.2.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any

from ...parquet.value_bounds import order_key

Wrapped = tuple[str, Any]
"""(wrapper name without namespace, value as it is stored)."""

_V1_SCALE = 15
_V1_PRECISION = 30


class ValueType(IntEnum):
    """The types of bounds, by ordinal. V1 is never stored: it stands for a wrapper without a type."""

    V1 = 0
    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


_T = ValueType
_WRAPPERS = {
    _T.BOOLEAN: "BooleanWrapper",
    _T.INT: "IntWrapper",
    _T.FLOAT: "FloatWrapper",
    _T.DOUBLE: "DoubleWrapper",
    _T.STRING: "StringWrapper",
    _T.UUID: "StringWrapper",
    _T.BYTES: "BytesWrapper",
    _T.FIXED: "BytesWrapper",
    _T.DECIMAL: "BytesWrapper",
    _T.DATE: "IntWrapper",
    _T.TIME_MILLIS: "IntWrapper",
}
_V1_WRAPPERS = _WRAPPERS | {_T.DECIMAL: "DecimalWrapper", _T.DATE: "DateWrapper"}
_V1_TYPES = {
    "BooleanWrapper": _T.BOOLEAN,
    "IntWrapper": _T.INT,
    "LongWrapper": _T.LONG,
    "FloatWrapper": _T.FLOAT,
    "DoubleWrapper": _T.DOUBLE,
    "StringWrapper": _T.STRING,
    "BytesWrapper": _T.BYTES,
    "DecimalWrapper": _T.DECIMAL,
    "DateWrapper": _T.DATE,
    "LocalDateWrapper": _T.DATE,
    "TimeMicrosWrapper": _T.TIME_MICROS,
    "TimestampMicrosWrapper": _T.TIMESTAMP_MICROS,
}
_LONG_WRAPPER = "LongWrapper"
_LONGS = frozenset(t for t in _T if t is _T.LONG or t is _T.TIME_MICROS or t >= _T.TIMESTAMP_MILLIS)
_NANOS = {
    _T.TIME_MILLIS: 1_000_000,
    _T.TIME_MICROS: 1_000,
    _T.TIMESTAMP_MILLIS: 1_000_000,
    _T.TIMESTAMP_MICROS: 1_000,
    _T.TIMESTAMP_NANOS: 1,
    _T.LOCAL_TIMESTAMP_MILLIS: 1_000_000,
    _T.LOCAL_TIMESTAMP_MICROS: 1_000,
    _T.LOCAL_TIMESTAMP_NANOS: 1,
}
"""Nanoseconds in the unit of a type."""
_INTS = (_T.INT, _T.DATE, _T.TIME_MILLIS)
_TEXTS = (_T.STRING, _T.UUID)
_BINARIES = (_T.BYTES, _T.FIXED)


@dataclass(frozen=True, slots=True)
class BoundType:
    """The type of a bound; only decimals have precision and scale."""

    type: ValueType
    precision: int = 0
    scale: int = 0

    @property
    def unit_nanos(self) -> int | None:
        """Nanoseconds in the unit of times; None for other types, and for V1 numbers, which have no unit."""
        return _NANOS.get(self.type)

    @property
    def fits_v1(self) -> bool:
        """Whether a wrapper without a type holds the bound: decimals must fit into 30 digits, 15 of them fraction."""
        if self.type is not _T.DECIMAL:
            return True
        return self.scale <= _V1_SCALE and self.precision + _V1_SCALE - self.scale <= _V1_PRECISION


class NoPromotion(Exception):
    """Values of one type cannot be read as another; callers then do without the range."""


def wrap(value: Any, bound: BoundType, *, typed: bool) -> Wrapped | None:
    """The stored form of a value, None for None; `typed` is the V2 form."""
    if value is None:
        return None
    if bound.type is not _T.DECIMAL:
        return ((_WRAPPERS if typed else _V1_WRAPPERS).get(bound.type, _LONG_WRAPPER), value)
    unscaled = value if typed else value * 10 ** (_V1_SCALE - bound.scale)
    return ("BytesWrapper" if typed else "DecimalWrapper", _twos_complement(unscaled))


def unwrap(wrapped: Wrapped | None, bound: BoundType) -> Any:
    """The value of a stored form whose type is `bound`; None for None."""
    if wrapped is None:
        return None
    value = wrapped[1]
    return int.from_bytes(value, "big", signed=True) if bound.type is _T.DECIMAL else value


def v1_bound(wrapped: Wrapped | None) -> BoundType:
    """The type that a wrapper without type information stands for; a timestamp is a long."""
    if wrapped is None:
        return BoundType(_T.NULL)
    kind = _V1_TYPES.get(wrapped[0], _T.NULL)
    return BoundType(kind, _V1_PRECISION, _V1_SCALE) if kind is _T.DECIMAL else BoundType(kind)


def promote(value: Any, source: BoundType, target: BoundType) -> Any:
    """A value of type `source` as one of type `target`, as Hudi promotes columns; raises NoPromotion.

    All 64-bit numbers (long, timestamps) are one family here, and so are 32-bit numbers (int, date, time): V1 does not
    distinguish them. If both types have a unit, the value is scaled; into a coarser unit it is rounded down, as Java
    does (Instant.toEpochMilli).
    """
    if value is None:
        return value
    if source.unit_nanos is not None and target.unit_nanos is not None:
        return value * source.unit_nanos // target.unit_nanos
    if _same_family(source, target):
        return value
    if target.type in _LONGS and source.type is _T.INT:
        return value
    if target.type in (_T.FLOAT, _T.DOUBLE) and source.type in (_T.INT, _T.LONG, _T.FLOAT):
        return _as_float(value, source.type, target.type)
    if target.type is _T.DECIMAL and source.type is _T.DECIMAL:
        return _rescale(value, source.scale, target.scale)
    if _is_compacted_decimal(source, target):
        return _rescale(int.from_bytes(value, "big", signed=True), _V1_SCALE, target.scale)
    if target.type in _BINARIES and source.type in _TEXTS:
        return value.encode()
    raise NoPromotion(f"{source.type.name} values cannot be read as {target.type.name}")


def java_key(value: Any) -> Any:
    """A key that orders the values of one type as Java does in merges: byte arrays by signed bytes."""
    return value.translate(_SIGNED) if isinstance(value, bytes) else order_key(value)


_SIGNED = bytes(byte ^ 0x80 for byte in range(256))


def comparable(value: Any, bound: BoundType, beside: BoundType) -> Any:
    """A bound in a form that compares with a bound of the type `beside`, as readers compare values.

    Decimals compare by their numeric value, times by their unit if both have one, NaN is above all numbers, -0.0 equals
    0.0, byte arrays compare by unsigned bytes. A comparison of values of types that do not compare raises TypeError.
    """
    if isinstance(value, float) and math.isnan(value):
        return (True, 0)
    if bound.unit_nanos is not None and beside.unit_nanos is not None:
        return (False, value * bound.unit_nanos)
    found = number(value, bound, beside)
    return found if isinstance(found, str | bytes) else (False, found)


def number(value: Any, bound: BoundType, column: BoundType | None = None) -> Any:
    """A value in a form that compares across the types of one family: decimals as their numeric value.

    `column`: the type of the column, where it is known.
    """
    if column is not None and value is not None and _is_compacted_decimal(bound, column):
        return Fraction(int.from_bytes(value, "big", signed=True), 10**_V1_SCALE)
    return Fraction(value, 10**bound.scale) if bound.type is _T.DECIMAL and value is not None else value


def smallest(values: list[Any], key: Callable[[Any], Any] = order_key) -> Any:
    """The least value that is not None, or None."""
    return min((v for v in values if v is not None), key=key, default=None)


def greatest(values: list[Any], key: Callable[[Any], Any] = order_key) -> Any:
    """The greatest value that is not None, or None."""
    return max((v for v in values if v is not None), key=key, default=None)


def _same_family(source: BoundType, target: BoundType) -> bool:
    if source.type is _T.DECIMAL:
        return target.type is _T.DECIMAL and source.scale == target.scale
    if source.type is target.type or (source.type in _LONGS and target.type in _LONGS):
        return True
    return any(source.type in family and target.type in family for family in (_INTS, _TEXTS, _BINARIES))


def _is_compacted_decimal(bound: BoundType, column: BoundType) -> bool:
    # Only V1 bounds are such: a column of bytes never becomes a column of decimals.
    return bound.type is _T.BYTES and column.type is _T.DECIMAL


def _as_float(value: Any, source: ValueType, target: ValueType) -> float:
    if source is _T.FLOAT:
        # Hudi widens a float through its decimal text: 0.1f becomes 0.1, not 0.10000000149011612.
        return float(_shortest_float32(value)) if math.isfinite(value) else value
    return float(value) if target is _T.DOUBLE else _float32(float(value))


def _float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _shortest_float32(value: float) -> str:
    return next(text for text in (f"{value:.{digits}g}" for digits in range(1, 10)) if _float32(float(text)) == value)


def _rescale(value: int, source: int, target: int) -> int:
    if target >= source:
        return int(value * 10 ** (target - source))
    quotient, rest = divmod(value, 10 ** (source - target))
    if rest:
        raise NoPromotion(f"a decimal of scale {source} does not fit scale {target}")
    return int(quotient)


def _twos_complement(value: int) -> bytes:
    """As BigInteger.toByteArray gives it."""
    length = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return value.to_bytes(length, "big", signed=True)
