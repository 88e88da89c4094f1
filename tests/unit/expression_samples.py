"""Calls of every function of expression indexes, and values to call them with."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_services.schema.column_type import ColumnType, Kind

TYPES = {
    "seconds": ColumnType(Kind.LONG),
    "small": ColumnType(Kind.INT),
    "at": ColumnType(Kind.TIMESTAMP, unit="micros", utc=True),
    "day": ColumnType(Kind.DATE),
    "text": ColumnType(Kind.STRING),
}
"""Of the columns of `samples`."""

_LETTERS = [*"aAbBzZ  \t1-_'", "é", "É", "ß", "ŉ", "Ö", "中", "🚀", "ǆ", "ǅ", "ﬁ", "İ", "ı", "Ж", "ж", "Ω", "ά"]
_GREEK = ["ΑΘΗΝΑΣ", "ΣΑΣ ΣΟΦΟΣ", "Σ", "ΑΣ, ΒΣ ΓΣ", "aΣ", "ΣΣ"]


@dataclass(frozen=True)
class Call:
    """A function as an index definition names it, and as SQL does."""

    column: str
    function: str
    sql: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def column_type(self) -> ColumnType:
        return TYPES[self.column]


def _plain(column: str, *functions: str) -> list[Call]:
    return [Call(column, f, f"{f}({column})" if f != "identity" else column) for f in functions]


def _calls() -> list[Call]:
    calls = _plain("text", "identity", "lower", "upper", "trim", "ltrim", "rtrim", "length")
    for function, side in (("trim", "both"), ("ltrim", "leading"), ("rtrim", "trailing")):
        calls.append(Call("text", function, f"trim({side} 'aA é' from text)", {"trimString": "aA é"}))
    for position in (-5, -1, 0, 1, 3):
        for count in (-1, 0, 2, 100):
            sql = f"substring(text, {position}, {count})"
            calls.append(Call("text", "substring", sql, {"pos": str(position), "len": str(count)}))
    for column in ("seconds", "small"):
        calls += _plain(column, "identity", "from_unixtime")
        for pattern in ("yyyy-MM-dd", "yyyyMMdd HH:mm:ss %", "HH/mm"):
            sql = f"from_unixtime({column}, '{pattern}')"
            calls.append(Call(column, "from_unixtime", sql, {"format": pattern}))
    for column in ("at", "day"):
        calls += _plain(column, "identity", "year", "month", "day", "to_date")
        calls.append(Call(column, "date_format", f"date_format({column}, 'yyyy/MM/dd')", {"format": "yyyy/MM/dd"}))
        for function in ("date_add", "date_sub"):
            for days in (7, -40):
                calls.append(Call(column, function, f"{function}({column}, {days})", {"days": str(days)}))
    calls += _plain("at", "hour", "unix_timestamp", "to_timestamp")
    sql = """date_format(at, "yyyy-MM-dd'T'HH:mm:ss")"""
    calls.append(Call("at", "date_format", sql, {"format": "yyyy-MM-dd'T'HH:mm:ss"}))
    return calls


CALLS = _calls()


def samples(zone: str, count: int = 1500) -> pa.Table:
    """Rows within the years that we know of the zone, the same for each call."""
    dice = random.Random(7)
    # Since 1900, when Spark reads files without a question about calendars.
    last = 253_402_300_799 if zone == "UTC" else 2_145_800_000
    seconds = [dice.randint(-2_208_800_000, last - 86_400) for _ in range(count)] + [0, -1, 1, None]
    micros = [None if s is None else s * 1_000_000 + dice.randint(0, 999_999) for s in seconds]
    texts = [None if dice.random() < 0.05 else "".join(dice.choices(_LETTERS, k=dice.randint(0, 8))) for _ in seconds]
    texts[: len(_GREEK)] = _GREEK
    return pa.table(
        {
            "seconds": pa.array(seconds, pa.int64()),
            "small": pa.array([None if s is None else s % 2_000_000_000 for s in seconds], pa.int32()),
            "at": pa.array(micros, pa.timestamp("us", "UTC")),
            "day": pa.array([None if s is None else s // 86_400 for s in seconds], pa.int32()).cast(pa.date32()),
            "text": pa.array(texts, pa.string()),
        }
    )


EXPRESSIONS_HERE = {
    "expr_index_by_day": "expression:by_day:from_unixtime(ts, format=yyyy-MM-dd)",
    "expr_index_by_date": "expression:by_date:column_stats:to_date( at )",
    "expr_index_lowered": "expression:lowered:bloom_filters:lower(name, numentries='1000')",
}
"""The expression indexes of the table `expressions`, as --index of this program names them."""
