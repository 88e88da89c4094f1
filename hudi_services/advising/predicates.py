"""Predicates of queries, as far as statistics of files can decide them.

A predicate becomes a condition on a file: may the file have a row for which the predicate is true? Its atoms each say
that some row of the file passes one test on one column; no two atoms need the same row. So a condition may hold of a
file that has no such row, and never fails for a file that has one. It is decided as the data skipping of Hudi decides
it: by the least and greatest value and the null count (DataSkippingUtils of Apache Hudi).
"""

import enum
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .column_values import next_text

_PREFIX = re.compile(r"\blike\s+'[^'%_]+%'|\bStartsWith\(", re.IGNORECASE)
Chances: TypeAlias = npt.NDArray[np.float64]
"""A probability for each of some files."""


class Test(enum.Enum):
    """A test on the value of a row."""

    BELOW = "<"
    UP_TO = "<="
    FROM = ">="
    ABOVE = ">"
    OTHER = "<>"
    NULL = "is null"
    VALUE = "is not null"


@dataclass(frozen=True, slots=True)
class Exists:
    """The file has a row that passes the test; `value` is one of `column_values`, None where the test takes none."""

    column: str
    test: Test
    value: Any = None


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts hold; true without parts."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A part holds; false without parts."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a predicate that statistics cannot decide: it may hold of every file."""

    text: str


Condition: TypeAlias = Exists | AllOf | AnyOf | Unknown


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate of the workload: how it is written, how often it runs, and the condition on a file."""

    text: str
    weight: float
    condition: Condition

    @property
    def searches_prefix(self) -> bool:
        """Whether a part asks for texts that begin with another one, as SQL or a filter of Spark's plans writes it."""
        return _PREFIX.search(self.text) is not None

    @property
    def unknown(self) -> list[str]:
        """The parts that statistics cannot decide."""
        return [leaf.text for leaf in leaves(self.condition) if isinstance(leaf, Unknown)]

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose statistics decide it."""
        return frozenset(leaf.column for leaf in leaves(self.condition) if isinstance(leaf, Exists))


def leaves(condition: Condition) -> "Iterator[Exists | Unknown]":
    """The atoms of a condition, and what is unknown in it."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from leaves(part)
    else:
        yield condition


def chances(condition: Condition, of_atom: Callable[[Exists], Chances], files: int) -> Chances:
    """How probable it is, for each of so many files, that a condition holds; `of_atom` says it of the atoms.

    Where the atoms are certain, so is the result; else they count as independent.
    """
    if isinstance(condition, AllOf):
        return _product(files, [chances(part, of_atom, files) for part in condition.parts])
    if isinstance(condition, AnyOf):
        return 1.0 - _product(files, [1.0 - chances(part, of_atom, files) for part in condition.parts])
    return np.ones(files) if isinstance(condition, Unknown) else of_atom(condition)


def _product(files: int, factors: Iterable[Chances]) -> Chances:
    found = np.ones(files)
    for one in factors:
        found = found * one
    return found


def equal(column: str, value: Any) -> Condition:
    """The condition of `column = value`."""
    return between(column, value, value)


def between(column: str, low: Any, high: Any) -> Condition:
    """The condition of `column BETWEEN low AND high`."""
    return AllOf((Exists(column, Test.FROM, low), Exists(column, Test.UP_TO, high)))


def unequal(column: str, value: Any) -> Condition:
    """The condition of `column <> value`."""
    return Exists(column, Test.OTHER, value)


def among(column: str, values: Collection[Any]) -> Condition:
    """The condition of `column IN (values)`."""
    return AnyOf(tuple(equal(column, value) for value in values))


def begins_with(column: str, prefix: str) -> Condition:
    """The condition of `column LIKE 'prefix%'`."""
    after = next_text(prefix)
    least = Exists(column, Test.FROM, prefix)
    return AllOf((least, Exists(column, Test.BELOW, after))) if after is not None else least


def begins_otherwise(column: str, prefix: str) -> Condition:
    """The condition of `column NOT LIKE 'prefix%'`."""
    after = next_text(prefix)
    less = Exists(column, Test.BELOW, prefix)
    return AnyOf((less, Exists(column, Test.FROM, after))) if after is not None else less


COMPARISONS: Mapping[str, tuple[Test, Test]] = {
    "<": (Test.BELOW, Test.FROM),
    "<=": (Test.UP_TO, Test.ABOVE),
    ">": (Test.ABOVE, Test.UP_TO),
    ">=": (Test.FROM, Test.BELOW),
}
"""The test of each comparison of a column with a value, and that of its negation."""
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison with its sides changed."""
TRUE, FALSE = AllOf(()), AnyOf(())
