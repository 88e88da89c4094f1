"""The functions of Hudi's expression indexes, by name, for the column types for which this tool computes them.

    identity                                boolean, int, long, float, double, string, date, timestamp
    lower upper trim ltrim rtrim length     string
      substring
    from_unixtime                           int, long
    year month day date_add date_sub        date, timestamp
      to_date date_format
    hour unix_timestamp to_timestamp        timestamp

Everything else is refused: split and regular expressions, texts that are read as dates, local timestamps, decimals.
Values are what Spark SQL 3.5 gives with its default settings. Nulls stay nulls.
Source: ExpressionIndexSparkFunctions of Apache Hudi 1.0.2 and 1.2.0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UnsupportedTable
from ...schema.arrow_types import arrow_type
from ...schema.column_type import ColumnType, Kind
from . import text_functions as texts
from . import time_functions as times
from .time_functions import Zone

_INT_TEXT_LIMIT = 1 << 31
_KINDS = (
    Kind.BOOLEAN,
    Kind.INT,
    Kind.LONG,
    Kind.FLOAT,
    Kind.DOUBLE,
    Kind.STRING,
    Kind.DATE,
    Kind.TIMESTAMP,
)
_INT, _LONG, _STRING, _DATE = map(ColumnType, (Kind.INT, Kind.LONG, Kind.STRING, Kind.DATE))
_MICROS = ColumnType(Kind.TIMESTAMP, unit="micros", utc=True)

Apply = Callable[[pa.Array], pa.Array]


class NotComputed(Exception):
    """The reason why an expression is not computed, as the rest of a sentence."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A function of the values of one column; `result` is the type of its values."""

    source: pa.DataType
    """The type of the values that `apply` takes."""
    result: ColumnType
    apply: Apply
    """May raise UnsupportedTable for single values."""
    zoned: bool
    """Whether the values depend on the session's zone."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A function's options and the type of its column."""

    options: Mapping[str, str]
    kind: Kind
    zone: Zone

    def integer(self, name: str) -> int:
        try:
            number = int(self.options[name])
        except (KeyError, ValueError):
            raise NotComputed(f"its option {name} is no whole number") from None
        if not -_INT_TEXT_LIMIT <= number < _INT_TEXT_LIMIT:
            raise NotComputed(f"its option {name} is no whole number of 32 bits")
        return number

    def shown(self, values: pa.Array) -> pa.Array:
        """Dates and timestamps as the session's clock shows them."""
        return times.of_days(values) if self.kind is Kind.DATE else times.local(values, self.zone)

    def dates(self, values: pa.Array) -> pa.Array:
        return values if self.kind is Kind.DATE else times.days(self.shown(values))


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of columns of `kinds`; `make` gives its `Apply`, with values of type `result` (None: the column's)."""

    kinds: tuple[Kind, ...]
    make: Callable[[_Call], Apply]
    result: ColumnType | None
    options: tuple[str, ...] = ()


def compile_expression(name: str, options: Mapping[str, str], column: ColumnType, zone: Zone) -> Expression:
    """The function `name` of a column. Raises NotComputed for what is not in the table above.

    `options` are the function's own: without `expr`, which repeats its name, and without those of bloom filters.
    """
    function = _FUNCTIONS.get(name)
    if function is None:
        raise NotComputed(f"the function {name} is not among {', '.join(sorted(_FUNCTIONS))}")
    if column.kind not in function.kinds or (column.kind is Kind.TIMESTAMP and not column.utc):
        raise NotComputed(f"{name} of a column of type {column} is not computed here")
    unknown = sorted(set(options) - set(function.options))
    if unknown:
        raise NotComputed(f"{name} has no option {unknown[0]:.80} here")
    own = _MICROS if column.kind is Kind.TIMESTAMP else ColumnType(column.kind)
    source = arrow_type(own)
    zoned = name == "from_unixtime" or (column.kind is Kind.TIMESTAMP and name not in _OF_MOMENTS)
    return Expression(source, function.result or own, function.make(_Call(options, column.kind, zone)), zoned)


def as_texts(values: pa.Array, result: ColumnType) -> pa.Array:
    """The values as Java's toString writes them, which is what bloom filters hold. Raises NotComputed."""
    if result.kind is Kind.STRING:
        return values
    if result.kind in (Kind.INT, Kind.LONG, Kind.BOOLEAN):
        return values.cast(pa.string())
    if result.kind is Kind.DATE:
        return times.formatted(times.of_days(values), "%Y-%m-%d")
    raise NotComputed(f"a bloom filter of {result.kind.value} values is not computed here")


def _identity(call: _Call) -> Apply:
    return _without_nan if call.kind in (Kind.FLOAT, Kind.DOUBLE) else lambda values: values


def _without_nan(values: pa.Array) -> pa.Array:
    if pc.any(pc.is_nan(values)).as_py():
        raise UnsupportedTable("there are values that are no numbers (NaN)")
    return values


def _substring(call: _Call) -> Apply:
    return texts.substring(call.integer("pos"), call.integer("len"))


def _trim(trim: Callable[..., pa.Array]) -> Callable[[_Call], Apply]:
    return lambda call: texts.trimmer(trim, call.options.get("trimString", " "))


def _field(extract: Apply) -> Callable[[_Call], Apply]:
    return lambda call: lambda values: extract(call.shown(values)).cast(pa.int32())


def _to_date(call: _Call) -> Apply:
    return call.dates


def _date_add(call: _Call, sign: int) -> Apply:
    count = sign * call.integer("days")
    return lambda values: times.add_days(call.dates(values), count)


def _date_format(call: _Call) -> Apply:
    # Midnight of a date may not exist in a zone with summer time.
    pattern = _pattern(call.options.get("format", ""), only_days=call.kind is Kind.DATE)
    return lambda values: times.formatted(call.shown(values), pattern)


def _from_unixtime(call: _Call) -> Apply:
    pattern = _pattern(call.options.get("format", times.DEFAULT_PATTERN))
    return lambda values: times.formatted(times.local(times.from_seconds(values), call.zone), pattern)


def _pattern(java: str, *, only_days: bool = False) -> str:
    found = times.strftime_pattern(java, only_days=only_days)
    if found is None:
        known = "yyyy, MM and dd" if only_days else "yyyy, MM, dd, HH, mm and ss"
        raise NotComputed(f"its format {java!r:.80} has more than {known}")
    return found


_TEXT = (Kind.STRING,)
_TIME = (Kind.TIMESTAMP,)
_DAYS = (Kind.DATE, Kind.TIMESTAMP)
_OF_MOMENTS = ("identity", "unix_timestamp", "to_timestamp")
_FUNCTIONS: Mapping[str, _Function] = {
    "identity": _Function(_KINDS, _identity, None),
    "lower": _Function(_TEXT, lambda call: texts.lower, _STRING),
    "upper": _Function(_TEXT, lambda call: texts.upper, _STRING),
    "trim": _Function(_TEXT, _trim(pc.utf8_trim), _STRING, ("trimString",)),
    "ltrim": _Function(_TEXT, _trim(pc.utf8_ltrim), _STRING, ("trimString",)),
    "rtrim": _Function(_TEXT, _trim(pc.utf8_rtrim), _STRING, ("trimString",)),
    "length": _Function(_TEXT, lambda call: texts.length, _INT),
    "substring": _Function(_TEXT, _substring, _STRING, ("pos", "len")),
    "from_unixtime": _Function((Kind.INT, Kind.LONG), _from_unixtime, _STRING, ("format",)),
    "year": _Function(_DAYS, _field(pc.year), _INT),
    "month": _Function(_DAYS, _field(pc.month), _INT),
    "day": _Function(_DAYS, _field(pc.day), _INT),
    "hour": _Function(_TIME, _field(pc.hour), _INT),
    "to_date": _Function(_DAYS, _to_date, _DATE),
    "date_add": _Function(_DAYS, partial(_date_add, sign=1), _DATE, ("days",)),
    "date_sub": _Function(_DAYS, partial(_date_add, sign=-1), _DATE, ("days",)),
    "date_format": _Function(_DAYS, _date_format, _STRING, ("format",)),
    "unix_timestamp": _Function(_TIME, lambda call: times.to_seconds, _LONG),
    "to_timestamp": _Function(_TIME, lambda call: lambda values: values, _MICROS),
}
