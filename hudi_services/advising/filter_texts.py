"""The filters of a scan as Spark's plans show them, written as SQL: what an operator reads, and finds in a query.

What is not understood stays as the plan shows it.
"""

import re

from ..schema.column_type import Kind
from .scan_filters import ATTRIBUTE, CALL, SIGNS, divided
from .sql_clauses import NamedColumns

_COMPARISONS = {**SIGNS, "EqualTo": "=", "EqualNullSafe": "<=>"}
_LIKE = {"StringStartsWith": "{}%", "StringEndsWith": "%{}", "StringContains": "%{}%"}
_NULL_TESTS = {"IsNull": "IS NULL", "IsNotNull": "IS NOT NULL"}
_PLAIN = {Kind.BOOLEAN, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL, Kind.UNSIGNED}
"""Values of these types have no quotes in SQL."""
_OF_EXPRESSION = re.compile(rf"\({ATTRIBUTE} (=|<=|>=|<|>) ([^()]*)\)")


def pushed_sql(text: str, columns: NamedColumns) -> str:
    """A source filter as SQL."""
    return _pushed(text.strip(), columns) or text


def expression_sql(text: str, columns: NamedColumns) -> str:
    """An expression of Catalyst as SQL, where it compares one column."""
    match = _OF_EXPRESSION.fullmatch(text.strip())
    return text if match is None else f"{match[1]} {match[2]} {_literal(match[1], match[3], columns)}"


def _pushed(text: str, columns: NamedColumns) -> str | None:
    match = CALL.fullmatch(text)
    if match is None:
        return None
    name, inner = match[1], match[2]
    if name == "Not":
        return _negated(inner, columns)
    if name in ("And", "Or"):
        parts = [_pushed(one, columns) for one in divided(inner, ",")]
        told = [one for one in parts if one is not None]
        return f"({f' {name.upper()} '.join(told)})" if len(told) == len(parts) == 2 else None
    column, _, rest = inner.partition(",")
    if columns.name_of(column) is None:
        return None
    if name in _NULL_TESTS:
        return f"{column} {_NULL_TESTS[name]}"
    if name in _COMPARISONS:
        return f"{column} {_COMPARISONS[name]} {_literal(column, rest, columns)}"
    if name in _LIKE and not re.search("[%_]", rest):
        return f"{column} LIKE {_quoted(_LIKE[name].format(rest))}"
    return _among(column, rest.strip(), columns) if name == "In" else None


def _negated(text: str, columns: NamedColumns) -> str | None:
    match, told = CALL.fullmatch(text.strip()), _pushed(text.strip(), columns)
    if match is None or told is None:
        return None
    if match[1] == "EqualTo":
        return told.replace(" = ", " <> ", 1)
    return told.replace(" IS ", " IS NOT ", 1) if match[1] == "IsNull" else f"NOT {told}"


def _among(column: str, listed: str, columns: NamedColumns) -> str | None:
    # A blank after a comma is one in a text that has this comma.
    values = listed.removeprefix("[").removesuffix("]").split(",")
    if any(one.startswith(" ") for one in values):
        return None
    return f"{column} IN ({', '.join(_literal(column, one, columns) for one in values)})"


def _literal(column: str, text: str, columns: NamedColumns) -> str:
    name = columns.name_of(column)
    kind = columns.types[name].kind if name is not None else Kind.STRING
    return text if kind in _PLAIN or text == "null" else _quoted(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"
