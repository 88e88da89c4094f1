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
from fractions import Fraction
from typing import Any

from ...parquet.value_bounds import order_key
from ...schema.column_type import UNITS, ColumnType, Kind
from ...schema.widening import bound_becomes, leaves_decimal, widens_float

Wrapped = tuple[str, Any]
"""(wrapper name without namespace, value as it is stored)."""

_V1_SCALE = 15
_V1_PRECISION = 30

NO_VALUES = ColumnType(Kind.NULL)
"""The type of bounds without values, where no type is told."""
_DECIMAL = ColumnType(Kind.DECIMAL)
_TYPES = (
    None,  # V1, which is never stored: a wrapper without a type
    NO_VALUES,
    ColumnType(Kind.BOOLEAN),
    ColumnType(Kind.INT),
    ColumnType(Kind.LONG),
    ColumnType(Kind.FLOAT),
    ColumnType(Kind.DOUBLE),
    ColumnType(Kind.STRING),
    ColumnType(Kind.BYTES),
    ColumnType(Kind.FIXED),
    _DECIMAL,
    ColumnType(Kind.UUID),
    ColumnType(Kind.DATE),
    *(ColumnType(Kind.TIME, unit=unit) for unit in ("millis", "micros")),
    *(ColumnType(Kind.TIMESTAMP, unit=unit, utc=True) for unit in UNITS),
    *(ColumnType(Kind.TIMESTAMP, unit=unit) for unit in UNITS),
)
"""The types of bounds by ordinal (ValueType): a fixed without its size, decimals without their digits."""
_ORDINALS = {kind: number for number, kind in enumerate(_TYPES) if kind is not None}

_WRAPPERS = {
    Kind.BOOLEAN: "BooleanWrapper",
    Kind.INT: "IntWrapper",
    Kind.FLOAT: "FloatWrapper",
    Kind.DOUBLE: "DoubleWrapper",
    Kind.STRING: "StringWrapper",
    Kind.UUID: "StringWrapper",
    Kind.BYTES: "BytesWrapper",
    Kind.FIXED: "BytesWrapper",
    Kind.DECIMAL: "BytesWrapper",
    Kind.DATE: "IntWrapper",
}
_V1_WRAPPERS = _WRAPPERS | {Kind.DECIMAL: "DecimalWrapper", Kind.DATE: "DateWrapper"}
_V1_TYPES = {
    "BooleanWrapper": ColumnType(Kind.BOOLEAN),
    "IntWrapper": ColumnType(Kind.INT),
    "LongWrapper": ColumnType(Kind.LONG),
    "FloatWrapper": ColumnType(Kind.FLOAT),
    "DoubleWrapper": ColumnType(Kind.DOUBLE),
    "StringWrapper": ColumnType(Kind.STRING),
    "BytesWrapper": ColumnType(Kind.BYTES),
    "DecimalWrapper": ColumnType(Kind.DECIMAL, precision=_V1_PRECISION, scale=_V1_SCALE),
    "DateWrapper": ColumnType(Kind.DATE),
    "LocalDateWrapper": ColumnType(Kind.DATE),
    "TimeMicrosWrapper": ColumnType(Kind.TIME, unit="micros"),
    "TimestampMicrosWrapper": ColumnType(Kind.TIMESTAMP, unit="micros", utc=True),
}


def bound_type(column: ColumnType) -> ColumnType | None:
    """The type of a column's bounds; None for columns that no index covers (groups, enums, UUIDs, unsigned numbers)."""
    kind = column.kind
    if kind is Kind.DECIMAL:
        return ColumnType(kind, precision=column.precision, scale=column.scale)
    is_time = kind in (Kind.TIME, Kind.TIMESTAMP)
    bound = ColumnType(kind, unit=column.unit, utc=column.utc) if is_time else ColumnType(kind)
    return bound if bound in _ORDINALS and kind is not Kind.UUID else None


def ordinal(bound: ColumnType) -> int:
    """The number by which a typed record has the type of its bounds."""
    return _ORDINALS[_bare(bound)]


def typed_bound(number: int, info: str | None, wrapped: Wrapped | None) -> ColumnType:
    """The type of the bounds of a typed record. Raises ValueError for one that does not exist."""
    if not 0 <= number < len(_TYPES):
        raise ValueError(f"the type of bounds {number}")
    bound = _TYPES[number]
    if bound is None:
        return v1_bound(wrapped)
    if bound.kind is not Kind.DECIMAL:
        return bound
    precision, _, scale = (info or "").partition(",")
    return ColumnType(Kind.DECIMAL, precision=int(precision), scale=int(scale))


def v1_bound(wrapped: Wrapped | None) -> ColumnType:
    """The type that a wrapper without type information stands for; a timestamp is a long."""
    return NO_VALUES if wrapped is None else _V1_TYPES.get(wrapped[0], NO_VALUES)


def fits_v1(bound: ColumnType) -> bool:
    """Whether a wrapper without a type holds bounds: decimals must fit into 30 digits, 15 of them fraction."""
    if bound.kind is not Kind.DECIMAL:
        return bound.kind is not Kind.FIXED
    return bound.scale <= _V1_SCALE and bound.precision + _V1_SCALE - bound.scale <= _V1_PRECISION


class NoPromotion(Exception):
    """Values of one type cannot be read as another; callers then do without the range."""


def wrap(value: Any, bound: ColumnType, *, typed: bool) -> Wrapped | None:
    """The stored form of a value, None for None; `typed` is the V2 form."""
    if value is None:
        return None
    if bound.kind is Kind.TIME and bound.unit == "millis":
        return ("IntWrapper", value)
    if bound.kind is Kind.DECIMAL:
        value = _twos_complement(value if typed else value * 10 ** (_V1_SCALE - bound.scale))
    return ((_WRAPPERS if typed else _V1_WRAPPERS).get(bound.kind, "LongWrapper"), value)


def unwrap(wrapped: Wrapped | None, bound: ColumnType) -> Any:
    """The value of a stored form whose type is `bound`; None for None."""
    if wrapped is None:
        return None
    value = wrapped[1]
    return int.from_bytes(value, "big", signed=True) if bound.kind is Kind.DECIMAL else value


def promote(value: Any, source: ColumnType, target: ColumnType) -> Any:
    """A value of type `source` as one of type `target`, as Hudi promotes columns; raises NoPromotion.

    If both types have a unit, the value is scaled; into a coarser unit it is rounded down, as Java does
    (Instant.toEpochMilli).
    """
    if value is None:
        return value
    if not bound_becomes(source, target):
        raise NoPromotion(f"bounds of the type {source} cannot be read as {target}")
    if source.unit_nanos is not None and target.unit_nanos is not None:
        return value * source.unit_nanos // target.unit_nanos
    if target.kind in (Kind.FLOAT, Kind.DOUBLE) and source.kind is not target.kind:
        return _as_float(value, source, target)
    if leaves_decimal(source, target):
        return _rescale(int.from_bytes(value, "big", signed=True), _V1_SCALE, target.scale)
    if target.kind is Kind.DECIMAL:
        return _rescale(value, source.scale, target.scale)
    return value.encode() if isinstance(value, str) and target.kind in (Kind.BYTES, Kind.FIXED) else value


def java_key(value: Any) -> Any:
    """A key that orders the values of one type as Java does in merges: byte arrays by signed bytes."""
    return value.translate(_SIGNED) if isinstance(value, bytes) else order_key(value)


_SIGNED = bytes(byte ^ 0x80 for byte in range(256))


def comparable(value: Any, bound: ColumnType, beside: ColumnType) -> Any:
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


def number(value: Any, bound: ColumnType, column: ColumnType | None = None) -> Any:
    """A value in a form that compares across the types of one family: decimals as their numeric value.

    `column`: the type of the column, where it is known.
    """
    if column is not None and value is not None and leaves_decimal(bound, column):
        return Fraction(int.from_bytes(value, "big", signed=True), 10**_V1_SCALE)
    return Fraction(value, 10**bound.scale) if bound.kind is Kind.DECIMAL and value is not None else value


def smallest(values: list[Any], key: Callable[[Any], Any] = order_key) -> Any:
    """The least value that is not None, or None."""
    return min((v for v in values if v is not None), key=key, default=None)


def greatest(values: list[Any], key: Callable[[Any], Any] = order_key) -> Any:
    """The greatest value that is not None, or None."""
    return max((v for v in values if v is not None), key=key, default=None)


def _bare(bound: ColumnType) -> ColumnType:
    """The type as ordinals and wrappers tell it: without the digits of decimals."""
    return _DECIMAL if bound.kind is Kind.DECIMAL else bound


def _as_float(value: Any, source: ColumnType, target: ColumnType) -> float:
    if widens_float(source, target):
        return float(_shortest_float32(value)) if math.isfinite(value) else value
    return float(value) if target.kind is Kind.DOUBLE else _float32(float(value))


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
