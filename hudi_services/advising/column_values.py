"""Values of columns in one form that compares: those of literals, statistics and rows.

    numbers, booleans       int, float, Fraction
    decimals                Fraction
    dates                   days since 1970
    timestamps              nanoseconds since 1970; those of literals without a zone count in UTC
    texts                   str, which compares as UTF-8 does

Columns of other types have no values here: nothing is known of predicates on them.
"""

import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..metadata.records.model import StatsRecord
from ..metadata.statistics.values import NoPromotion, number, promote
from ..parquet.chunk_stats import ColumnStats
from ..schema.column_type import ColumnType, Kind

_WHOLE = frozenset({Kind.INT, Kind.LONG})
_FLOATS = frozenset({Kind.FLOAT, Kind.DOUBLE})
_KNOWN = _WHOLE | _FLOATS | {Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.STRING}
_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+")
_EXACT_WHOLE, _EXACT_DIGITS = 1 << 53, 15
"""Up to here a double has each whole number, and each decimal of so many digits a double of its own."""
_EPOCH = date(1970, 1, 1)
_LAST_CHARACTER = "\U0010ffff"


def is_comparable(kind: ColumnType) -> bool:
    """Whether columns of this type have values here."""
    return kind.kind in _KNOWN


class Notation(enum.Enum):
    """How a literal is written in SQL, by which Spark chooses the type in which it compares."""

    NUMBER = "5, 0.1, 1e3"
    WORD = "true"
    TEXT = "'5'"
    DATE = "DATE'2024-01-05'"
    TIMESTAMP = "TIMESTAMP'2024-01-05 12:00:00'"
    LOCAL_TIMESTAMP = "TIMESTAMP_NTZ'2024-01-05 12:00:00'"


def compared_value(kind: ColumnType, text: str, notation: Notation) -> Any:
    """The value of a literal beside a column of this type, as Spark compares the two, in ANSI mode or not.

    Raises ValueError where there is none: the literal is no value of the type, Spark converts the column, or rounds.
    """
    if not _compares_as_written(kind, text.strip(), notation):
        raise ValueError(f"Spark compares a {kind} and {text} in another type")
    # Beside a number, floats become doubles.
    return literal_value(ColumnType(Kind.DOUBLE) if kind.kind is Kind.FLOAT else kind, text)


def _compares_as_written(kind: ColumnType, plain: str, notation: Notation) -> bool:
    """Whether the comparison is the same between values of the column's type."""
    is_text = notation is Notation.TEXT
    if kind.kind is Kind.STRING:
        return is_text
    if kind.kind in _WHOLE and is_text:
        # Spark takes 5 for '5.5'.
        return _WHOLE_TEXT.fullmatch(plain) is not None
    if kind.kind in _WHOLE:
        return "e" not in plain.lower() or abs(float(plain)) < _EXACT_WHOLE
    if kind.kind is Kind.DECIMAL:
        return not (is_text or "e" in plain.lower()) or (kind.precision or 0) <= _EXACT_DIGITS
    if kind.kind is Kind.FLOAT:
        # A text becomes a float, and in ANSI mode a double.
        return not is_text or float(np.float32(plain)) == float(plain)
    time = _TIME.fullmatch(plain)
    has_hours, has_zone = (time is not None and time[group] is not None for group in (2, 6))
    if kind.kind is Kind.DATE:
        return is_text or (notation is Notation.DATE and not has_hours)
    if kind.kind is Kind.TIMESTAMP:
        is_local = notation is Notation.LOCAL_TIMESTAMP or not kind.utc
        return not (has_zone and is_local) and not (has_hours and notation is Notation.DATE)
    return True


def literal_value(kind: ColumnType, text: str) -> Any:
    """The value of a text that stands for a value of this type. Raises ValueError where it has none."""
    if kind.kind is Kind.STRING:
        return text
    plain = text.strip()
    if kind.kind in _WHOLE or kind.kind is Kind.DECIMAL:
        return Fraction(plain)
    if kind.kind in _FLOATS:
        found = float(plain)
        if not math.isfinite(found):
            raise ValueError(f"{plain} is no finite number")
        return float(np.float32(found)) if kind.kind is Kind.FLOAT else found
    if kind.kind is Kind.BOOLEAN:
        return {"true": 1, "false": 0}[plain.lower()] if plain.lower() in ("true", "false") else int(plain, 2)
    match = _TIME.fullmatch(plain)
    if match is None or kind.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise ValueError(f"{plain!r} is no {kind}")
    days = (date.fromisoformat(match[1]) - _EPOCH).days
    return days if kind.kind is Kind.DATE else days * 86_400 * _NANOS["s"] + _nanos(match)


def _nanos(match: "re.Match[str]") -> int:
    hour, minute, second = (int(match[n] or 0) for n in (2, 3, 4))
    zone = (match[6] or "").upper()
    offset = timedelta()
    if zone not in ("", "Z", "UTC"):
        offset = datetime.strptime(zone.replace(":", ""), "%z").utcoffset() or offset
    seconds = hour * 3600 + minute * 60 + second - int(offset.total_seconds())
    # Spark's timestamps have microseconds.
    return seconds * _NANOS["s"] + int((match[5] or "")[:6].ljust(9, "0"))


def next_text(prefix: str) -> str | None:
    """The least text after all that begin with `prefix`; None when there is none."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return None
    code = ord(kept[-1]) + 1
    # There are no characters between the two halves of the surrogates.
    return kept[:-1] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)


@dataclass(frozen=True, slots=True)
class FileRange:
    """What statistics say of a column in a file; `low` and `high` are None when it has no values there.

    `is_known` False: nothing is said.
    """

    low: Any = None
    high: Any = None
    has_nulls: bool = True
    is_known: bool = True


UNKNOWN_RANGE = FileRange(is_known=False)


def range_of_record(record: StatsRecord, kind: ColumnType) -> FileRange:
    """The range in a record of the column statistics, for a column of this type."""
    try:
        low, high = (_of_bound(record, value, kind) for value in (record.minimum, record.maximum))
    except (NoPromotion, ValueError):
        return UNKNOWN_RANGE
    if low is None and record.null_count < record.value_count:
        return UNKNOWN_RANGE
    return FileRange(low, high, record.null_count > 0)


def _of_bound(record: StatsRecord, value: Any, kind: ColumnType) -> Any:
    if value is None:
        return None
    if kind.kind in (Kind.DECIMAL, Kind.DATE):
        return number(value, record.bound, kind)
    if kind.kind is Kind.TIMESTAMP:
        # A bound without a type is a number of microseconds.
        return value * (record.bound.unit_nanos or _NANOS["us"])
    return number(promote(value, record.bound, kind), kind)


def range_of_footer(stats: ColumnStats) -> FileRange:
    """The range in the footer of a file."""
    if not stats.has_range:
        return UNKNOWN_RANGE
    has_nulls = stats.null_count is None or stats.null_count > 0
    return FileRange(_of_footer(stats.min, stats.type), _of_footer(stats.max, stats.type), has_nulls)


def _of_footer(value: Any, kind: ColumnType) -> Any:
    if isinstance(value, Decimal):
        return Fraction(value)
    return value * (kind.unit_nanos or 1) if kind.kind is Kind.TIMESTAMP and value is not None else value


@dataclass(frozen=True, slots=True)
class Coded:
    """The values of a column in some rows: `codes` are their places in `values`, which ascend; -1 for null.

    NaN is the greatest value, and shown as infinity.
    """

    codes: npt.NDArray[np.int64]
    values: Sequence[Any]


def coded(rows: pa.ChunkedArray) -> Coded:
    """The rows of a column in the form of `parquet.sort_keys.sort_value`."""
    encoded = rows.unify_dictionaries() if pa.types.is_dictionary(rows.type) else rows.dictionary_encode()
    if not encoded.num_chunks:
        return Coded(np.zeros(0, np.int64), ())
    dictionary = encoded.chunk(0).dictionary
    order = pc.sort_indices(dictionary).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    parts = [chunk.indices.fill_null(-1).to_numpy() for chunk in encoded.chunks]
    indices = np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
    codes = np.where(indices < 0, -1, places[np.maximum(indices, 0)] if len(places) else -1)
    return Coded(codes, _plain(dictionary.take(pa.array(order))))


def _plain(values: pa.Array) -> Sequence[Any]:
    kind = values.type
    if pa.types.is_timestamp(kind):
        return [one * _NANOS[kind.unit] for one in values.cast(pa.int64()).to_pylist()]
    if pa.types.is_date(kind):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_decimal(kind):
        return [Fraction(one) for one in values.to_pylist()]
    if pa.types.is_floating(kind):
        return [math.inf if one != one else one for one in values.to_pylist()]
    return list(values.to_pylist())
