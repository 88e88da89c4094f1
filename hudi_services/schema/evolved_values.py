"""The values that a column has after its type was changed by ALTER TABLE, a whole Arrow array at a time.

    int long float double    decimal: the digits of the text, rounded half up; float and double also text
    decimal                  a wider decimal, rounded half up; text, plain or with an exponent as of BigDecimal
    date                     text, yyyy-mm-dd; and back, with months and days of one digit or two
    string                   decimal: the number in it, rounded half up

Texts of floats are those of Java: 1.5, 1.0E7, NaN. What `parquet.conversion` widens anyway is not here.
Source: HoodieAvroUtils.rewritePrimaryType, SparkInternalSchemaConverter of Apache Hudi; Double.toString.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from .column_type import ColumnType, Kind

_WIDE = pa.decimal256(76, 38)
_NUMBERS = (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE)
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_PLAIN_EXPONENTS = (7, 8, 9)
"""Exponents of ten that Arrow writes out, and Java does not."""
_SMALL_EXPONENTS = (4, 5, 6)


def changed_values(source: ColumnType, target: ColumnType) -> Callable[[pa.Array], pa.Array] | None:
    """What makes values of the type `target` (as Arrow has them) of those of `source`; None for another change.

    It raises ArrowInvalid for values that the new type cannot hold.
    """
    if target.kind is Kind.DECIMAL and source.kind in (*_NUMBERS, Kind.STRING, Kind.DECIMAL):
        return lambda values: _decimals(values, target)
    if target.kind is Kind.STRING and source.kind in _FLOATS:
        return java_texts
    if target.kind is Kind.STRING and source.kind in (Kind.DECIMAL, Kind.DATE):
        return lambda values: values.cast(pa.string())
    if (source.kind, target.kind) == (Kind.STRING, Kind.DATE):
        return _dates
    return None


def java_texts(numbers: pa.Array) -> pa.Array:
    """The texts of floats or doubles, as Float.toString and Double.toString make them."""
    found = numbers.cast(pa.string())
    found = _replaced(found, r"nan", "NaN")
    found = _replaced(found, r"inf", "Infinity")
    for digits in _PLAIN_EXPONENTS:
        found = _replaced(found, rf"^(-?)(\d)(\d{{{digits}}})(?:\.(\d+))?$", rf"\1\2.\3\4E{digits}")
    for zeros in _SMALL_EXPONENTS:
        found = _replaced(found, rf"^(-?)0\.0{{{zeros - 1}}}([1-9])(\d*)$", rf"\1\2.\3E-{zeros}")
    found = _replaced(found, r"^(-?\d)e", r"\1.0e")
    found = _replaced(found, r"e\+?", "E")
    found = _replaced(found, r"(\.\d*?)0*E", r"\1E")
    found = _replaced(found, r"\.E", ".0E")
    return _replaced(found, r"^(-?\d+)$", r"\1.0")


def _replaced(texts: pa.Array, pattern: str, replacement: str) -> pa.Array:
    return pc.replace_substring_regex(texts, pattern, replacement)


def _decimals(values: pa.Array, target: ColumnType) -> pa.Array:
    if pa.types.is_floating(values.type):
        values = values.cast(pa.string())
    if pa.types.is_string(values.type):
        values = pc.utf8_trim_whitespace(values)
    wide = values if pa.types.is_decimal(values.type) else values.cast(_WIDE)
    rounded = pc.round(wide, target.scale, "half_towards_infinity") if wide.type.scale > target.scale else wide
    make = pa.decimal128 if target.precision <= 38 else pa.decimal256
    return rounded.cast(make(target.precision, target.scale))


def _dates(texts: pa.Array) -> pa.Array:
    padded = _replaced(pc.utf8_trim_whitespace(texts), r"-(\d)(-|$)", r"-0\1\2")
    return _replaced(padded, r"-(\d)$", r"-0\1").cast(pa.date32())
