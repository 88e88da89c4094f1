"""The benefit of a clustering for readers: how many files a range predicate reads, before and after, by the footers.

For every sort column the distinct bounds of the old and new files are divided into up to ten ranges, each with about
the same number of bounds. These ranges are the predicates, and the result is the average over them. A reader with
column statistics reads the files whose range overlaps that of the predicate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from ..parquet.chunk_stats import ColumnStats

_PREDICATES = 10
Bounds = tuple[Any, Any] | tuple[()] | None
"""Least and greatest value of a file; () when all are null, None when they are not known."""


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """The bounds of one column in the old files of a group (`before`) and in its new files (`after`)."""

    column: str
    before: tuple[Bounds, ...]
    after: tuple[Bounds, ...]


@dataclass(frozen=True, slots=True)
class Skipping:
    """The number of files before and after, and how many of them a predicate reads on average."""

    column: str
    files_before: int
    read_before: float
    files_after: int
    read_after: float


def column_bounds(
    columns: Iterable[str], before: Sequence[Sequence[ColumnStats]], after: Sequence[Sequence[ColumnStats]]
) -> tuple[ColumnBounds, ...]:
    """The bounds of some columns, from the statistics of each old and each new file."""

    def of(files: Sequence[Sequence[ColumnStats]], column: str) -> tuple[Bounds, ...]:
        return tuple(_bounds(next((one for one in file if one.column == column), None)) for file in files)

    return tuple(ColumnBounds(column, of(before, column), of(after, column)) for column in columns)


def joined_bounds(some: Iterable[Sequence[ColumnBounds]]) -> tuple[ColumnBounds, ...]:
    """The bounds of a group of those of its parts."""
    found: dict[str, ColumnBounds] = {}
    for part in some:
        for one in part:
            known = found.get(one.column, ColumnBounds(one.column, (), ()))
            found[one.column] = ColumnBounds(one.column, known.before + one.before, known.after + one.after)
    return tuple(found.values())


def skipping(groups: Iterable[Sequence[ColumnBounds]]) -> list[Skipping]:
    """The benefit for each column over all groups, without columns whose values are unknown or do not compare."""
    before: dict[str, list[Bounds]] = {}
    after: dict[str, list[Bounds]] = {}
    for group in groups:
        for one in group:
            before.setdefault(one.column, []).extend(one.before)
            after.setdefault(one.column, []).extend(one.after)
    found = []
    for column in before:
        try:
            predicates = _predicates([*before[column], *after[column]])
            read = [_read_on_average(files, predicates) for files in (before[column], after[column])]
        except TypeError:
            continue
        if predicates:
            found.append(Skipping(column, len(before[column]), read[0], len(after[column]), read[1]))
    return found


def _bounds(stats: ColumnStats | None) -> Bounds:
    if stats is None or not stats.has_range:
        return None
    return () if stats.min is None else (stats.min, stats.max)


def _predicates(files: Sequence[Bounds]) -> list[tuple[Any, Any]]:
    values = [value for value, _ in groupby(sorted(value for file in files for value in file or ()))]
    count = min(_PREDICATES, max(1, len(values) - 1))
    return list(pairwise(values[(len(values) - 1) * n // count] for n in range(count + 1))) if values else []


def _read_on_average(files: Sequence[Bounds], predicates: Sequence[tuple[Any, Any]]) -> float:
    read = sum(_is_read(file, low, high) for file in files for low, high in predicates)
    return read / max(1, len(predicates))


def _is_read(file: Bounds, low: Any, high: Any) -> bool:
    # All nulls: no predicate on values is true.
    return file is None or (len(file) == 2 and bool(file[0] <= high and low <= file[1]))
