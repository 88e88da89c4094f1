"""The types of CSV columns that no table has, by all values of all files.

    long                7, -12                            but not 007, +7, -0 and 2^63: these are texts
    double              1.5, .5, 2e10, NaN, inf           also beside whole numbers of up to 15 digits
    boolean             true, FALSE
    date                2026-01-01
    timestamp           2026-01-01T10:00:00.5Z, 2026-01-01 10:00+02:00
    local timestamp     the same without a zone
    text                all else: also columns of several of these types, and without any value

A type is taken only where it loses no value: a double, where it has all digits; a timestamp, where it has microseconds.
"""

from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from .input_types import NULLS, parsed

_WHOLE = r"(?:0|[1-9][0-9]*)"
# Doubles keep 15 digits of any number, and are written with 17 at most.
_DOUBLE = rf"(?:0|[1-9][0-9]{{0,14}}|{_WHOLE}?\.[0-9]+|{_WHOLE}(?:\.[0-9]+)?[eE][+-]?(?:[0-9]{{1,2}}|[12][0-9]{{2}}))"
_MANY_DIGITS = r"^-?[0.]*[1-9](?:\.?[0-9]){17}"
_CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?"


@dataclass(frozen=True, slots=True)
class _Form:
    """A type, and the texts of it that lose nothing: those that `pattern` matches, and `without` does not."""

    kind: pa.DataType
    pattern: str
    without: str = ""

    def fits(self, texts: pa.Array) -> bool:
        """Whether all of the texts are of this form."""
        if not _all(pc.match_substring_regex(texts, f"^(?:{self.pattern})$")):
            return False
        if self.without and pc.any(pc.match_substring_regex(texts, self.without)).as_py():
            return False
        try:
            parsed(texts, self.kind, with_nulls=False)
        except ValueError:
            return False
        return True


_FORMS = (
    _Form(pa.int64(), "0|-?[1-9][0-9]{0,18}"),
    _Form(pa.float64(), f"-?(?:{_DOUBLE}|inf|Inf|Infinity)|NaN|nan", _MANY_DIGITS),
    _Form(pa.bool_(), "true|True|TRUE|false|False|FALSE"),
    _Form(pa.date32(), "[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    _Form(pa.timestamp("us", "UTC"), f"{_CLOCK}(?:Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)"),
    _Form(pa.timestamp("us"), _CLOCK),
)


@dataclass(frozen=True, slots=True)
class CsvType:
    """What the values so far can be: numbers of `_FORMS`."""

    forms: tuple[int, ...] = tuple(range(len(_FORMS)))
    has_values: bool = False

    def of_more(self, texts: pa.Array) -> "CsvType":
        """The same of these values, too."""
        if not self.forms:
            return self
        values = texts.filter(pc.invert(pc.is_in(texts, value_set=NULLS)))
        if not len(values):
            return self
        return CsvType(tuple(form for form in self.forms if _FORMS[form].fits(values)), True)

    def joined(self, other: "CsvType") -> "CsvType":
        """What the values of both can be."""
        return CsvType(tuple(form for form in self.forms if form in other.forms), self.has_values or other.has_values)

    @property
    def kind(self) -> pa.DataType:
        """The type of the column."""
        return _FORMS[self.forms[0]].kind if self.forms and self.has_values else pa.string()


def joined_types(parts: list[dict[str, CsvType]]) -> dict[str, pa.DataType]:
    """The types of columns by what is known of their values in several files."""
    names = dict.fromkeys(name for part in parts for name in part)
    of_all = CsvType()
    return {name: reduce(CsvType.joined, (part[name] for part in parts if name in part), of_all).kind for name in names}


def _all(flags: pa.Array) -> bool:
    return bool(pc.all(flags).as_py())
