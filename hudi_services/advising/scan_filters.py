"""The filters of a scan as Spark's plans show them, as conditions on files.

    PushedFilters      [IsNotNull(fare), Or(In(city, [Oslo,Rome]),LessThan(day,2024-01-03))]: source filters
    PartitionFilters   [isnotnull(region#14), (region#14 = north)]: expressions of Catalyst

Neither quotes texts: where one has commas or brackets in it, a filter may have two readings, and counts as unknown.
Sources: org.apache.spark.sql.sources.Filter, DataSourceScanExec and the toString of expressions of Apache Spark 3.5.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from .predicates import (
    COMPARISONS,
    AllOf,
    AnyOf,
    Condition,
    Exists,
    Test,
    Unknown,
    among,
    begins_otherwise,
    begins_with,
    between,
    equal,
    unequal,
)
from .sql_clauses import NamedColumns

CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
SIGNS = {"LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">="}
ATTRIBUTE = r"([^\s()#]+)#\d+L?"
_NULL_TEST = re.compile(rf"(isnull|isnotnull)\({ATTRIBUTE}\)")
_COMPARED = re.compile(rf"{ATTRIBUTE} (=|<=|>=|<|>) (.*)", re.DOTALL)
_AMONG = re.compile(rf"{ATTRIBUTE} IN \((.*)\)", re.DOTALL)


def listed_filters(text: str) -> list[str]:
    """The filters of a list in a plan; [] for an empty one."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    return list(divided(inner, ", ")) if inner else []


def divided(text: str, mark: str) -> Iterator[str]:
    """The parts of a text between those marks that are in no bracket."""
    depth, begin, at = 0, 0, 0
    while at < len(text):
        depth += (text[at] in "([") - (text[at] in ")]")
        if not depth and text.startswith(mark, at):
            yield text[begin:at]
            begin = at = at + len(mark)
        else:
            at += 1
    yield text[begin:]


def pushed_condition(text: str, columns: NamedColumns, *, negated: bool = False) -> Condition:
    """The condition of a source filter; Unknown for one that is not understood."""
    return _pushed(text, columns, negated) or Unknown(text)


def _pushed(text: str, columns: NamedColumns, negated: bool) -> Condition | None:
    match = CALL.fullmatch(text.strip())
    if match is None:
        return None
    name, inner = match[1], match[2]
    if name == "Not":
        return _pushed(inner, columns, not negated)
    if name in ("And", "Or"):
        parts = list(divided(inner, ","))
        if len(parts) != 2:
            return None
        both = tuple(pushed_condition(one, columns, negated=negated) for one in parts)
        return AllOf(both) if (name == "And") != negated else AnyOf(both)
    column = columns.name_of(inner.partition(",")[0])
    if column is None:
        return None
    if name in ("IsNull", "IsNotNull"):
        return Exists(column, Test.NULL if (name == "IsNull") != negated else Test.VALUE)
    if name == "In":
        return _in(column, inner.partition(",")[2].strip()[1:-1].split(","), columns, negated)
    return _compared(name, column, inner.partition(",")[2], columns, negated)


def _compared(name: str, column: str, text: str, columns: NamedColumns, negated: bool) -> Condition | None:
    value = _value(column, text, columns)
    if value is None:
        return None
    if name in SIGNS:
        return Exists(column, COMPARISONS[SIGNS[name]][negated], value)
    if name == "EqualTo":
        return unequal(column, value) if negated else equal(column, value)
    if name == "StringStartsWith":
        return begins_otherwise(column, value) if negated else begins_with(column, value)
    return None


def _in(column: str, texts: list[str], columns: NamedColumns, negated: bool) -> Condition | None:
    # A blank after a comma is one in a text that has this comma.
    values = [None if text.startswith(" ") else _value(column, text, columns) for text in texts]
    if None in values:
        return None
    if len(texts) > 1 and isinstance(values[0], str):
        # Other commas may be in texts, too: whatever the texts are, each is between its begin and all that follows.
        if negated:
            return None
        return AnyOf(tuple(between(column, one, ",".join(texts[at:])) for at, one in enumerate(texts)))
    return AllOf(tuple(unequal(column, one) for one in values)) if negated else among(column, values)


def _value(column: str, text: str, columns: NamedColumns) -> Any:
    """The value of a literal; None where it has none."""
    try:
        return columns.value(column, text)
    except (ValueError, OverflowError):
        return None


def expression_condition(text: str, columns: NamedColumns, *, negated: bool = False) -> Condition:
    """The condition of an expression of Catalyst; Unknown for one that is not understood."""
    plain = text.strip()
    if plain.startswith("NOT "):
        return expression_condition(plain[4:], columns, negated=not negated)
    inner = plain[1:-1] if plain.startswith("(") and plain.endswith(")") and _is_one(plain) else plain
    for word, kind in (("AND", AllOf), ("OR", AnyOf)):
        parts = list(divided(inner, f" {word} "))
        if len(parts) > 1:
            both = tuple(expression_condition(one, columns, negated=negated) for one in parts)
            return kind(both) if not negated else (AnyOf if kind is AllOf else AllOf)(both)
    forms: dict[re.Pattern[str], Callable[[re.Match[str]], Condition | None]] = {
        _NULL_TEST: lambda match: _null_test(match, columns, negated),
        _AMONG: lambda match: _expression_in(match, columns, negated),
    }
    if inner != plain:
        # Without brackets it is the begin of a text that has a word like AND in it.
        forms[_COMPARED] = lambda match: _expression_compared(match, columns, negated)
    for form, read in forms.items():
        match = form.fullmatch(inner)
        if match is not None:
            return read(match) or Unknown(text)
    return Unknown(text)


def _is_one(text: str) -> bool:
    """Whether the first bracket is closed by the last one."""
    depth = 0
    for character in text[:-1]:
        depth += (character == "(") - (character == ")")
        if not depth:
            return False
    return True


def _null_test(match: "re.Match[str]", columns: NamedColumns, negated: bool) -> Condition | None:
    column = columns.name_of(match[2])
    return None if column is None else Exists(column, Test.NULL if (match[1] == "isnull") != negated else Test.VALUE)


def _expression_in(match: "re.Match[str]", columns: NamedColumns, negated: bool) -> Condition | None:
    column = columns.name_of(match[1])
    return None if column is None else _in(column, match[2].split(","), columns, negated)


def _expression_compared(match: "re.Match[str]", columns: NamedColumns, negated: bool) -> Condition | None:
    column = columns.name_of(match[1])
    value = None if column is None else _value(column, match[3], columns)
    if column is None or value is None:
        return None
    if match[2] == "=":
        return unequal(column, value) if negated else equal(column, value)
    return Exists(column, COMPARISONS[match[2]][negated], value)
